//! What the search starts from: the best of this crate's heuristics.

use super::branch::end_of;
use crate::cost::PipelineCosts;
use crate::ranking::{self, Goal, Strategy, Watch, Workers};
use crate::schedule::dual_queue::{Interleaving, TooLarge, interleave};
use crate::schedule::{Schedule, wait_free_cyclic};
use crate::units::{Bytes, Nanos};

/// Rankings that are tried beside the usual orders.
const ROLLOUTS: u32 = 2000;

/// Ends of the iteration under each heuristic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristics {
    /// Wait-free cyclic; absent where microbatches do not all visit all stages, or memory stops it.
    pub wait_free: Option<Nanos>,
    /// Dual queue under the best ranking of microbatches that was found.
    pub ranking: Nanos,
}

impl Heuristics {
    /// The earlier of them.
    pub fn best(&self) -> Nanos {
        self.wait_free.map_or(self.ranking, |end| end.min(self.ranking))
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
    let budget = ranking::Budget { rollouts: ROLLOUTS, seed, stream: 0 };
    let ranked = ranking::search(&interleaving, Strategy::MonteCarlo, Goal::Fastest, budget, workers, watch);
    let found = interleave(&interleaving, &ranked.priorities);
    let wait_free = costs.flows.is_cyclic().then(|| wait_free_cyclic::within_seconds(costs, limit).ok()).flatten();
    let wait_free = wait_free.and_then(|schedule| Some((end_of(&schedule, costs)?, schedule)));
    let heuristics = Heuristics { wait_free: wait_free.as_ref().map(|&(end, _)| end), ranking: found.end };
    let best = match wait_free {
        Some((end, schedule)) if end < found.end => schedule,
        _ => found.schedule,
    };
    Ok((heuristics, best))
}
