//! MLP operators: a dense MLP, or a mixture of experts with router and token exchange.

mod activation;
mod shared;

use super::super::kernel::{Collective, Kernel, MatMul, Operation, StreamingClass};
use super::transformer::{column_backward, gathered, reduce, row_backward};
use super::{Builder, Phase, Shape, Span, TensorId, input_grad, product, stream, weight_grad};
use activation::ActivationInputs;
use planscope_core::model::Moe;
use planscope_core::training::{Experts, Precision};

/// Forward tensors required in the backward.
pub(super) struct MlpParts {
    pub output: TensorId,
    /// Input to the first product: the normalized stream, or tokens permuted to expert order.
    pub input: TensorId,
    /// Inputs to the gradient of the activation.
    activation: ActivationInputs,
    /// Input to the last product.
    pub after: TensorId,
    /// Inputs of both products, as their weight gradients read them.
    product_inputs: [TensorId; 2],
    /// Shared experts.
    pub shared: Option<shared::SharedParts>,
}

/// MLP width of the layer's MLP, or of one expert.
fn width(shape: &Shape<'_>) -> f64 {
    f64::from(if shape.moe().is_some() { shape.module.expert_width() } else { shape.module.ffn })
}

/// Returns (product count in the batch, rows per product).
fn rows(shape: &Shape<'_>) -> (f64, f64) {
    match shape.moe() {
        None => (1.0, shape.n),
        Some(moe) => {
            // Expert-parallel devices send top-k copies per token. The skew says how many more the
            // fullest device gets than the mean.
            let expert_parallel = f64::from(shape.training.expert_parallel.min(moe.experts));
            let local = f64::from(moe.experts) / expert_parallel;
            (local, routed(shape, moe) / local)
        }
    }
}

/// Token copies that the fullest device computes. With a balanced router, this equals the number
/// sent.
fn routed(shape: &Shape<'_>, moe: Moe) -> f64 {
    shape.n * f64::from(moe.top_k) * moe.skew
}

fn copies(shape: &Shape<'_>) -> f64 {
    shape.moe().map_or(shape.n, |moe| routed(shape, moe))
}

fn up(shape: &Shape<'_>) -> MatMul {
    let widths = if shape.module.gated { 2.0 } else { 1.0 };
    let (batch, m) = rows(shape);
    MatMul { batch, ..product(m, shape.h(), widths * width(shape) / shape.t, shape.format()) }
}

fn down(shape: &Shape<'_>) -> MatMul {
    let (batch, m) = rows(shape);
    MatMul { batch, ..product(m, width(shape) / shape.t, shape.h(), shape.format()) }
}

fn router(shape: &Shape<'_>, moe: Moe) -> MatMul {
    product(shape.n / shape.split(), shape.h(), f64::from(moe.experts), shape.wide_format())
}

/// Name of the exchange that sends tokens, or gradients, to the experts.
const DISPATCH: &str = "dispatch to experts";

/// Adds the all-to-all that dispatches tokens to the experts or combines them again.
fn exchange(graph: &mut Builder, shape: &Shape<'_>, name: &'static str, phase: Phase) {
    let ranks = shape.training.expert_parallel;
    if ranks > 1 {
        let is_short = shape.training.dispatch_by_node && shape.training.precision == Precision::Fp8;
        let width = if is_short && name == DISPATCH { 1.0 } else { shape.w };
        let bytes = width * copies(shape) * shape.h() / shape.split();
        let collective = Collective { operation: Operation::AllToAll, bytes, ranks, ranks_per_node: ranks };
        graph.span(name, phase, Kernel::Collective(collective), Span::Expert, None, &[]);
    }
}

/// Launches of each operator of the routed experts: one, or one per local expert if the framework loops over them.
fn launches(shape: &Shape<'_>) -> f64 {
    match shape.training.profile().experts {
        Experts::Together => 1.0,
        Experts::OneByOne => rows(shape).0,
    }
}

fn permute(graph: &mut Builder, shape: &Shape<'_>, name: &'static str, phase: Phase, reads: &[TensorId]) {
    let bytes = 2.0 * shape.w * copies(shape) * shape.h() / shape.split();
    graph.run(name, phase, stream(StreamingClass::Permute, bytes), reads);
}

/// Adds the operators from the normalized stream to the branch output.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>, normed: TensorId) -> MlpParts {
    let w = shape.w;
    let shared = shared::forward(graph, shape, normed);
    let layer = shape;
    let experts = shape.at_experts();
    let shape = if shape.moe().is_some() { &experts } else { shape };
    let input = if let Some(moe) = shape.moe() {
        graph.run("router", Phase::Forward, Kernel::MatMul(router(shape, moe)), &[normed]);
        let scores = 4.0 * shape.n / shape.split() * f64::from(moe.experts);
        graph.run("router top-k", Phase::Forward, stream(StreamingClass::Softmax, 4.0 * scores), &[]);
        graph.launches = launches(shape);
        permute(graph, shape, "permute to experts", Phase::Forward, &[normed]);
        exchange(graph, shape, DISPATCH, Phase::Forward);
        let bytes = w * copies(shape) * shape.h() / shape.split();
        graph.run("order by expert", Phase::Forward, stream(StreamingClass::Permute, 2.0 * bytes), &[]);
        graph.makes("tokens by expert", bytes)
    } else {
        normed
    };
    let input = gathered(graph, shape, input, copies(shape));
    let (up, down) = (up(shape), down(shape));
    graph.run("mlp up", Phase::Forward, Kernel::MatMul(up), &[input]);
    let before = graph.makes("mlp hidden", w * up.batch * up.m * up.n);
    let hidden = w * down.batch * down.m * down.k;
    let (activation, after) = activation::forward(graph, shape, before, hidden);
    let product_inputs = [input, after].map(|tensor| graph.product_input(shape, tensor));
    graph.run("mlp down", Phase::Forward, Kernel::MatMul(down), &[after]);
    let output = graph.makes("mlp output", w * copies(shape) * shape.h());
    reduce(graph, shape, copies(shape), Phase::Forward, None);
    if shape.moe().is_some() {
        exchange(graph, shape, "combine from experts", Phase::Forward);
        permute(graph, shape, "permute from experts", Phase::Forward, &[output]);
        graph.launches = 1.0;
    }
    if shared.is_some() {
        shared::add(graph, layer, Phase::Forward);
    }
    MlpParts { output, input, activation, after, product_inputs, shared }
}

/// Adds the gradient operators from the branch output to the normalized stream.
pub(super) fn backward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    normed: TensorId,
    parts: &MlpParts,
    gradient: TensorId,
) -> TensorId {
    if let Some(shared) = &parts.shared {
        shared.backward(graph, shape, gradient);
    }
    let layer = shape;
    let experts = shape.at_experts();
    let shape = if shape.moe().is_some() { &experts } else { shape };
    let (up, down) = (up(shape), down(shape));
    let gradient = if shape.moe().is_some() {
        graph.launches = launches(shape);
        permute(graph, shape, "permute to experts", Phase::InputGrad, &[gradient]);
        exchange(graph, shape, DISPATCH, Phase::InputGrad);
        graph.makes("gradient by expert", shape.w * copies(shape) * shape.h() / shape.split())
    } else {
        gradient
    };
    let after_gradient = row_backward(graph, shape, "mlp down", down, parts.product_inputs[1], gradient);
    let hidden = shape.w * down.batch * down.m * down.k;
    parts.activation.backward(graph, shape, hidden, after_gradient);
    let hidden_gradient = graph.makes("mlp hidden gradient", shape.w * up.batch * up.m * up.n);
    let result = column_backward(graph, shape, "mlp up", up, parts.product_inputs[0], hidden_gradient);
    let Some(moe) = shape.moe() else { return result };
    exchange(graph, shape, "combine from experts", Phase::InputGrad);
    permute(graph, shape, "permute from experts", Phase::InputGrad, &[result]);
    graph.launches = 1.0;
    let router = router(shape, moe);
    graph.run("router", Phase::InputGrad, input_grad(router), &[]);
    if shape.module.adapters.is_none() {
        graph.run("router", Phase::WeightGrad, weight_grad(router), &[normed]);
    }
    graph.run("router gradient", Phase::InputGrad, stream(StreamingClass::Elementwise, 3.0 * layer.stream()), &[]);
    if parts.shared.is_some() {
        shared::add(graph, layer, Phase::InputGrad);
    }
    graph.makes("gradient", layer.stream())
}
