//! Training settings that affect time and memory.

mod cost_override;
mod fp8;
mod framework;
mod optimizer;
mod recompute;

pub use cost_override::{AtDegrees, CostOverride, LAYER, OverridePhase};
pub use fp8::{Conversion, Fp8Recipe};
pub use framework::{Execution, Experts, Framework, Kernels, Profile, Shards, StageRule};
pub use optimizer::{MasterWeights, MomentFormat, Optimizer};
pub use recompute::{RecomputedModule, RecomputedModules};

use serde::{Deserialize, Serialize};

/// Training settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches of a training framework, each its own field")]
pub struct Training {
    /// Activation recomputation in the backward.
    #[serde(default)]
    pub recompute: Recompute,
    /// Attention kernel.
    #[serde(default)]
    pub attention: AttentionKernel,
    /// Sequence parallelism: norms and dropout are split along the sequence over the
    /// tensor-parallel group.
    #[serde(default = "yes")]
    pub sequence_parallel: bool,
    /// Distributed optimizer: optimizer state is sharded over the data-parallel group (ZeRO-1).
    #[serde(default = "yes")]
    pub distributed_optimizer: bool,
    /// Fraction of tensor-parallel communication that runs in chunks, one per rank, next to the product
    /// before or after it, 0 to 1 (user buffers in Transformer Engine, asynchronous TP in torchtitan).
    #[serde(default)]
    pub tensor_overlap: f64,
    /// Fraction of gradient and parameter communication hidden by computation, 0 to 1.
    #[serde(default)]
    pub data_overlap: f64,
    /// Memory reserved for fragmentation, the communication library and the framework, in GiB.
    #[serde(default = "default_reserve")]
    pub memory_reserve_gib: f64,
    /// With full recomputation: recomputed layers per stage. Other layers store all activations.
    /// Default: all layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute_layers: Option<u32>,
    /// With selective recomputation: recomputed modules. Default: the attention core.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recompute_modules: Vec<RecomputedModule>,
    /// Fraction of stored activations offloaded to host memory until the backward, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub activation_offload: f64,
    /// Number format of matrix products. With fp8, weights are bf16 unless `fp8_weights` is true.
    #[serde(default, skip_serializing_if = "is_default")]
    pub precision: Precision,
    /// Scaling of fp8 values. Default: as usual in the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp8_recipe: Option<Fp8Recipe>,
    /// With fp8: the weights of linear layers are stored and gathered in fp8 (`--fp8-param-gather` of Megatron-LM, fp8
    /// all-gather of torchao). The master weights do not change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fp8_weights: bool,
    /// With fp8: the input of the activation function of an MLP is stored in fp8 (`activation_func_fp8_input_store` of
    /// Megatron-Core).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fp8_activation_input: bool,
    /// ZeRO stage, 0 to 3. Stage 1 shards optimizer state over the data-parallel group, stage 2
    /// also gradients, stage 3 also weights. Default: 1 if the distributed optimizer is enabled,
    /// otherwise 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero: Option<u32>,
    /// Number of devices with the same parameters (DP x CP) over which ZeRO shards (hybrid sharding,
    /// HSDP). Several groups of this size then have a copy each, and reduce gradients with each other.
    /// If it does not divide DP x CP, the next smaller divisor applies. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard_degree: Option<u32>,
    /// Number format for gradient accumulation and reduction.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gradients: GradientFormat,
    /// The matrix product kernel accumulates weight gradients; otherwise a separate kernel does.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub fused_weight_gradients: bool,
    /// In the backward, tensor-parallel communication overlaps independent matrix products.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub overlapped_backward: bool,
    /// Sends between pipeline stages overlap computation; otherwise a rank blocks until the
    /// transfer completes.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub overlapped_sends: bool,
    /// Microbatches of a replica after which a static pipeline is flushed; omitted if once per step. torchtitan
    /// runs the schedule in each step of gradient accumulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microbatches_per_flush: Option<u32>,
    /// Context-parallel degree, CP: number of devices that share a sequence.
    #[serde(default = "default_degree", skip_serializing_if = "is_default_degree")]
    pub context_parallel: u32,
    /// Context-parallel exchange.
    #[serde(default, skip_serializing_if = "is_default")]
    pub context_exchange: ContextExchange,
    /// With a causal mask, the devices of a context-parallel group have equal shares of the attention
    /// (a chunk from the start and a chunk from the end of a sequence each). Otherwise the last device
    /// has the most, and the group waits for it.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub context_balanced: bool,
    /// Expert-parallel degree, EP: number of replicas that share the experts of a layer.
    #[serde(default = "default_degree", skip_serializing_if = "is_default_degree")]
    pub expert_parallel: u32,
    /// Tensor-parallel degree of routed experts (expert TP): 1, or omitted for that of the model. With 1, an expert is
    /// whole on a device, and a replica of all experts has EP devices, also of one tensor-parallel group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_tensor_parallel: Option<u32>,
    /// Fraction of the exchange of tokens between experts hidden by computation, 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expert_overlap: f64,
    /// A token crosses the network to a node once, whatever the number of its experts there, and is
    /// distributed inside the node (`DeepEP`). With fp8, dispatched tokens are fp8. Otherwise every copy
    /// of a token crosses on its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dispatch_by_node: bool,
    /// Output head and loss run on chunks of the tokens, so that no logits are stored (fused linear cross
    /// entropy of Liger-Kernel, cut cross entropy).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chunked_loss: bool,
    /// The gradient of the logits replaces them in the same memory, in the format of the weights (the loss of verl without
    /// padding).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_place_loss: bool,
    /// The routed experts of a layer run as grouped products, also in a framework that loops over them (`grouped_mm` of
    /// transformers 5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grouped_experts: bool,
    /// Between the microbatches of a step, gradients are unsharded and in the format of the weights (`no_sync` of FSDP). They
    /// are reduced and sharded after the last one. Without effect below ZeRO 2 and with one microbatch per replica.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsharded_gradients: bool,
    /// Framework whose kernels, buffers and host overhead are assumed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub framework: Framework,
    /// Execution of the operators. Default: as usual in the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// Optimizer of the trained parameters.
    #[serde(default, skip_serializing_if = "is_default")]
    pub optimizer: Optimizer,
    /// Master weights, which the optimizer updates. fp32 training has none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub master_weights: MasterWeights,
    /// Number format of the moments of Adam, Muon and SGD.
    #[serde(default, skip_serializing_if = "is_default")]
    pub moments: MomentFormat,
    /// Fraction of the optimizer state in host memory, 0 to 1. The host updates it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub optimizer_offload: f64,
    /// Weights and gradients that ZeRO 3 shards are in host memory, with the whole optimizer state (CPU offload of FSDP,
    /// `offload_param` of DeepSpeed).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parameter_offload: bool,
    /// User-defined times that replace predictions, per operator or for full layers. If several
    /// match, the last applies.
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
    /// fp8 in products of linear layers, bf16 otherwise.
    Fp8,
    /// fp32; products use TF32.
    Fp32,
}

impl Precision {
    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Fp32 => "fp32",
        }
    }
}

/// Number format of accumulated gradients.
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
    /// Bytes per value.
    pub const fn bytes(self) -> f64 {
        match self {
            Self::Fp32 => 4.0,
            Self::Bf16 => 2.0,
        }
    }
}

impl Training {
    /// Effective ZeRO stage, 0 to 3.
    pub fn zero_stage(&self) -> u32 {
        self.zero.unwrap_or(u32::from(self.distributed_optimizer))
    }

    /// Returns whether the shards of weights and gradients are in host memory. Without ZeRO 3 there are none.
    pub fn offloads_parameters(&self) -> bool {
        self.parameter_offload && self.zero_stage() == 3
    }

    /// Fraction of the optimizer state in host memory, 0 to 1.
    pub fn offloaded_optimizer(&self) -> f64 {
        if self.offloads_parameters() { 1.0 } else { self.optimizer_offload }
    }

    /// Returns whether the sharded gradients are in host memory: `DeepSpeed` keeps them next to the offloaded optimizer from
    /// ZeRO 2 on, whatever share of the optimizer is offloaded.
    pub fn offloads_gradients(&self) -> bool {
        let is_deepspeed = matches!(self.framework, Framework::Deepspeed | Framework::MegatronDeepspeed);
        self.offloads_parameters() || (is_deepspeed && self.zero_stage() >= 2 && self.optimizer_offload > 0.0)
    }

    /// Number of `replicas` over which ZeRO shards: the largest divisor up to the shard degree.
    pub fn shards(&self, replicas: u32) -> u32 {
        let replicas = replicas.max(1);
        let limit = self.shard_degree.unwrap_or(replicas).clamp(1, replicas);
        (1..=limit).rev().find(|&shards| replicas.is_multiple_of(shards)).unwrap_or(1)
    }

    /// Tensor-parallel degree of routed experts in a model with tensor-parallel degree `tensor`.
    pub fn expert_tensor(&self, tensor: u32) -> u32 {
        self.expert_tensor_parallel.map_or(tensor, |degree| degree.min(tensor)).max(1)
    }

    /// Bytes per activation or weight value.
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

const fn default_degree() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_default_degree(value: &u32) -> bool {
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
            recompute_modules: Vec::new(),
            recompute_layers: None,
            activation_offload: 0.0,
            precision: Precision::default(),
            zero: None,
            shard_degree: None,
            gradients: GradientFormat::default(),
            fused_weight_gradients: true,
            overlapped_backward: true,
            overlapped_sends: true,
            microbatches_per_flush: None,
            context_parallel: 1,
            context_exchange: ContextExchange::default(),
            context_balanced: true,
            expert_parallel: 1,
            expert_tensor_parallel: None,
            expert_overlap: 0.0,
            dispatch_by_node: false,
            chunked_loss: false,
            in_place_loss: false,
            grouped_experts: false,
            unsharded_gradients: false,
            fp8_recipe: None,
            fp8_weights: false,
            fp8_activation_input: false,
            framework: Framework::default(),
            execution: None,
            optimizer: Optimizer::default(),
            master_weights: MasterWeights::default(),
            moments: MomentFormat::default(),
            optimizer_offload: 0.0,
            parameter_offload: false,
            overrides: Vec::new(),
        }
    }
}

/// Activation recomputation in the backward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recompute {
    /// No recomputation: all activations are stored.
    #[default]
    None,
    /// Recomputes the attention core, or the modules that the settings list.
    Selective,
    /// Recomputes every second product of a layer and all memory-bound operators. Attention and the
    /// other products are stored (selective by operator in torchtitan).
    Operators,
    /// Recomputes full layers: only layer inputs are stored.
    Full,
}

impl Recompute {
    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Selective => "selective",
            Self::Operators => "operators",
            Self::Full => "full",
        }
    }
}

/// Exchange in a context-parallel group for attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContextExchange {
    /// Keys and values circulate in a ring, overlapped with attention (Ring Attention; Liu et al.,
    /// 2023).
    #[default]
    Ring,
    /// All-to-all from tokens to heads before attention and back after it, without overlap. The
    /// degree divides the heads. With fewer key-value heads than devices, they are replicated
    /// (DeepSpeed-Ulysses; Jacobs et al., 2023).
    AllToAll,
}

/// Attention kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AttentionKernel {
    /// Fused kernel that never stores the score matrix, at the rate of the device's curve.
    #[default]
    Flash,
    /// Separate kernels that store the score matrix (5 a s² b bytes of activations).
    Unfused,
    /// FlashAttention 1, or a Triton kernel of its time.
    Flash1,
    /// FlashAttention 2, also of `scaled_dot_product_attention` in PyTorch.
    Flash2,
    /// FlashAttention 3.
    Flash3,
    /// cuDNN, as in Transformer Engine.
    Cudnn,
}

impl AttentionKernel {
    /// All kernels.
    pub const ALL: [Self; 6] = [Self::Flash, Self::Unfused, Self::Flash1, Self::Flash2, Self::Flash3, Self::Cudnn];

    /// Returns the stable identifier, as in JSON.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Flash => "flash",
            Self::Unfused => "unfused",
            Self::Flash1 => "flash1",
            Self::Flash2 => "flash2",
            Self::Flash3 => "flash3",
            Self::Cudnn => "cudnn",
        }
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Flash => "fused attention",
            Self::Unfused => "unfused attention",
            Self::Flash1 => "FlashAttention 1",
            Self::Flash2 => "FlashAttention 2",
            Self::Flash3 => "FlashAttention 3",
            Self::Cudnn => "cuDNN attention",
        }
    }

    /// True if the kernel never stores the score matrix.
    pub const fn is_fused(self) -> bool {
        !matches!(self, Self::Unfused)
    }
}

/// User-defined degrees. The planner searches values that are not set.
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
    /// Model chunks per rank (virtual pipeline, VPP) for interleaved schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u32>,
    /// Sequences per microbatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microbatch: Option<u32>,
    /// Microbatches per chunk before an interleaved schedule switches to the next chunk. Default:
    /// PP, or slightly more if PP does not divide the microbatch count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}
