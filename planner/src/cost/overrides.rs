//! Times that the user gives in place of the model's: by operator or for a whole layer, as a factor, a formula or a
//! table, or as timings of sequences.
//!
//! An override of an operator replaces the time of every operator of that name, wherever it stands: in layers, before
//! the first and behind the last. For a collective that is its own duration; how much of it computation hides is
//! decided as before. What recomputation runs again takes the replaced time again.
//!
//! An override of the whole layer comes after those of its operators: it stretches all of them alike, computation
//! and communication, until forward, backward or both together take what is given. Recomputation is not part of what
//! is given: it repeats the forward, as that then is. The host never holds a layer back beyond a time that is given,
//! and is scaled with a layer that is scaled.
//!
//! An override may be for some degrees only. Timings of sequences, as a profiler of lengths gives them for every degree, become
//! T(l) = a Σl² + b Σl + c over the sequences of a microbatch.
//!
//! Of several overrides of one thing the last counts. Where an override gives no time (negative, not a number), the
//! model's own stands; validation samples for that, so that it stays an exception.

mod formula;
mod names;
mod price;
mod stretch;
mod table;
#[cfg(test)]
mod tests;
mod timed;
mod timings;
mod variables;

pub use formula::{Formula, FormulaError};
pub use names::operator_names;
pub use price::{Price, PriceError};
pub(super) use stretch::Stretches;
pub use table::{TableError, TimeTable};
pub use timed::{TimedLayers, measured_to_predicted, timed_layers};
pub use timings::{SequenceTimes, TimingsError};
pub use variables::{Priced, Variable, Variables};

use serde::{Deserialize, Serialize};

use super::graph::{Operator, Phase, Shape};
use crate::model::Module;
use crate::training::{ContextExchange, Training};
use crate::units::Seconds;

/// Name of the whole transformer layer, beside the names of its operators.
pub const LAYER: &str = "layer";

/// A time that the user gives in place of the model's. Exactly one of `scale`, `formula_us`, `table_us` and `timings_us` is there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CostOverride {
    /// Name of the module it is for; absent: every module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Name of the operator, for example "qkv", or "layer" for the whole transformer layer.
    pub operator: String,
    /// Part of the training step it is for; absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<OverridePhase>,
    /// Degrees that it is for; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<AtDegrees>,
    /// Factor on the predicted time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// Time in microseconds as a formula, for example "3.1 + 0.012*tokens".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula_us: Option<String>,
    /// Time as points of tokens and microseconds, tokens rising; straight lines between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Vec<f64>>>))]
    pub table_us: Option<Vec<[f64; 2]>>,
    /// Timings of whole layers: tokens of a sequence, equal sequences packed together, microseconds. The time of a microbatch
    /// is a Σl² + b Σl + c as fitted to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<Vec<f64>>>))]
    pub timings_us: Option<Vec<[f64; 3]>>,
}

/// Degrees that a time is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct AtDegrees {
    /// Tensor-parallel degree, TP.
    pub tensor: u32,
    /// Context-parallel degree, CP.
    pub context: u32,
    /// How the context-parallel group exchanges; absent: either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ContextExchange>,
}

impl AtDegrees {
    /// Whether these are the degrees of a module cut over `tensor` devices under these settings.
    pub fn covers(&self, tensor: u32, training: &Training) -> bool {
        let exchanges = self.context > 1;
        self.tensor == tensor
            && self.context == training.context_parallel
            && self.exchange.is_none_or(|own| !exchanges || own == training.context_exchange)
    }
}

impl CostOverride {
    /// Whether it is for the whole transformer layer.
    pub fn is_layer(&self) -> bool {
        self.operator == LAYER
    }

    /// Whether it is for that module.
    pub fn is_for(&self, module: &Module) -> bool {
        self.module.as_ref().is_none_or(|name| *name == module.name)
    }

    /// Whether it covers operators of that phase.
    pub fn covers(&self, phase: Phase) -> bool {
        match (self.phase, phase) {
            (None, _)
            | (Some(OverridePhase::Forward), Phase::Forward)
            | (Some(OverridePhase::InputGrad), Phase::InputGrad)
            | (Some(OverridePhase::WeightGrad), Phase::WeightGrad) => true,
            (Some(OverridePhase::Backward), phase) => phase != Phase::Forward,
            _ => false,
        }
    }
}

/// The part of a training step that an override is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OverridePhase {
    /// Forward.
    Forward,
    /// Gradient of the input.
    InputGrad,
    /// Gradient of the weights.
    WeightGrad,
    /// Both gradients.
    Backward,
}

/// An override with its price read.
#[derive(Debug, Clone)]
struct Entry<'a> {
    given: &'a CostOverride,
    price: Price,
}

/// The overrides of one module, their formulas read once for many evaluations.
#[derive(Debug, Clone)]
pub struct Overrides<'a> {
    /// In the order of the list.
    entries: Vec<Entry<'a>>,
}

impl<'a> Overrides<'a> {
    /// Those of the settings that are for `module` where it is cut over `tensor` devices. Overrides that no valid scenario has are
    /// passed over.
    pub fn of(training: &'a Training, module: &Module, tensor: u32) -> Self {
        let meant = |given: &&CostOverride| given.at.is_none_or(|at| at.covers(tensor, training));
        let mine = training.overrides.iter().filter(|given| given.is_for(module)).filter(meant);
        let read = |given: &'a CostOverride| Price::of(given).ok().map(|price| Entry { given, price });
        Self { entries: mine.filter_map(read).collect() }
    }

    /// Time of an operator for which the model predicts `predicted`; for a collective its own duration.
    pub fn operator(&self, shape: &Shape<'_>, operator: &Operator, predicted: Seconds) -> Seconds {
        let last = |entry: &&Entry<'_>| entry.given.operator == operator.name && entry.given.covers(operator.phase);
        let Some(entry) = self.entries.iter().rev().find(last) else { return predicted };
        let variables = Variables::new(shape, Priced::of(operator, predicted));
        entry.price.micros(&variables).map_or(predicted, Seconds::from_micros)
    }
}
