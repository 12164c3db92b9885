//! Training settings that change time and memory.

use serde::{Deserialize, Serialize};

/// Training settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Which activations are computed again in the backward pass.
    #[serde(default)]
    pub recompute: Recompute,
    /// How attention is computed.
    #[serde(default)]
    pub attention: AttentionKernel,
    /// Norms and dropout split along the sequence over the tensor-parallel group.
    #[serde(default = "yes")]
    pub sequence_parallel: bool,
    /// Optimizer state sharded over the data-parallel group (ZeRO-1).
    #[serde(default = "yes")]
    pub distributed_optimizer: bool,
    /// Share of the tensor-parallel communication hidden behind computation, 0 to 1.
    #[serde(default)]
    pub tensor_overlap: f64,
    /// Share of the gradient and parameter communication hidden behind computation, 0 to 1.
    #[serde(default)]
    pub data_overlap: f64,
    /// Memory kept free for fragmentation, the communication library and the framework, in GiB.
    #[serde(default = "default_reserve")]
    pub memory_reserve_gib: f64,
}

const fn yes() -> bool {
    true
}

const fn default_reserve() -> f64 {
    4.0
}

impl Default for Training {
    fn default() -> Self {
        Self {
            recompute: Recompute::default(),
            attention: AttentionKernel::default(),
            sequence_parallel: true,
            distributed_optimizer: true,
            tensor_overlap: 0.0,
            data_overlap: 0.0,
            memory_reserve_gib: default_reserve(),
        }
    }
}

/// Which activations are computed again in the backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recompute {
    /// None: all are kept.
    #[default]
    None,
    /// The attention core.
    Selective,
    /// Whole layers: only each layer's input is kept.
    Full,
}

/// How attention is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttentionKernel {
    /// A fused kernel that never stores the score matrix.
    #[default]
    Flash,
    /// Separate kernels; the score matrix is stored (5 a s² b bytes of activations).
    Unfused,
}

/// Degrees that the user fixes; what is absent is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LayoutRequest {
    /// Tensor-parallel degree, TP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<u32>,
    /// Pipeline-parallel degree, PP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<u32>,
    /// Model chunks of each rank (virtual pipeline, VPP) for interleaved schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u32>,
    /// Sequences of one microbatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microbatch: Option<u32>,
    /// Microbatches that an interleaved schedule runs through one chunk before the next; absent:
    /// groups of PP, or as few more as the batch needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}
