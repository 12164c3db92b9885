//! By how much overrides of the whole layer stretch its forward and its backward.

use super::{Entry, Overrides, Price, Priced, Variable, Variables};
use crate::cost::graph::{Operator, OperatorGraph, Phase, Shape};
use crate::units::Seconds;

/// Factors on the times of operators.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cost) struct Stretch {
    /// On what the device takes.
    pub device: f64,
    /// On what the host takes.
    pub host: f64,
}

impl Stretch {
    const NONE: Self = Self { device: 1.0, host: 1.0 };
}

/// The stretch of forward and backward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cost) struct Stretches {
    forward: Stretch,
    backward: Stretch,
}

impl Stretches {
    /// Nothing is stretched: what stands before the first layer and behind the last.
    pub(in crate::cost) const NONE: Self = Self { forward: Stretch::NONE, backward: Stretch::NONE };

    /// Of the operators of a phase.
    pub(in crate::cost) const fn of(&self, phase: Phase) -> Stretch {
        match phase {
            Phase::Forward => self.forward,
            Phase::InputGrad | Phase::WeightGrad => self.backward,
        }
    }
}

impl Overrides<'_> {
    /// For a layer whose operators take `times`, each started by the host in `host`.
    pub(in crate::cost) fn stretches(
        &self,
        shape: &Shape<'_>,
        graph: &OperatorGraph,
        times: impl Fn(usize) -> Seconds,
        host: Seconds,
    ) -> Stretches {
        let mut stretches = Stretches::NONE;
        // Operators that belong to something, with their times.
        let all = |belongs: &dyn Fn(Phase) -> bool| -> Vec<(Operator, Seconds)> {
            let operators = graph.operators.iter().enumerate().filter(|(_, operator)| belongs(operator.phase));
            operators.map(|(index, operator)| (*operator, times(index))).collect()
        };
        for Entry { given, price } in self.entries.iter().filter(|entry| entry.given.is_layer()) {
            let layer = Priced::sum(all(&|phase| given.covers(phase)).into_iter());
            let Some(device) = factor(price, &Variables::new(shape, layer)) else { continue };
            let stretch = |operators: Vec<(Operator, Seconds)>| {
                let host = host * operators.len() as f64;
                let total = Priced::sum(operators.into_iter()).predicted * device;
                let within = if host > total { total.secs() / host.secs() } else { 1.0 };
                Stretch { device, host: if matches!(price, Price::Scale(_)) { device } else { within } }
            };
            if given.covers(Phase::Forward) {
                stretches.forward = stretch(all(&|phase| phase == Phase::Forward));
            }
            if given.covers(Phase::InputGrad) {
                stretches.backward = stretch(all(&|phase| phase != Phase::Forward));
            }
        }
        stretches
    }
}

/// What is given over what is predicted.
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
