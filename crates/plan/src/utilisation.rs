//! MFU by formula: publications count different operations and divide by different peaks
//! (docs/models.md, section 8).

use planscope_core::model::{Mask, MlpKind, Module};
use planscope_core::training::{Recompute, RecomputedModule};
use planscope_core::workload::{Distribution, SampleSource};
use serde::{Deserialize, Serialize};

use crate::outcome::Planned;
use crate::scenario::Scenario;

/// Operations that a utilisation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CountedOperations {
    /// Model operations, all attention scores: Megatron-LM, PaLM, and the metrics of plans.
    Model,
    /// Model operations, half of the scores of a causal mask: Llama 3, MaxText.
    ModelCausal,
    /// With recomputation, all attention scores (HFU).
    Hardware,
    /// With recomputation, half of the scores of a causal mask.
    HardwareCausal,
}

impl CountedOperations {
    /// All choices.
    pub const ALL: [Self; 4] = [Self::Model, Self::ModelCausal, Self::Hardware, Self::HardwareCausal];

    /// Returns the description for readers.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Model => "without recomputation, all attention scores",
            Self::ModelCausal => "without recomputation, causal attention (half)",
            Self::Hardware => "with recomputation, all attention scores",
            Self::HardwareCausal => "with recomputation, causal attention (half)",
        }
    }
}

/// Utilisation of a plan by one formula.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Utilisation {
    /// Counted operations.
    pub counted: CountedOperations,
    /// Counted TFLOP/s per device.
    pub tflops_per_device: f64,
    /// Share of the dense peak of the device in 16 bits, 0 to 1. Larger for products in fp8.
    pub of_dense_peak: f64,
    /// Share of the peak in 16 bits with structured sparsity, which is twice the dense peak.
    pub of_sparse_peak: f64,
}

/// Returns the utilisation of a plan by each formula. For models with several modules or adapters, and
/// for sequences of different lengths, only the first.
pub fn by_formula(scenario: &Scenario, planned: &Planned) -> Vec<Utilisation> {
    let utilisation = |counted, factor: f64| Utilisation {
        counted,
        tflops_per_device: planned.metrics.tflops_per_device * factor,
        of_dense_peak: planned.metrics.mfu * factor,
        of_sparse_peak: planned.metrics.mfu * factor / 2.0,
    };
    let is_constant =
        matches!(&scenario.workload.samples, SampleSource::Drawn { text_tokens: Distribution::Constant { .. }, .. });
    let ([module @ Module { adapters: None, .. }], true) = (scenario.model.modules.as_slice(), is_constant) else {
        return vec![utilisation(CountedOperations::Model, 1.0)];
    };
    let operations = Operations::of_sequence(module, scenario.workload.context_length.into());
    let again = recomputed(scenario, planned, module);
    let all = operations.count(1.0, Recomputed::default());
    let half = if module.mask == Mask::Causal { 0.5 } else { 1.0 };
    let factor = |counted| match counted {
        CountedOperations::Model => 1.0,
        CountedOperations::ModelCausal => operations.count(half, Recomputed::default()) / all,
        CountedOperations::Hardware => operations.count(1.0, again) / all,
        CountedOperations::HardwareCausal => operations.count(half, again) / all,
    };
    CountedOperations::ALL.map(|counted| utilisation(counted, factor(counted))).to_vec()
}

/// Forward operations of one sequence.
#[derive(Debug, Clone, Copy)]
struct Operations {
    linear: f64,
    attention: f64,
    head: f64,
}

/// Shares of the forward that the backward repeats.
#[derive(Debug, Clone, Copy, Default)]
struct Recomputed {
    linear: f64,
    attention: f64,
}

impl Operations {
    fn of_sequence(module: &Module, length: f64) -> Self {
        Self {
            linear: module.linear_flops(length).get(),
            attention: module.attention_flops(length, length * length).get(),
            head: module.head_flops(length).get(),
        }
    }

    fn count(self, scores: f64, again: Recomputed) -> f64 {
        (3.0 + again.linear) * self.linear + (3.0 + again.attention) * self.attention * scores + 3.0 * self.head
    }
}

/// Returns the repeated shares. The backward of fused attention recomputes scores in the kernel; as
/// in publications, this does not count.
fn recomputed(scenario: &Scenario, planned: &Planned, module: &Module) -> Recomputed {
    let training = &scenario.training;
    let (recompute, layers) = planned
        .settings
        .as_ref()
        .map_or((training.recompute, training.recompute_layers), |it| (it.recompute, it.recompute_layers));
    let stages = planned.layout.pipeline * planned.layout.chunks;
    let share = layers.map_or(1.0, |layers| (f64::from(layers * stages) / f64::from(module.layers)).min(1.0));
    let h = f64::from(module.hidden);
    let before = if module.gated { 2.0 } else { 1.0 };
    let experts = module.moe.filter(|_| module.main_kind().mlp == Some(MlpKind::Experts));
    let has_experts = experts.is_some();
    let width =
        experts.map_or_else(|| f64::from(module.ffn), |moe| f64::from(module.expert_width()) * f64::from(moe.top_k));
    match recompute {
        Recompute::None => Recomputed::default(),
        Recompute::Selective => {
            let modules = &training.recompute_modules;
            let has_core = if modules.is_empty() {
                !training.attention.is_fused()
            } else {
                modules.contains(&RecomputedModule::CoreAttn)
            };
            let mlp = if has_experts { RecomputedModule::Moe } else { RecomputedModule::Mlp };
            let repeated = if modules.contains(&mlp) { 2.0 * (before + 1.0) * width * h } else { 0.0 };
            Recomputed {
                linear: repeated / module.layer_linear_flops(1.0).get(),
                attention: f64::from(u8::from(has_core)),
            }
        }
        Recompute::Operators => {
            let q = f64::from(module.context_width());
            // The projection, and half of the products before the activation.
            let repeated = 2.0 * (q * h + 0.5 * before * width * h);
            Recomputed { linear: repeated / module.layer_linear_flops(1.0).get(), attention: 0.0 }
        }
        Recompute::Full => Recomputed { linear: share, attention: share },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::model::presets::model;

    /// GPT-3 175B with 2,048 tokens: per sequence 2 x 2,048 x 96 x 12 h² linear operations, 4 x 2,048² x
    /// 96 h of attention, and the head. Full recomputation repeats a third of the layers' operations.
    #[test]
    fn full_recomputation_adds_a_forward_of_the_layers() {
        let module = &model("gpt-3-175b").unwrap().modules[0];
        let operations = Operations::of_sequence(module, 2048.0);
        let h = 12_288.0;
        assert!((operations.linear / (2.0 * 2048.0 * 96.0 * 12.0 * h * h) - 1.0).abs() < 1e-9);
        assert!((operations.attention / (4.0 * 2048.0 * 2048.0 * 96.0 * h) - 1.0).abs() < 1e-9);
        let all = Recomputed { linear: 1.0, attention: 1.0 };
        let ratio = operations.count(1.0, all) / operations.count(1.0, Recomputed::default());
        assert!(ratio > 1.31 && ratio < 4.0 / 3.0, "{ratio}");
        let causal = operations.count(0.5, Recomputed::default()) / operations.count(1.0, Recomputed::default());
        // Attention is 2 s / (12 h) = 2.8 % of the linear operations.
        assert!((causal - 0.9866).abs() < 0.001, "{causal}");
    }
}
