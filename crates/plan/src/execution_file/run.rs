//! Costs and action lists of one execution.

use planscope_core::timeline::StageLayers;
use planscope_pipeline::execution_plan::{Buffers, Ending, PlanAction};
use serde::{Deserialize, Serialize};

use super::{PipelineDegrees, RankGroup};

/// Execution of a replica: costs per microbatch and stage, and the action list of every rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Buffers per channel that the action lists need. They delay nothing.
    pub buffers: Buffers,
    /// Time of an overlapped forward and backward / sum of both times, in ppm.
    pub overlapped_ppm: u64,
    /// Pipelines, if their degrees differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipelines: Vec<PipelineDegrees>,
    /// Context-parallel groups of ranks, if they differ by microbatch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<RankGroup>,
    /// Stages.
    pub stages: Vec<FileStage>,
    /// Costs per microbatch or sub-microbatch.
    pub microbatches: Vec<MicrobatchCosts>,
    /// Ranks.
    pub ranks: Vec<RankRun>,
}

/// A stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileStage {
    /// Rank that runs the stage.
    pub rank: u32,
    /// Layers, by module.
    pub layers: Vec<StageLayers>,
}

/// Costs of a microbatch or sub-microbatch. The columns have an entry per visited stage.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MicrobatchCosts {
    /// First visited stage. Stages are visited in order.
    pub first_stage: u32,
    /// Microbatches whose output this microbatch needs. They have lower indices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<u32>,
    /// Number shared by microbatches whose ranks start together. Each rank is then a stage with
    /// all layers, and the ranks exchange no activations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<u32>,
    /// Forward time in ns.
    pub forward_ns: Vec<u64>,
    /// Input gradient time in ns, including recomputation.
    pub input_grad_ns: Vec<u64>,
    /// Weight gradient time in ns.
    pub weight_grad_ns: Vec<u64>,
    /// Time to send the output to the next stage, in ns.
    pub send_forward_ns: Vec<u64>,
    /// Time to send the input gradient to the previous stage, in ns.
    pub send_backward_ns: Vec<u64>,
    /// Activation memory from the start of the forward to the end of the backward, in bytes.
    pub activation_bytes: Vec<u64>,
    /// Temporary memory during the backward, in bytes.
    pub transient_bytes: Vec<u64>,
    /// Number of layers that keep activations, recompute attention, recompute all, and offload, in
    /// layer order. Empty if all layers follow [`super::ActivationSettings`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layer_strategies: Vec<[u16; 4]>,
}

/// Costs and actions of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankRun {
    /// Number of devices.
    pub devices: u32,
    /// Phase. A phase starts when the previous phase has ended and its parameters are moved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub phase: u32,
    /// Synchronisation group. Ranks with equal numbers in all replicas start the synchronisation
    /// together.
    pub sync_group: u32,
    /// Weights, gradients and optimizer state per device, in bytes.
    pub static_bytes: u64,
    /// Peak memory per device, in bytes.
    pub peak_bytes: u64,
    /// Exposed gradient synchronisation time in ns.
    pub sync_ns: u64,
    /// Optimizer time in ns.
    pub optimizer_ns: u64,
    /// Actions, in execution order.
    pub actions: Vec<PlanAction>,
    /// Gradient synchronisation and optimizer step, after the actions.
    pub endings: Vec<Ending>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}
