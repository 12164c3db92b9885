//! Low-rank adapters: two products of rank r beside each adapted linear layer (LoRA).

use super::super::kernel::{Kernel, MatMul, StreamingClass};
use super::{Builder, Phase, Shape, TensorId, input_grad, product, stream, weight_grad};

/// An adapted linear layer.
pub(super) struct Adapter {
    down: MatMul,
    up: MatMul,
    /// Input of the first product.
    hidden: TensorId,
    /// Bytes of the output.
    bytes: f64,
}

/// Adds the adapters of a layer.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>) -> Vec<Adapter> {
    let adapter = |(input, output, rank): (u64, u64, u64)| {
        let down = product(shape.n, input as f64, rank as f64, shape.format());
        let up = product(shape.n, rank as f64, output as f64 / shape.t, shape.format());
        graph.run("adapter down", Phase::Forward, Kernel::MatMul(down), &[]);
        let hidden = graph.makes("adapter hidden", shape.w * down.m * down.n);
        graph.run("adapter up", Phase::Forward, Kernel::MatMul(up), &[hidden]);
        let bytes = shape.w * up.m * up.n;
        graph.run("add adapter", Phase::Forward, stream(StreamingClass::Elementwise, 3.0 * bytes), &[]);
        Adapter { down, up, hidden, bytes }
    };
    shape.module.adapted_matrices(shape.kind).into_iter().map(adapter).collect()
}

/// Adds the gradient operators. The weight gradients read `inputs`, the inputs of the adapted linear
/// layers.
pub(super) fn backward(graph: &mut Builder, shape: &Shape<'_>, adapters: &[Adapter], inputs: &[TensorId]) {
    for adapter in adapters.iter().rev() {
        graph.run("adapter up", Phase::InputGrad, input_grad(adapter.up), &[]);
        graph.makes("adapter gradient", shape.w * adapter.up.m * adapter.up.k);
        graph.run("adapter up", Phase::WeightGrad, weight_grad(adapter.up), &[adapter.hidden]);
        graph.run("adapter down", Phase::InputGrad, input_grad(adapter.down), &[]);
        graph.run("adapter down", Phase::WeightGrad, weight_grad(adapter.down), inputs);
        let add = stream(StreamingClass::Elementwise, 3.0 * adapter.bytes);
        graph.run("add adapter", Phase::InputGrad, add, &[]);
    }
}
