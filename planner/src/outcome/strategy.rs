//! What an iteration did with pipelines of their own schemes (Hydraulis and what it is compared with).

use serde::{Deserialize, Serialize};

/// The strategy of one iteration: its pipelines, which stand side by side on the devices or, in phases, one after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IterationStrategy {
    /// In the paper's notation <TP,PP,CP>, for example "2x<4,1,1> + 1x<8,1,2>"; phases are joined by " then ".
    pub label: String,
    /// Which of the distinct strategies of the run it is, from 0 in the order of their first use.
    pub number: u32,
    /// When the slowest pipeline is done by the planner's own estimate, in s; phases are added up.
    pub estimated_s: f64,
    /// When it is done in the simulation, in s, switches between phases included.
    pub propagation_s: f64,
    /// Parameters that the busiest device receives or sends when they are pulled from the optimizer's layout, in GiB; 0 where
    /// the optimizer is sharded over the replicas alone.
    pub pull_gib: f64,
    /// Gradients that the busiest device moves when they are reduced and pushed to the optimizer's layout, in GiB; 0 where the
    /// optimizer is sharded over the replicas alone.
    pub push_gib: f64,
    /// Of moving parameters and gradients what computation does not cover, on the slowest pipeline, in s.
    pub exposed_s: f64,
    /// Of the iteration what goes into switches between its phases, in s.
    pub switch_s: f64,
    /// Bytes that the busiest device receives in the switches of the iteration, in GiB.
    #[serde(default)]
    pub switch_gib: f64,
    /// Devices that no pipeline of the iteration stands on.
    pub idle_devices: u32,
    /// In the order of the timeline's rows.
    pub pipelines: Vec<PipelineSummary>,
}

/// One pipeline of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PipelineSummary {
    /// Its scheme, "<TP,PP,CP>".
    pub scheme: String,
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Stages, PP; so many rows of the timeline are its own.
    pub pipeline: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Its first row in the timeline.
    pub first_row: u32,
    /// Its first device.
    pub first_device: u32,
    /// Its devices, TP x PP x CP.
    pub devices: u32,
    /// Which of the phases that follow each other it belongs to; absent for the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub phase: u32,
    /// Microbatches.
    pub microbatches: u32,
    /// Sequences.
    pub sequences: u32,
    /// Tokens of all its sequences.
    pub tokens: u64,
    /// Tokens of its shortest sequence; 0 without sequences.
    pub shortest: u32,
    /// Tokens of its median sequence; 0 without sequences.
    pub median: u32,
    /// Tokens of its longest sequence; 0 without sequences.
    pub longest: u32,
    /// How long it takes by the planner's own estimate, in s.
    pub estimated_s: f64,
    /// How long it takes in the simulation, from the start of its phase, in s.
    pub simulated_s: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
const fn is_first(phase: &u32) -> bool {
    *phase == 0
}
