//! Pipelines with individual schemes in an iteration (Hydraulis and its baselines).

use serde::{Deserialize, Serialize};

/// Strategy for an iteration. Its pipelines run in parallel on disjoint devices or, in phases,
/// sequentially.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IterationStrategy {
    /// Label in the paper's notation <TP,PP,CP>, for example "2x<4,1,1> + 1x<8,1,2>"; phases are
    /// joined by " then ".
    pub label: String,
    /// Index among the run's distinct strategies, from 0 in order of first use.
    pub number: u32,
    /// Planner's estimate for the slowest pipeline, in s, summed across phases.
    pub estimated_s: f64,
    /// Simulated end of the slowest pipeline, in s, including switches between phases.
    pub propagation_s: f64,
    /// Parameters that the busiest device sends or receives in the pull from the optimizer layout,
    /// in GiB; 0 if the optimizer is sharded only across replicas.
    pub pull_gib: f64,
    /// Gradients that the busiest device moves in the reduction and push to the optimizer layout,
    /// in GiB; 0 if the optimizer is sharded only across replicas.
    pub push_gib: f64,
    /// Exposed parameter and gradient transfer on the slowest pipeline, in s.
    pub exposed_s: f64,
    /// Time for switches between phases, in s.
    pub switch_s: f64,
    /// Data that the busiest device receives in all switches in the iteration, in GiB.
    #[serde(default)]
    pub switch_gib: f64,
    /// Devices that no pipeline in this iteration uses.
    pub idle_devices: u32,
    /// Pipelines in timeline row order.
    pub pipelines: Vec<PipelineSummary>,
}

/// A pipeline in an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PipelineSummary {
    /// Scheme, "<TP,PP,CP>".
    pub scheme: String,
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Stages, PP; the pipeline has this number of timeline rows.
    pub pipeline: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// First timeline row.
    pub first_row: u32,
    /// First device.
    pub first_device: u32,
    /// Device count, TP x PP x CP.
    pub devices: u32,
    /// Phase index; omitted for the first phase.
    #[serde(default, skip_serializing_if = "is_first")]
    pub phase: u32,
    /// Number of microbatches.
    pub microbatches: u32,
    /// Number of sequences.
    pub sequences: u32,
    /// Tokens in all sequences.
    pub tokens: u64,
    /// Tokens in the shortest sequence; 0 if there are no sequences.
    pub shortest: u32,
    /// Tokens in the median sequence; 0 if there are no sequences.
    pub median: u32,
    /// Tokens in the longest sequence; 0 if there are no sequences.
    pub longest: u32,
    /// Planner's time estimate in s.
    pub estimated_s: f64,
    /// Simulated time in s, from the start of the phase.
    pub simulated_s: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
const fn is_first(phase: &u32) -> bool {
    *phase == 0
}
