//! Scale factors from layer overrides for forward and backward.

use super::{Entry, Overrides, Price, Priced, Variable, Variables, covers};
use crate::cost::graph::{Operator, OperatorGraph, Phase, Shape};
use planscope_core::units::Seconds;

/// Factors on operator times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cost) struct Stretch {
    /// Factor on device time.
    pub device: f64,
    /// Factor on host time.
    pub host: f64,
}

impl Stretch {
    const NONE: Self = Self { device: 1.0, host: 1.0 };
}

/// Factors for forward and backward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cost) struct Stretches {
    forward: Stretch,
    backward: Stretch,
}

impl Stretches {
    /// No scaling, for input and output blocks.
    pub(in crate::cost) const NONE: Self = Self { forward: Stretch::NONE, backward: Stretch::NONE };

    /// Returns the factors for a phase.
    pub(in crate::cost) const fn for_phase(&self, phase: Phase) -> Stretch {
        match phase {
            Phase::Forward => self.forward,
            Phase::InputGrad | Phase::WeightGrad => self.backward,
        }
    }
}

impl Overrides<'_> {
    /// Computes the factors for a layer from the operator times `times` and the host launch time
    /// `host` per operator.
    pub(in crate::cost) fn stretches(
        &self,
        shape: &Shape<'_>,
        graph: &OperatorGraph,
        times: impl Fn(usize) -> Seconds,
        host: Seconds,
    ) -> Stretches {
        let mut stretches = Stretches::NONE;
        // Operators that match a phase filter, with times.
        let all = |belongs: &dyn Fn(Phase) -> bool| -> Vec<(Operator, Seconds)> {
            let operators = graph.operators.iter().enumerate().filter(|(_, operator)| belongs(operator.phase));
            operators.map(|(index, operator)| (*operator, times(index))).collect()
        };
        for Entry { given, price } in self.entries.iter().filter(|entry| entry.given.is_layer()) {
            let layer = Priced::sum(all(&|phase| covers(given, phase)).into_iter());
            let Some(device) = factor(price, &Variables::new(shape, layer)) else { continue };
            let stretch = |operators: Vec<(Operator, Seconds)>| {
                let host = host * operators.len() as f64;
                let total = Priced::sum(operators.into_iter()).predicted * device;
                let within = if host > total { total.secs() / host.secs() } else { 1.0 };
                Stretch { device, host: if matches!(price, Price::Scale(_)) { device } else { within } }
            };
            if covers(given, Phase::Forward) {
                stretches.forward = stretch(all(&|phase| phase == Phase::Forward));
            }
            if covers(given, Phase::InputGrad) {
                stretches.backward = stretch(all(&|phase| phase != Phase::Forward));
            }
        }
        stretches
    }
}

/// Returns given time / predicted time.
fn factor(price: &Price, variables: &Variables) -> Option<f64> {
    let predicted = variables.get(Variable::PredictedUs);
    match *price {
        Price::Scale(factor) => Some(factor),
        Price::Formula(_) | Price::Table(_) | Price::Timings(_) if predicted > 0.0 => {
            price.micros(variables).map(|given| given / predicted)
        }
        Price::Formula(_) | Price::Table(_) | Price::Timings(_) => None,
    }
}
