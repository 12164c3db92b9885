//! Who watches planning from outside: progress, wall time and cancellation are the caller's business.

use crate::host::{Alone, BatchClock, Unmeasured, Watch, Workers};
use crate::scenario::PlannerKind;

/// Watches planning. Threads of a search ask it side by side whether to stop.
pub trait Observer: Sync {
    /// A planner starts.
    fn started(&mut self, planner: PlannerKind);
    /// A planner has done `done` of `total` steps of what `phase` says.
    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32);
    /// A planner is done.
    fn finished(&mut self, planner: PlannerKind);
    /// Whether to stop; asked between steps of a few milliseconds.
    fn cancelled(&self) -> bool;
    /// The plan that is being made has this many spans so far, those of all replicas and iterations.
    fn drafted(&self, _: u64) {}
    /// Bytes that planning may take at its peak, by the estimate of its spans.
    fn most_bytes(&self) -> u64 {
        u64::MAX
    }
    /// On whose threads searches run; how many there are changes how long planning takes, never what it finds.
    fn workers(&self) -> &dyn Workers {
        &Alone
    }
    /// What measures the batches that the planner at work plans anew.
    fn batch_clock(&self) -> &dyn BatchClock {
        &Unmeasured
    }
    /// An observer of its own for each of these planners, where they may be planned side by side; otherwise they are planned one after
    /// the other. Outcomes are the same.
    fn apart(&self, _: &[PlannerKind]) -> Option<Vec<Box<dyn Observer + Send>>> {
        None
    }
}

/// An observer that sees nothing and never cancels.
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

/// Sees nothing, and stops when a watch says so.
pub(crate) struct Watched<'a>(pub &'a dyn Watch);

impl Observer for Watched<'_> {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        self.0.is_over()
    }
}

/// The observer asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("planning was cancelled")]
pub struct Cancelled;

/// Stops where the observer asks for it.
pub(crate) fn go_on(observer: &dyn Observer) -> Result<(), Cancelled> {
    if observer.cancelled() { Err(Cancelled) } else { Ok(()) }
}

/// Ends a search when its observer asks for it. What was found by then is no answer: [`go_on`] stands behind it.
pub(crate) struct UntilCancelled<'a>(pub &'a dyn Observer);

impl Watch for UntilCancelled<'_> {
    fn is_over(&self) -> bool {
        self.0.cancelled()
    }

    fn seconds(&self) -> f64 {
        0.0
    }
}
