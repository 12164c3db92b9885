//! A module: a stack of equal transformer layers with input and output blocks.

use serde::{Deserialize, Serialize};

use super::items::{Audio, Patch, Video};
use crate::units::Flops;

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

/// A mixture of experts that replaces the MLP in all layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Experts per layer. Each expert is an MLP with width `ffn`.
    pub experts: u32,
    /// Experts per token.
    pub top_k: u32,
}

/// A stack of equal transformer layers.
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

    /// Head size, d: `head_size`, otherwise h / a.
    pub const fn head_dim(&self) -> u32 {
        match self.head_size {
            Some(size) => size,
            None => self.hidden / self.heads,
        }
    }

    /// Total query width, q = d a. Equal to the hidden size unless `head_size` is set.
    pub const fn query_width(&self) -> u32 {
        match self.head_size {
            Some(size) => size * self.heads,
            None => self.hidden,
        }
    }

    /// Returns whether `degree` devices, each with 1 / `tensor` of the heads, can exchange tokens
    /// for heads (DeepSpeed-Ulysses). The degree must divide the query heads. It must also divide
    /// the key-value heads, or be a multiple of them: then they are replicated.
    pub const fn supports_all_to_all(&self, tensor: u32, degree: u32) -> bool {
        heads_support_all_to_all((self.heads, self.kv_heads), tensor, degree)
    }

    /// Total width of all key (or value) heads, d a_kv.
    pub const fn kv_width(&self) -> u32 {
        self.head_dim() * self.kv_heads
    }

    /// Number of matrices per MLP: up, down, and the optional gate.
    const fn mlp_matrices(&self) -> u64 {
        if self.gated { 3 } else { 2 }
    }

    /// Matrix parameters per layer, including all experts.
    fn layer_matrix_parameters(&self) -> u64 {
        let (h, f) = (u64::from(self.hidden), u64::from(self.ffn));
        let q = u64::from(self.query_width());
        let attention = 2 * h * q + 2 * h * u64::from(self.kv_width()) + self.diffusion_parameters();
        let mlp = self.mlp_matrices() * h * f;
        match self.moe {
            Some(moe) => attention + mlp * u64::from(moe.experts) + h * u64::from(moe.experts),
            None => attention + mlp,
        }
    }

    /// Parameters per layer in cross-attention (query, key, value, output) and modulation.
    fn diffusion_parameters(&self) -> u64 {
        let h = u64::from(self.hidden);
        self.diffusion.map_or(0, |diffusion| {
            let cross = if diffusion.text_tokens > 0 { 4 * h * u64::from(self.query_width()) } else { 0 };
            let modulation = if diffusion.modulation { 6 * h * h } else { 0 };
            cross + modulation
        })
    }

    /// Expert parameters per layer. They are distributed over the expert-parallel group.
    pub fn expert_parameters(&self) -> u64 {
        let (h, f) = (u64::from(self.hidden), u64::from(self.ffn));
        self.moe.map_or(0, |moe| self.mlp_matrices() * h * f * u64::from(moe.experts))
    }

    /// Parameters per layer: matrices, biases, two norms.
    pub fn layer_parameters(&self) -> u64 {
        let (h, f) = (u64::from(self.hidden), u64::from(self.ffn));
        let qkv_bias = u64::from(self.query_width()) + 2 * u64::from(self.kv_width());
        let biases = match self.bias {
            Bias::None => 0,
            Bias::Qkv => qkv_bias,
            Bias::All => qkv_bias + h + (self.mlp_matrices() - 1) * f + h,
        };
        self.layer_matrix_parameters() + biases + 2 * self.norm_parameters()
    }

    fn norm_parameters(&self) -> u64 {
        let h = u64::from(self.hidden);
        match self.norm {
            Norm::Rms => h,
            Norm::Layer => 2 * h,
        }
    }

    /// Input block parameters: token and position embedding, or the patch projection.
    pub fn input_parameters(&self) -> u64 {
        let h = u64::from(self.hidden);
        let patch = self.patch.map_or(0, |patch| 3 * u64::from(patch.patch_px).pow(2) * h + h);
        let audio = self.audio.map_or(0, |audio| (3 * u64::from(audio.mel_bins) * h + h) + (3 * h * h + h));
        let video = self.video.map_or(0, |video| h * u64::from(video.values_per_token) + h);
        h * u64::from(self.vocab) + h * u64::from(self.learned_positions) + patch + audio + video
    }

    /// Number of vocabulary entries in the output head, if any; otherwise 0.
    pub const fn predicted(&self) -> u32 {
        if self.headless { 0 } else { self.vocab }
    }

    /// Output block parameters: the final norm, and the output head if it is not tied.
    pub fn output_parameters(&self) -> u64 {
        let head = if self.tied_embeddings { 0 } else { u64::from(self.hidden) * u64::from(self.predicted()) };
        self.norm_parameters() + head + self.projector_parameters()
    }

    /// Patches merged per token before the projection.
    pub fn merged_patches(&self) -> u32 {
        self.patch.map_or(1, |patch| patch.patches_per_image / patch.tokens_per_image.max(1)).max(1)
    }

    /// Number of MLPs that merge and project patches: one after the last layer, plus those for
    /// DeepStack.
    pub fn projectors(&self) -> u32 {
        self.patch.filter(|patch| patch.projected_width.is_some()).map_or(0, |patch| 1 + patch.deepstack)
    }

    /// Parameters in these MLPs, including biases.
    fn projector_parameters(&self) -> u64 {
        let Some(width) = self.patch.and_then(|patch| patch.projected_width).map(u64::from) else { return 0 };
        let merged = u64::from(self.merged_patches()) * u64::from(self.hidden);
        u64::from(self.projectors()) * (merged * merged + merged + merged * width + width)
    }

    /// Total number of parameters of an unvalidated module; `None` if a field is out of the valid
    /// range.
    pub fn checked_parameters(&self) -> Option<u64> {
        let Self { layers, hidden, heads, kv_heads, ffn, vocab, learned_positions, .. } = *self;
        let patch =
            self.patch.map_or(0, |patch| patch.patch_px.max(patch.projected_width.unwrap_or(0)).max(patch.deepstack));
        let others = [
            self.head_size.unwrap_or(1),
            self.moe.map_or(1, |moe| moe.experts),
            self.audio.map_or(0, |audio| audio.mel_bins),
            self.video.map_or(0, |video| video.values_per_token),
            patch,
        ];
        let is_valid = (1..=1024).contains(&layers)
            && (1..=131_072).contains(&hidden)
            && (1..=1024).contains(&heads)
            && (1..=1024).contains(&kv_heads)
            && (1..=1_048_576).contains(&ffn)
            && vocab <= 4_194_304
            && learned_positions <= 16_777_216
            && others.iter().all(|&value| value <= 131_072)
            && self.moe.is_none_or(|moe| moe.experts <= 1024)
            && self.merged_patches() <= 1024;
        is_valid.then(|| self.parameters())
    }

    /// Total number of parameters.
    pub fn parameters(&self) -> u64 {
        u64::from(self.layers) * self.layer_parameters() + self.input_parameters() + self.output_parameters()
    }

    /// Parameters in the query and output projections of cross-attention, which process all tokens.
    fn cross_attention_width(&self) -> f64 {
        self.diffusion
            .map_or(0.0, |diffusion| if diffusion.text_tokens > 0 { 2.0 * f64::from(self.query_width()) } else { 0.0 })
    }

    /// Forward operations per layer in linear parts, for `tokens` tokens: two per matrix parameter
    /// used by a token (only `top_k` experts).
    pub fn layer_linear_flops(&self, tokens: f64) -> Flops {
        let (h, f) = (f64::from(self.hidden), f64::from(self.ffn));
        let q = f64::from(self.query_width());
        let attention = 2.0 * h * q + 2.0 * h * f64::from(self.kv_width()) + self.cross_attention_width() * h;
        let mlp = self.mlp_matrices() as f64 * h * f;
        let met = match self.moe {
            Some(moe) => attention + mlp * f64::from(moe.top_k) + h * f64::from(moe.experts),
            None => attention + mlp,
        };
        Flops::new(2.0 * tokens * met)
    }

    /// Forward operations per layer in the attention core (scores, and scores x values), given the
    /// sum of squared sequence lengths: 4 q Σ l². As in published model FLOPs (PaLM App. B;
    /// Megatron-LM), the masked half of a causal mask is counted.
    pub fn layer_attention_flops(&self, squared_lengths: f64) -> Flops {
        Flops::new(4.0 * f64::from(self.query_width()) * squared_lengths)
    }

    /// Forward operations in the output head, if any: 2 h V per token.
    pub fn head_flops(&self, tokens: f64) -> Flops {
        Flops::new(2.0 * tokens * f64::from(self.hidden) * f64::from(self.predicted()))
    }
}
