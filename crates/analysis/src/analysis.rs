//! Studies of a plan: ranking search progress, sub-microbatch sizes and memory over time.
//!
//! A study uses a replica of a batch under a PipeWeaver layout. Splitting, costs and random stream
//! equal those in the planner, so the planner's result is a point on the search curve. The studies
//! reproduce PipeWeaver Fig. 10 to 12 (PipeWeaver Sec. 8.2) for any scenario.
//!
//! For a fixed scenario and rollout limit, all results except `seconds` are deterministic. If the
//! time limit is reached, a study returns a partial result and marks it.

pub mod correction;
pub mod layouts;
pub mod rank_memory;
pub mod search_progress;
pub mod stages;
pub mod sub_microbatches;

pub use correction::{CorrectionAnalysis, SlowShapes, correction};
pub use layouts::{LayoutPlan, LayoutSweep, layout_plan, layouts};
pub use rank_memory::{RankMemoryMetrics, rank_memory};
pub use search_progress::{SearchProgress, search_progress};
pub use stages::{StageAnalysis, stages};
pub use sub_microbatches::{SubMicrobatches, sub_microbatches};

use planscope_core::host::{Cancellation, Workers};
use planscope_core::workload::{PackedBatch, SampleShape, packing};
use planscope_cost::cost::Pricing;
use planscope_plan::outcome::{Layout, Outcome, PlanOutcome};
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::{PlannerKind, Scenario, ValidScenario};
use planscope_planners::planners::CutReplica;

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

/// Computation limits for a study.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Interleaved rankings per search.
    pub rollouts: u32,
    /// Time on the watch, in seconds, at which the study must end. Searches split the remaining
    /// time equally.
    pub seconds: f64,
    /// Worker threads.
    pub workers: &'a dyn Workers,
    /// Caller's clock and cancellation check.
    pub cancellation: &'a dyn Cancellation,
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

/// Sampled and packed batches for a study.
struct Batches {
    sizing: PackedBatch,
    batch: PackedBatch,
}

impl Batches {
    fn new(valid: &ValidScenario, subject: Subject) -> Result<Self, AnalysisError> {
        let scenario = valid.scenario();
        if subject.iteration >= scenario.iterations {
            return Err(AnalysisError::Iteration(subject.iteration, scenario.iterations));
        }
        if subject.replica >= subject.layout.data {
            return Err(AnalysisError::Replica(subject.replica, subject.layout.data));
        }
        let sampler = Sampler::new(valid);
        let rule = scenario.workload.packing_rule();
        let pack = |samples: &[SampleShape]| packing::pack(samples, &scenario.model, &rule);
        Ok(Self {
            sizing: pack(&sampler.sizing().samples),
            batch: pack(&sampler.evaluation(subject.iteration).samples),
        })
    }

    fn cut(&self, scenario: &Scenario, pricing: &Pricing<'_>, subject: Subject) -> Result<CutReplica, AnalysisError> {
        let replica_batch = (subject.iteration, &self.batch, subject.replica);
        CutReplica::new(scenario, pricing, subject.layout, &self.sizing, replica_batch).map_err(AnalysisError::Layout)
    }
}

/// Watch for a search. It starts at zero and ends after the search's part of the remaining time.
struct Turn<'a> {
    cancellation: &'a dyn Cancellation,
    began: f64,
    ends: f64,
}

impl<'a> Turn<'a> {
    /// Returns the watch for the next search, with `left` searches remaining.
    fn next(effort: &Effort<'a>, left: usize) -> Self {
        let began = effort.cancellation.seconds();
        Self {
            cancellation: effort.cancellation,
            began,
            ends: began + (effort.seconds - began).max(0.0) / left.max(1) as f64,
        }
    }
}

impl Cancellation for Turn<'_> {
    fn is_over(&self) -> bool {
        self.cancellation.is_over() || self.cancellation.seconds() >= self.ends
    }

    fn seconds(&self) -> f64 {
        self.cancellation.seconds() - self.began
    }
}

#[cfg(test)]
mod tests;
