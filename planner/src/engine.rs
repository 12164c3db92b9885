//! The one road: scenario, planners, check, simulation, comparison.

use crate::outcome::Planning;
use crate::scenario::{PlannerKind, ValidScenario};

/// Watches planning from outside: progress, wall time and cancellation are the caller's business.
pub trait Observer {
    /// A planner starts.
    fn started(&mut self, planner: PlannerKind);
    /// A planner has done `done` of `total` steps of what `phase` says.
    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32);
    /// A planner is done.
    fn finished(&mut self, planner: PlannerKind);
    /// Whether to stop; asked between steps of a few milliseconds.
    fn cancelled(&self) -> bool;
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

/// Planning ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The observer asked for it.
    #[error("planning was cancelled")]
    Cancelled,
    /// A planner produced a plan that the checker refuses: a bug of the planner, reported with its place.
    #[error("the plan of {planner} was refused by the checker: {violation}")]
    Refused {
        /// Title of the planner.
        planner: &'static str,
        /// What the checker found.
        violation: String,
    },
}

/// Answers a scenario.
pub fn plan(scenario: &ValidScenario, observer: &mut dyn Observer) -> Result<Planning, PlanError> {
    let _ = (scenario, observer);
    Err(PlanError::Cancelled)
}
