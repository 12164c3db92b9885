//! Activation function of an MLP, fused or as separate kernels.

use super::super::super::kernel::StreamingClass;
use super::super::{Builder, Phase, Shape, TensorId, stream};
use planscope_core::training::Kernels;

/// Forward tensors required in the gradient of the activation.
pub(super) struct ActivationInputs {
    /// Input of the function; both halves for a gated MLP.
    before: TensorId,
    /// Activated gate, the factor of the other half. Fused kernels compute it again.
    gate: Option<TensorId>,
}

fn is_eager(shape: &Shape<'_>) -> bool {
    shape.module.gated && shape.training.profile().activation == Kernels::Eager
}

/// Adds the activation of `before` to `hidden` bytes, and returns the inputs of its gradient and the result.
///
/// Passes over `hidden`: a fused gated activation reads two and writes one. Separate kernels of the
/// function and the product read three and write two.
pub(super) fn forward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    before: TensorId,
    hidden: f64,
) -> (ActivationInputs, TensorId) {
    let passes = match (shape.module.gated, is_eager(shape)) {
        (false, _) => 2.0,
        (true, false) => 3.0,
        (true, true) => 5.0,
    };
    graph.run("activation", Phase::Forward, stream(StreamingClass::Activation, passes * hidden), &[before]);
    let gate = is_eager(shape).then(|| graph.makes("activated gate", hidden));
    let after = graph.makes("activated", hidden);
    (ActivationInputs { before: graph.activation_input(shape, before), gate }, after)
}

impl ActivationInputs {
    /// Adds the gradient of the activation.
    ///
    /// Passes: a fused gated gradient reads three and writes two. Separate kernels are two products
    /// (two reads and a write each) and the gradient of the function (two reads and a write).
    pub(super) fn backward(&self, graph: &mut Builder, shape: &Shape<'_>, hidden: f64, gradient: TensorId) {
        let passes = match (shape.module.gated, self.gate) {
            (false, _) => 3.0,
            (true, None) => 5.0,
            (true, Some(_)) => 9.0,
        };
        let kernel = stream(StreamingClass::Activation, passes * hidden);
        match self.gate {
            Some(gate) => graph.run("activation", Phase::InputGrad, kernel, &[self.before, gate, gradient]),
            None => graph.run("activation", Phase::InputGrad, kernel, &[self.before, gradient]),
        };
    }
}
