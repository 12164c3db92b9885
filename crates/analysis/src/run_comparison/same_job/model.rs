//! Dimensions of a dense language model that a log states.

use std::fmt;

use planscope_plan::scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::{LoggedJob, PlannedJob};

/// Dimensions of the model of a log; what is absent is not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatedModel {
    /// Transformer layers.
    pub layers: u32,
    /// Hidden size.
    pub hidden: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u32>,
    /// Hidden size of the MLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_forward: Option<u32>,
    /// Vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<u32>,
}

impl fmt::Display for StatedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layers, width {}, {} heads", self.layers, self.hidden, self.heads)
    }
}

/// Returns the dimensions of a log, if it states layers, width and heads of a dense model, and one of its dimensions differs
/// from the plan's.
pub(super) fn correction(log: &LoggedJob, plan: &PlannedJob) -> Option<StatedModel> {
    let shape = plan.shape.filter(|shape| shape.experts < 0.5 && shape.heads > 0.5)?;
    if log.experts.is_some_and(|experts| experts > 0.5) {
        return None;
    }
    let count = super::correction::to_count;
    let stated = StatedModel {
        layers: log.layers.and_then(count)?,
        hidden: log.hidden_size.and_then(count)?,
        heads: log.attention_heads.and_then(count)?,
        kv_heads: log.kv_heads.and_then(count),
        feed_forward: log.feed_forward_size.and_then(count),
        vocabulary: log.vocabulary.and_then(count),
    };
    let differs = |value: Option<f64>, planned: f64| value.is_some_and(|value| (value - planned).abs() >= 0.5);
    let is_other = differs(log.layers, shape.layers)
        || differs(log.hidden_size, shape.hidden)
        || differs(log.attention_heads, shape.heads)
        || differs(log.kv_heads, shape.kv_heads)
        || differs(log.feed_forward_size, shape.feed_forward);
    (is_other && stated.hidden.is_multiple_of(stated.heads)).then_some(stated)
}

impl StatedModel {
    /// Sets the dimensions of a scenario with one module. Key and value heads that the log does not state are as many as
    /// query heads, and an MLP keeps its share of the width.
    pub(super) fn apply(self, scenario: &mut Scenario) {
        let [module] = scenario.model.modules.as_mut_slice() else { return };
        let before = module.clone();
        module.layers = self.layers;
        module.hidden = self.hidden;
        module.heads = self.heads;
        module.head_size = None;
        module.kv_heads = self.kv_heads.unwrap_or(self.heads);
        let scaled = u64::from(before.ffn) * u64::from(self.hidden) / u64::from(before.hidden.max(1));
        module.ffn = self.feed_forward.unwrap_or(u32::try_from(scaled).unwrap_or(u32::MAX).max(1));
        module.vocab = self.vocabulary.unwrap_or(module.vocab);
        module.name = format!("{self}");
        scenario.model.name = module.name.clone();
        scenario.layers_per_stage.clear();
    }
}
