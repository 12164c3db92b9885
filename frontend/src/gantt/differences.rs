//! How the actions of one timeline differ from those of another one.
//!
//! Two plans may cut the model, deal the samples and divide the devices differently. An action is therefore compared with the
//! actions of the other timeline that process the same samples in the same layers of the same module: their device time (duration
//! times the devices of a rank) is divided by samples (weighted by tokens) and layers. If a timeline does not say its samples, an
//! action is the same where kind, stage and microbatch are, and where the microbatch has the same shape.

#[cfg(test)]
mod tests;
mod work;

use std::collections::HashMap;

use api::planner::timeline::{SpanKind, Timeline};

use self::work::Work;
use super::rank_devices::{ComparedDevices, RankDevices};
use super::time_text::duration;
use crate::format::{percent, signed_percent};

/// What is compared of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Aspect {
    /// How long it takes.
    #[default]
    Duration,
    /// When it ends.
    End,
}

/// Time that the other timeline takes for the same work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Counterpart {
    /// Duration on a rank with as many devices as that of the action, in ns.
    pub(crate) duration_ns: f64,
    /// End of the last action of it, in ns.
    pub(crate) end_ns: f64,
}

/// Times of the actions of a timeline, times the devices of their ranks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct DeviceTime {
    /// All actions, in device-ns.
    all: f64,
    /// Actions that have a counterpart, in device-ns.
    matched: f64,
    /// Their counterparts, in device-ns.
    counterparts: f64,
}

/// The actions of a timeline next to those of another one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Differences {
    /// The same work in the other timeline, by span; `None` if it is not there, or only in part.
    pub(crate) counterpart: Vec<Option<Counterpart>>,
    /// Actions that have one.
    pub(crate) matched: usize,
    /// Actions that take part: all but sends.
    pub(crate) actions: usize,
    /// Their device time.
    time: DeviceTime,
    /// Whether ranks of the two timelines have different numbers of devices.
    has_other_devices: bool,
}

/// Share of the time of the actions that must have a counterpart: differences of fewer actions say nothing about the plan. Charts show
/// the slowest replica, which need not hold the same samples, so the share is often far below one.
const MIN_MATCHED: f64 = 0.05;
/// Share below which the summary names it.
const MOSTLY_MATCHED: f64 = 0.9;

impl Differences {
    /// The same for timelines whose ranks have equally many devices.
    #[cfg(test)]
    pub(crate) fn of(timeline: &Timeline, other: &Timeline) -> Self {
        Self::between(timeline, other, &ComparedDevices::default())
    }

    /// Looks for the work of every action of `timeline` in `other`.
    pub(crate) fn between(timeline: &Timeline, other: &Timeline, devices: &ComparedDevices) -> Self {
        let work = Work::of(timeline, &devices.own).zip(Work::of(other, &devices.other));
        let places = Places::of(other, &devices.other);
        let has_same_ranks = timeline.ranks == other.ranks && devices.own == devices.other;
        let mut found = Self {
            counterpart: vec![None; timeline.len()],
            has_other_devices: devices.own != devices.other,
            ..Self::default()
        };
        for rank in 0..timeline.ranks as usize {
            let own = devices.own.of_rank(rank);
            for span in timeline.communication_lane(rank) {
                found.counterpart[span] = places.counterpart(timeline, span, rank, None);
            }
            for span in timeline.compute_lane(rank) {
                let kind = SpanKind::from_index(timeline.kind[span]);
                let has_microbatch = kind.is_some_and(super::describe::has_microbatch);
                let counterpart = match &work {
                    Some((here, there)) if has_microbatch => there.counterpart(here, span, own),
                    None if has_microbatch => places.counterpart(timeline, span, rank, Some(own)),
                    _ if has_same_ranks => places.counterpart(timeline, span, rank, Some(own)),
                    _ => places.mean(timeline.kind[span]),
                };
                found.note(span, timeline.duration_ns[span] as f64 * own, own, counterpart);
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

    /// Why differences are not shown, in words; `None` if enough of the time of the actions has a counterpart.
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

    /// What the summary says of the actions without a counterpart, where they take more than a tenth of the time.
    pub(crate) fn remainder(&self) -> Option<String> {
        let share = self.matched_share();
        (share < MOSTLY_MATCHED).then(|| {
            format!(
                "; {} of the time is of samples or layers that the baseline's chart does not show",
                percent(1.0 - share)
            )
        })
    }

    /// Share of the device time of the actions that has a counterpart.
    fn matched_share(&self) -> f64 {
        if self.time.all > 0.0 { self.time.matched / self.time.all } else { 0.0 }
    }

    /// How much more device time the actions with a counterpart take than their counterparts, in device-ns and as a share of these.
    pub(crate) fn sum(&self) -> (f64, f64) {
        let difference = self.time.matched - self.time.counterparts;
        (difference, if self.time.counterparts > 0.0 { difference / self.time.counterparts } else { 0.0 })
    }

    /// How much later or longer an action is than its counterpart, in ns, and as a share of the counterpart's time; of its end as a
    /// share of the counterpart's iteration.
    pub(crate) fn at(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> Option<(f64, f64)> {
        let there = (*self.counterpart.get(span)?)?;
        let (difference, whole) = match aspect {
            Aspect::Duration => (timeline.duration_ns[span] as f64 - there.duration_ns, there.duration_ns),
            Aspect::End => (timeline.end_ns(span) as f64 - there.end_ns, other.makespan_ns as f64),
        };
        Some((difference, if whole > 0.0 { difference / whole } else { 0.0 }))
    }

    /// The difference of an action in words, with sign and percent: "+1.20 ms (+8.0 %) than in the baseline".
    pub(crate) fn told(&self, timeline: &Timeline, other: &Timeline, span: usize, aspect: Aspect) -> String {
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

    /// The aspect that says more: durations where any differs by a thousandth, else ends.
    pub(crate) fn telling(&self, timeline: &Timeline, other: &Timeline) -> Aspect {
        let differs = (0..timeline.len())
            .any(|span| self.at(timeline, other, span, Aspect::Duration).is_some_and(|(_, share)| share.abs() >= 1e-3));
        if differs { Aspect::Duration } else { Aspect::End }
    }
}

/// The spans of a timeline by kind, place and microbatch, and the mean time of its step end by device.
struct Places<'a> {
    timeline: &'a Timeline,
    devices: &'a RankDevices,
    /// Span and rank.
    spans: HashMap<(u8, u32, u32), (usize, usize)>,
    /// Device time in device-ns and last end in ns of the kinds without a microbatch.
    step_end: HashMap<u8, (f64, u64)>,
    /// Devices of all ranks.
    all_devices: f64,
}

impl<'a> Places<'a> {
    fn of(timeline: &'a Timeline, devices: &'a RankDevices) -> Self {
        let mut spans = HashMap::with_capacity(timeline.len());
        let mut step_end: HashMap<u8, (f64, u64)> = HashMap::new();
        let mut all_devices = 0.0;
        for rank in 0..timeline.ranks as usize {
            let own = devices.of_rank(rank);
            all_devices += own;
            for span in timeline.compute_lane(rank).chain(timeline.communication_lane(rank)) {
                let kind = timeline.kind[span];
                spans.insert((kind, place(timeline, span, rank), timeline.microbatch[span]), (span, rank));
                if is_step_end(kind) {
                    let sum = step_end.entry(kind).or_default();
                    sum.0 += timeline.duration_ns[span] as f64 * own;
                    sum.1 = sum.1.max(timeline.end_ns(span));
                }
            }
        }
        Self { timeline, devices, spans, step_end, all_devices }
    }

    /// The span of the same kind, place and microbatch, its time on a rank with `devices` devices; as it is without a number.
    fn counterpart(&self, timeline: &Timeline, span: usize, rank: usize, devices: Option<f64>) -> Option<Counterpart> {
        let key = (timeline.kind[span], place(timeline, span, rank), timeline.microbatch[span]);
        let &(there, other_rank) = self.spans.get(&key)?;
        holds_the_same(timeline, span, self.timeline, there).then(|| {
            let scale = devices.map_or(1.0, |devices| self.devices.of_rank(other_rank) / devices);
            Counterpart {
                duration_ns: self.timeline.duration_ns[there] as f64 * scale,
                end_ns: self.timeline.end_ns(there) as f64,
            }
        })
    }

    /// The mean time of a device in gradient synchronisation or in the optimizer: ranks of other layouts are no counterparts.
    fn mean(&self, kind: u8) -> Option<Counterpart> {
        let (device_ns, end_ns) = *self.step_end.get(&kind)?;
        Some(Counterpart { duration_ns: device_ns / self.all_devices.max(1.0), end_ns: end_ns as f64 })
    }
}

fn is_step_end(kind: u8) -> bool {
    matches!(SpanKind::from_index(kind), Some(SpanKind::GradientSync | SpanKind::Optimizer))
}

/// Stage of an action; rank of those that belong to none.
fn place(timeline: &Timeline, span: usize, rank: usize) -> u32 {
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
