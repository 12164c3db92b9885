//! Low-rank adapters: two products of rank r beside each adapted linear layer (LoRA).

use planscope_core::model::AdaptedMatrix;

use super::super::kernel::{Kernel, MatMul, StreamingClass};
use super::{Builder, Phase, Shape, TensorId, input_grad, product, stream, weight_grad};

/// An adapted linear layer.
pub(super) struct Adapter {
    down: MatMul,
    up: MatMul,
    /// Input of the first product.
    hidden: TensorId,
    /// Bytes of the input on a device.
    input_bytes: f64,
}

/// Adds the adapters of a layer.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>) -> Vec<Adapter> {
    let adapter = |matrix: AdaptedMatrix| {
        let AdaptedMatrix { input, output, rank, is_split_by_input } = matrix;
        let input = if is_split_by_input { input as f64 / shape.t } else { input as f64 };
        let down = product(shape.n, input, rank as f64, shape.wide_format());
        let up = product(shape.n, rank as f64, output as f64 / shape.t, shape.wide_format());
        graph.run("adapter down", Phase::Forward, Kernel::MatMul(down), &[]);
        let hidden = graph.makes("adapter hidden", shape.w * down.m * down.n);
        graph.run("adapter up", Phase::Forward, Kernel::MatMul(up), &[hidden]);
        let (input_bytes, output_bytes) = (shape.w * down.m * down.k, shape.w * up.m * up.n);
        graph.run("add adapter", Phase::Forward, stream(StreamingClass::Elementwise, 3.0 * output_bytes), &[]);
        Adapter { down, up, hidden, input_bytes }
    };
    shape.module.adapted_matrices(shape.kind).into_iter().map(adapter).collect()
}

/// Traffic of the conversion of quantized weights, relative to the bytes that it reads and writes. On an A100,
/// bitsandbytes and GPTQ convert 134e9 to 167e9 weights/s (docs/models.md, section 3).
const DEQUANTIZATION_TRAFFIC: f64 = 4.9;

/// Adds the conversion of quantized base weights to the format of the products.
pub(super) fn dequantize(graph: &mut Builder, shape: &Shape<'_>, phase: Phase) {
    let Some(bits) = shape.module.adapters.and_then(|adapters| adapters.base_bits) else { return };
    let count = shape.module.kind_parameters(shape.kind);
    let expert_degree = shape.training.expert_tensor(shape.t as u32) * shape.training.expert_parallel;
    let weights = count.dense as f64 / shape.t + count.expert as f64 / f64::from(expert_degree);
    let bytes = weights * (f64::from(bits) / 8.0 + shape.w) * DEQUANTIZATION_TRAFFIC;
    graph.run("convert quantized weights", phase, stream(StreamingClass::Elementwise, bytes), &[]);
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
        let add = stream(StreamingClass::Elementwise, 3.0 * adapter.input_bytes);
        graph.run("add adapter", Phase::InputGrad, add, &[]);
    }
}
