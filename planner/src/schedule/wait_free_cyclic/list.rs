//! List scheduling in time: a free rank never waits while something it may do is ready.

use super::walk::{State, Walk};
use crate::cost::PipelineCosts;
use crate::schedule::Schedule;
use crate::units::{Bytes, Nanos};

/// Which of several ready forwards of a rank goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardOrder {
    /// The deepest chunk: drains what is in flight before it lets more in.
    DeepestFirst,
    /// Groups of as many microbatches as ranks run through one chunk after the other, as the interleaved
    /// schedule does.
    Grouped,
}

/// How a rank chooses among what is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Which forward goes first.
    pub forward_order: ForwardOrder,
    /// Activations that a rank may hold beyond those of the fixed schedule's warm-up; `None`: as memory allows.
    pub extra_in_flight: Option<u32>,
}

/// Builds the order of every rank; microbatch `entry[0]` enters first.
///
/// A forward starts only while the rank's activations stay within its cap, a backward always may. With one chunk
/// that cannot deadlock as long as each microbatch alone fits: the last rank always can go on, and by induction
/// so can the one before it. With several chunks it can, when early chunks take the memory that later chunks of
/// the same microbatches need; then, as when a microbatch alone does not fit, there is no schedule: `None`.
///
/// `cap` is what each rank may hold above its static memory. With the schedule comes the end of the iteration,
/// synchronisation and optimizer included. A schedule that does not end before `before` is given up as soon as that is
/// certain: `None` too.
pub fn list_schedule(
    costs: &PipelineCosts,
    cap: &[Bytes],
    entry: &[usize],
    policy: Policy,
    before: Nanos,
) -> Option<(Schedule, Nanos)> {
    let mut walk = Walk::new(costs, cap, entry, policy);
    walk.run(before, |_| ());
    walk.finish(before)
}

/// States that a trail keeps.
const KEPT: usize = 16;

/// Where a walk passed: another whose order of entry differs only from some place on begins where the two part.
pub struct Trail {
    policy: Policy,
    /// By rising number of microbatches that have entered.
    passed: Vec<State>,
}

impl Trail {
    /// Of the walk that [`list_schedule`] makes.
    pub fn of(costs: &PipelineCosts, cap: &[Bytes], entry: &[usize], policy: Policy) -> Self {
        let step = entry.len().div_ceil(KEPT);
        let (mut passed, mut next) = (Vec::with_capacity(KEPT), step);
        Walk::new(costs, cap, entry, policy).run(Nanos::new(u64::MAX), |state| {
            if state.entered() >= next {
                next = state.entered() + step;
                passed.push(state.clone());
            }
        });
        Self { policy, passed }
    }

    /// What [`list_schedule`] answers for an order of entry whose first `same` places are those of the trail.
    pub fn list_schedule(
        &self,
        costs: &PipelineCosts,
        cap: &[Bytes],
        entry: &[usize],
        same: usize,
        before: Nanos,
    ) -> Option<(Schedule, Nanos)> {
        // The next to enter may have been looked at, so it has to be the same too.
        let Some(passed) = self.passed.iter().rfind(|state| state.entered() < same) else {
            return list_schedule(costs, cap, entry, self.policy, before);
        };
        let mut walk = Walk::from(costs, cap, entry, self.policy, passed.clone());
        walk.run(before, |_| ());
        walk.finish(before)
    }
}
