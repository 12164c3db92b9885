//! Pairs of observed and planned actions, with differences.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key;
use planscope_core::timeline::{SpanKind, Timeline};

/// Maximum number of unmatched actions in the result.
const MAX_NAMED: usize = 200;

/// Action identification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionName {
    /// Row in the timeline.
    pub rank: u32,
    /// Action kind.
    pub kind: SpanKind,
    /// Pipeline stage.
    pub stage: u32,
    /// Microbatch index.
    pub microbatch: u32,
}

/// An observed action and the matching planned action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Pair {
    /// Planned action.
    pub action: ActionName,
    /// Span index in the observed timeline.
    pub observed: u32,
    /// Span index in the simulated timeline.
    pub simulated: u32,
    /// Observed start relative to the iteration start, in ns.
    pub observed_start_ns: u64,
    /// Simulated start, in ns.
    pub simulated_start_ns: u64,
    /// Observed duration, in ns.
    pub observed_ns: u64,
    /// Simulated duration, in ns.
    pub simulated_ns: u64,
    /// Observed minus simulated duration, in ns. A positive value is slower than planned.
    pub difference_ns: i64,
    /// Observed minus simulated start, in ns. A positive value is later than planned.
    pub delay_ns: i64,
}

/// Totals per kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KindTotal {
    /// Action kind.
    pub kind: SpanKind,
    /// Number of pairs.
    pub pairs: u64,
    /// Total observed duration, in ns.
    pub observed_ns: u64,
    /// Total simulated duration, in ns.
    pub simulated_ns: u64,
    /// Observed minus simulated duration, in ns.
    pub difference_ns: i64,
    /// Median ratio of observed to simulated duration. `None` if all simulated durations are zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

/// An observed iteration aligned with a planned iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Aligned {
    /// Matched actions, by simulated start.
    pub pairs: Vec<Pair>,
    /// Totals by kind.
    pub kinds: Vec<KindTotal>,
    /// Observed time between minimum start and maximum end, in ns.
    pub observed_makespan_ns: u64,
    /// Simulated makespan, in ns.
    pub simulated_makespan_ns: u64,
    /// Number of observed actions that are not in the plan.
    pub only_observed: u64,
    /// Earliest of these actions.
    pub only_observed_names: Vec<ActionName>,
    /// Number of planned actions that were not observed.
    pub only_simulated: u64,
    /// Earliest of these actions.
    pub only_simulated_names: Vec<ActionName>,
}

/// Matches observed and planned actions by stage, kind and microbatch. Gradient synchronization and
/// optimizer actions are matched by rank. If a key occurs several times, the n-th observed action
/// matches the n-th planned action.
pub fn align(measured: &Timeline, simulated: &Timeline) -> Aligned {
    let mut open = by_key(measured);
    let mut pairs = Vec::new();
    let (mut only_simulated, mut only_simulated_names) = (0, Vec::new());
    for (key, spans) in by_key(simulated) {
        let mut partners = open.remove(&key).unwrap_or_default().into_iter();
        for simulated_span in spans {
            if let Some(measured_span) = partners.next() {
                pairs.push(pair(measured, measured_span, simulated, simulated_span));
            } else {
                only_simulated += 1;
                only_simulated_names.push((simulated.start_ns[simulated_span], name(simulated, simulated_span)));
            }
        }
        let rest: Vec<usize> = partners.collect();
        if !rest.is_empty() {
            open.insert(key, rest);
        }
    }
    pairs.sort_by_key(|pair| (pair.simulated_start_ns, pair.simulated));
    let only_measured_names: Vec<_> =
        open.values().flatten().map(|&span| (measured.start_ns[span], name(measured, span))).collect();
    Aligned {
        kinds: SpanKind::ALL.into_iter().filter_map(|kind| total(kind, &pairs)).collect(),
        pairs,
        observed_makespan_ns: measured.makespan_ns,
        simulated_makespan_ns: simulated.makespan_ns,
        only_observed: only_measured_names.len() as u64,
        only_observed_names: first(only_measured_names),
        only_simulated,
        only_simulated_names: first(only_simulated_names),
    }
}

/// Returns the spans per action key, in start order.
fn by_key(timeline: &Timeline) -> BTreeMap<(SpanKind, u32, u32), Vec<usize>> {
    let mut found: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for rank in 0..timeline.ranks as usize {
        for span in timeline.compute_lane(rank).chain(timeline.communication_lane(rank)) {
            let Some(kind) = SpanKind::from_index(timeline.kind[span]) else { continue };
            let key = key(kind, rank as u32, timeline.stage[span], timeline.microbatch[span]);
            found.entry(key).or_default().push(span);
        }
    }
    for spans in found.values_mut() {
        spans.sort_by_key(|&span| timeline.start_ns[span]);
    }
    found
}

fn pair(measured: &Timeline, measured_span: usize, simulated: &Timeline, simulated_span: usize) -> Pair {
    let (measured_ns, simulated_ns) = (measured.duration_ns[measured_span], simulated.duration_ns[simulated_span]);
    let (measured_start_ns, simulated_start_ns) =
        (measured.start_ns[measured_span], simulated.start_ns[simulated_span]);
    Pair {
        action: name(simulated, simulated_span),
        observed: measured_span as u32,
        simulated: simulated_span as u32,
        observed_start_ns: measured_start_ns,
        simulated_start_ns,
        observed_ns: measured_ns,
        simulated_ns,
        difference_ns: signed(measured_ns, simulated_ns),
        delay_ns: signed(measured_start_ns, simulated_start_ns),
    }
}

fn name(timeline: &Timeline, span: usize) -> ActionName {
    ActionName {
        rank: timeline.span_rank(span) as u32,
        kind: SpanKind::from_index(timeline.kind[span]).unwrap_or(SpanKind::Optimizer),
        stage: timeline.stage[span],
        microbatch: timeline.microbatch[span],
    }
}

fn total(kind: SpanKind, pairs: &[Pair]) -> Option<KindTotal> {
    let kind_pairs: Vec<&Pair> = pairs.iter().filter(|pair| pair.action.kind == kind).collect();
    let measured_ns = kind_pairs.iter().fold(0_u64, |sum, pair| sum.saturating_add(pair.observed_ns));
    let simulated_ns = kind_pairs.iter().fold(0_u64, |sum, pair| sum.saturating_add(pair.simulated_ns));
    let mut ratios: Vec<f64> = kind_pairs
        .iter()
        .filter(|pair| pair.simulated_ns > 0)
        .map(|pair| pair.observed_ns as f64 / pair.simulated_ns as f64)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = match ratios.len() {
        0 => None,
        count if count % 2 == 1 => Some(ratios[count / 2]),
        count => Some(f64::midpoint(ratios[count / 2 - 1], ratios[count / 2])),
    };
    (!kind_pairs.is_empty()).then(|| KindTotal {
        kind,
        pairs: kind_pairs.len() as u64,
        observed_ns: measured_ns,
        simulated_ns,
        difference_ns: signed(measured_ns, simulated_ns),
        ratio,
    })
}

/// Returns the earliest actions.
fn first(mut named: Vec<(u64, ActionName)>) -> Vec<ActionName> {
    named.sort_by_key(|(start, name)| (*start, name.rank, name.kind, name.stage, name.microbatch));
    named.into_iter().take(MAX_NAMED).map(|(_, name)| name).collect()
}

/// Returns `one - other`, saturated to the `i64` range.
fn signed(left: u64, other: u64) -> i64 {
    let difference = i128::from(left) - i128::from(other);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_alignment::{MeasuredAction, timeline};

    fn action(rank: u32, kind: SpanKind, microbatch: u32, start_ns: u64, duration_ns: u64) -> MeasuredAction {
        MeasuredAction { rank, kind, stage: rank, microbatch, start_ns, duration_ns, step: None }
    }

    /// Planned: F0 10, F1 10, B0 20 on rank 0. Observed: F0 12, F1 9 (2 late), an extra F7, no B0,
    /// and two synchronizations; the plan has one, with half the duration.
    #[test]
    fn actions_find_their_partners() {
        use SpanKind::{Backward as B, Forward as F, GradientSync as S};
        let simulated = timeline(&[
            action(0, F, 0, 0, 10),
            action(0, F, 1, 10, 10),
            action(0, B, 0, 20, 20),
            action(0, S, 0, 40, 6),
        ]);
        let measured = timeline(&[
            action(0, F, 0, 1000, 12),
            action(0, F, 1, 1012, 9),
            action(0, F, 7, 1030, 1),
            action(0, S, 3, 1040, 3),
            action(0, S, 4, 1050, 3),
        ]);
        let aligned = align(&measured.timeline, &simulated.timeline);
        let found: Vec<_> = aligned
            .pairs
            .iter()
            .map(|pair| (pair.action.kind, pair.action.microbatch, pair.difference_ns, pair.delay_ns))
            .collect();
        assert_eq!(found, [(F, 0, 2, 0), (F, 1, -1, 2), (S, 0, -3, 0)]);
        assert_eq!((aligned.only_observed, aligned.only_simulated), (2, 1));
        assert_eq!(aligned.only_observed_names[0], ActionName { rank: 0, kind: F, stage: 0, microbatch: 7 });
        assert_eq!(aligned.only_simulated_names, [ActionName { rank: 0, kind: B, stage: 0, microbatch: 0 }]);
        // Ratios 1.2 and 0.9 for F have the median 1.05.
        let total = aligned.kinds[0];
        assert_eq!((total.pairs, total.observed_ns, total.simulated_ns, total.difference_ns), (2, 21, 20, 1));
        assert!((total.ratio.expect("times") - 1.05).abs() < 1e-12);
        assert_eq!((aligned.observed_makespan_ns, aligned.simulated_makespan_ns), (53, 46));
    }

    #[test]
    fn a_timeline_aligns_with_itself() {
        let sample =
            timeline(&[action(0, SpanKind::Forward, 0, 0, 10), action(1, SpanKind::SendBackward, 2, 3, 4)]).timeline;
        let aligned = align(&sample, &sample);
        assert_eq!((aligned.pairs.len(), aligned.only_observed, aligned.only_simulated), (2, 0, 0));
        assert!(
            aligned
                .pairs
                .iter()
                .all(|pair| pair.difference_ns == 0 && pair.delay_ns == 0 && pair.observed == pair.simulated)
        );
    }

    #[test]
    fn differences_stay_in_their_range() {
        assert_eq!((signed(u64::MAX, 0), signed(0, u64::MAX), signed(3, 5)), (i64::MAX, i64::MIN, -2));
    }
}
