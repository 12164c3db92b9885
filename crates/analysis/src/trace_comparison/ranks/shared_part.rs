//! The part of the traces that all ranks have.

use std::collections::BTreeSet;

use super::super::recorded::{DeviceSlice, Recorded};
use super::matching::Matched;

/// Part of the traces that all ranks have: only this part is compared.
pub(super) struct SharedPart {
    /// Steps of all ranks; empty if a rank has none.
    steps: BTreeSet<u64>,
    /// End of the first and of the last collective of all ranks, by rank index: the common part of
    /// traces of different lengths without steps.
    windows: Option<Vec<(u64, u64)>>,
}

impl SharedPart {
    /// Finds the common part. Traces without steps are cut only if their numbers of collectives differ.
    pub(super) fn new(recorded: &[&Recorded], matched: &[Matched], are_unequal: bool) -> Self {
        let mut sets = recorded.iter().map(|rank| rank.steps.iter().map(|step| step.number).collect::<BTreeSet<u64>>());
        let first = sets.next().unwrap_or_default();
        let steps = sets.fold(first, |common, steps| common.intersection(&steps).copied().collect());
        let windows = if steps.is_empty() && are_unequal { windows(recorded.len(), matched) } else { None };
        Self { steps, windows }
    }

    /// Returns whether a slice of a rank is in the common part.
    pub(super) fn has_slice(&self, rank: usize, slice: &DeviceSlice) -> bool {
        let in_window = |&(from_ns, to_ns): &(u64, u64)| slice.start_ns >= from_ns && slice.end_ns() <= to_ns;
        let is_within = self.windows.as_ref().and_then(|windows| windows.get(rank)).is_none_or(in_window);
        is_within && (self.steps.is_empty() || slice.step.is_some_and(|step| self.steps.contains(&step)))
    }

    /// Returns whether a collective is in the common part.
    pub(super) fn has(&self, matched: &Matched) -> bool {
        let in_window = |windows: &Vec<(u64, u64)>| {
            let Some(arrival) = matched.arrivals.first() else { return false };
            windows
                .get(arrival.rank)
                .is_none_or(|&(from_ns, to_ns)| arrival.end_ns > from_ns && arrival.end_ns <= to_ns)
        };
        let is_within = self.windows.as_ref().is_none_or(in_window);
        // A collective without a step belongs to no step that a rank lacks.
        is_within && (self.steps.is_empty() || matched.step.is_none_or(|step| self.steps.contains(&step)))
    }
}

/// Returns the times between the first and the last collective that all ranks have; `None` if these are
/// less than two.
fn windows(ranks: usize, matched: &[Matched]) -> Option<Vec<(u64, u64)>> {
    let mut complete = matched.iter().filter(|matched| matched.arrivals.len() == ranks);
    let first = complete.next()?;
    let last = complete.next_back()?;
    let window = |(first, last): (&super::matching::Arrival, &super::matching::Arrival)| (first.end_ns, last.end_ns);
    Some(first.arrivals.iter().zip(&last.arrivals).map(window).collect())
}
