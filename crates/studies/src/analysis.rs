//! Studies of a plan: ranking search progress, sub-microbatch sizes, layouts and correction.
//!
//! A study uses a replica of a batch under a PipeWeaver layout. Splitting, costs and random stream
//! equal those in the planner, so the planner's result is a point on the search curve. The studies
//! reproduce PipeWeaver Fig. 10 to 12 (PipeWeaver Sec. 8.2) for any scenario.
//!
//! For a fixed scenario and rollout limit, all results except `seconds` are deterministic. If the
//! time limit is reached, a study returns a partial result and marks it.

pub mod correction;
pub mod layouts;
pub mod search_progress;
pub mod sub_microbatches;

pub use correction::{SlowShapes, correction};
pub use layouts::{layout_plan, layouts};
pub use planscope_analysis::analysis::*;
pub use search_progress::search_progress;
pub use sub_microbatches::sub_microbatches;

use planscope_core::host::{Cancellation, Workers};
use planscope_core::workload::{PackedBatch, SampleShape, packing};
use planscope_cost::cost::Pricing;
use planscope_plan::scenario::{Sampler, Scenario, ValidScenario};
use planscope_planners::planners::CutReplica;

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
