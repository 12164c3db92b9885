//! Input of a planner, and the error of a search.

use crate::planners::NoPlan;
use crate::planners::infeasible::Infeasibility;
use planscope_core::units::Nanos;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Pricing;
use planscope_plan::observer::Cancelled;
use planscope_plan::scenario::{PlannerKind, Scenario};

/// Batches available to a planner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batches<'a> {
    /// Batches for the length distribution. They are not evaluated. Empty unless a requested planner
    /// needs them.
    pub survey: &'a [PackedBatch],
    /// Representative batch.
    pub sizing: &'a PackedBatch,
    /// Batches of the run, on which plans are evaluated.
    pub evaluated: &'a [PackedBatch],
}

impl Batches<'_> {
    /// Returns whether plans are evaluated on the representative batch, to choose settings.
    pub(crate) fn is_screening(&self) -> bool {
        std::ptr::eq(self.evaluated, std::slice::from_ref(self.sizing))
    }
}

/// Ceiling of a search for the fastest layout.
pub(crate) const NO_CEILING: Nanos = Nanos::new(u64::MAX);

/// Input of a planner.
#[derive(Clone, Copy)]
pub(crate) struct PlanningContext<'a> {
    pub scenario: &'a Scenario,
    pub pricing: &'a Pricing<'a>,
    pub planner: PlannerKind,
    pub batches: Batches<'a>,
    /// Slower layouts on the sizing batch are of no use to the caller. Layout searches skip them.
    pub ceiling: Nanos,
    /// Iteration whose execution plan file is kept.
    pub recorded: Option<u32>,
}

#[cfg(test)]
impl<'a> PlanningContext<'a> {
    /// Context without survey batches.
    pub(crate) const fn new(
        scenario: &'a Scenario,
        pricing: &'a Pricing<'a>,
        planner: PlannerKind,
        sizing: &'a PackedBatch,
        evaluated: &'a [PackedBatch],
    ) -> Self {
        let batches = Batches { survey: &[], sizing, evaluated };
        Self { scenario, pricing, planner, batches, ceiling: NO_CEILING, recorded: None }
    }
}

/// Error of a search that the observer can cancel.
#[derive(Debug)]
pub(crate) enum SearchError<E> {
    Cancelled(Cancelled),
    /// The search has no result, for the given reason.
    Infeasible(E),
}

impl<E> SearchError<E> {
    /// Returns the reason of an infeasible search.
    pub(crate) fn reason(self) -> Result<E, Cancelled> {
        match self {
            Self::Cancelled(cancelled) => Err(cancelled),
            Self::Infeasible(reason) => Ok(reason),
        }
    }

    /// Converts the reason.
    pub(crate) fn map<F>(self, convert: impl FnOnce(E) -> F) -> SearchError<F> {
        match self {
            Self::Cancelled(cancelled) => SearchError::Cancelled(cancelled),
            Self::Infeasible(reason) => SearchError::Infeasible(convert(reason)),
        }
    }
}

impl<E> From<Cancelled> for SearchError<E> {
    fn from(cancelled: Cancelled) -> Self {
        Self::Cancelled(cancelled)
    }
}

impl From<NoPlan> for SearchError<NoPlan> {
    fn from(none: NoPlan) -> Self {
        Self::Infeasible(none)
    }
}

impl From<Infeasibility> for SearchError<Infeasibility> {
    fn from(misfit: Infeasibility) -> Self {
        Self::Infeasible(misfit)
    }
}
