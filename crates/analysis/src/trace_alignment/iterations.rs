//! Splits observed actions into iterations.

use std::collections::{BTreeMap, BTreeSet};

use super::MeasuredAction;

/// A pipeline iteration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iteration {
    /// Annotated step number, otherwise the index from 0.
    pub number: u64,
    /// True if the trace annotates steps.
    pub announced: bool,
    /// Actions by rank and start time.
    pub actions: Vec<MeasuredAction>,
}

impl Iteration {
    /// Returns minimum start and maximum end in ns.
    pub fn interval_ns(&self) -> (u64, u64) {
        let first = self.actions.iter().map(|action| action.start_ns).min().unwrap_or_default();
        let last = self.actions.iter().map(MeasuredAction::end_ns).max().unwrap_or_default();
        (first, last)
    }
}

/// Returns the iterations in time order.
///
/// If all actions belong to annotated steps, the steps define the iterations. Otherwise, an
/// iteration on a rank ends when an action repeats, and iteration n contains the n-th iteration on
/// all ranks. This works for any schedule, because a schedule runs an action only once. Gradient
/// synchronization can repeat within an iteration.
pub fn iterations(mut actions: Vec<MeasuredAction>) -> Vec<Iteration> {
    actions.sort_by_key(|action| (action.rank, action.start_ns, action.kind, action.stage, action.microbatch));
    let announced = !actions.is_empty() && actions.iter().all(|action| action.step.is_some());
    let mut found: BTreeMap<u64, Vec<MeasuredAction>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let (mut rank, mut iteration) = (None, 0);
    for action in actions {
        if rank != Some(action.rank) {
            (rank, iteration) = (Some(action.rank), 0);
            seen.clear();
        }
        let once = action.kind.is_compute_lane() && action.kind != planscope_core::timeline::SpanKind::GradientSync;
        if once && !seen.insert(action.key()) {
            iteration += 1;
            seen.clear();
            seen.insert(action.key());
        }
        let number = if announced { action.step.unwrap_or_default() } else { iteration };
        found.entry(number).or_default().push(action);
    }
    let iteration = |(number, actions)| Iteration { number, announced, actions };
    let mut iterations: Vec<Iteration> = found.into_iter().map(iteration).collect();
    iterations.sort_by_key(|iteration| (iteration.interval_ns().0, iteration.number));
    iterations
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::timeline::SpanKind;

    fn action(rank: u32, kind: SpanKind, microbatch: u32, start_ns: u64, step: Option<u64>) -> MeasuredAction {
        MeasuredAction { rank, kind, stage: rank, microbatch, start_ns, duration_ns: 1, step }
    }

    fn starts(iterations: &[Iteration]) -> Vec<(u64, Vec<u64>)> {
        let starts = |iteration: &Iteration| iteration.actions.iter().map(|action| action.start_ns).collect();
        iterations.iter().map(|iteration| (iteration.number, starts(iteration))).collect()
    }

    /// Two ranks, two microbatches, two iterations. Rank 1 starts iteration 1 while rank 0 is still
    /// in iteration 0.
    #[test]
    fn an_action_that_comes_again_begins_the_next() {
        use SpanKind::{Backward as B, Forward as F, GradientSync as S};
        let found = iterations(vec![
            action(0, F, 0, 0, None),
            action(0, F, 1, 1, None),
            action(0, S, 0, 2, None),
            action(0, S, 0, 3, None),
            action(0, B, 0, 9, None),
            action(0, F, 0, 10, None),
            action(1, F, 0, 4, None),
            action(1, B, 0, 5, None),
            action(1, F, 0, 8, None),
        ]);
        assert_eq!(starts(&found), [(0, vec![0, 1, 2, 3, 9, 4, 5]), (1, vec![10, 8])]);
        assert!(!found[0].announced);
        assert_eq!(found[0].interval_ns(), (0, 10));
    }

    /// The trace starts in the middle of step 7. Repetition would split it at the wrong action.
    #[test]
    fn steps_go_before_repetition() {
        let forward = |microbatch, start, step| action(0, SpanKind::Forward, microbatch, start, Some(step));
        let found = iterations(vec![forward(1, 0, 7), forward(0, 5, 8), forward(1, 6, 8)]);
        assert_eq!(starts(&found), [(7, vec![0]), (8, vec![5, 6])]);
        assert!(found[0].announced);
        assert!(iterations(Vec::new()).is_empty());
    }
}
