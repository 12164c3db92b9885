//! Kinds of layers in a module, and the parts that differ between them.

use serde::{Deserialize, Serialize};

use super::Module;

/// Maximum number of kinds of layers in a module: three mixers with two kinds of MLP. A pattern has at
/// most four.
pub const MAX_KINDS: usize = 6;

/// A mixture of experts that replaces the MLP in all or some layers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Experts per layer.
    pub experts: u32,
    /// Experts per token.
    pub top_k: u32,
    /// MLP width of an expert. Default: `ffn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert_width: Option<u32>,
    /// Total MLP width of the shared experts, which compute all tokens; 0 without shared experts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_width: u32,
    /// Number of first layers that have an MLP of width `ffn` instead of experts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dense_layers: u32,
    /// Every n-th layer after the dense layers has experts; the others have an MLP of width `ffn`.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub every: u32,
    /// Maximum number of nodes with experts of one token (group-limited routing); 0 without a limit.
    /// It counts if tokens are dispatched by node.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub node_limit: u32,
    /// Tokens on the expert-parallel rank with the most tokens, relative to the mean. All ranks wait
    /// for it. 1 for a balanced router.
    #[serde(default = "balanced", skip_serializing_if = "is_balanced")]
    pub skew: f64,
}

impl Moe {
    /// Experts in all layers, of MLP width `ffn`, with a balanced router.
    pub const fn new(experts: u32, top_k: u32) -> Self {
        Self {
            experts,
            top_k,
            expert_width: None,
            shared_width: 0,
            dense_layers: 0,
            every: 1,
            node_limit: 0,
            skew: 1.0,
        }
    }
}

/// Multi-head latent attention (DeepSeek-V2, Sec. 2.1): queries, keys and values are projected up
/// from vectors of low rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LatentAttention {
    /// Width of the query vector; 0 if queries are projected from the hidden state.
    pub query_rank: u32,
    /// Width of the key and value vector.
    pub kv_rank: u32,
    /// Values per head of queries and keys without positions.
    pub content_size: u32,
    /// Values per head of queries and keys with rotary positions. All heads share those of the key.
    pub rotary_size: u32,
    /// Size of a value head.
    pub value_size: u32,
}

/// Attention to a limited number of previous tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Tokens that a token attends to, including itself.
    pub tokens: u32,
    /// Every n-th layer attends to all tokens; 0 if none does.
    #[serde(default)]
    pub full_every: u32,
    /// Sequences are cut into chunks of `tokens`, and a token attends to its own chunk (Llama 4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chunked: bool,
}

/// Recurrence of a linear attention layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Recurrence {
    /// Gated delta rule (Gated DeltaNet; Qwen3-Next, Qwen3.5).
    GatedDelta,
    /// State space model with scalar decay (Mamba-2). The state is the key; groups are key heads.
    StateSpace,
}

/// Layers with linear attention, or a state space model, in place of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LinearAttention {
    /// Recurrence.
    pub recurrence: Recurrence,
    /// Heads of queries and keys (Mamba-2: groups).
    pub key_heads: u32,
    /// Heads of values (Mamba-2: heads).
    pub value_heads: u32,
    /// Size of a query or key head (Mamba-2: state size).
    pub key_size: u32,
    /// Size of a value head.
    pub value_size: u32,
    /// Width of the convolution over time.
    pub convolution: u32,
    /// Every n-th layer has full attention; 0 if none has. Ignored with a pattern.
    #[serde(default)]
    pub full_every: u32,
}

impl LinearAttention {
    /// Total width of queries (or keys).
    pub fn key_width(&self) -> u64 {
        u64::from(self.key_heads) * u64::from(self.key_size)
    }

    /// Total width of values.
    pub fn value_width(&self) -> u64 {
        u64::from(self.value_heads) * u64::from(self.value_size)
    }

    /// Output width of the input projection: queries, keys, values, gate, and the decay (and the
    /// step size of the delta rule) per value head.
    pub fn input_width(&self) -> u64 {
        let scalars = match self.recurrence {
            Recurrence::GatedDelta => 2,
            Recurrence::StateSpace => 1,
        };
        2 * self.key_width() + 2 * self.value_width() + scalars * u64::from(self.value_heads)
    }

    /// Multiply-adds per token and value head in the chunked form with chunks of `chunk` tokens:
    /// scores and their product with values inside a chunk, and products with the state of
    /// `key_size` x `value_size`. The delta rule also solves for the update of each token (Yang et
    /// al. 2024, "Parallelizing Linear Transformers with the Delta Rule over Sequence Length").
    pub fn core_products(&self, chunk: f64) -> f64 {
        let (key, value) = (f64::from(self.key_size), f64::from(self.value_size));
        match self.recurrence {
            Recurrence::GatedDelta => 2.0 * chunk * (key + value) + 3.0 * key * value,
            Recurrence::StateSpace => {
                let shared = f64::from(self.key_heads) / f64::from(self.value_heads.max(1));
                chunk * (key * shared + value) + 2.0 * key * value
            }
        }
    }
}

/// Tokens per chunk in the chunked form of linear attention.
pub const LINEAR_CHUNK: f64 = 64.0;

/// Low-rank adapters (LoRA; Hu et al., 2021): the module's weights are frozen, and each adapted
/// linear layer has two trained matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Adapters {
    /// Rank r of the two matrices.
    pub rank: u32,
    /// Adapts the layers of the MLP as well as those of attention.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mlp: bool,
    /// Bits per frozen weight, for quantized base weights (QLoRA: 4). Default: the training
    /// precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_bits: Option<u32>,
}

/// Token mixer of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mixer {
    /// Attention to all tokens that the mask allows.
    Attention,
    /// Attention within the module's window.
    Window,
    /// Linear attention.
    Linear,
}

/// MLP of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MlpKind {
    /// One MLP of width `ffn` for all tokens.
    Dense,
    /// Experts.
    Experts,
}

/// Kind of a layer: layers of one kind have equal shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerKind {
    /// Token mixer, if any.
    pub mixer: Option<Mixer>,
    /// MLP, if any.
    pub mlp: Option<MlpKind>,
}

/// Parameters of a part of a module. Expert parameters are distributed over the expert-parallel
/// group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParameterCount {
    /// Parameters outside routed experts.
    pub dense: u64,
    /// Parameters of routed experts.
    pub expert: u64,
}

impl ParameterCount {
    /// Returns the sum of both.
    pub const fn total(self) -> u64 {
        self.dense + self.expert
    }

    /// Returns the count of `layers` equal parts.
    #[must_use]
    pub const fn times(self, layers: u64) -> Self {
        Self { dense: self.dense * layers, expert: self.expert * layers }
    }

    /// Adds another count.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { dense: self.dense + other.dense, expert: self.expert + other.expert }
    }
}

impl Module {
    /// Returns whether all layers have the same kind.
    pub fn is_uniform(&self) -> bool {
        let mixed_experts = self.moe.is_some_and(|moe| moe.dense_layers > 0 || moe.every > 1);
        let mixed_window = self.window.is_some_and(|window| window.full_every > 0);
        let mixed_linear = self.linear.is_some_and(|linear| linear.full_every > 0);
        !mixed_experts && !mixed_window && !mixed_linear && self.pattern.is_none()
    }

    /// Returns the kind of layer `layer`, starting at 0.
    pub fn layer_kind(&self, layer: u32) -> LayerKind {
        if let Some(pattern) = &self.pattern {
            return pattern_kind(pattern.as_bytes().get(layer as usize).copied());
        }
        let is_nth = |every: u32| every > 0 && (layer + 1).is_multiple_of(every);
        let mixer = if self.linear.is_some_and(|linear| !is_nth(linear.full_every)) {
            Mixer::Linear
        } else if self.window.is_some_and(|window| !is_nth(window.full_every)) {
            Mixer::Window
        } else {
            Mixer::Attention
        };
        let has_experts =
            |moe: Moe| layer >= moe.dense_layers && (layer - moe.dense_layers + 1).is_multiple_of(moe.every.max(1));
        let mlp = if self.moe.is_some_and(has_experts) { MlpKind::Experts } else { MlpKind::Dense };
        LayerKind { mixer: Some(mixer), mlp: Some(mlp) }
    }

    /// Returns the kind of the last layer, which multi-token prediction repeats.
    pub fn last_kind(&self) -> LayerKind {
        self.layer_kind(self.layers.saturating_sub(1))
    }

    /// Returns the kinds of layers, in order of their first layer.
    pub fn layer_kinds(&self) -> Vec<LayerKind> {
        if self.is_uniform() {
            return vec![self.layer_kind(0)];
        }
        let mut kinds = Vec::new();
        for layer in 0..self.layers {
            let kind = self.layer_kind(layer);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// Returns the number of layers of each of `kinds` among the layers `first .. end`.
    pub fn count_kinds(&self, kinds: &[LayerKind], first: u32, end: u32) -> [u32; MAX_KINDS] {
        let mut counts = [0; MAX_KINDS];
        if let [_] = kinds {
            counts[0] = end - first;
            return counts;
        }
        for layer in first..end {
            let kind = self.layer_kind(layer);
            if let Some(index) = kinds.iter().position(|other| *other == kind) {
                counts[index] += 1;
            }
        }
        counts
    }

    /// Returns the most frequent kind of layer.
    pub fn main_kind(&self) -> LayerKind {
        let kinds = self.layer_kinds();
        let counts = self.count_kinds(&kinds, 0, self.layers);
        let most = (0..kinds.len()).max_by_key(|&index| (counts[index], std::cmp::Reverse(index))).unwrap_or(0);
        kinds[most]
    }

    /// Sums `value` over all layers.
    pub(super) fn sum_layers(&self, value: impl Fn(LayerKind) -> f64) -> f64 {
        let kinds = self.layer_kinds();
        let counts = self.count_kinds(&kinds, 0, self.layers);
        kinds.iter().zip(counts).map(|(&kind, count)| f64::from(count) * value(kind)).sum()
    }
}

/// Returns the kind for a character of a layer pattern, as in the configurations of Nemotron-H: `M`
/// linear attention, `*` attention, `-` MLP, `E` experts.
fn pattern_kind(character: Option<u8>) -> LayerKind {
    match character {
        Some(b'M') => LayerKind { mixer: Some(Mixer::Linear), mlp: None },
        Some(b'-') => LayerKind { mixer: None, mlp: Some(MlpKind::Dense) },
        Some(b'E') => LayerKind { mixer: None, mlp: Some(MlpKind::Experts) },
        _ => LayerKind { mixer: Some(Mixer::Attention), mlp: None },
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(value: &u32) -> bool {
    *value == 1
}

const fn one() -> u32 {
    1
}

const fn balanced() -> f64 {
    1.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_balanced(value: &f64) -> bool {
    (*value - 1.0).abs() < f64::EPSILON
}
