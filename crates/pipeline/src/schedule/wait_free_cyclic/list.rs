//! List scheduling in simulated time: a rank is never idle while an admissible action is ready.

use super::ground::Ground;
use super::walk::{State, Walk};
use planscope_core::action::Schedule;
use planscope_core::units::{Bytes, Nanos};

/// Precedence of ready forwards on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardOrder {
    /// Deepest chunk, so that started microbatches complete before new ones enter.
    DeepestFirst,
    /// Groups with p microbatches run through the chunks in sequence, as in the interleaved
    /// schedule.
    Grouped,
}

/// Selection policy for ready actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Precedence of forwards.
    pub forward_order: ForwardOrder,
    /// Maximum activations in flight per rank in addition to the fixed schedule's warm-up; `None`
    /// if only memory limits them.
    pub extra_in_flight: Option<u32>,
}

impl Policy {
    /// Returns whether this policy has the same precedence as `other` and the same or a higher
    /// limit of activations in flight.
    pub(super) fn is_as_deep_as(self, other: Self) -> bool {
        let deep = match (self.extra_in_flight, other.extra_in_flight) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(limit), Some(other)) => limit >= other,
        };
        deep && self.forward_order == other.forward_order
    }
}

/// Result of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Schedule and iteration time including synchronization and optimizer. `None` if there is no
    /// schedule, or it exceeds the given time.
    pub ordered: Option<(Schedule, Nanos)>,
    /// True if the limit of activations in flight (and not memory) delayed a forward. Otherwise a
    /// higher limit has the same result.
    pub is_limited: bool,
}

/// Builds the orders of all ranks. Microbatches enter in the order of `entry`.
///
/// A forward starts only if the rank's activations stay within the cap. A backward can always
/// start. With one chunk, there is no deadlock if each single microbatch fits: the last rank can
/// always continue, and by induction all other ranks. With several chunks, early chunks can use the
/// memory that later chunks of the same microbatches need. In this case, or if a single microbatch
/// does not fit, there is no schedule.
///
/// `cap` is the memory per rank in addition to static memory. The walk stops if the end reaches
/// `before`.
pub fn list_schedule(ground: &Ground, cap: &[Bytes], entry: &[usize], policy: Policy, before: Nanos) -> Found {
    let mut walk = Walk::new(ground, cap, entry, policy);
    walk.run(before, |_| ());
    walk.finish(before)
}

/// Maximum number of snapshots in a trail.
const MAX_SNAPSHOTS: usize = 16;

/// Snapshots of a walk. A walk with an entry order that differs only from some position can resume
/// from a snapshot.
pub struct Trail {
    policy: Policy,
    /// In ascending order of entered microbatches.
    passed: Vec<State>,
}

impl Trail {
    /// Records the walk that [`list_schedule`] performs.
    pub fn record(ground: &Ground, cap: &[Bytes], entry: &[usize], policy: Policy) -> Self {
        let step = entry.len().div_ceil(MAX_SNAPSHOTS);
        let (mut passed, mut next) = (Vec::with_capacity(MAX_SNAPSHOTS), step);
        Walk::new(ground, cap, entry, policy).run(Nanos::new(u64::MAX), |state| {
            if state.entered() >= next {
                next = state.entered() + step;
                passed.push(state.clone());
            }
        });
        Self { policy, passed }
    }

    /// Same result as [`list_schedule`]. The first `same` entries of `entry` must equal those of
    /// the trail.
    pub fn list_schedule(&self, ground: &Ground, cap: &[Bytes], entry: &[usize], same: usize, before: Nanos) -> Found {
        // A walk can already have examined the following entry, which must therefore also be equal.
        let Some(passed) = self.passed.iter().rfind(|state| state.entered() < same) else {
            return list_schedule(ground, cap, entry, self.policy, before);
        };
        let mut walk = Walk::from(ground, cap, entry, self.policy, passed.clone());
        walk.run(before, |_| ());
        walk.finish(before)
    }
}
