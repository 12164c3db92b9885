//! Linear attention and state space models: input projection, convolution over time, the chunked
//! recurrence, gated norm and output projection.

use super::super::kernel::{Format, Kernel, MatMul, Product, StreamingClass};
use super::transformer::{column_backward, gathered, reduce, row_backward};
use super::{Builder, Phase, Shape, TensorId, product, stream};
use planscope_core::model::{LINEAR_CHUNK, LinearAttention};

/// Operations of the backward of the recurrence relative to the forward, as for fused attention.
const BACKWARD: f64 = 2.5;

/// Forward tensors required in the backward.
pub(super) struct LinearParts {
    pub output: TensorId,
    /// Input of the first product.
    pub input: TensorId,
    /// Input of the projection.
    pub context: TensorId,
    /// Both inputs, as the weight gradients read them.
    product_inputs: [TensorId; 2],
    projected: TensorId,
    convolved: TensorId,
    core: TensorId,
    into: MatMul,
    projection: MatMul,
    sizes: LinearAttention,
}

/// Returns the recurrence as a batch of products with its number of operations, `passes` times.
fn recurrence(shape: &Shape<'_>, sizes: &LinearAttention, passes: f64) -> Kernel {
    let key = f64::from(sizes.key_size);
    let batch = f64::from(sizes.value_heads) / shape.t * (shape.n / LINEAR_CHUNK);
    let n = passes * sizes.core_products(LINEAR_CHUNK) / key;
    Kernel::MatMul(MatMul { batch, m: LINEAR_CHUNK, k: key, n, product: Product::Forward, format: Format::Bf16 })
}

/// Bytes of queries, keys and values per device.
fn convolved_bytes(shape: &Shape<'_>, sizes: &LinearAttention) -> f64 {
    shape.w * shape.n * (2 * sizes.key_width() + sizes.value_width()) as f64 / shape.t
}

/// Adds the operators from the normalized input to the branch output.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>, sizes: LinearAttention, input: TensorId) -> LinearParts {
    let values = sizes.value_width() as f64 / shape.t;
    let into = product(shape.n, shape.h(), sizes.input_width() as f64 / shape.t, shape.format());
    let projection = product(shape.n, values, shape.h(), shape.format());
    let input = gathered(graph, shape, input, shape.n);
    graph.run("linear attention input", Phase::Forward, Kernel::MatMul(into), &[input]);
    let projected = graph.makes("linear attention input", shape.w * into.m * into.n);
    let bytes = convolved_bytes(shape, &sizes);
    graph.run("convolution", Phase::Forward, stream(StreamingClass::Activation, 2.0 * bytes), &[projected]);
    let convolved = graph.makes("convolved", bytes);
    graph.run("linear attention", Phase::Forward, recurrence(shape, &sizes, 1.0), &[convolved]);
    let value_bytes = shape.w * shape.n * values;
    let core = graph.makes("linear attention output", value_bytes);
    graph.run("gated norm", Phase::Forward, stream(StreamingClass::Norm, 3.0 * value_bytes), &[core, projected]);
    let context = graph.makes("context", value_bytes);
    let product_inputs = [input, context].map(|tensor| graph.product_input(shape, tensor));
    graph.run("projection", Phase::Forward, Kernel::MatMul(projection), &[context]);
    let output = graph.makes("attention output", shape.w * shape.n * shape.h());
    reduce(graph, shape, shape.n, Phase::Forward, None);
    LinearParts { output, input, context, product_inputs, projected, convolved, core, into, projection, sizes }
}

/// Adds the gradient operators from the branch output to the normalized input.
pub(super) fn backward(graph: &mut Builder, shape: &Shape<'_>, parts: &LinearParts, gradient: TensorId) -> TensorId {
    let context = row_backward(graph, shape, "projection", parts.projection, parts.product_inputs[1], gradient);
    let value_bytes = shape.w * parts.projection.m * parts.projection.k;
    let norm = stream(StreamingClass::Norm, 6.0 * value_bytes);
    graph.run("gated norm", Phase::InputGrad, norm, &[parts.core, parts.projected, context]);
    let core = graph.makes("linear attention gradient", value_bytes);
    let kernel = recurrence(shape, &parts.sizes, BACKWARD);
    graph.run("linear attention", Phase::InputGrad, kernel, &[parts.convolved, core]);
    let bytes = convolved_bytes(shape, &parts.sizes);
    let convolved = graph.makes("convolved gradient", bytes);
    let convolution = stream(StreamingClass::Activation, 4.0 * bytes);
    graph.run("convolution", Phase::InputGrad, convolution, &[parts.projected, convolved]);
    let gradient = graph.makes("linear attention input gradient", shape.w * parts.into.m * parts.into.n);
    column_backward(graph, shape, "linear attention input", parts.into, parts.product_inputs[0], gradient)
}
