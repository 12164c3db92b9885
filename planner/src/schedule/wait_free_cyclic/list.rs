//! List scheduling in time: a free rank never waits while something it may do is ready.

use super::ground::Ground;
use super::walk::{State, Walk};
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

impl Policy {
    /// Whether it chooses as `other` does, and lets as many activations be in flight at least.
    pub(super) fn is_as_deep_as(self, other: Self) -> bool {
        let deep = match (self.extra_in_flight, other.extra_in_flight) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own >= other,
        };
        deep && self.forward_order == other.forward_order
    }
}

/// What a walk came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The order of every rank and the end of the iteration, synchronisation and optimizer included; `None` where there is no schedule,
    /// or none that ends early enough.
    pub ordered: Option<(Schedule, Nanos)>,
    /// A forward had to wait for the limit of activations in flight, and not for memory. Otherwise a deeper limit finds the same.
    pub is_limited: bool,
}

/// Builds the order of every rank; microbatch `entry[0]` enters first.
///
/// A forward starts only while the rank's activations stay within its cap, a backward always may. With one chunk
/// that cannot deadlock as long as each microbatch alone fits: the last rank always can go on, and by induction
/// so can the one before it. With several chunks it can, when early chunks take the memory that later chunks of
/// the same microbatches need; then, as when a microbatch alone does not fit, there is no schedule.
///
/// `cap` is what each rank may hold above its static memory. A schedule that does not end before `before` is given up as
/// soon as that is certain.
pub fn list_schedule(ground: &Ground, cap: &[Bytes], entry: &[usize], policy: Policy, before: Nanos) -> Found {
    let mut walk = Walk::new(ground, cap, entry, policy);
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
    pub fn of(ground: &Ground, cap: &[Bytes], entry: &[usize], policy: Policy) -> Self {
        let step = entry.len().div_ceil(KEPT);
        let (mut passed, mut next) = (Vec::with_capacity(KEPT), step);
        Walk::new(ground, cap, entry, policy).run(Nanos::new(u64::MAX), |state| {
            if state.entered() >= next {
                next = state.entered() + step;
                passed.push(state.clone());
            }
        });
        Self { policy, passed }
    }

    /// What [`list_schedule`] answers for an order of entry whose first `same` places are those of the trail.
    pub fn list_schedule(&self, ground: &Ground, cap: &[Bytes], entry: &[usize], same: usize, before: Nanos) -> Found {
        // The next to enter may have been looked at, so it has to be the same too.
        let Some(passed) = self.passed.iter().rfind(|state| state.entered() < same) else {
            return list_schedule(ground, cap, entry, self.policy, before);
        };
        let mut walk = Walk::from(ground, cap, entry, self.policy, passed.clone());
        walk.run(before, |_| ());
        walk.finish(before)
    }
}
