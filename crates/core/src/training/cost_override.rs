//! Times that the user gives in place of the predicted ones. `planscope_cost::cost::overrides` evaluates them.

use serde::{Deserialize, Serialize};

use super::{ContextExchange, Training};
use crate::model::Module;

/// Name for the full transformer layer, used like an operator name.
pub const LAYER: &str = "layer";

/// User-defined time that replaces a prediction. Set exactly one of `scale`, `formula_us`,
/// `table_us` and `timings_us`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CostOverride {
    /// Module name. Default: all modules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Operator name, for example "qkv", or "layer" for the full transformer layer.
    pub operator: String,
    /// Training step phase. Default: all phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<OverridePhase>,
    /// Parallel degrees. Default: all degrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<AtDegrees>,
    /// Factor on the predicted time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Time in microseconds as a formula, for example "3.1 + 0.012*tokens".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula_us: Option<String>,
    /// Time as points (tokens, microseconds) with ascending tokens and linear interpolation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Vec<f64>>>))]
    pub table_us: Option<Vec<[f64; 2]>>,
    /// Timings of full layers as (tokens per sequence, equal packed sequences, microseconds). The
    /// microbatch time is the fit a Σl² + b Σl + c.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Vec<f64>>>))]
    pub timings_us: Option<Vec<[f64; 3]>>,
}

/// Parallel degrees to which a time applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AtDegrees {
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// Context-parallel exchange. Default: both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ContextExchange>,
}

impl AtDegrees {
    /// Returns whether a module with tensor-parallel degree `tensor` and these training settings
    /// has these degrees.
    pub fn covers(&self, tensor: u32, training: &Training) -> bool {
        let exchanges = self.context > 1;
        self.tensor == tensor
            && self.context == training.context_parallel
            && self.exchange.is_none_or(|required| !exchanges || required == training.context_exchange)
    }
}

impl CostOverride {
    /// Returns whether the override applies to the full transformer layer.
    pub fn is_layer(&self) -> bool {
        self.operator == LAYER
    }

    /// Returns whether the override applies to `module`.
    pub fn is_for(&self, module: &Module) -> bool {
        self.module.as_ref().is_none_or(|name| *name == module.name)
    }
}

/// Training step phase of an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OverridePhase {
    /// Forward pass.
    Forward,
    /// Gradient with respect to the input.
    InputGrad,
    /// Gradient with respect to the weights.
    WeightGrad,
    /// Input and weight gradients.
    Backward,
}
