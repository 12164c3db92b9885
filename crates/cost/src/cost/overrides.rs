//! User-defined times that replace predictions, for an operator or a full layer. An override is a
//! factor, a formula, a table or a list of sequence timings.
//!
//! An operator override replaces the time for all operators with this name: in layers, input blocks
//! and output blocks. For a collective, it replaces the standalone duration; the overlap
//! calculation is unchanged. Recomputed operators also use the new time.
//!
//! A layer override applies after operator overrides. It scales computation and communication
//! uniformly, so that the forward, the backward or their sum has the given time. The given time
//! excludes recomputation, which repeats the scaled forward. Host time never extends a layer beyond
//! a given time. A scale factor also applies to host time.
//!
//! An override can be limited to specific degrees. Sequence timings, which a profiler measures per
//! degree, are fitted as T(l) = a Σl² + b Σl + c over the sequences in a microbatch.
//!
//! If several overrides match, the last entry applies. If an override returns no valid time
//! (negative or NaN), the prediction is used. Validation samples overrides for this case, so it is
//! rare.

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

pub use planscope_core::training::{AtDegrees, CostOverride, LAYER, OverridePhase};

use super::graph::{Operator, Phase, Shape};
use planscope_core::model::Module;
use planscope_core::training::Training;
use planscope_core::units::Seconds;

/// Returns whether an override covers operators of a phase.
pub fn covers(given: &CostOverride, phase: Phase) -> bool {
    match (given.phase, phase) {
        (None, _)
        | (Some(OverridePhase::Forward), Phase::Forward)
        | (Some(OverridePhase::InputGrad), Phase::InputGrad)
        | (Some(OverridePhase::WeightGrad), Phase::WeightGrad) => true,
        (Some(OverridePhase::Backward), phase) => phase != Phase::Forward,
        _ => false,
    }
}

/// An override with its parsed price.
#[derive(Debug, Clone)]
struct Entry<'a> {
    given: &'a CostOverride,
    price: Price,
}

/// Overrides of a module, parsed once for many evaluations.
#[derive(Debug, Clone)]
pub struct Overrides<'a> {
    /// Entries in list order.
    entries: Vec<Entry<'a>>,
}

impl<'a> Overrides<'a> {
    /// Parses the overrides for `module` with tensor-parallel degree `tensor`. Skips invalid
    /// overrides, which validated scenarios do not contain.
    pub fn new(training: &'a Training, module: &Module, tensor: u32) -> Self {
        let meant = |given: &&CostOverride| given.at.is_none_or(|at| at.covers(tensor, training));
        let mine = training.overrides.iter().filter(|given| given.is_for(module)).filter(meant);
        let read = |given: &'a CostOverride| Price::parse(given).ok().map(|price| Entry { given, price });
        Self { entries: mine.filter_map(read).collect() }
    }

    /// Returns the operator time, given the prediction. For a collective, this is the standalone
    /// duration.
    pub fn operator(&self, shape: &Shape<'_>, operator: &Operator, predicted: Seconds) -> Seconds {
        let last = |entry: &&Entry<'_>| entry.given.operator == operator.name && covers(entry.given, operator.phase);
        let Some(entry) = self.entries.iter().rev().find(last) else { return predicted };
        let variables = Variables::new(shape, Priced::from_operator(operator, predicted));
        entry.price.micros(&variables).map_or(predicted, Seconds::from_micros)
    }
}
