//! Observer interface: the caller handles progress, wall time and cancellation.

use serde::{Deserialize, Serialize};

use crate::scenario::PlannerKind;
use planscope_core::host::{BatchClock, Cancellation, NoBatchClock, SequentialWorkers, Workers};

/// The fastest plan of the sizing batch that the planner `best` has found so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct BestSoFar {
    /// Planner of the plan.
    pub planner: PlannerKind,
    /// Iteration time in s.
    pub iteration_s: f64,
    /// Step of the search in which the plan was found, from 1. 0 is the draft before the search.
    pub step: u32,
}

/// Receives planning events. Search threads call [`Observer::cancelled`] concurrently.
pub trait Observer: Sync {
    /// Called when a planner starts.
    fn started(&mut self, planner: PlannerKind);
    /// Called when a planner finishes `done` of `total` steps in `phase`.
    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32);
    /// Called when the planner `best` has a faster plan of the sizing batch than before.
    fn improved(&mut self, _: BestSoFar) {}
    /// Called when a planner finishes.
    fn finished(&mut self, planner: PlannerKind);
    /// Returns whether to stop. Planners call it after each step, every few milliseconds.
    fn cancelled(&self) -> bool;
    /// Called when the current draft contains the given number of spans, for all replicas and
    /// iterations.
    fn drafted(&self, _: u64) {}
    /// Memory limit for planning in bytes, compared to an estimate based on spans.
    fn max_bytes(&self) -> u64 {
        u64::MAX
    }
    /// Returns the executor for searches. The number of threads affects only the planning time, not
    /// the results.
    fn workers(&self) -> &dyn Workers {
        &SequentialWorkers
    }
    /// Returns whether the caller uses timelines and the shares of the critical path. Without them, a plan has no
    /// timelines and its shares are 0.
    fn draws_timelines(&self) -> bool {
        true
    }
    /// Returns the clock for batches that the current planner plans online.
    fn batch_clock(&self) -> &dyn BatchClock {
        &NoBatchClock
    }
    /// Returns a separate observer per planner to plan in parallel, or `None` to plan sequentially.
    /// The outcomes are the same.
    fn split(&self, _: &[PlannerKind]) -> Option<Vec<Box<dyn Observer + Send>>> {
        None
    }
}

/// Ignores all events and never cancels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores all events and cancels when the wrapped check fires.
pub struct Watched<'a>(pub &'a dyn Cancellation);

impl Observer for Watched<'_> {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        self.0.is_over()
    }
}

/// The observer cancelled planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("planning was cancelled")]
pub struct Cancelled;

/// Returns [`Cancelled`] if the observer requests it.
pub fn go_on(observer: &dyn Observer) -> Result<(), Cancelled> {
    if observer.cancelled() { Err(Cancelled) } else { Ok(()) }
}

/// Stops a search when the observer cancels. The caller must then discard the result by calling
/// [`go_on`].
pub struct ObserverCancellation<'a>(pub &'a dyn Observer);

impl Cancellation for ObserverCancellation<'_> {
    fn is_over(&self) -> bool {
        self.0.cancelled()
    }

    fn seconds(&self) -> f64 {
        0.0
    }
}
