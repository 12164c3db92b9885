//! Model operations of a module (docs/models.md, section 2).

use super::super::layers::{LINEAR_CHUNK, LayerKind, Mixer, MlpKind};
use super::{Mask, Module};
use crate::units::Flops;

impl Module {
    /// Parameters in the query and output projections of cross-attention, which process all tokens.
    fn cross_attention_width(&self) -> f64 {
        self.diffusion
            .map_or(0.0, |diffusion| if diffusion.text_tokens > 0 { 2.0 * f64::from(self.query_width()) } else { 0.0 })
    }

    /// Forward operations in the linear parts of a layer of kind `kind`, for `tokens` tokens: two per
    /// matrix parameter used by a token (only `top_k` experts).
    pub fn kind_linear_flops(&self, kind: LayerKind, tokens: f64) -> Flops {
        let h = f64::from(self.hidden);
        let mixer = match (kind.mixer, self.linear) {
            (None, _) => 0.0,
            (Some(Mixer::Linear), Some(linear)) => h * (linear.input_width() + linear.value_width()) as f64,
            (Some(_), _) => self.attention_parameters() as f64 + self.cross_attention_width() * h,
        };
        let mlp = match (kind.mlp, self.moe) {
            (None, _) => 0.0,
            (Some(MlpKind::Experts), Some(moe)) => {
                let routed = self.dense_mlp(self.expert_width()) as f64 * f64::from(moe.top_k);
                routed + h * f64::from(moe.experts) + self.dense_mlp(moe.shared_width) as f64
            }
            (Some(_), _) => self.dense_mlp(self.ffn) as f64,
        };
        Flops::new(2.0 * tokens * (mixer + mlp))
    }

    /// Forward operations in the attention core of a layer of kind `kind` (scores, and scores x
    /// values), given the token count and the sum of squared sequence lengths: 2 a (d + d_v) Σ l². As
    /// in published model FLOPs (PaLM App. B; Megatron-LM), the masked half of a causal mask is
    /// counted. A window limits the keys of a token; linear attention counts its chunked form.
    pub fn kind_attention_flops(&self, kind: LayerKind, tokens: f64, squared_lengths: f64) -> Flops {
        let Some(mixer) = kind.mixer else { return Flops::new(0.0) };
        if let (Mixer::Linear, Some(linear)) = (mixer, self.linear) {
            let heads = f64::from(linear.value_heads);
            return Flops::new(2.0 * tokens * heads * linear.core_products(LINEAR_CHUNK));
        }
        let widths = f64::from(self.query_width()) + f64::from(self.context_width());
        Flops::new(2.0 * widths * self.attended(mixer, tokens, squared_lengths))
    }

    /// Returns the sum over tokens of attended positions, counting the masked half of a causal mask.
    /// `squared_lengths` is the sum of squared sequence lengths. A window W leaves 2 W - W² / l
    /// positions per token of a sequence of l tokens, and a chunk leaves W. With unequal lengths, l is
    /// the mean weighted by tokens.
    pub fn attended(&self, mixer: Mixer, tokens: f64, squared_lengths: f64) -> f64 {
        let (Mixer::Window, Some(window)) = (mixer, self.window) else { return squared_lengths };
        let (length, width) = (squared_lengths / tokens.max(1.0), f64::from(window.tokens));
        if length <= width {
            squared_lengths
        } else if window.chunked || self.mask == Mask::Full {
            tokens * width
        } else {
            tokens * (2.0 * width - width * width / length)
        }
    }

    /// Forward operations in the linear parts of all layers, including those of multi-token
    /// prediction.
    pub fn linear_flops(&self, tokens: f64) -> Flops {
        let layers = self.sum_layers(|kind| self.kind_linear_flops(kind, tokens).get());
        Flops::new(layers) + self.prediction_linear_flops(tokens)
    }

    /// Forward operations in the attention cores of all layers, including those of multi-token
    /// prediction.
    pub fn attention_flops(&self, tokens: f64, squared_lengths: f64) -> Flops {
        let layers = self.sum_layers(|kind| self.kind_attention_flops(kind, tokens, squared_lengths).get());
        Flops::new(layers) + self.prediction_attention_flops(tokens, squared_lengths)
    }

    /// Forward operations of multi-token prediction in linear parts, without the output head: a layer
    /// and the projection of two streams to one per predicted token.
    pub fn prediction_linear_flops(&self, tokens: f64) -> Flops {
        let h = f64::from(self.hidden);
        let layer = self.kind_linear_flops(self.last_kind(), tokens);
        (layer + Flops::new(4.0 * tokens * h * h)) * f64::from(self.predicted_ahead)
    }

    /// Forward operations of multi-token prediction in attention cores.
    pub fn prediction_attention_flops(&self, tokens: f64, squared_lengths: f64) -> Flops {
        self.kind_attention_flops(self.last_kind(), tokens, squared_lengths) * f64::from(self.predicted_ahead)
    }

    /// Mean forward operations per layer in the linear parts.
    pub fn layer_linear_flops(&self, tokens: f64) -> Flops {
        self.mean_layer(|kind| self.kind_linear_flops(kind, tokens))
    }

    /// Mean forward operations per layer in the attention core.
    pub fn layer_attention_flops(&self, tokens: f64, squared_lengths: f64) -> Flops {
        self.mean_layer(|kind| self.kind_attention_flops(kind, tokens, squared_lengths))
    }

    /// Forward operations in the output head, if any: 2 h V per token, once per predicted token.
    pub fn head_flops(&self, tokens: f64) -> Flops {
        let heads = 1.0 + f64::from(self.predicted_ahead);
        Flops::new(2.0 * heads * tokens * f64::from(self.hidden) * f64::from(self.predicted()))
    }

    fn mean_layer(&self, operations: impl Fn(LayerKind) -> Flops) -> Flops {
        if self.is_uniform() {
            return operations(self.layer_kind(0));
        }
        Flops::new(self.sum_layers(|kind| operations(kind).get()) / f64::from(self.layers.max(1)))
    }
}
