//! Parameter counts of a module.

use super::super::layers::{LayerKind, Mixer, MlpKind, ParameterCount};
use super::{Bias, Module, Norm};

/// A linear layer with an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptedMatrix {
    /// Input width.
    pub input: u64,
    /// Output width.
    pub output: u64,
    /// Rank of the adapter.
    pub rank: u64,
    /// Tensor parallelism divides the input width, otherwise the output width.
    pub is_split_by_input: bool,
}

impl Module {
    /// Number of matrices per MLP: up, down, and the optional gate.
    const fn mlp_matrices(&self) -> u64 {
        if self.gated { 3 } else { 2 }
    }

    /// MLP width of an expert.
    pub fn expert_width(&self) -> u32 {
        self.moe.and_then(|moe| moe.expert_width).unwrap_or(self.ffn)
    }

    /// Matrix parameters of attention: projections of queries, keys, values and output.
    pub(super) fn attention_parameters(&self) -> u64 {
        let h = u64::from(self.hidden);
        let output = h * u64::from(self.context_width());
        let Some(latent) = self.latent else {
            return h * u64::from(self.query_width()) + 2 * h * u64::from(self.kv_width()) + output;
        };
        let (query, kv) = (u64::from(latent.query_rank), u64::from(latent.kv_rank));
        let width = u64::from(self.query_width());
        let queries = if query > 0 { h * query + query * width } else { h * width };
        let content = u64::from(self.heads) * u64::from(latent.content_size + latent.value_size);
        queries + h * (kv + u64::from(latent.rotary_size)) + kv * content + output
    }

    /// Matrix parameters of a token mixer.
    fn mixer_parameters(&self, mixer: Mixer) -> u64 {
        let h = u64::from(self.hidden);
        match (mixer, self.linear) {
            (Mixer::Linear, Some(linear)) => {
                let convolved = 2 * linear.key_width() + linear.value_width();
                h * linear.input_width() + convolved * u64::from(linear.convolution) + linear.value_width() * h
            }
            _ => self.attention_parameters() + self.diffusion_parameters(),
        }
    }

    /// Matrix parameters of a dense MLP of width `width`.
    pub(super) fn dense_mlp(&self, width: u32) -> u64 {
        self.mlp_matrices() * u64::from(self.hidden) * u64::from(width)
    }

    /// Matrix parameters of an MLP outside the routed experts.
    fn mlp_parameters(&self, mlp: MlpKind) -> u64 {
        match (mlp, self.moe) {
            (MlpKind::Experts, Some(moe)) => {
                u64::from(self.hidden) * u64::from(moe.experts) + self.dense_mlp(moe.shared_width)
            }
            _ => self.dense_mlp(self.ffn),
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

    /// Parameters of a layer of kind `kind`, without adapters: matrices, biases, a norm per part.
    pub fn kind_parameters(&self, kind: LayerKind) -> ParameterCount {
        let h = u64::from(self.hidden);
        let mut count = ParameterCount::default();
        if let Some(mixer) = kind.mixer {
            let qkv_bias = u64::from(self.query_width()) + u64::from(self.kv_width()) + u64::from(self.value_width());
            let bias = match self.bias {
                Bias::None => 0,
                _ if mixer == Mixer::Linear => 0,
                Bias::Qkv => qkv_bias,
                Bias::All => qkv_bias + h,
            };
            count.dense += self.mixer_parameters(mixer) + bias + self.norm_parameters();
        }
        if let Some(mlp) = kind.mlp {
            let mlp_bias = |width: u32| match self.bias {
                Bias::All => (self.mlp_matrices() - 1) * u64::from(width) + h,
                Bias::None | Bias::Qkv => 0,
            };
            count.dense += self.mlp_parameters(mlp) + self.norm_parameters();
            match (mlp, self.moe) {
                (MlpKind::Experts, Some(moe)) => {
                    count.dense += mlp_bias(self.expert_width());
                    count.expert += u64::from(moe.experts) * self.dense_mlp(self.expert_width());
                }
                _ => count.dense += mlp_bias(self.ffn),
            }
        }
        count
    }

    /// Parameters of the adapters of a layer of kind `kind`: r (m + n) per adapted matrix of m x n.
    /// Routed experts are not adapted.
    pub fn adapter_parameters(&self, kind: LayerKind) -> u64 {
        self.adapted_matrices(kind).iter().map(|matrix| (matrix.input + matrix.output) * matrix.rank).sum()
    }

    /// Returns the adapted linear layers of a layer of kind `kind`: queries, keys, values, output, and the matrices of a
    /// dense MLP.
    pub fn adapted_matrices(&self, kind: LayerKind) -> Vec<AdaptedMatrix> {
        let Some(adapters) = self.adapters else { return Vec::new() };
        let (h, rank) = (u64::from(self.hidden), u64::from(adapters.rank));
        let by_output = |output| AdaptedMatrix { input: h, output, rank, is_split_by_input: false };
        let by_input = |input| AdaptedMatrix { input, output: h, rank, is_split_by_input: true };
        let mut matrices = Vec::new();
        match (kind.mixer, self.linear) {
            (Some(Mixer::Linear), Some(linear)) => {
                matrices.push(by_output(linear.input_width()));
                matrices.push(by_input(linear.value_width()));
            }
            (Some(_), _) => {
                for width in [self.query_width(), self.kv_width(), self.value_width()] {
                    matrices.push(by_output(u64::from(width)));
                }
                matrices.push(by_input(u64::from(self.context_width())));
            }
            (None, _) => {}
        }
        let width = match (kind.mlp, self.moe) {
            (Some(MlpKind::Experts), Some(moe)) => moe.shared_width,
            (Some(_), _) => self.ffn,
            (None, _) => 0,
        };
        if adapters.mlp && width > 0 {
            let ups = if self.gated { 2 } else { 1 };
            matrices.extend(std::iter::repeat_n(by_output(u64::from(width)), ups));
            matrices.push(by_input(u64::from(width)));
        }
        matrices
    }

    /// Parameters of the layers `first .. end`, without adapters.
    pub fn range_parameters(&self, first: u32, end: u32) -> ParameterCount {
        self.sum_range(first, end, |kind| self.kind_parameters(kind))
    }

    /// Weight tensors of a layer of kind `kind`: matrices, biases and norms. Queries, keys and values are one matrix.
    fn kind_tensors(&self, kind: LayerKind) -> u64 {
        let norm = match self.norm {
            Norm::Rms => 1,
            Norm::Layer => 2,
        };
        let (mixer_biases, mlp_biases) = match self.bias {
            Bias::None => (0, 0),
            Bias::Qkv => (1, 0),
            Bias::All => (2, self.mlp_matrices()),
        };
        let projections = if self.latent.is_some() { 5 } else { 2 };
        let mixer = kind.mixer.map_or(0, |_| projections + mixer_biases + norm);
        let mlp = match (kind.mlp, self.moe) {
            (None, _) => 0,
            (Some(MlpKind::Experts), Some(moe)) => {
                let experts = u64::from(moe.experts) + u64::from(moe.shared_width > 0);
                1 + experts * self.mlp_matrices() + norm
            }
            (Some(_), _) => self.mlp_matrices() + mlp_biases + norm,
        };
        mixer + mlp
    }

    /// Weight tensors of the layers `first .. end`, without adapters.
    pub fn range_tensors(&self, first: u32, end: u32) -> u64 {
        let tensors = |kind| ParameterCount { dense: self.kind_tensors(kind), expert: 0 };
        self.sum_range(first, end, tensors).dense
    }

    /// Adapter parameters of the layers `first .. end`.
    pub fn range_adapters(&self, first: u32, end: u32) -> u64 {
        if self.adapters.is_none() {
            return 0;
        }
        let adapters = |kind| ParameterCount { dense: self.adapter_parameters(kind), expert: 0 };
        self.sum_range(first, end, adapters).dense
    }

    fn sum_range(&self, first: u32, end: u32, count: impl Fn(LayerKind) -> ParameterCount) -> ParameterCount {
        let kinds = self.layer_kinds();
        let counts = self.count_kinds(&kinds, first, end);
        let all = kinds.iter().zip(counts).map(|(&kind, layers)| count(kind).times(u64::from(layers)));
        all.fold(ParameterCount::default(), ParameterCount::and)
    }

    /// Mean number of parameters per layer, without adapters.
    pub fn layer_parameters(&self) -> u64 {
        self.range_parameters(0, self.layers).total() / u64::from(self.layers.max(1))
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

    /// Parameters for multi-token prediction: per predicted token a layer, three norms and the
    /// projection of two streams to one. Embedding and output head are shared.
    pub fn prediction_parameters(&self) -> ParameterCount {
        if self.predicted_ahead == 0 {
            return ParameterCount::default();
        }
        let h = u64::from(self.hidden);
        let ends = ParameterCount { dense: 2 * h * h + 3 * self.norm_parameters(), expert: 0 };
        let layer = self.kind_parameters(self.last_kind());
        layer.and(ends).times(u64::from(self.predicted_ahead))
    }

    /// Output block parameters: the final norm, and the output head if it is not tied.
    pub fn output_parameters(&self) -> u64 {
        let head = if self.tied_embeddings { 0 } else { u64::from(self.hidden) * u64::from(self.predicted()) };
        self.norm_parameters() + head + self.projector_parameters()
    }

    /// Parameters in these MLPs, including biases.
    fn projector_parameters(&self) -> u64 {
        let Some(width) = self.patch.and_then(|patch| patch.projected_width).map(u64::from) else { return 0 };
        if self.pools_patches() {
            return u64::from(self.projectors()) * u64::from(self.hidden) * width;
        }
        let merged = u64::from(self.merged_patches()) * u64::from(self.hidden);
        let inner = self.patch.and_then(|patch| patch.inner_width).map_or(merged, u64::from);
        u64::from(self.projectors()) * (merged * inner + inner + inner * width + width)
    }

    /// Total number of parameters of an unvalidated module; `None` if a field is out of the valid
    /// range.
    pub fn checked_parameters(&self) -> Option<u64> {
        let Self { layers, hidden, heads, kv_heads, ffn, vocab, learned_positions, .. } = *self;
        let patch = self.patch.map_or(0, |patch| {
            patch
                .patch_px
                .max(patch.projected_width.unwrap_or(0))
                .max(patch.inner_width.unwrap_or(0))
                .max(patch.deepstack)
        });
        let others = [
            self.head_size.unwrap_or(1),
            self.moe.map_or(1, |moe| moe.experts.max(moe.expert_width.unwrap_or(0)).max(moe.shared_width)),
            self.latent.map_or(0, |latent| latent.query_rank.max(latent.kv_rank)),
            self.latent.map_or(0, |latent| latent.content_size.max(latent.rotary_size).max(latent.value_size)),
            self.linear.map_or(0, |linear| linear.key_heads.max(linear.value_heads).max(linear.convolution)),
            self.linear.map_or(0, |linear| linear.key_size.max(linear.value_size)),
            self.adapters.map_or(0, |adapters| adapters.rank),
            self.predicted_ahead,
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
            && self
                .latent
                .is_none_or(|latent| latent.content_size.max(latent.value_size).max(latent.rotary_size) <= 4096)
            && self.pattern.as_ref().is_none_or(|pattern| pattern.len() == layers as usize)
            && self.merged_patches() <= 1024;
        is_valid.then(|| self.parameters())
    }

    /// Number of trained parameters: all, the adapters, or those of a projection after frozen layers.
    pub fn trained_parameters(&self) -> u64 {
        if self.adapters.is_some() {
            self.range_adapters(0, self.layers)
        } else if self.frozen {
            self.projector_parameters()
        } else {
            self.parameters()
        }
    }

    /// Total number of parameters, including adapters and multi-token prediction.
    pub fn parameters(&self) -> u64 {
        let layers = self.range_parameters(0, self.layers).total() + self.range_adapters(0, self.layers);
        layers + self.input_parameters() + self.output_parameters() + self.prediction_parameters().total()
    }
}
