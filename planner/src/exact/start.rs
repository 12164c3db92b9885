//! What the search starts from: the best of this crate's heuristics.

use super::branch::end_of;
use crate::cost::PipelineCosts;
use crate::host::{Watch, Workers};
use crate::ranking::{self, Goal, Starts, Strategy};
use crate::schedule::critical_swaps::{Effort, improve};
use crate::schedule::dual_queue::{Interleaving, TooLarge, interleave};
use crate::schedule::{Schedule, wait_free_cyclic};
use crate::units::{Bytes, Nanos};

/// Rankings that are tried beside the usual orders.
const ROLLOUTS: u32 = 2000;

/// Most steps of swaps from each of them.
const STEPS: u64 = 400;
/// Actions simulated by the swaps, about: a step tries some swaps for each microbatch in a row, and each runs on to the end.
const SIMULATED_ACTIONS: u64 = 40_000_000;

/// Ends of the iteration under each heuristic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristics {
    /// Wait-free cyclic; absent where microbatches do not all visit all stages, or memory stops it.
    pub wait_free: Option<Nanos>,
    /// Dual queue under the best ranking of microbatches that was found.
    pub ranking: Nanos,
    /// The better of both after swaps on their critical paths.
    pub swapped: Nanos,
}

impl Heuristics {
    /// The earliest of them.
    pub fn best(&self) -> Nanos {
        self.swapped
    }
}

/// Runs the heuristics and returns the best schedule. Each microbatch is a group of its own.
pub(super) fn best(
    costs: &PipelineCosts,
    limit: Bytes,
    seed: u32,
    workers: &dyn Workers,
    watch: &dyn Watch,
) -> Result<(Heuristics, Schedule), TooLarge> {
    let groups: Vec<u32> = (0..costs.microbatches() as u32).collect();
    let interleaving = Interleaving::new(costs, &groups, limit)?;
    let budget = ranking::Budget { starts: Starts::All, rollouts: ROLLOUTS, seed, stream: 0 };
    let ranked = ranking::search(&interleaving, Strategy::MonteCarlo, Goal::Fastest, budget, workers, watch);
    let found = interleave(&interleaving, &ranked.priorities);
    let wait_free = costs.flows.is_cyclic().then(|| wait_free_cyclic::within_seconds(costs, limit).ok()).flatten();
    let wait_free = wait_free.and_then(|schedule| Some((end_of(&schedule, costs)?, schedule)));
    let (ranking, wait_free_end) = (found.end, wait_free.as_ref().map(|&(end, _)| end));
    let mut starts = vec![(ranking, found.schedule)];
    starts.extend(wait_free);
    starts.sort_by_key(|&(end, _)| end);
    // The better one first, so that it is what is left where the other comes to no less.
    let swapped = |(end, schedule): (Nanos, Schedule)| {
        let affordable = SIMULATED_ACTIONS / (schedule.len().max(1) as u64).pow(2);
        let steps = if watch.is_over() { 0 } else { affordable.min(STEPS) as u32 };
        match improve(&schedule, costs, limit, Effort::steps(steps)) {
            Some(improved) if improved.end < end => (improved.end, improved.schedule),
            _ => (end, schedule),
        }
    };
    let best = starts.into_iter().map(swapped).min_by_key(|&(end, _)| end);
    let (end, schedule) = best.expect("the ranking always has a schedule");
    Ok((Heuristics { wait_free: wait_free_end, ranking, swapped: end }, schedule))
}
