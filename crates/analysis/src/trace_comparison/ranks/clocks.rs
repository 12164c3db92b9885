//! Clocks of ranks, aligned on the ends of collectives.

use std::collections::BTreeMap;

use super::super::{median, signed};
use super::matching::Matched;

/// Aligned clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::trace_comparison) struct Clocks {
    /// Clock of each rank minus clock of the first rank.
    pub(in crate::trace_comparison) offset_ns: Vec<Option<i64>>,
    /// Median deviation of ends from the end on the first rank of the collective.
    pub(super) deviation_ns: u64,
}

/// Sets each clock from the rank with which it shares the most collectives, beginning at the first
/// rank. The median ignores single collectives whose kernels end late.
pub(super) fn align(ranks: usize, matched: &[Matched]) -> Clocks {
    let mut shared: BTreeMap<(usize, usize), Vec<i64>> = BTreeMap::new();
    for collective in matched {
        let first = collective.arrivals[0];
        for other in &collective.arrivals[1..] {
            shared.entry((first.rank, other.rank)).or_default().push(signed(other.end_ns, first.end_ns));
        }
    }
    let edges: BTreeMap<(usize, usize), (usize, i64)> =
        shared.into_iter().map(|(pair, differences)| (pair, (differences.len(), median(differences)))).collect();
    let mut offset_ns = vec![None; ranks];
    if let Some(first) = offset_ns.first_mut() {
        *first = Some(0_i64);
    }
    loop {
        let next = edges
            .iter()
            .filter(|((one, other), _)| offset_ns[*one].is_some() != offset_ns[*other].is_some())
            .max_by_key(|(pair, (count, _))| (*count, std::cmp::Reverse(**pair)));
        let Some((&(one, other), &(_, difference))) = next else { break };
        match (offset_ns[one], offset_ns[other]) {
            (Some(known), _) => offset_ns[other] = Some(known.saturating_add(difference)),
            (_, Some(known)) => offset_ns[one] = Some(known.saturating_sub(difference)),
            (None, None) => break,
        }
    }
    let mut deviations = Vec::new();
    for collective in matched {
        let first = collective.arrivals[0];
        for other in &collective.arrivals[1..] {
            if let (Some(left), Some(right)) = (offset_ns[first.rank], offset_ns[other.rank]) {
                deviations.push((signed(other.end_ns, first.end_ns).saturating_sub(right - left)).unsigned_abs());
            }
        }
    }
    Clocks { offset_ns, deviation_ns: median(deviations) }
}
