//! What a ranking cannot say: one microbatch first on one rank and last on another.
//!
//! The best ranking found is interleaved, and its order then improved by swaps on its critical path. The swaps keep every
//! rank within its memory, as the dual queue does.

use crate::cost::PipelineCosts;
use crate::schedule::Schedule;
use crate::schedule::critical_swaps::{Effort, improve};
use crate::units::{Bytes, Nanos};

/// Orders simulated for every ranking that may be interleaved: a swap is simulated from its place on, in about a fifth of
/// the time that interleaving takes.
const ORDERS_A_ROLLOUT: u32 = 5;

/// An order and the end that swaps brought it to.
pub(crate) struct Swapped {
    pub schedule: Schedule,
    /// Synchronisation and optimizer included.
    pub end: Nanos,
}

/// Improves an order, about as long as a search with so many rollouts takes.
///
/// `None` without rollouts, or where the order cannot be taken apart.
pub(crate) fn swapped(schedule: &Schedule, costs: &PipelineCosts, limit: Bytes, rollouts: u32) -> Option<Swapped> {
    if rollouts == 0 {
        return None;
    }
    let effort = Effort { steps: rollouts, orders: rollouts.saturating_mul(ORDERS_A_ROLLOUT) };
    improve(schedule, costs, limit, effort).map(|found| Swapped { schedule: found.schedule, end: found.end })
}
