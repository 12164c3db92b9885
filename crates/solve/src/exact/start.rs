//! Initial schedule for the search, from heuristics.

use super::branch::schedule_end;
use planscope_core::action::Schedule;
use planscope_core::host::{Cancellation, Workers};
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::schedule::critical_swaps::{Effort, improve};
use planscope_pipeline::schedule::dual_queue::{Interleaving, TooLarge, interleave};
use planscope_pipeline::schedule::wait_free_cyclic;
use planscope_planners::planners::pipeweaver::ranking;
use planscope_planners::planners::pipeweaver::ranking::{Goal, Starts, Strategy};

/// Rankings tried in addition to the default orders.
const ROLLOUTS: u32 = 2000;

/// Maximum swap steps per start schedule.
const STEPS: u64 = 400;
/// Approximate limit for actions simulated by swaps. A step tries several swaps per microbatch and
/// rank; each swap re-simulates the remaining actions.
const SIMULATED_ACTIONS: u64 = 40_000_000;

/// Iteration end per heuristic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristics {
    /// Wait-free cyclic. `None` if some microbatch does not visit all stages, or if memory is
    /// insufficient.
    pub wait_free: Option<Nanos>,
    /// Dual queue, using the best ranking found.
    pub ranking: Nanos,
    /// The faster of both schedules after critical-path swaps.
    pub swapped: Nanos,
}

impl Heuristics {
    /// Returns the earliest end.
    pub fn best(&self) -> Nanos {
        self.swapped
    }
}

/// Runs the heuristics, treating each microbatch as a separate group. Returns the fastest schedule.
pub(super) fn best(
    costs: &PipelineCosts,
    limit: Bytes,
    seed: u32,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<(Heuristics, Schedule), TooLarge> {
    let groups: Vec<u32> = (0..costs.microbatches() as u32).collect();
    let interleaving = Interleaving::new(costs, &groups, limit)?;
    let budget = ranking::Budget { starts: Starts::All, rollouts: ROLLOUTS, seed, stream: 0 };
    let ranked = ranking::search(&interleaving, Strategy::MonteCarlo, Goal::Fastest, budget, workers, cancellation);
    let found = interleave(&interleaving, &ranked.priorities);
    let wait_free = costs.flows.is_cyclic().then(|| wait_free_cyclic::within_seconds(costs, limit).ok()).flatten();
    let wait_free = wait_free.and_then(|schedule| Some((schedule_end(&schedule, costs)?, schedule)));
    let (ranking, wait_free_end) = (found.end, wait_free.as_ref().map(|&(end, _)| end));
    let mut starts = vec![(ranking, found.schedule)];
    starts.extend(wait_free);
    starts.sort_by_key(|&(end, _)| end);
    // Sort by end: on ties `min_by_key` returns the earlier start.
    let swapped = |(end, schedule): (Nanos, Schedule)| {
        let affordable = SIMULATED_ACTIONS / (schedule.len().max(1) as u64).pow(2);
        let steps = if cancellation.is_over() { 0 } else { affordable.min(STEPS) as u32 };
        match improve(&schedule, costs, limit, Effort::steps(steps)) {
            Some(improved) if improved.end < end => (improved.end, improved.schedule),
            _ => (end, schedule),
        }
    };
    let best = starts.into_iter().map(swapped).min_by_key(|&(end, _)| end);
    let (end, schedule) = best.expect("the ranking always has a schedule");
    Ok((Heuristics { wait_free: wait_free_end, ranking, swapped: end }, schedule))
}
