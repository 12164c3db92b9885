//! The answer to a scenario: for every planner a judged plan, or why there is none.

mod budget;
mod grouping;
mod histogram;
mod nearest;
mod placement;
mod strategy;

pub use budget::{Budget, RunCost};
pub use grouping::{DegreeGroups, IterationGroups, MicrobatchGroups};
pub use nearest::{NearestMiss, RankNeed, memory_difference};
pub use placement::{Boundary, ModulePlacement, PlacedModules};
pub use strategy::{IterationStrategy, PipelineSummary};

use serde::{Deserialize, Serialize};

use crate::scenario::PlannerKind;
use crate::timeline::Timeline;

/// Version of the engine; results are stored under it.
pub const ENGINE: &str = concat!("planscope ", env!("CARGO_PKG_VERSION"));

/// The answer to a scenario. Same scenario, same bytes: wall times are kept beside it, not in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outcome {
    /// Version of the engine that computed it.
    pub engine: String,
    /// Identifier of the scenario, 52 characters.
    pub scenario: String,
    /// The global batches that every plan was judged on.
    pub batches: Vec<BatchSummary>,
    /// Distribution of the sampled lengths and image counts over all batches.
    pub workload: WorkloadSummary,
    /// One result per planner, fastest first, planners without a plan last.
    pub results: Vec<PlannerResult>,
}

/// What one global batch holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchSummary {
    /// Samples.
    pub samples: u32,
    /// Sequences after packing.
    pub sequences: u32,
    /// Backbone tokens, images and sound included, padding not.
    pub tokens: u64,
    /// Images.
    pub images: u64,
    /// Clips of sound; absent for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub audio_clips: u64,
    /// Duration of all video, in ms; absent for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub video_ms: u64,
    /// Samples cut to the context length or the longest video.
    pub truncated: u32,
}

/// Histograms of what was sampled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkloadSummary {
    /// Tokens of a sample, images and sound included, before it is cut.
    pub sample_tokens: HistogramColumns,
    /// Images of a sample; absent for models that neither read nor make any.
    pub sample_images: Option<HistogramColumns>,
    /// Clips of sound of a sample; absent for models that read none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_audio_clips: Option<HistogramColumns>,
    /// Video of a sample, in seconds, before it is cut; absent for models that make none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_video_s: Option<HistogramColumns>,
    /// What should be known of the data, in words; absent for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A histogram ready to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistogramColumns {
    /// Edges of the bins, one more than counts.
    pub edges: Vec<f64>,
    /// Samples in each bin.
    pub counts: Vec<u64>,
    /// Mean of the values.
    pub mean: f64,
    /// Median of the values.
    pub median: f64,
    /// 99th percentile of the values.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

/// What one planner answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannerResult {
    /// The planner.
    pub planner: PlannerKind,
    /// Its name as shown.
    pub title: String,
    /// The judged plan, or why there is none.
    pub answer: Answer,
}

/// A judged plan, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Answer {
    /// A plan that passed the checker and was simulated.
    Planned(Box<Planned>),
    /// No layout satisfies every constraint.
    Infeasible {
        /// The binding constraint of the candidate that came closest, for example
        /// "rank 3 needs 91.2 GiB; 76.0 GiB available (TP 4 · PP 4 · DP 2 · mb 1)".
        binding: String,
        /// How many layouts were looked at, and the rejections counted by reason.
        search: Search,
    },
}

/// A judged plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Planned {
    /// Degrees of the layout.
    pub layout: Layout,
    /// Which layers stand on which stage.
    pub stages: Vec<StageSummary>,
    /// Where the time of each rank goes, and its memory.
    #[serde(default)]
    pub ranks: Vec<RankSummary>,
    /// Metrics over all iterations.
    pub metrics: Metrics,
    /// Metrics of every iteration.
    pub iterations: Vec<IterationMetrics>,
    /// How the plan was found.
    pub provenance: Provenance,
    /// Decisions in words, with figures.
    pub decisions: Vec<String>,
    /// Where modules with layouts of their own stand; absent where `layout` is that of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<ModulePlacement>,
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
    /// Model chunks of each rank, VPP.
    pub chunks: u32,
    /// Sequences of one microbatch.
    pub microbatch: u32,
    /// Microbatches per group of an interleaved schedule, where the scenario fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

/// What stands on one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StageSummary {
    /// Stage number, chunk x PP + rank.
    pub stage: u32,
    /// Pipeline rank.
    pub rank: u32,
    /// Layers by module, for example "ViT 5B 0-15".
    pub layers: String,
    /// Mean forward time of a microbatch, in ms.
    pub forward_ms: f64,
    /// Mean backward time of a microbatch, in ms.
    pub backward_ms: f64,
    /// Of both, operators of the model, in ms.
    #[serde(default)]
    pub compute_ms: f64,
    /// Of both, what is computed again, in ms.
    #[serde(default)]
    pub recompute_ms: f64,
    /// Of both, communication that computation waits for, in ms.
    #[serde(default)]
    pub exposed_ms: f64,
    /// All communication of a microbatch, that beside computation included, in ms.
    #[serde(default)]
    pub communication_ms: f64,
    /// Modules of which it holds layers, by their place in the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<u32>,
    /// Model operations of the stage over the time of its forwards and backwards, in TFLOP/s per device; absent where pipelines
    /// have schemes of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tflops_per_device: Option<f64>,
}

/// Where the time of one pipeline rank goes, and what its memory holds when it holds most.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankSummary {
    /// Pipeline rank.
    pub rank: u32,
    /// Mean time per iteration, over all replicas.
    pub time: RankTime,
    /// The largest peak of any iteration and replica.
    pub memory: RankMemory,
}

/// Where the time of a rank goes in an iteration, in s; the parts add up to the iteration.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankTime {
    /// Operators of the model.
    pub compute_s: f64,
    /// What is computed again.
    pub recompute_s: f64,
    /// Communication inside forward and backward that computation waits for.
    pub exposed_s: f64,
    /// Exposed reduction of gradients and gathering of weights.
    pub sync_s: f64,
    /// Optimizer step.
    pub optimizer_s: f64,
    /// Idle.
    pub bubble_s: f64,
}

/// What one device of a rank holds when it holds most, in GiB.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankMemory {
    /// Weights.
    pub weights_gib: f64,
    /// Accumulated gradients.
    pub gradients_gib: f64,
    /// Master weights and moments.
    pub optimizer_gib: f64,
    /// Activations kept for backwards to come.
    pub activations_gib: f64,
    /// Gradients of activations, and what recomputation brings back.
    pub temporary_gib: f64,
    /// Kept free for fragmentation, the communication library and the framework.
    pub reserve_gib: f64,
    /// Forwards whose backward has not run at the peak.
    pub in_flight: u32,
    /// When the peak is first reached, from the start of its iteration, in s.
    pub at_s: f64,
}

impl RankMemory {
    /// All terms without the reserve, in GiB.
    pub fn held_gib(&self) -> f64 {
        self.weights_gib + self.gradients_gib + self.optimizer_gib + self.activations_gib + self.temporary_gib
    }
}

/// Metrics of a plan over all its iterations: sums and means weighted by time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Metrics {
    /// Mean time of an iteration, in s.
    pub iteration_s: f64,
    /// Backbone tokens per second, padding not counted.
    pub tokens_per_s: f64,
    /// The same per device; absent in outcomes of earlier engines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Model operations per second and device, in TFLOP/s; recomputation not counted.
    pub tflops_per_device: f64,
    /// Model FLOP utilisation: model operations over the data-sheet peak.
    pub mfu: f64,
    /// Idle share: idle time between the start of the iteration and the end of the last action, over
    /// (ranks x makespan), all replicas.
    pub bubble: f64,
    /// Share of (ranks x makespan) in which communication stands in the way of computation: inside actions
    /// (tensor-parallel) and behind them (data-parallel).
    pub exposed_communication: f64,
    /// Largest memory of any rank in any iteration, in GiB.
    pub peak_memory_gib: f64,
    /// Memory that a plan may use, in GiB.
    pub memory_limit_gib: f64,
    /// Mean lower bound of the iteration time with this layout and these microbatches, in s.
    pub lower_bound_s: f64,
    /// (iteration - bound) / bound.
    pub gap: f64,
}

/// Metrics of one iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IterationMetrics {
    /// Time of the iteration, in s.
    pub iteration_s: f64,
    /// Lower bound with this layout and these microbatches, in s.
    pub lower_bound_s: f64,
    /// Idle share of (ranks x makespan), all replicas.
    pub bubble: f64,
    /// Largest memory of any rank, in GiB.
    pub peak_memory_gib: f64,
    /// Fastest replica's pipeline time, in s; where replicas share sequences in groups, how long the least loaded is busy; of pipelines
    /// with schemes of their own the fastest's, 0 where one has no sequence.
    pub fastest_replica_s: f64,
    /// Slowest replica's pipeline time, in s; where replicas share sequences in groups, how long the most loaded is busy; of
    /// pipelines with schemes of their own the slowest's. Absent in
    /// outcomes of engines that did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_replica_s: Option<f64>,
    /// Slowest replica, whose timeline is kept; where replicas share sequences in groups, the most loaded of them; of pipelines with
    /// schemes of their own, which are all in the timeline, the slowest.
    pub slowest_replica: u32,
    /// Microbatches, or groups, of the slowest replica.
    pub microbatches: u32,
    /// Share of the critical path by what happens on it.
    pub critical_path: CriticalPathShares,
    /// Why the schedule of this iteration is what it is, for dynamic planners.
    pub decision: Option<String>,
    /// Its pipelines, where each has a scheme of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<IterationStrategy>,
    /// Its groups, where ranks work in groups that share sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<IterationGroups>,
}

/// Share of the critical path by what happens on it; sums to one.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CriticalPathShares {
    /// Forward and backward actions, without the communication inside them.
    pub compute: f64,
    /// Communication inside actions, sends between stages, gradient synchronisation, waits for other replicas.
    pub communication: f64,
    /// Optimizer.
    pub optimizer: f64,
}

/// How a plan was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Provenance {
    /// Algorithm, in words.
    pub algorithm: String,
    /// Seed it used.
    pub seed: u32,
    /// What can be said of the result's quality.
    pub status: SolverStatus,
    /// Candidates tried and why the losers lost.
    pub search: Search,
}

/// What can be said of a result's quality.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SolverStatus {
    /// The best of the searched space, proven by exhaustion or bounds.
    Optimal,
    /// A heuristic; its distance from the bound is the plan's gap.
    Heuristic,
}

/// Candidates of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Search {
    /// Layouts looked at.
    pub candidates: u32,
    /// Of them simulated.
    pub simulated: u32,
    /// Of them excluded because their lower bound was no better than a simulated one.
    pub pruned: u32,
    /// Of them against the rules or over memory.
    pub rejected: u32,
    /// The best losers and the nearest rejections, at most 40, best first.
    pub losers: Vec<Loser>,
    /// Rejections counted by reason, most frequent first.
    pub rejections: Vec<RejectionCount>,
    /// Without a plan: the layout that needs least memory, and what its ranks need. Absent with a plan, where memory is not
    /// the constraint, and in outcomes stored before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Box<NearestMiss>>,
}

/// A candidate that was not chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Loser {
    /// Its degrees.
    pub layout: Layout,
    /// Why it lost, for example "+2.8 s: more tensor-parallel communication".
    pub reason: String,
    /// Its simulated time or lower bound on the sizing batch, in s; absent when rejected.
    pub iteration_s: Option<f64>,
    /// Its peak memory, in GiB, where it was computed.
    pub peak_memory_gib: Option<f64>,
}

/// Rejections of one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RejectionCount {
    /// The reason, for example "TP does not divide the 32 key-value heads".
    pub reason: String,
    /// Layouts rejected for it.
    pub count: u32,
}

/// Everything that planning produces: the answer and the timelines behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    /// The answer.
    pub outcome: Outcome,
    /// Timelines of the slowest replica, by planner and iteration.
    pub timelines: Vec<PlannedTimeline>,
}

/// The timeline of one iteration of one planner.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTimeline {
    /// The planner.
    pub planner: PlannerKind,
    /// Iteration, from 0.
    pub iteration: u32,
    /// What happens.
    pub timeline: Timeline,
}
