//! Formulas by which training programs count the operations of a step.

use serde::{Deserialize, Serialize};

use crate::model::{Module, ModuleRole};
use crate::outcome::BatchSummary;
use crate::scenario::Scenario;

/// Formulas whose figures differ by less than this share cannot be told apart by a log.
const SAME_FIGURE: f64 = 0.005;

/// A formula for the operations of one training step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlopFormula {
    /// The plan's own: forward three times, full attention inside each sample, no padding, no recomputation.
    Model,
    /// Sequences of the context length, full attention, no recomputation (Megatron-LM until 2024, torchtitan, PaLM appendix B).
    FullAttention,
    /// The same with half of the attention core (Megatron-LM since 2025).
    CausalAttention,
    /// Full attention, and every layer's forward counted twice (Narayanan et al. 2021, Eq. 2; Megatron-DeepSpeed).
    FullRecompute,
}

impl FlopFormula {
    /// Name on pages and in reports.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Model => "model operations: full attention inside each sample, no padding, no recomputation",
            Self::FullAttention => "full attention over the context length, no recomputation",
            Self::CausalAttention => "causal attention (half) over the context length, no recomputation",
            Self::FullRecompute => "full attention over the context length, with full recomputation",
        }
    }
}

/// Operations of one step by a formula.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepFlops {
    /// The formula.
    pub formula: FlopFormula,
    /// Operations of all devices in one step.
    pub flops: f64,
}

/// Operations of a mean step of a scenario by every formula that applies to its model, the plan's own first.
///
/// `model_flops` are the plan's own operations of a step. The other formulas are those of language models; a model with
/// encoders, a generator or frozen layers has only the first.
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

/// Operations of one forward.
struct Forward {
    linear: f64,
    attention: f64,
    head: f64,
}

/// Forward operations of a language model over `tokens` tokens in sequences of `length`: two for each matrix parameter that a token
/// meets, 4 q s for the attention core, 2 h V for the output head.
fn forward(module: &Module, tokens: f64, length: f64) -> Forward {
    let (h, q, kv) = (f64::from(module.hidden), f64::from(module.query_width()), f64::from(module.kv_width()));
    let matrices = if module.gated { 3.0 } else { 2.0 };
    let experts = module.moe.map_or(1.0, |moe| f64::from(moe.top_k));
    let layers = f64::from(module.layers);
    let parameters = 2.0 * h * q + 2.0 * h * kv + matrices * h * f64::from(module.ffn) * experts;
    Forward {
        linear: 2.0 * tokens * layers * parameters,
        attention: 4.0 * tokens * layers * q * length,
        head: 2.0 * tokens * h * f64::from(module.vocab),
    }
}

/// The formulas that give `measured` operations within a relative `tolerance`, the closest first. Of formulas that give the same
/// figure the first counts.
pub(super) fn formulas_near(all: &[StepFlops], measured: f64, tolerance: f64) -> Vec<StepFlops> {
    let distance = |step: &StepFlops| (measured / step.flops - 1.0).abs();
    let mut near: Vec<StepFlops> = all.iter().copied().filter(|step| distance(step) <= tolerance).collect();
    near.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    near.dedup_by(|next, before| (next.flops / before.flops - 1.0).abs() < SAME_FIGURE);
    near
}
