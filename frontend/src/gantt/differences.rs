//! Compares the actions of two timelines.
//!
//! Two plans may differ in model partitioning, sample assignment and device layout. The comparison
//! therefore matches actions that process the same samples in the same layers and the same module.
//! It splits their device time (duration times devices per rank) by samples, weighted by tokens,
//! and by layers. If a timeline does not list its samples, actions with the same kind, stage,
//! microbatch index and microbatch shape match.

#[cfg(test)]
mod tests;
mod work;

use std::collections::HashMap;

use api::planner::timeline::{SpanKind, Timeline};

use self::work::Work;
use super::rank_devices::{ComparedDevices, RankDevices};
use super::time_text::duration;
use crate::format::{percent, signed_percent};

/// Compared quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Aspect {
    #[default]
    Duration,
    End,
}

/// Time for the same work in the other timeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counterpart {
    /// Duration in ns, scaled to the device count on the action's rank.
    pub(crate) duration_ns: f64,
    /// Latest end in ns.
    pub(crate) end_ns: f64,
}

/// Device time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct DeviceTime {
    /// All actions, in device-ns.
    all: f64,
    /// Actions with a counterpart, in device-ns.
    matched: f64,
    /// The counterparts, in device-ns.
    counterparts: f64,
}

/// Comparison between two timelines.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Differences {
    /// Counterpart by span; `None` if it is missing or incomplete.
    pub(crate) counterpart: Vec<Option<Counterpart>>,
    /// Matched action count.
    pub(crate) matched: usize,
    /// Compared action count, excluding sends.
    pub(crate) actions: usize,
    /// Device time of these actions.
    time: DeviceTime,
    /// True if device counts per rank differ.
    has_other_devices: bool,
}

/// Minimum matched fraction of the actions' time. Smaller fractions are not representative for the
/// plan. Charts show the slowest replica, which may contain different samples, so the fraction is
/// often far below 1.
const MIN_MATCHED: f64 = 0.05;
/// The summary mentions matched fractions below this value.
const MOSTLY_MATCHED: f64 = 0.9;

impl Differences {
    /// Compares two timelines with equal device counts per rank.
    #[cfg(test)]
    pub(crate) fn with_equal_devices(timeline: &Timeline, other: &Timeline) -> Self {
        Self::between(timeline, other, &ComparedDevices::default())
    }

    /// Matches each action in `timeline` with `other`.
    pub(crate) fn between(timeline: &Timeline, other: &Timeline, devices: &ComparedDevices) -> Self {
        let work = Work::from_timeline(timeline, &devices.current).zip(Work::from_timeline(other, &devices.other));
        let places = Places::new(other, &devices.other);
        let has_same_ranks = timeline.ranks == other.ranks && devices.current == devices.other;
        let mut found = Self {
            counterpart: vec![None; timeline.len()],
            has_other_devices: devices.current != devices.other,
            ..Self::default()
        };
        for rank in 0..timeline.ranks as usize {
            let device_count = devices.current.device_count(rank);
            for span in timeline.communication_lane(rank) {
                found.counterpart[span] = places.counterpart(timeline, span, rank, None);
            }
            for span in timeline.compute_lane(rank) {
                let kind = SpanKind::from_index(timeline.kind[span]);
                let has_microbatch = kind.is_some_and(super::describe::has_microbatch);
                let counterpart = match &work {
                    Some((here, there)) if has_microbatch => there.counterpart(here, span, device_count),
                    None if has_microbatch => places.counterpart(timeline, span, rank, Some(device_count)),
                    _ if has_same_ranks => places.counterpart(timeline, span, rank, Some(device_count)),
                    _ => places.mean(timeline.kind[span]),
                };
                found.note(span, timeline.duration_ns[span] as f64 * device_count, device_count, counterpart);
            }
        }
        found
    }

    fn note(&mut self, span: usize, device_ns: f64, devices: f64, counterpart: Option<Counterpart>) {
        self.actions += 1;
        self.time.all += device_ns;
        if let Some(counterpart) = counterpart {
            self.matched += 1;
            self.time.matched += device_ns;
            self.time.counterparts += counterpart.duration_ns * devices;
        }
        self.counterpart[span] = counterpart;
    }

    /// Returns a message if the matched fraction is too small for a comparison.
    pub(crate) fn refusal(&self) -> Option<String> {
        if self.time.matched >= MIN_MATCHED * self.time.all && self.matched > 0 {
            return None;
        }
        Some(format!(
            "Not comparable action by action: {} of the time of the actions has the same samples and layers in the baseline's \
             timeline, {} are needed. Compare the times by part under \u{201c}Where the time goes\u{201d}.",
            percent(self.matched_share()),
            percent(MIN_MATCHED)
        ))
    }

    /// Returns a note for the summary if more than 10 % of the time is unmatched.
    pub(crate) fn remainder(&self) -> Option<String> {
        let share = self.matched_share();
        (share < MOSTLY_MATCHED).then(|| {
            format!(
                "; {} of the time is of samples or layers that the baseline's chart does not show",
                percent(1.0 - share)
            )
        })
    }

    /// Matched fraction of the actions' device time.
    fn matched_share(&self) -> f64 {
        if self.time.all > 0.0 { self.time.matched / self.time.all } else { 0.0 }
    }

    /// Difference in device time between the matched actions and their counterparts, in device-ns,
    /// and relative to the counterparts. Positive values mean that the actions are slower.
    pub(crate) fn sum(&self) -> (f64, f64) {
        let difference = self.time.matched - self.time.counterparts;
        (difference, if self.time.counterparts > 0.0 { difference / self.time.counterparts } else { 0.0 })
    }

    /// Difference between an action and its counterpart in ns, and as a fraction. Durations are
    /// relative to the counterpart's duration. End times are relative to the iteration time of the
    /// other timeline.
    pub(crate) fn at(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> Option<(f64, f64)> {
        let there = (*self.counterpart.get(span)?)?;
        let (difference, reference) = match aspect {
            Aspect::Duration => (timeline.duration_ns[span] as f64 - there.duration_ns, there.duration_ns),
            Aspect::End => (timeline.end_ns(span) as f64 - there.end_ns, other.makespan_ns as f64),
        };
        Some((difference, if reference > 0.0 { difference / reference } else { 0.0 }))
    }

    /// Formats the difference of an action, for example "+1.20 ms (+8.0 %) than in the baseline".
    pub(crate) fn difference_text(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> String {
        let Some((ns, share)) = self.at(timeline, other, span, aspect) else {
            return "not in the baseline".to_owned();
        };
        let sign = if ns < 0.0 { '\u{2212}' } else { '+' };
        let by = format!("{sign}{} ({})", duration(ns.abs()), signed_percent(share));
        let unit = if self.has_other_devices { ", at equal device-seconds" } else { "" };
        match aspect {
            Aspect::Duration if ns.abs() < 0.5 => format!("as long as in the baseline{unit}"),
            Aspect::End if ns.abs() < 0.5 => "ends when it does in the baseline".to_owned(),
            Aspect::Duration => format!("{by} than in the baseline{unit}"),
            Aspect::End if ns < 0.0 => format!("{by} of the baseline's iteration: ends earlier"),
            Aspect::End => format!("{by} of the baseline's iteration: ends later"),
        }
    }

    /// Selects the more informative aspect: durations if any duration differs by 0.1 % or more,
    /// otherwise end times.
    pub(crate) fn clearest_aspect(&self, timeline: &Timeline, other: &Timeline) -> Aspect {
        let differs = (0..timeline.len())
            .any(|span| self.at(timeline, other, span, Aspect::Duration).is_some_and(|(_, share)| share.abs() >= 1e-3));
        if differs { Aspect::Duration } else { Aspect::End }
    }
}

/// Span index by kind, place and microbatch, plus gradient synchronization and optimizer times per
/// device.
struct Places<'a> {
    timeline: &'a Timeline,
    devices: &'a RankDevices,
    /// Span index and rank.
    spans: HashMap<(u8, u32, u32), (usize, usize)>,
    /// Device time in device-ns and latest end in ns, for kinds without a microbatch.
    step_end: HashMap<u8, (f64, u64)>,
    /// Total device count.
    all_devices: f64,
}

impl<'a> Places<'a> {
    fn new(timeline: &'a Timeline, devices: &'a RankDevices) -> Self {
        let mut spans = HashMap::with_capacity(timeline.len());
        let mut step_end: HashMap<u8, (f64, u64)> = HashMap::new();
        let mut all_devices = 0.0;
        for rank in 0..timeline.ranks as usize {
            let device_count = devices.device_count(rank);
            all_devices += device_count;
            for span in timeline.compute_lane(rank).chain(timeline.communication_lane(rank)) {
                let kind = timeline.kind[span];
                spans.insert((kind, stage_or_rank(timeline, span, rank), timeline.microbatch[span]), (span, rank));
                if is_step_end(kind) {
                    let sum = step_end.entry(kind).or_default();
                    sum.0 += timeline.duration_ns[span] as f64 * device_count;
                    sum.1 = sum.1.max(timeline.end_ns(span));
                }
            }
        }
        Self { timeline, devices, spans, step_end, all_devices }
    }

    /// Looks up a span by kind, place and microbatch. Scales the duration to a rank with `devices`
    /// devices, or returns it unscaled for `None`.
    fn counterpart(&self, timeline: &Timeline, span: usize, rank: usize, devices: Option<f64>) -> Option<Counterpart> {
        let key = (timeline.kind[span], stage_or_rank(timeline, span, rank), timeline.microbatch[span]);
        let &(there, other_rank) = self.spans.get(&key)?;
        holds_the_same(timeline, span, self.timeline, there).then(|| {
            let scale = devices.map_or(1.0, |devices| self.devices.device_count(other_rank) / devices);
            Counterpart {
                duration_ns: self.timeline.duration_ns[there] as f64 * scale,
                end_ns: self.timeline.end_ns(there) as f64,
            }
        })
    }

    /// Mean gradient synchronization or optimizer time per device. Used for different layouts, in
    /// which ranks have no direct counterpart.
    fn mean(&self, kind: u8) -> Option<Counterpart> {
        let (device_ns, end_ns) = *self.step_end.get(&kind)?;
        Some(Counterpart { duration_ns: device_ns / self.all_devices.max(1.0), end_ns: end_ns as f64 })
    }
}

fn is_step_end(kind: u8) -> bool {
    matches!(SpanKind::from_index(kind), Some(SpanKind::GradientSync | SpanKind::Optimizer))
}

/// Stage index, or the rank for actions that belong to no stage.
fn stage_or_rank(timeline: &Timeline, span: usize, rank: usize) -> u32 {
    if is_step_end(timeline.kind[span]) { rank as u32 } else { timeline.stage[span] }
}

fn holds_the_same(timeline: &Timeline, span: usize, other: &Timeline, there: usize) -> bool {
    if is_step_end(timeline.kind[span]) {
        return true;
    }
    let shape =
        |timeline: &Timeline, span: usize| timeline.microbatches.get(timeline.microbatch[span] as usize).copied();
    shape(timeline, span) == shape(other, there)
}
