//! The outcome of a scenario: per planner a validated plan, or an explanation if there is no plan.

mod budget;
mod gain;
mod grouping;
mod histogram;
mod nearest;
mod overrides;
mod placement;
mod stage_layers;
mod strategy;

pub use budget::{Budget, RunCost, RunForecast};
pub use gain::Gain;
pub use grouping::{DegreeGroups, IterationGroups, MicrobatchGroups};
pub use nearest::{NearestMiss, RankNeed, memory_difference};
pub use overrides::overrides;
pub use placement::{Boundary, ModulePlacement, PlacedModules};
pub use stage_layers::{is_even, joined, layer_counts, range_description, rank_description};
pub use strategy::{IterationStrategy, PipelineSummary};

pub use planscope_core::workload::BatchSummary;

use serde::{Deserialize, Serialize};

use crate::scenario::{PlanSettings, PlannerKind};
use planscope_core::timeline::{StageLayers, Timeline};
use planscope_core::training::LayoutRequest;

/// Engine version. Results are stored under it.
pub const ENGINE: &str = concat!("planscope ", env!("CARGO_PKG_VERSION"));

/// The outcome of a scenario. Equal scenarios give equal bytes, because wall times are stored
/// separately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outcome {
    /// Engine version.
    pub engine: String,
    /// Scenario identifier, 52 characters.
    pub scenario: String,
    /// Global batches on which all plans are evaluated.
    pub batches: Vec<BatchSummary>,
    /// Distribution of sampled lengths and images across all batches.
    pub workload: WorkloadSummary,
    /// Results per planner, fastest first; planners without a plan come last.
    pub results: Vec<PlannerResult>,
}

impl Outcome {
    /// Returns the settings that the plan of `planner` uses, if the scenario leaves settings free.
    pub fn settings(&self, planner: PlannerKind) -> Option<PlanSettings> {
        let result = self.results.iter().find(|result| result.planner == planner)?;
        match &result.answer {
            PlanOutcome::Planned(planned) => planned.settings,
            PlanOutcome::Infeasible { .. } => None,
        }
    }
}

/// Histograms of the samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkloadSummary {
    /// Tokens per sample, including images and audio, before truncation.
    pub sample_tokens: HistogramColumns,
    /// Images per sample; omitted if the model has no images.
    pub sample_images: Option<HistogramColumns>,
    /// Audio clips per sample; omitted if the model has no audio input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_audio_clips: Option<HistogramColumns>,
    /// Video seconds per sample, before truncation; omitted if the model has no video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_video_s: Option<HistogramColumns>,
    /// Notes on the data; omitted if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A histogram for display.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistogramColumns {
    /// Bin edges, one more than counts.
    pub edges: Vec<f64>,
    /// Samples per bin.
    pub counts: Vec<u64>,
    /// Mean of the values.
    pub mean: f64,
    /// Median of the values.
    pub median: f64,
    /// 99th percentile of the values.
    pub p99: f64,
    /// Maximum value.
    pub max: f64,
}

/// Result for a planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannerResult {
    /// Planner.
    pub planner: PlannerKind,
    /// Planner name for display.
    pub title: String,
    /// A validated plan, or an explanation if there is no plan.
    pub answer: PlanOutcome,
}

/// A validated plan, or an explanation if there is no plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum PlanOutcome {
    /// A validated and simulated plan.
    Planned(Box<Planned>),
    /// No layout satisfies all constraints.
    Infeasible {
        /// Binding constraint of the candidate closest to feasibility, for example "rank 3 needs
        /// 91.2 GiB; 76.0 GiB available (TP 4 · PP 4 · DP 2 · mb 1)".
        binding: String,
        /// Number of candidates, and rejections by reason.
        search: Search,
    },
}

/// A validated plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Planned {
    /// Layout degrees.
    pub layout: Layout,
    /// Layers and times per stage.
    pub stages: Vec<StageSummary>,
    /// Time and memory per rank.
    #[serde(default)]
    pub ranks: Vec<RankSummary>,
    /// Metrics across all iterations.
    pub metrics: Metrics,
    /// Metrics per iteration.
    pub iterations: Vec<IterationMetrics>,
    /// Origin of the plan.
    pub provenance: Provenance,
    /// Decisions as text with figures.
    pub decisions: Vec<String>,
    /// Placement of modules with separate layouts; omitted if `layout` applies to all modules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<ModulePlacement>,
    /// Values of the settings, if the scenario leaves settings free. Otherwise those of the scenario apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<PlanSettings>,
    /// For the planner `best`: the planner of this plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlannerKind>,
    /// For the planner `best`: gains of its ingredients on the representative batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gains: Vec<Gain>,
    /// For the planner `best`: lower bound on the mean iteration time over all layouts, in s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_layouts_bound_s: Option<f64>,
}

/// Degrees of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Layout {
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Data-parallel degree, DP.
    pub data: u32,
    /// Model chunks per rank, VPP.
    pub chunks: u32,
    /// Sequences per microbatch.
    pub microbatch: u32,
    /// Microbatches per group in an interleaved schedule, if fixed by the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

impl Layout {
    /// Returns whether the layout has the degrees and the microbatch that a scenario fixes.
    pub fn has_fixed(self, request: LayoutRequest) -> bool {
        let pairs = [
            (request.tensor, self.tensor),
            (request.pipeline, self.pipeline),
            (request.chunks, self.chunks),
            (request.microbatch, self.microbatch),
        ];
        pairs.into_iter().all(|(fixed, actual)| fixed.is_none_or(|fixed| fixed == actual))
    }
}

/// Layers and times for a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StageSummary {
    /// Stage number, chunk x PP + rank.
    pub stage: u32,
    /// Pipeline rank.
    pub rank: u32,
    /// Layers by module, for example "ViT 5B 0-15".
    pub layers: String,
    /// Mean forward time per microbatch, in ms.
    pub forward_ms: f64,
    /// Mean backward time per microbatch, in ms.
    pub backward_ms: f64,
    /// Compute time for model operators in forward and backward, in ms.
    #[serde(default)]
    pub compute_ms: f64,
    /// Recomputation time in forward and backward, in ms.
    #[serde(default)]
    pub recompute_ms: f64,
    /// Exposed communication in forward and backward, in ms.
    #[serde(default)]
    pub exposed_ms: f64,
    /// Total communication per microbatch, including overlapped communication, in ms.
    #[serde(default)]
    pub communication_ms: f64,
    /// Modules with layers on this stage, by index in the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<u32>,
    /// Layers by module; empty in outcomes of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<StageLayers>,
    /// Model FLOPs of the stage divided by forward plus backward time, in TFLOP/s per device;
    /// omitted for pipelines with schemes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tflops_per_device: Option<f64>,
}

/// Time and peak memory for a pipeline rank.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankSummary {
    /// Pipeline rank.
    pub rank: u32,
    /// Mean time per iteration, across all replicas.
    pub time: RankTime,
    /// Highest peak across iterations and replicas.
    pub memory: RankMemory,
}

/// Time per iteration for a rank, in s. The components sum to the iteration time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankTime {
    /// Model operators.
    pub compute_s: f64,
    /// Recomputation.
    pub recompute_s: f64,
    /// Exposed communication inside forward and backward.
    pub exposed_s: f64,
    /// Exposed gradient reduction and weight gathering.
    pub sync_s: f64,
    /// Optimizer step.
    pub optimizer_s: f64,
    /// Idle time.
    pub bubble_s: f64,
}

/// Peak memory per device for a rank, in GiB.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankMemory {
    /// Weights.
    pub weights_gib: f64,
    /// Accumulated gradients.
    pub gradients_gib: f64,
    /// Master weights and moments.
    pub optimizer_gib: f64,
    /// Activations stored for the backward pass.
    pub activations_gib: f64,
    /// Activation gradients and recomputed activations.
    pub temporary_gib: f64,
    /// Reserve for fragmentation, communication library and framework.
    pub reserve_gib: f64,
    /// Microbatches in flight at the peak.
    pub in_flight: u32,
    /// Time at which the peak is first reached, from the iteration start, in s.
    pub at_s: f64,
}

impl RankMemory {
    /// Sum of all terms except the reserve, in GiB.
    pub fn resident_gib(&self) -> f64 {
        self.weights_gib + self.gradients_gib + self.optimizer_gib + self.activations_gib + self.temporary_gib
    }
}

/// Metrics of a plan across all iterations: sums, and means weighted by time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metrics {
    /// Mean iteration time in s.
    pub iteration_s: f64,
    /// Backbone tokens/s, excluding padding.
    pub tokens_per_s: f64,
    /// Backbone tokens/s per device, excluding padding; absent in outcomes of earlier engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Model FLOPs per second and device, in TFLOP/s, excluding recomputation.
    pub tflops_per_device: f64,
    /// Model FLOPs utilisation: model FLOPs divided by the data-sheet peak.
    pub mfu: f64,
    /// Idle time between the iteration start and the end of the last action, divided by (ranks x
    /// makespan), for all replicas.
    pub bubble: f64,
    /// Exposed communication divided by (ranks x makespan): inside actions (tensor-parallel) and
    /// after them (data-parallel).
    pub exposed_communication: f64,
    /// Highest peak memory across ranks and iterations, in GiB.
    pub peak_memory_gib: f64,
    /// Plan memory limit, in GiB.
    pub memory_limit_gib: f64,
    /// Host memory per node for offloaded activations and optimizer state, in GiB: the highest peak of a device, for
    /// all devices of the node.
    #[serde(default, skip_serializing_if = "has_none")]
    pub host_memory_gib: f64,
    /// Mean lower bound on the iteration time for this layout and these microbatches, in s.
    pub lower_bound_s: f64,
    /// (iteration - bound) / bound.
    pub gap: f64,
}

/// Metrics for an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IterationMetrics {
    /// Iteration time in s.
    pub iteration_s: f64,
    /// Lower bound for this layout and these microbatches, in s.
    pub lower_bound_s: f64,
    /// Idle time divided by (ranks x makespan), for all replicas.
    pub bubble: f64,
    /// Highest peak memory per rank, in GiB.
    pub peak_memory_gib: f64,
    /// Pipeline time of the fastest replica, in s. For context-parallel groups: minimum busy time
    /// across ranks. For pipelines with schemes: minimum pipeline time, 0 if a pipeline has no
    /// sequences.
    pub fastest_replica_s: f64,
    /// Pipeline time of the slowest replica, in s. For context-parallel groups: maximum busy time
    /// across ranks. For pipelines with schemes: maximum pipeline time. Absent in outcomes of
    /// earlier engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_replica_s: Option<f64>,
    /// Index of the slowest replica, whose timeline is stored. For context-parallel groups: index
    /// of the rank with the maximum busy time. For pipelines with schemes: index of the slowest
    /// pipeline; the timeline contains all pipelines.
    pub slowest_replica: u32,
    /// Microbatches or groups on the slowest replica.
    pub microbatches: u32,
    /// Critical path fractions by activity.
    pub critical_path: CriticalPathShares,
    /// Explanation of the schedule in this iteration, for dynamic planners.
    pub decision: Option<String>,
    /// Pipelines with individual schemes, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<IterationStrategy>,
    /// Context-parallel groups, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<IterationGroups>,
}

/// Critical path fractions by activity. They sum to one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CriticalPathShares {
    /// Forward and backward actions, excluding communication inside them.
    pub compute: f64,
    /// Communication inside actions, sends between stages, gradient synchronisation, and waits for
    /// other replicas.
    pub communication: f64,
    /// Optimizer step.
    pub optimizer: f64,
}

/// Origin of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Provenance {
    /// Algorithm description.
    pub algorithm: String,
    /// Random seed.
    pub seed: u32,
    /// Optimality status.
    pub status: SolverStatus,
    /// Search statistics, with explanations for losers.
    pub search: Search,
}

/// Optimality status for a result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SolverStatus {
    /// Proven optimum in the search space, by exhaustion or bounds.
    Optimal,
    /// Heuristic result. The gap shows its distance from the lower bound.
    Heuristic,
}

/// Statistics for a candidate search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Search {
    /// Layouts considered.
    pub candidates: u32,
    /// Layouts simulated.
    pub simulated: u32,
    /// Layouts excluded because their lower bound was not below a simulated time.
    pub pruned: u32,
    /// Layouts that violate a rule or exceed memory.
    pub rejected: u32,
    /// Losers and nearest rejections in ascending order, at most 40.
    pub losers: Vec<Loser>,
    /// Rejections by reason, in descending order.
    pub rejections: Vec<RejectionCount>,
    /// If there is no plan: the layout with the smallest memory requirement, with the memory per
    /// rank. Absent with a plan, if memory is not the constraint, and in outcomes of earlier
    /// engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Box<NearestMiss>>,
}

impl Search {
    /// Counts a rejected candidate.
    pub fn reject(&mut self, reason: String) {
        self.rejected += 1;
        match self.rejections.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.count += 1,
            None => self.rejections.push(RejectionCount { reason, count: 1 }),
        }
    }
}

/// A candidate that was not chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Loser {
    /// Degrees of parallelism.
    pub layout: Layout,
    /// Explanation, for example "+2.8 s: more tensor-parallel communication".
    pub reason: String,
    /// Simulated time or lower bound on the sizing batch, in s; omitted if rejected.
    pub iteration_s: Option<f64>,
    /// Peak memory in GiB, if computed.
    pub peak_memory_gib: Option<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn has_none(gib: &f64) -> bool {
    *gib == 0.0
}

/// Rejections with the same reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RejectionCount {
    /// Reason, for example "TP does not divide the 32 key-value heads".
    pub reason: String,
    /// Number of rejected layouts.
    pub count: u32,
}

/// Planning result: the outcome and its timelines.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    /// Outcome.
    pub outcome: Outcome,
    /// Timelines for the slowest replica, by planner and iteration.
    pub timelines: Vec<PlannedTimeline>,
}

/// Timeline for an iteration from one planner.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTimeline {
    /// Planner.
    pub planner: PlannerKind,
    /// Iteration, from 0.
    pub iteration: u32,
    /// Timeline.
    pub timeline: Timeline,
}
