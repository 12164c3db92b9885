//! Training settings that change time and memory.

use serde::{Deserialize, Serialize};

use crate::cost::overrides::CostOverride;

/// Training settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of a training framework, each its own field")]
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
    /// With full recomputation: layers of each stage that are recomputed, the others keep everything; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute_layers: Option<u32>,
    /// Share of the kept activations that moves to the host's memory until the backward needs it, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub activation_offload: f64,
    /// Number format of the matrix products; weights and activations are bf16 beside fp8.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precision: Precision,
    /// ZeRO stage, 0 to 3: optimizer state, gradients, then weights sharded over the data-parallel group. Absent:
    /// 1 with the distributed optimizer, 0 without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero: Option<u32>,
    /// Format in which gradients are accumulated and reduced.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gradients: GradientFormat,
    /// Weight gradients are accumulated inside the matrix product; otherwise by a kernel of its own.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub fused_weight_gradients: bool,
    /// In the backward pass tensor-parallel communication runs beside the products that do not need it.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub overlapped_backward: bool,
    /// Sends between pipeline stages run beside computation; otherwise a rank waits until what it sends has arrived.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub overlapped_sends: bool,
    /// Context-parallel degree, CP: each sequence is cut over that many devices, keys and values travel a ring.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub context_parallel: u32,
    /// How the devices of a context-parallel group exchange what attention needs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub context_exchange: ContextExchange,
    /// Expert-parallel degree, EP: the experts of a layer are dealt over that many replicas.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub expert_parallel: u32,
    /// Times given in place of predicted ones, by operator or for whole layers. The last for one thing counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<CostOverride>,
}

/// Number format of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// bf16 (or fp16).
    #[default]
    Bf16,
    /// fp8 products of linear layers, everything else in bf16.
    Fp8,
    /// fp32 throughout, products in TF32.
    Fp32,
}

/// Format of accumulated gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum GradientFormat {
    /// Four bytes.
    #[default]
    Fp32,
    /// Two bytes.
    Bf16,
}

impl GradientFormat {
    /// Bytes of a value.
    pub const fn bytes(self) -> f64 {
        match self {
            Self::Fp32 => 4.0,
            Self::Bf16 => 2.0,
        }
    }
}

impl Training {
    /// The ZeRO stage in force, 0 to 3.
    pub fn zero_stage(&self) -> u32 {
        self.zero.unwrap_or(u32::from(self.distributed_optimizer))
    }

    /// Bytes of an activation or a weight.
    pub const fn width(&self) -> f64 {
        match self.precision {
            Precision::Bf16 | Precision::Fp8 => 2.0,
            Precision::Fp32 => 4.0,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

const fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(value: &u32) -> bool {
    *value == 1
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
            recompute_layers: None,
            activation_offload: 0.0,
            precision: Precision::default(),
            zero: None,
            gradients: GradientFormat::default(),
            fused_weight_gradients: true,
            overlapped_backward: true,
            overlapped_sends: true,
            context_parallel: 1,
            context_exchange: ContextExchange::default(),
            expert_parallel: 1,
            overrides: Vec::new(),
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

/// How the devices of a context-parallel group exchange what attention needs of each other's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextExchange {
    /// Keys and values travel round a ring beside attention (Ring Attention; Liu et al., 2023).
    #[default]
    Ring,
    /// Tokens are traded for heads before attention and back behind it, while nothing is computed; the degree divides the
    /// heads, and key-value heads of which there are fewer are repeated (DeepSpeed-Ulysses; Jacobs et al., 2023).
    AllToAll,
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
