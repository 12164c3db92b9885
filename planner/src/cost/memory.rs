//! Memory of activations and of the model's state (docs/models.md, section 5).

use super::load::ModuleLoad;
use super::operator::BF16;
use crate::model::Module;
use crate::training::{AttentionKernel, Recompute, Training};

/// Activation memory of a layer, in bytes on each device.
pub(super) struct LayerMemory {
    /// From forward to backward.
    pub kept: f64,
    /// During the backward only.
    pub transient: f64,
}

/// One layer. Korthikanti et al. (2022), equations 1-6, split into tensors so that grouped-query attention, gated
/// MLPs, models without dropout and fused attention follow: with h = a d, f = 4 h, dropout and selective
/// recomputation it is n h (10 + 24/t), and 34 n h / t under sequence parallelism.
pub(super) fn layer(module: &Module, training: &Training, t: f64, load: ModuleLoad) -> LayerMemory {
    let (n, h, f) = (load.tokens, f64::from(module.hidden), f64::from(module.ffn));
    let split = if training.sequence_parallel { t } else { 1.0 };
    let norms_and_inputs = 4.0 * BF16 * n * h / split;
    let qkv = BF16 * n * (h + 2.0 * f64::from(module.kv_width())) / t;
    let projection = BF16 * n * h / t;
    let routed = module.moe.map_or(1.0, |moe| f64::from(moe.top_k));
    let widths = if module.gated { 3.0 } else { 2.0 };
    let mlp = widths * BF16 * n * routed * f / t;
    let masks = if module.dropout { 2.0 * n * h / split } else { 0.0 };
    let linear = norms_and_inputs + qkv + projection + mlp + masks;
    let heads = f64::from(module.heads) / t;
    let scores = match training.attention {
        AttentionKernel::Flash => 4.0 * heads * n,
        AttentionKernel::Unfused if module.dropout => 5.0 * heads * load.squared,
        AttentionKernel::Unfused => BF16 * heads * load.squared,
    };
    let input = BF16 * n * h / split;
    match (training.recompute, training.attention) {
        (Recompute::None, _) | (Recompute::Selective, AttentionKernel::Flash) => {
            LayerMemory { kept: linear + scores, transient: 0.0 }
        }
        (Recompute::Selective, AttentionKernel::Unfused) => LayerMemory { kept: linear, transient: scores },
        (Recompute::Full, _) => LayerMemory { kept: input, transient: linear + scores - input },
    }
}

/// The embedding's dropout mask, where there is one.
pub(super) fn input(module: &Module, training: &Training, t: f64, load: ModuleLoad) -> f64 {
    let split = if training.sequence_parallel { t } else { 1.0 };
    if module.dropout { load.tokens * f64::from(module.hidden) / split } else { 0.0 }
}

/// Input of the final norm; with a vocabulary the input of the output head and the logits in fp32 too.
pub(super) fn output(module: &Module, training: &Training, t: f64, load: ModuleLoad) -> f64 {
    let split = if training.sequence_parallel { t } else { 1.0 };
    let inputs = if module.vocab == 0 { 1.0 } else { 2.0 };
    inputs * BF16 * load.tokens * f64::from(module.hidden) / split + 4.0 * load.tokens * f64::from(module.vocab) / t
}

/// Bytes of model state per parameter that a device holds: bf16 weight, fp32 gradient, and fp32 master weight with
/// two moments, these sharded over `data` replicas by the distributed optimizer.
pub(super) fn state_bytes_per_parameter(training: &Training, data: u32) -> f64 {
    let optimizer = if training.distributed_optimizer { 12.0 / f64::from(data) } else { 12.0 };
    2.0 + 4.0 + optimizer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::presets::model;

    /// Korthikanti et al., equations 2 and 4 and section 5 for GPT-3 175B: a = 96, s = 2048, h = 12288, t = 8.
    #[test]
    fn a_gpt_layer_keeps_what_the_published_formulas_say() {
        let module = &model("gpt-3-175b").unwrap().modules[0];
        let (s, h) = (2048.0, 12_288.0);
        let load = ModuleLoad { tokens: s, squared: s * s, useful_tokens: s, useful_squared: s * s };
        let unfused = Training { attention: AttentionKernel::Unfused, sequence_parallel: false, ..Training::default() };
        let kept = |training: &Training| layer(module, training, 8.0, load).kept / (s * h);
        assert!((kept(&unfused) - (10.0 + 24.0 / 8.0 + 5.0 * 96.0 * s / (h * 8.0))).abs() < 1e-9);
        let parallel = Training { sequence_parallel: true, ..unfused.clone() };
        assert!((kept(&parallel) - (34.0 / 8.0 + 5.0 * 96.0 * s / (h * 8.0))).abs() < 1e-9);
        let selective = Training { recompute: Recompute::Selective, ..parallel };
        assert!((kept(&selective) - 34.0 / 8.0).abs() < 1e-9);
        let full = Training { recompute: Recompute::Full, ..unfused };
        assert!((kept(&full) - 2.0).abs() < 1e-9);
    }
}
