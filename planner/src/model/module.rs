//! One module: a stack of equal transformer layers with what stands before and after it.

use serde::{Deserialize, Serialize};

use super::items::{Audio, Patch, Video};
use crate::units::Flops;

/// What a module does in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ModuleRole {
    /// Turns images into tokens for the backbone.
    VisionEncoder,
    /// Turns clips of sound into tokens for the backbone.
    AudioEncoder,
    /// Generates images or video behind the backbone (diffusion transformer).
    Generator,
    /// The language model; without an output head (`headless`), the text encoder of a generator.
    Backbone,
}

/// Which positions a token attends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mask {
    /// Itself and what stands before it in the same sequence: half of the score matrix.
    Causal,
    /// Every position of the same sequence or image.
    Full,
}

/// The kind of normalisation, which decides its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// A scale per channel.
    Rms,
    /// A scale and a shift per channel.
    Layer,
}

/// Which linear layers have a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bias {
    /// None (Llama).
    None,
    /// Query, key and value only (Qwen2).
    Qkv,
    /// Every linear layer (GPT-3, ViT).
    All,
}

/// What a diffusion transformer's layer has beside self-attention and MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Diffusion {
    /// Tokens of text that every item attends to; 0 for a model without cross-attention.
    pub text_tokens: u32,
    /// Each layer computes its own scales, shifts and gates from the conditioning (adaLN, 6 h² parameters).
    pub modulation: bool,
}

/// A mixture of experts in place of every layer's MLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Experts of a layer, each with its own MLP of width `ffn`.
    pub experts: u32,
    /// Experts that each token is routed to.
    pub top_k: u32,
}

/// A stack of equal transformer layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "the switches of an architecture are independent of each other")]
pub struct Module {
    /// Shown name, for example "ViT 5B".
    pub name: String,
    /// What the module does.
    pub role: ModuleRole,
    /// Transformer layers, L.
    pub layers: u32,
    /// Width of the residual stream, h.
    pub hidden: u32,
    /// Query heads, a.
    pub heads: u32,
    /// Key and value heads, a_kv; equal to `heads` without grouped-query attention.
    pub kv_heads: u32,
    /// Width of one head, where it is not h / a.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_size: Option<u32>,
    /// Width inside the MLP, f.
    pub ffn: u32,
    /// A gated MLP (SwiGLU) has three matrices in place of two.
    pub gated: bool,
    /// Which positions a token attends to.
    pub mask: Mask,
    /// Kind of normalisation.
    pub norm: Norm,
    /// Which linear layers have a bias.
    pub bias: Bias,
    /// Dropout keeps a mask of one byte per element for the backward pass.
    pub dropout: bool,
    /// Vocabulary, V; 0 for a module without token embedding and output head.
    pub vocab: u32,
    /// The output head shares the embedding's matrix.
    pub tied_embeddings: bool,
    /// Learned position embeddings; 0 where positions are rotary.
    pub learned_positions: u32,
    /// A backbone that hands its last layer's output on and predicts no tokens: no output head, no loss.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// How images enter, for a vision encoder or a generator of images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Patch>,
    /// A mixture of experts in place of the MLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moe: Option<Moe>,
    /// How sound enters, for an audio encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<Audio>,
    /// How video enters, for a generator of video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<Video>,
    /// What a diffusion transformer has beside self-attention and MLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diffusion: Option<Diffusion>,
    /// Its layers are not trained: no gradients, no optimizer state, and no backward unless something before it is trained. A
    /// projection to the backbone's width is trained all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
}

/// What a backward computes in the layers of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gradients {
    /// Of inputs and weights.
    All,
    /// Of inputs alone: the module is frozen, but something before it is trained.
    Inputs,
    /// None: neither the module nor anything before it is trained.
    None,
}

/// The rule of [`Module::trades_heads`] for so many query heads and key-value heads.
pub const fn heads_trade((heads, kv_heads): (u32, u32), tensor: u32, degree: u32) -> bool {
    let (own, shared) = (heads / tensor, kv_heads / tensor);
    own.is_multiple_of(degree) && (shared.is_multiple_of(degree) || degree.is_multiple_of(shared))
}

impl Module {
    /// Whether what stands behind its last layer is a projection to the backbone's width, which is always trained.
    pub fn has_projection(&self) -> bool {
        self.patch.is_some_and(|patch| patch.projected_width.is_some())
    }

    /// Length of the sequence that one item (image, clip of sound) is for this module; 0 where items differ in length.
    pub fn tokens_per_item(&self) -> u32 {
        self.patch
            .map_or_else(|| self.audio.map_or(0, |audio| audio.frames_per_clip / 2), |patch| patch.patches_per_image)
    }

    /// Tokens that one item occupies in the backbone's sequence.
    pub fn backbone_tokens_per_item(&self) -> u32 {
        self.patch.map_or_else(|| self.audio.map_or(0, |audio| audio.tokens_per_clip), |patch| patch.tokens_per_image)
    }

    /// Width of one head, d: as given, else h / a.
    pub const fn head_dim(&self) -> u32 {
        match self.head_size {
            Some(size) => size,
            None => self.hidden / self.heads,
        }
    }

    /// Width of all query heads together, q = d a: the width of the residual stream unless heads have a size of their own.
    pub const fn query_width(&self) -> u32 {
        match self.head_size {
            Some(size) => size * self.heads,
            None => self.hidden,
        }
    }

    /// Whether `degree` devices, each with 1 / `tensor` of the heads, can trade tokens for heads (DeepSpeed-Ulysses): the degree divides the query
    /// heads, and the key and value heads or is a multiple of them, which then are repeated.
    pub const fn trades_heads(&self, tensor: u32, degree: u32) -> bool {
        heads_trade((self.heads, self.kv_heads), tensor, degree)
    }

    /// Width of all key (or value) heads together, d a_kv.
    pub const fn kv_width(&self) -> u32 {
        self.head_dim() * self.kv_heads
    }

    /// Matrices of one MLP: up and down, and a gate.
    const fn mlp_matrices(&self) -> u64 {
        if self.gated { 3 } else { 2 }
    }

    /// Parameters of one layer's matrices that multiply every token (all experts counted).
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

    /// Parameters of one layer's cross-attention (query, key, value, output) and modulation.
    fn diffusion_parameters(&self) -> u64 {
        let h = u64::from(self.hidden);
        self.diffusion.map_or(0, |diffusion| {
            let cross = if diffusion.text_tokens > 0 { 4 * h * u64::from(self.query_width()) } else { 0 };
            let modulation = if diffusion.modulation { 6 * h * h } else { 0 };
            cross + modulation
        })
    }

    /// Parameters of one layer's experts; they are dealt over the expert-parallel group.
    pub fn expert_parameters(&self) -> u64 {
        let (h, f) = (u64::from(self.hidden), u64::from(self.ffn));
        self.moe.map_or(0, |moe| self.mlp_matrices() * h * f * u64::from(moe.experts))
    }

    /// Parameters of one layer: matrices, biases, two norms.
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

    /// Parameters in front of the first layer: token and position embedding, or the patch projection.
    pub fn input_parameters(&self) -> u64 {
        let h = u64::from(self.hidden);
        let patch = self.patch.map_or(0, |patch| 3 * u64::from(patch.patch_px).pow(2) * h + h);
        let audio = self.audio.map_or(0, |audio| (3 * u64::from(audio.mel_bins) * h + h) + (3 * h * h + h));
        let video = self.video.map_or(0, |video| h * u64::from(video.values_per_token) + h);
        h * u64::from(self.vocab) + h * u64::from(self.learned_positions) + patch + audio + video
    }

    /// Entries of the vocabulary that the output head scores; 0 without one.
    pub const fn predicted(&self) -> u32 {
        if self.headless { 0 } else { self.vocab }
    }

    /// Parameters behind the last layer: the final norm, and an output head of its own.
    pub fn output_parameters(&self) -> u64 {
        let head = if self.tied_embeddings { 0 } else { u64::from(self.hidden) * u64::from(self.predicted()) };
        self.norm_parameters() + head + self.projector_parameters()
    }

    /// Patches that are merged into one token before the projection.
    pub fn merged_patches(&self) -> u32 {
        self.patch.map_or(1, |patch| patch.patches_per_image / patch.tokens_per_image.max(1)).max(1)
    }

    /// Perceptrons that merge patches and project them: one behind the last layer, and those of DeepStack; 0 without a
    /// projection.
    pub fn projectors(&self) -> u32 {
        self.patch.filter(|patch| patch.projected_width.is_some()).map_or(0, |patch| 1 + patch.deepstack)
    }

    /// Parameters of the perceptrons that merge patches, with their biases.
    fn projector_parameters(&self) -> u64 {
        let Some(width) = self.patch.and_then(|patch| patch.projected_width).map(u64::from) else { return 0 };
        let merged = u64::from(self.merged_patches()) * u64::from(self.hidden);
        u64::from(self.projectors()) * (merged * merged + merged + merged * width + width)
    }

    /// All parameters of a module that nobody has checked; `None` where a field is out of the range of valid scenarios.
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

    /// All parameters of the module.
    pub fn parameters(&self) -> u64 {
        u64::from(self.layers) * self.layer_parameters() + self.input_parameters() + self.output_parameters()
    }

    /// Query and output projection of cross-attention, which every token meets.
    fn cross_attention_width(&self) -> f64 {
        self.diffusion
            .map_or(0.0, |diffusion| if diffusion.text_tokens > 0 { 2.0 * f64::from(self.query_width()) } else { 0.0 })
    }

    /// Forward operations of one layer's linear parts for `tokens` tokens: two per matrix parameter that a
    /// token meets (of the experts, only the `top_k` it is routed to).
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

    /// Forward operations of one layer's attention core (scores and their product with the values), given the
    /// sum of the squared lengths of the sequences: 4 q Σ l². As in published figures of model FLOPs (PaLM, appendix
    /// B; Megatron-LM), the half that a causal mask leaves out is counted.
    pub fn layer_attention_flops(&self, squared_lengths: f64) -> Flops {
        Flops::new(4.0 * f64::from(self.query_width()) * squared_lengths)
    }

    /// Forward operations of the output head for `tokens` tokens, 2 h V per token; zero without one.
    pub fn head_flops(&self, tokens: f64) -> Flops {
        Flops::new(2.0 * tokens * f64::from(self.hidden) * f64::from(self.predicted()))
    }
}
