//! Degrees of parallelism, activation settings and sharding in an execution plan file.

use planscope_core::training::{ContextExchange, Recompute, RecomputedModules};
use planscope_core::workload::Packing;
use serde::{Deserialize, Serialize};

use crate::outcome::Layout;
use crate::scenario::Scenario;

/// Degrees of parallelism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Degrees {
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Expert-parallel degree, EP, inside DP x CP.
    pub expert: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Data-parallel degree, DP.
    pub data: u32,
    /// Model chunks per rank, VPP.
    pub chunks: u32,
    /// Sequences per microbatch.
    pub microbatch: u32,
    /// Microbatches per group in an interleaved schedule, if fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

impl Degrees {
    /// Combines the layout with the degrees from the training settings.
    pub const fn new(layout: Layout, context: u32, expert: u32) -> Self {
        let Layout { tensor, pipeline, data, chunks, microbatch, group } = layout;
        Self { tensor, context, expert, pipeline, data, chunks, microbatch, group }
    }
}

/// Degrees of consecutive modules with devices of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleDegrees {
    /// First module.
    pub first: u32,
    /// Module range end (exclusive).
    pub end: u32,
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Number of copies, DP.
    pub data: u32,
    /// Expert-parallel degree, EP.
    pub expert: u32,
    /// First device.
    pub first_device: u32,
    /// Copies on one rank.
    pub copies_per_rank: u32,
}

/// Degrees of a pipeline in an iteration with pipelines of different degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineDegrees {
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Pipeline-parallel degree, PP.
    pub pipeline: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// First rank.
    pub first_rank: u32,
    /// First device of stage 0.
    pub first_device: u32,
    /// Distance between the first devices of consecutive stages.
    pub stage_stride: u32,
    /// Phase, from 0.
    pub phase: u32,
}

/// Ranks that process a microbatch jointly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankGroup {
    /// Ranks.
    pub ranks: Vec<u32>,
    /// Microbatch.
    pub microbatch: u32,
    /// Context-parallel exchange.
    pub exchange: ContextExchange,
}

/// Activation settings of all layers without a strategy of their own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActivationSettings {
    /// Recomputation.
    pub recompute: Recompute,
    /// Number of recomputed layers per stage, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute_layers: Option<u32>,
    /// Modules that selective recomputation repeats; omitted if it is the attention core.
    #[serde(default, skip_serializing_if = "RecomputedModules::is_empty")]
    pub recompute_modules: RecomputedModules,
    /// Share of the activations in host memory, 0 to 1.
    pub activation_offload: f64,
}

/// Sharding, offload and form of the sequences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardingSettings {
    /// ZeRO stage, 0 to 3.
    pub zero: u32,
    /// Share of the optimizer state in host memory, 0 to 1.
    pub optimizer_offload: f64,
    /// Weights, gradients and the optimizer are in host memory.
    pub parameter_offload: bool,
    /// Norms and dropout on shares of the sequence.
    pub sequence_parallel: bool,
    /// Context-parallel exchange.
    pub context_exchange: ContextExchange,
    /// Tensor-parallel degree of experts; omitted if it is that of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_tensor: Option<u32>,
    /// Packing of samples into sequences.
    pub packing: Packing,
}

impl ShardingSettings {
    /// Returns the settings of a scenario.
    pub fn from_scenario(scenario: &Scenario) -> Self {
        let training = &scenario.training;
        Self {
            zero: training.zero_stage(),
            optimizer_offload: training.optimizer_offload,
            parameter_offload: training.parameter_offload,
            sequence_parallel: training.sequence_parallel,
            context_exchange: training.context_exchange,
            expert_tensor: training.expert_tensor_parallel,
            packing: scenario.workload.packing,
        }
    }
}
