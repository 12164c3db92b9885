//! Local swaps, which give microbatches different positions on different ranks. A ranking cannot
//! express this.
//!
//! The best ranking is interleaved, then swaps on the critical path improve the order. Swaps
//! respect the memory limit on all ranks, like the dual queue.

use planscope_core::action::Schedule;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::schedule::critical_swaps::{Effort, improve};

/// Simulated orders per rollout. A swap is simulated from its position onward, in about a fifth of
/// the interleaving time.
const ORDERS_A_ROLLOUT: u32 = 5;

/// Order and end after swaps.
pub(crate) struct Swapped {
    pub schedule: Schedule,
    /// End including synchronisation and optimizer step.
    pub end: Nanos,
}

/// Improves an order, in about the time of a search for `rollouts`.
///
/// Returns `None` without rollouts, or if the order cannot be decomposed.
pub(crate) fn swapped(schedule: &Schedule, costs: &PipelineCosts, limit: Bytes, rollouts: u32) -> Option<Swapped> {
    if rollouts == 0 {
        return None;
    }
    let effort = Effort { steps: rollouts, orders: rollouts.saturating_mul(ORDERS_A_ROLLOUT) };
    improve(schedule, costs, limit, effort).map(|found| Swapped { schedule: found.schedule, end: found.end })
}
