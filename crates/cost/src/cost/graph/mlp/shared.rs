//! Shared experts: an MLP for all tokens in a layer with routed experts.

use super::super::super::kernel::{Kernel, MatMul, StreamingClass};
use super::super::transformer::{column_backward, gathered, reduce, row_backward};
use super::super::{Builder, Phase, Shape, TensorId, product, stream};
use super::activation::{self, ActivationInputs};

/// Forward tensors required in the backward.
pub(in super::super) struct SharedParts {
    /// Input to the first product.
    pub input: TensorId,
    /// Inputs to the gradient of the activation.
    activation: ActivationInputs,
    /// Input to the last product.
    pub after: TensorId,
    /// Both inputs, as the weight gradients read them.
    product_inputs: [TensorId; 2],
    up: MatMul,
    down: MatMul,
}

/// Adds the shared experts, if the layer has any.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>, normed: TensorId) -> Option<SharedParts> {
    let width = f64::from(shape.moe()?.shared_width);
    if width == 0.0 {
        return None;
    }
    let widths = if shape.module.gated { 2.0 } else { 1.0 };
    let up = product(shape.n, shape.h(), widths * width / shape.t, shape.format());
    let down = product(shape.n, width / shape.t, shape.h(), shape.format());
    let input = gathered(graph, shape, normed, shape.n);
    graph.run("shared expert up", Phase::Forward, Kernel::MatMul(up), &[input]);
    let before = graph.makes("shared expert hidden", shape.w * up.m * up.n);
    let hidden = shape.w * down.m * down.k;
    let (activation, after) = activation::forward(graph, shape, before, hidden);
    let product_inputs = [input, after].map(|tensor| graph.product_input(shape, tensor));
    graph.run("shared expert down", Phase::Forward, Kernel::MatMul(down), &[after]);
    reduce(graph, shape, shape.n, Phase::Forward, None);
    Some(SharedParts { input, activation, after, product_inputs, up, down })
}

/// Adds the sum with the routed experts, or the sum of both gradients.
pub(super) fn add(graph: &mut Builder, shape: &Shape<'_>, phase: Phase) {
    graph.run("add shared expert", phase, stream(StreamingClass::Elementwise, 3.0 * shape.stream()), &[]);
}

impl SharedParts {
    /// Adds the gradient operators.
    pub(super) fn backward(&self, graph: &mut Builder, shape: &Shape<'_>, gradient: TensorId) {
        let after = row_backward(graph, shape, "shared expert down", self.down, self.product_inputs[1], gradient);
        self.activation.backward(graph, shape, shape.w * self.down.m * self.down.k, after);
        let hidden = graph.makes("shared expert hidden gradient", shape.w * self.up.m * self.up.n);
        column_backward(graph, shape, "shared expert up", self.up, self.product_inputs[0], hidden);
    }
}
