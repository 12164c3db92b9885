//! Runs held against the plan that they run: bands, outliers, phases, and the profile that brings both together.

mod accuracy;
mod calibration;
mod comparison;

pub(crate) use calibration::calibrated;
pub(crate) use comparison::compared;

use api::run::RunPoint;
use planner::engine::{Observer, PlanError};
use planner::host::{Watch, Workers};
use planner::observed::{ReplanError, Whose};
use planner::outcome::{BatchSummary, Planned};
use planner::scenario::{PlannerKind, ValidScenario};
use planner::timeline::Timeline;

/// A run beside the plan that it is held against.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The run.
    pub(crate) run: String,
    /// Its points, in order.
    pub(crate) points: Vec<RunPoint>,
    /// The scenario.
    pub(crate) scenario: ValidScenario,
    /// Planner whose plan it is.
    pub(crate) planner: PlannerKind,
    /// The plan.
    pub(crate) planned: Planned,
    /// The batches that it was judged on.
    pub(crate) batches: Vec<BatchSummary>,
    /// Its first iteration, where it is stored.
    pub(crate) timeline: Option<Timeline>,
    /// What a reader should know of how these came together.
    pub(crate) notes: Vec<String>,
}

impl Held {
    /// Whose timers the log prints.
    pub(crate) fn whose(&self) -> Whose {
        let mut phases = self.points.iter().flat_map(|point| &point.phases);
        if phases.all(|phase| phase.one_rank) { Whose::LastRank } else { Whose::Slowest }
    }

    /// Layout and schedule, in a line.
    pub(crate) fn plan(&self) -> String {
        let layout = &self.planned.layout;
        let title = self.planner.title();
        if self.planned.placement.is_some() {
            return format!("{title}, modules with layouts of their own");
        }
        let chunks = if layout.chunks > 1 { format!(" x VPP {}", layout.chunks) } else { String::new() };
        format!(
            "{title}: TP {} x PP {} x DP {}{chunks}, microbatches of {}",
            layout.tensor, layout.pipeline, layout.data, layout.microbatch
        )
    }
}

/// Why a run cannot be held against a plan, or not be calibrated by.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ObservationError {
    /// The run has no scenario.
    #[error("the run is held against no scenario: attach one first")]
    Unattached,
    /// No planner of the scenario has a plan, or not that one.
    #[error("the scenario has no plan of {0}")]
    NoPlan(String),
    /// The run has no step whose time is told.
    #[error("the log says of no step how long it took")]
    NoSteps,
    /// The plan cannot be made again.
    #[error("{0}")]
    Replan(#[from] ReplanError),
    /// No factor brings both together.
    #[error("no factor on the layers brings the plan to what was measured: {0}")]
    OutOfReach(String),
}

impl ObservationError {
    /// Whether time was up.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Self::Replan(ReplanError::Plan(PlanError::Cancelled(_))))
    }
}

/// Ends planning when a watch is over.
pub(crate) struct Watched<'a> {
    pub(crate) watch: &'a dyn Watch,
    pub(crate) workers: &'a dyn Workers,
}

impl Observer for Watched<'_> {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        self.watch.is_over()
    }
    fn workers(&self) -> &dyn Workers {
        self.workers
    }
}
