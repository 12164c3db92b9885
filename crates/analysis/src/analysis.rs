//! Results of the studies of a plan: ranking search progress, sub-microbatch sizes, layouts, correction, stages and memory over
//! time. The studies that run planners are in `planscope-studies`.

pub mod correction;
pub mod layouts;
pub mod rank_memory;
pub mod search_progress;
pub mod stages;
pub mod sub_microbatches;

pub use correction::CorrectionAnalysis;
pub use layouts::{LayoutPlan, LayoutSweep};
pub use rank_memory::{RankMemoryMetrics, rank_memory};
pub use search_progress::SearchProgress;
pub use stages::{StageAnalysis, stages};
pub use sub_microbatches::SubMicrobatches;

use planscope_plan::outcome::{Layout, Outcome, PlanOutcome};
use planscope_plan::scenario::PlannerKind;

/// Subject of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// Studied planner.
    pub planner: PlannerKind,
    /// Layout in the plan.
    pub layout: Layout,
    /// Global batch, from 0.
    pub iteration: u32,
    /// Data-parallel replica, from 0.
    pub replica: u32,
}

/// Planners available for studies. Planners with ranking search and the layer strategies from the
/// settings come first.
const STUDIED: [PlannerKind; 4] = [
    PlannerKind::PipeWeaverRanking,
    PlannerKind::PipeWeaver,
    PlannerKind::PipeWeaverInterleaving,
    PlannerKind::PipeWeaverPartition,
];

impl Subject {
    /// Selects the slowest replica in an iteration of a PipeWeaver plan.
    ///
    /// # Errors
    /// No PipeWeaver planner has a plan, or the outcome lacks the iteration.
    pub fn from_outcome(outcome: &Outcome, iteration: u32) -> Result<Self, AnalysisError> {
        let plan = |wanted: PlannerKind| {
            let result = outcome.results.iter().find(|result| result.planner == wanted)?;
            match &result.answer {
                PlanOutcome::Planned(planned) => Some((wanted, planned)),
                PlanOutcome::Infeasible { .. } => None,
            }
        };
        let (planner, planned) = STUDIED.into_iter().find_map(plan).ok_or(AnalysisError::NoPlan)?;
        let iteration_metrics = planned.iterations.get(iteration as usize);
        let missing = AnalysisError::Iteration(iteration, planned.iterations.len() as u32);
        let replica = iteration_metrics.ok_or(missing)?.slowest_replica;
        Ok(Self { planner, layout: planned.layout, iteration, replica })
    }
}

/// Error for an impossible study.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnalysisError {
    /// The outcome has no PipeWeaver plan.
    #[error("no PipeWeaver planner has a plan of this scenario")]
    NoPlan,
    /// The scenario does not have this batch. Fields: requested index, count.
    #[error("there is no iteration {0}: the scenario has {1}, counted from 0")]
    Iteration(u32, u32),
    /// The layout does not have this replica. Fields: requested index, count.
    #[error("there is no replica {0}: the plan has {1}, counted from 0")]
    Replica(u32, u32),
    /// The model has only a backbone.
    #[error("this model has one module: nothing to split")]
    SingleModule,
    /// No microbatch has items for the module.
    #[error("no microbatch of iteration {iteration} asks anything of {module}: nothing to split")]
    NoItems {
        /// Module name.
        module: String,
        /// Iteration.
        iteration: u32,
    },
    /// The scenario's layouts do not include this name.
    #[error("{0:?} is no layout of this scenario's modules")]
    NoSuchLayout(String),
    /// The module layouts are infeasible.
    #[error("these layouts cannot be: {0}")]
    Infeasible(String),
    /// The outcome has no DFLOP plan.
    #[error("DFLOP has no plan of this scenario")]
    NoDataAwarePlan,
    /// The study's time limit was reached.
    #[error("the time of a study was up before the layout was judged")]
    TimeIsUp,
    /// The layout does not belong to a PipeWeaver plan.
    #[error("the layout does not hold with the layers as the settings have them: {0}")]
    Layout(String),
    /// The scenario cannot be planned at all.
    #[error("the scenario cannot be planned: {0}")]
    Unplanned(String),
}
