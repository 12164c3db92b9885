//! FLOP formulas used by training frameworks.

use serde::{Deserialize, Serialize};

use planscope_core::model::{Module, ModuleRole};
use planscope_plan::outcome::BatchSummary;
use planscope_plan::scenario::Scenario;

/// Maximum relative difference for which two formulas cannot be distinguished by a log.
const SAME_FIGURE: f64 = 0.005;

/// A formula for the floating-point operations per training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlopFormula {
    /// Model FLOPs of the plan: three times the forward pass, full attention within each sample, no
    /// padding, no recomputation.
    Model,
    /// Sequences with the context length, full attention, no recomputation (Megatron-LM until 2024,
    /// torchtitan, PaLM Appendix B).
    FullAttention,
    /// Same as `full_attention`, with half the attention FLOPs (Megatron-LM since 2025).
    CausalAttention,
    /// Full attention; the forward pass of all layers is counted twice (Narayanan et al. 2021, Eq.
    /// 2; Megatron-DeepSpeed).
    FullRecompute,
}

impl FlopFormula {
    /// Returns the display name for pages and reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Model => "model operations: full attention inside each sample, no padding, no recomputation",
            Self::FullAttention => "full attention over the context length, no recomputation",
            Self::CausalAttention => "causal attention (half) over the context length, no recomputation",
            Self::FullRecompute => "full attention over the context length, with full recomputation",
        }
    }
}

/// Floating-point operations per step by one formula.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepFlops {
    /// Formula.
    pub formula: FlopFormula,
    /// Floating-point operations per step, summed over all devices.
    pub flops: f64,
}

/// Returns the FLOPs for a mean step by all applicable formulas. The first entry is
/// [`FlopFormula::Model`].
///
/// `model_flops` is the value for the plan's formula. The other formulas apply only to language
/// models that have no encoder, generator or frozen layers.
pub fn step_flops(scenario: &Scenario, batches: &[BatchSummary], model_flops: f64) -> Vec<StepFlops> {
    let mut all = vec![StepFlops { formula: FlopFormula::Model, flops: model_flops }];
    let [backbone] = scenario.model.modules.as_slice() else { return all };
    let is_language_model = backbone.role == ModuleRole::Backbone && !backbone.headless && !backbone.frozen;
    if !is_language_model || batches.is_empty() {
        return all;
    }
    let sequences = batches.iter().map(|batch| f64::from(batch.sequences)).sum::<f64>() / batches.len() as f64;
    let length = f64::from(scenario.workload.context_length);
    let Forward { linear, attention, head } = forward(backbone, sequences * length, length);
    let formulas = [
        (FlopFormula::FullAttention, 3.0 * (linear + attention + head)),
        (FlopFormula::CausalAttention, 3.0 * (linear + attention / 2.0 + head)),
        (FlopFormula::FullRecompute, 4.0 * (linear + attention) + 3.0 * head),
    ];
    all.extend(formulas.map(|(formula, flops)| StepFlops { formula, flops }));
    all
}

/// FLOPs for one forward pass.
struct Forward {
    linear: f64,
    attention: f64,
    head: f64,
}

/// Returns the forward FLOPs for a language model on `tokens` tokens, sequence length `length`: two
/// per matrix parameter used by a token, 4 q s for attention, 2 h V for the output head.
fn forward(module: &Module, tokens: f64, length: f64) -> Forward {
    Forward {
        linear: module.linear_flops(tokens).get(),
        attention: module.attention_flops(tokens, tokens * length).get(),
        head: module.head_flops(tokens).get(),
    }
}

/// Returns the formulas within a relative `tolerance` of `measured`, closest first. Among formulas
/// with the same value, only the first is returned.
pub(crate) fn formulas_near(all: &[StepFlops], measured: f64, tolerance: f64) -> Vec<StepFlops> {
    let distance = |step: &StepFlops| (measured / step.flops - 1.0).abs();
    let mut near: Vec<StepFlops> = all.iter().copied().filter(|step| distance(step) <= tolerance).collect();
    near.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    near.dedup_by(|next, before| (next.flops / before.flops - 1.0).abs() < SAME_FIGURE);
    near
}
