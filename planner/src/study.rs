//! Studies of a plan: how the search of its ranking went, what the size of sub-microbatches does, how memory moves.
//!
//! A study looks at one replica of one batch under a layout that PipeWeaver chose, cut and priced as the planner cuts
//! and prices it, with the same random stream: what the planner found is on the curve of its search. Studies are the
//! figures 10 to 12 of the paper (Xue et al., 2025, section 8.2) for any scenario.
//!
//! Everything but `seconds` is the same for the same scenario and rollouts, unless the time is up before; then the
//! study holds what it has and says so.

pub mod correction;
pub mod layouts;
pub mod rank_memory;
pub mod search_progress;
pub mod stages;
pub mod sub_microbatches;

pub use correction::{CorrectionStudy, SlowShapes, correction};
pub use layouts::{LayoutPlan, LayoutSweep, layout_plan, layouts};
pub use rank_memory::{RankMemoryFigures, rank_memory};
pub use search_progress::{SearchProgress, search_progress};
pub use stages::{StageStudy, stages};
pub use sub_microbatches::{SubMicrobatches, sub_microbatches};

use crate::cost::Pricing;
use crate::host::{Watch, Workers};
use crate::outcome::{Answer, Layout, Outcome};
use crate::plan::CutReplica;
use crate::scenario::{PlannerKind, Scenario, ValidScenario};
use crate::workload::{PackedBatch, SampleShape, Sampler, packing};

/// What is studied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The planner whose plan is studied.
    pub planner: PlannerKind,
    /// Layout of that plan.
    pub layout: Layout,
    /// Global batch, from 0.
    pub iteration: u32,
    /// Data-parallel replica, from 0.
    pub replica: u32,
}

/// Planners whose plans can be studied, those first that order by rank and leave layers as the settings say.
const STUDIED: [PlannerKind; 4] = [
    PlannerKind::PipeWeaverRanking,
    PlannerKind::PipeWeaver,
    PlannerKind::PipeWeaverInterleaving,
    PlannerKind::PipeWeaverPartition,
];

impl Subject {
    /// The slowest replica of an iteration of a PipeWeaver plan in an outcome.
    ///
    /// # Errors
    /// Where no PipeWeaver planner has a plan, or the outcome has no such iteration.
    pub fn of(outcome: &Outcome, iteration: u32) -> Result<Self, NoStudy> {
        let plan = |wanted: PlannerKind| {
            let result = outcome.results.iter().find(|result| result.planner == wanted)?;
            match &result.answer {
                Answer::Planned(planned) => Some((wanted, planned)),
                Answer::Infeasible { .. } => None,
            }
        };
        let (planner, planned) = STUDIED.into_iter().find_map(plan).ok_or(NoStudy::NoPlan)?;
        let of_iteration = planned.iterations.get(iteration as usize);
        let missing = NoStudy::Iteration(iteration, planned.iterations.len() as u32);
        let replica = of_iteration.ok_or(missing)?.slowest_replica;
        Ok(Self { planner, layout: planned.layout, iteration, replica })
    }
}

/// How much a study may compute.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Rankings that each search interleaves.
    pub rollouts: u32,
    /// Seconds of the watch at which the study has to be done; searches share what is left of them equally.
    pub seconds: f64,
    /// On whose threads.
    pub workers: &'a dyn Workers,
    /// The caller's clock; a watch that is over ends the study.
    pub watch: &'a dyn Watch,
}

/// Why there is nothing to study.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoStudy {
    /// PipeWeaver was not asked, or found nothing.
    #[error("no PipeWeaver planner has a plan of this scenario")]
    NoPlan,
    /// The batch is not among those of the scenario.
    #[error("there is no iteration {0}: the scenario has {1}, counted from 0")]
    Iteration(u32, u32),
    /// The replica is not among those of the layout.
    #[error("there is no replica {0}: the plan has {1}, counted from 0")]
    Replica(u32, u32),
    /// Only the backbone.
    #[error("this model has one module: nothing to split")]
    OneModule,
    /// No microbatch has items of the module.
    #[error("no microbatch of iteration {iteration} asks anything of {module}: nothing to split")]
    NoItems {
        /// Name of the module.
        module: String,
        /// The iteration.
        iteration: u32,
    },
    /// No layout of the scenario's modules has that name.
    #[error("{0:?} is no layout of this scenario's modules")]
    NoSuchLayout(String),
    /// Layouts of the modules that cannot be.
    #[error("these layouts cannot be: {0}")]
    Misfit(String),
    /// DFLOP was not asked, or found nothing.
    #[error("DFLOP has no plan of this scenario")]
    NoDataAwarePlan,
    /// It takes longer than a study may.
    #[error("the time of a study was up before the layout was judged")]
    TimeIsUp,
    /// The layout is none of a PipeWeaver plan.
    #[error("the layout does not hold with the layers as the settings have them: {0}")]
    Layout(String),
}

/// The batches that a study needs, drawn and packed.
struct Batches {
    sizing: PackedBatch,
    batch: PackedBatch,
}

impl Batches {
    fn of(valid: &ValidScenario, subject: Subject) -> Result<Self, NoStudy> {
        let scenario = valid.scenario();
        if subject.iteration >= scenario.iterations {
            return Err(NoStudy::Iteration(subject.iteration, scenario.iterations));
        }
        if subject.replica >= subject.layout.data {
            return Err(NoStudy::Replica(subject.replica, subject.layout.data));
        }
        let sampler = Sampler::new(valid);
        let rule = scenario.workload.packing_rule();
        let pack = |samples: &[SampleShape]| packing::pack(samples, &scenario.model, &rule);
        Ok(Self { sizing: pack(&sampler.sizing().samples), batch: pack(&sampler.judged(subject.iteration).samples) })
    }

    fn cut(&self, scenario: &Scenario, pricing: &Pricing<'_>, subject: Subject) -> Result<CutReplica, NoStudy> {
        let of = (subject.iteration, &self.batch, subject.replica);
        CutReplica::of(scenario, pricing, subject.layout, &self.sizing, of).map_err(NoStudy::Layout)
    }
}

/// One of several searches, with its share of the time and a clock that begins with it.
struct Turn<'a> {
    watch: &'a dyn Watch,
    began: f64,
    ends: f64,
}

impl<'a> Turn<'a> {
    /// The turn of the next of `left` searches.
    fn next(effort: &Effort<'a>, left: usize) -> Self {
        let began = effort.watch.seconds();
        Self { watch: effort.watch, began, ends: began + (effort.seconds - began).max(0.0) / left.max(1) as f64 }
    }
}

impl Watch for Turn<'_> {
    fn is_over(&self) -> bool {
        self.watch.is_over() || self.watch.seconds() >= self.ends
    }

    fn seconds(&self) -> f64 {
        self.watch.seconds() - self.began
    }
}

#[cfg(test)]
mod tests;
