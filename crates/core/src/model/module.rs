//! A module: a stack of transformer layers with input and output blocks.

mod operations;
mod parameters;

pub use parameters::AdaptedMatrix;

use serde::{Deserialize, Serialize};

use super::items::{Audio, Patch, Video};
use super::layers::{Adapters, LatentAttention, LinearAttention, Moe, Window};

/// Role of a module in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModuleRole {
    /// Encodes images to backbone tokens.
    VisionEncoder,
    /// Encodes audio clips to backbone tokens.
    AudioEncoder,
    /// Diffusion transformer after the backbone that generates images or video.
    Generator,
    /// Language model. Without an output head (`headless`), the text encoder for a generator.
    Backbone,
}

/// Attention mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mask {
    /// A token attends to itself and preceding tokens in the same sequence: half of the score
    /// matrix.
    Causal,
    /// A token attends to all positions in the same sequence or image.
    Full,
}

/// Normalization type, which determines its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// Scale per channel.
    Rms,
    /// Scale and shift per channel.
    Layer,
}

/// Linear layers with a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bias {
    /// No layers (Llama).
    None,
    /// Query, key and value only (Qwen2).
    Qkv,
    /// All linear layers (GPT-3, ViT).
    All,
}

/// Components of a diffusion transformer layer in addition to self-attention and MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Diffusion {
    /// Text tokens that each item attends to; 0 without cross-attention.
    pub text_tokens: u32,
    /// Layers compute scales, shifts and gates from the conditioning (adaLN, 6 h² parameters per
    /// layer).
    pub modulation: bool,
}

/// A stack of transformer layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "the switches of an architecture are independent of each other")]
pub struct Module {
    /// Display name, for example "ViT 5B".
    pub name: String,
    /// Role of the module.
    pub role: ModuleRole,
    /// Number of transformer layers, L.
    pub layers: u32,
    /// Hidden size (residual stream width), h.
    pub hidden: u32,
    /// Number of query heads, a.
    pub heads: u32,
    /// Number of key-value heads, a_kv; equal to `heads` without grouped-query attention.
    pub kv_heads: u32,
    /// Head size, if it is not h / a.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_size: Option<u32>,
    /// MLP width, f.
    pub ffn: u32,
    /// Gated MLP (SwiGLU) with three matrices instead of two.
    pub gated: bool,
    /// Attention mask.
    pub mask: Mask,
    /// Normalization type.
    pub norm: Norm,
    /// Linear layers with a bias.
    pub bias: Bias,
    /// Uses dropout, which stores a mask with one byte per element for the backward.
    pub dropout: bool,
    /// Vocabulary size, V; 0 for modules that have no token embedding and output head.
    pub vocab: u32,
    /// Output head and embedding share a matrix.
    pub tied_embeddings: bool,
    /// Number of learned position embeddings; 0 for rotary embeddings.
    pub learned_positions: u32,
    /// Backbone that outputs the last layer's activations. It has no output head and no loss.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// Image tokenization, for a vision encoder or an image generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// Mixture of experts that replaces the MLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moe: Option<Moe>,
    /// Multi-head latent attention. It replaces `head_size`, and `kv_heads` equals `heads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent: Option<LatentAttention>,
    /// Sliding window of attention, in all or some layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Linear attention, in all or some layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linear: Option<LinearAttention>,
    /// Layers that are a mixer or an MLP each, one character per layer: `M` linear attention, `*`
    /// attention, `-` MLP, `E` experts (Nemotron-H).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Multi-token prediction: additional layers after the last, each with a projection of two
    /// streams to one and the output head (DeepSeek-V3, Sec. 2.2).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub predicted_ahead: u32,
    /// Low-rank adapters. All other weights of the layers are frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapters: Option<Adapters>,
    /// Audio tokenization, for an audio encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<Audio>,
    /// Video tokenization, for a video generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
    /// Additional components of a diffusion transformer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diffusion: Option<Diffusion>,
    /// Layers are frozen: no gradients, no optimizer state, and no backward unless a preceding
    /// module is trained. A projection to the backbone width is still trained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Gradients that the backward computes in a module's layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradients {
    /// Input and weight gradients.
    All,
    /// Only input gradients: the module is frozen, but a preceding module is trained.
    Inputs,
    /// No gradients: neither the module nor a preceding module is trained.
    None,
}

/// Like [`Module::supports_all_to_all`], for the given numbers of query and key-value heads.
pub const fn heads_support_all_to_all((heads, kv_heads): (u32, u32), tensor: u32, degree: u32) -> bool {
    let (rank_heads, shared) = (heads / tensor, kv_heads / tensor);
    rank_heads.is_multiple_of(degree) && (shared.is_multiple_of(degree) || degree.is_multiple_of(shared))
}

impl Module {
    /// Base for struct updates: a trained text backbone with gated MLP, RMS norm and rotary
    /// positions, without optional parts. Name, sizes and vocabulary are empty.
    pub const fn decoder() -> Self {
        Self {
            name: String::new(),
            role: ModuleRole::Backbone,
            layers: 0,
            hidden: 0,
            heads: 0,
            kv_heads: 0,
            head_size: None,
            ffn: 0,
            gated: true,
            mask: Mask::Causal,
            norm: Norm::Rms,
            bias: Bias::None,
            dropout: false,
            vocab: 0,
            tied_embeddings: false,
            learned_positions: 0,
            headless: false,
            patch: None,
            moe: None,
            latent: None,
            window: None,
            linear: None,
            pattern: None,
            predicted_ahead: 0,
            adapters: None,
            audio: None,
            video: None,
            diffusion: None,
            frozen: false,
        }
    }

    /// Returns whether the module ends with a projection to the backbone width, which is always
    /// trained.
    pub fn has_projection(&self) -> bool {
        self.patch.is_some_and(|patch| patch.projected_width.is_some())
    }

    /// Sequence length per item (image, audio clip) in this module; 0 if items have different
    /// lengths.
    pub fn tokens_per_item(&self) -> u32 {
        self.patch
            .map_or_else(|| self.audio.map_or(0, |audio| audio.frames_per_clip / 2), |patch| patch.patches_per_image)
    }

    /// Tokens per item in the backbone's sequence.
    pub fn backbone_tokens_per_item(&self) -> u32 {
        self.patch.map_or_else(|| self.audio.map_or(0, |audio| audio.tokens_per_clip), |patch| patch.tokens_per_image)
    }

    /// Size of a query or key head, d: `head_size`, otherwise h / a. With latent attention, the sum of
    /// both parts.
    pub const fn head_dim(&self) -> u32 {
        match (self.latent, self.head_size) {
            (Some(latent), _) => latent.content_size + latent.rotary_size,
            (None, Some(size)) => size,
            (None, None) => self.hidden / self.heads,
        }
    }

    /// Size of a value head. Equal to the size of a query head without latent attention.
    pub const fn value_dim(&self) -> u32 {
        match self.latent {
            Some(latent) => latent.value_size,
            None => self.head_dim(),
        }
    }

    /// Returns the heads that tensor parallelism distributes, with their names. The degree must
    /// divide each count.
    pub fn sharded_heads(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let linear = self.linear.map(|linear| {
            [("heads of linear attention", linear.value_heads), ("key heads of linear attention", linear.key_heads)]
        });
        [("heads", self.heads), ("key-value heads", self.kv_heads)].into_iter().chain(linear.into_iter().flatten())
    }

    /// Returns whether `tensor` divides all heads.
    pub fn supports_tensor(&self, tensor: u32) -> bool {
        self.sharded_heads().all(|(_, count)| count.is_multiple_of(tensor))
    }

    /// Total query width, q = d a. Equal to the hidden size unless `head_size` is set.
    pub const fn query_width(&self) -> u32 {
        match (self.latent, self.head_size) {
            (None, None) => self.hidden,
            _ => self.head_dim() * self.heads,
        }
    }

    /// Total width of the attention output: a value per query head.
    pub const fn context_width(&self) -> u32 {
        match self.latent {
            None => self.query_width(),
            Some(latent) => latent.value_size * self.heads,
        }
    }

    /// Returns whether `degree` devices, each with 1 / `tensor` of the heads, can exchange tokens
    /// for heads (DeepSpeed-Ulysses). The degree must divide the query heads. It must also divide
    /// the key-value heads, or be a multiple of them: then they are replicated.
    pub const fn supports_all_to_all(&self, tensor: u32, degree: u32) -> bool {
        heads_support_all_to_all((self.heads, self.kv_heads), tensor, degree)
    }

    /// Total width of all key heads, d a_kv.
    pub const fn kv_width(&self) -> u32 {
        self.head_dim() * self.kv_heads
    }

    /// Total width of all value heads.
    pub const fn value_width(&self) -> u32 {
        self.value_dim() * self.kv_heads
    }

    /// Number of vocabulary entries in the output head, if any; otherwise 0.
    pub const fn predicted(&self) -> u32 {
        if self.headless { 0 } else { self.vocab }
    }

    /// Patches merged per token before the projection.
    pub fn merged_patches(&self) -> u32 {
        self.patch.map_or(1, |patch| patch.patches_per_image / patch.tokens_per_image.max(1)).max(1)
    }

    /// True if the patches of a token are averaged before the projection.
    pub fn pools_patches(&self) -> bool {
        self.patch.is_some_and(|patch| patch.pooled)
    }

    /// Number of MLPs that merge and project patches: one after the last layer, plus those for
    /// DeepStack.
    pub fn projectors(&self) -> u32 {
        self.patch.filter(|patch| patch.projected_width.is_some()).map_or(0, |patch| 1 + patch.deepstack)
    }
}
