//! Transformer layer: norm, attention, norm, MLP, and tensor-parallel collectives.

use super::super::kernel::{Kernel, MatMul, Operation, StreamingClass};
use super::adapters;
use super::attention::{self, AttentionParts, CrossParts};
use super::linear::{self, LinearParts};
use super::mlp::{self, MlpParts};
use super::{Builder, OperatorGraph, Phase, Shape, TensorId, input_grad, product, stream, weight_grad};
use planscope_core::model::{Bias, Mixer};
use planscope_core::training::Kernels;

/// Builds the graph for one layer, forward and backward. A layer has a token mixer, an MLP, or both.
pub fn layer(shape: &Shape<'_>) -> OperatorGraph {
    let mut graph = Builder::new();
    let x = graph.given("input", shape.stream());
    let mixer = shape.kind.mixer.map(|mixer| mixer_forward(&mut graph, shape, mixer, x));
    let middle = mixer.as_ref().map_or(x, |branch| branch.sum);
    let mlp = shape.kind.mlp.is_some().then(|| mlp_forward(&mut graph, shape, middle));
    let adapters = adapters::forward(&mut graph, shape);
    adapters::dequantize(&mut graph, shape, Phase::Forward);
    graph.mark_modules(shape.moe().is_some());
    graph.turn();
    adapters::dequantize(&mut graph, shape, Phase::InputGrad);
    let mut gradient = None;
    if let Some(branch) = &mlp {
        let start = residual_backward(&mut graph, shape, "mlp residual", branch.mask);
        let inner = mlp::backward(&mut graph, shape, branch.normed, &branch.parts, start);
        gradient = Some(norm_backward(&mut graph, shape, "mlp norm", middle, inner));
    }
    if let Some(branch) = &mixer {
        let start = match gradient {
            Some(gradient) => {
                let gradient = attention::cross_backward(&mut graph, shape, branch.cross.as_ref(), gradient);
                masked_backward(&mut graph, shape, branch.mask, gradient)
            }
            None => residual_backward(&mut graph, shape, "attention residual", branch.mask),
        };
        let inner = match &branch.parts {
            MixerParts::Attention(parts) => attention::backward(&mut graph, shape, parts, start),
            MixerParts::Linear(parts) => linear::backward(&mut graph, shape, parts, start),
        };
        let inner = modulation_backward(&mut graph, shape, branch.normed, inner);
        norm_backward(&mut graph, shape, "input norm", x, inner);
    }
    let mixer_inputs = mixer.as_ref().map(|branch| branch.parts.inputs());
    let mlp_inputs = mlp.as_ref().filter(|_| adapts_mlp(shape)).map(|branch| match &branch.parts.shared {
        Some(shared) => [shared.input, shared.after],
        None => [branch.parts.input, branch.parts.after],
    });
    let inputs: Vec<TensorId> = mixer_inputs.into_iter().chain(mlp_inputs).flatten().collect();
    adapters::backward(&mut graph, shape, &adapters, &inputs);
    graph.graph
}

fn adapts_mlp(shape: &Shape<'_>) -> bool {
    shape.module.adapters.is_some_and(|adapters| adapters.mlp)
}

/// Forward tensors of a token mixer.
enum MixerParts {
    Attention(AttentionParts),
    Linear(LinearParts),
}

impl MixerParts {
    /// Returns the inputs of the first and the last product.
    const fn inputs(&self) -> [TensorId; 2] {
        match self {
            Self::Attention(parts) => [parts.input, parts.context],
            Self::Linear(parts) => [parts.input, parts.context],
        }
    }
}

/// Forward tensors of the mixer branch.
struct MixerBranch {
    normed: TensorId,
    parts: MixerParts,
    mask: Option<TensorId>,
    cross: Option<CrossParts>,
    /// Residual stream after the branch.
    sum: TensorId,
}

fn mixer_forward(graph: &mut Builder, shape: &Shape<'_>, mixer: Mixer, x: TensorId) -> MixerBranch {
    let normed = norm(graph, shape, "input norm", x);
    let modulated = modulation(graph, shape, normed);
    let (parts, output) = if let (Mixer::Linear, Some(sizes)) = (mixer, shape.module.linear) {
        let parts = linear::forward(graph, shape, sizes, modulated);
        let output = parts.output;
        (MixerParts::Linear(parts), output)
    } else {
        let parts = attention::forward(graph, shape, modulated);
        let output = parts.output;
        (MixerParts::Attention(parts), output)
    };
    let (sum, mask) = residual(graph, shape, "attention residual", x, output);
    let (cross, sum) = attention::cross_forward(graph, shape, sum);
    MixerBranch { normed, parts, mask, cross, sum }
}

/// Forward tensors of the MLP branch.
struct MlpBranch {
    normed: TensorId,
    parts: MlpParts,
    mask: Option<TensorId>,
}

fn mlp_forward(graph: &mut Builder, shape: &Shape<'_>, stream: TensorId) -> MlpBranch {
    let normed = norm(graph, shape, "mlp norm", stream);
    let parts = mlp::forward(graph, shape, normed);
    let (_, mask) = residual(graph, shape, "mlp residual", stream, parts.output);
    MlpBranch { normed, parts, mask }
}

/// Traffic of an eager norm per value in bytes: forward and backward. Liger-Kernel measured 0.28 and
/// 0.74 ms for 2,048 tokens of 4,096 values on an A100. A fused kernel takes 4 and 8 bytes in bf16.
const EAGER_NORM: (f64, f64) = (46.0, 121.0);

/// Bytes per value that an eager norm stores in addition to its input and output: the input and the
/// normalized values in fp32.
const EAGER_NORM_COPIES: f64 = 8.0;

/// Returns the kernel of a norm over the residual stream.
pub(super) fn norm_kernel(shape: &Shape<'_>, phase: Phase) -> Kernel {
    let values = shape.stream() / shape.w;
    let bytes = match (shape.training.profile().norms, phase) {
        (Kernels::Fused, Phase::Forward) => 2.0 * shape.w * values,
        (Kernels::Fused, _) => 4.0 * shape.w * values,
        (Kernels::Eager, Phase::Forward) => EAGER_NORM.0 * values,
        (Kernels::Eager, _) => EAGER_NORM.1 * values,
    };
    stream(StreamingClass::Norm, bytes)
}

fn norm(graph: &mut Builder, shape: &Shape<'_>, name: &'static str, x: TensorId) -> TensorId {
    graph.run(name, Phase::Forward, norm_kernel(shape, Phase::Forward), &[x]);
    if shape.training.profile().norms == Kernels::Eager {
        let copies = graph.makes("fp32 copies", EAGER_NORM_COPIES * shape.stream() / shape.w);
        graph.norm_copies.push((name, copies));
    }
    graph.makes(name, shape.stream())
}

/// Adds the norm backward. It uses the gradient, the input and the normalized tensor, and also adds
/// the residual gradient.
fn norm_backward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    name: &'static str,
    x: TensorId,
    gradient: TensorId,
) -> TensorId {
    let mut reads = vec![x, gradient];
    reads.extend(graph.norm_copies.iter().filter(|(norm, _)| *norm == name).map(|(_, copies)| *copies));
    graph.run(name, Phase::InputGrad, norm_kernel(shape, Phase::InputGrad), &reads);
    graph.run("residual gradient", Phase::InputGrad, stream(StreamingClass::Elementwise, 3.0 * shape.stream()), &[]);
    graph.makes("gradient", shape.stream())
}

/// Adds adaLN modulation: scales, shifts and gates computed from the conditioning, and their
/// application.
fn modulation(graph: &mut Builder, shape: &Shape<'_>, normed: TensorId) -> TensorId {
    if !shape.module.diffusion.is_some_and(|diffusion| diffusion.modulation) {
        return normed;
    }
    let h = shape.h();
    graph.run("modulation", Phase::Forward, Kernel::MatMul(modulation_product(shape)), &[]);
    graph.makes("modulation", 6.0 * shape.w * shape.items * h / shape.t);
    // Shift and scale before attention and MLP, a gate after them.
    graph.run("modulate", Phase::Forward, stream(StreamingClass::Elementwise, 8.0 * shape.stream()), &[normed]);
    graph.makes("modulated", shape.stream())
}

fn modulation_product(shape: &Shape<'_>) -> MatMul {
    product(shape.items.max(1.0), shape.h(), 6.0 * shape.h() / shape.t, shape.format())
}

fn modulation_backward(graph: &mut Builder, shape: &Shape<'_>, normed: TensorId, gradient: TensorId) -> TensorId {
    if !shape.module.diffusion.is_some_and(|diffusion| diffusion.modulation) {
        return gradient;
    }
    let bytes = 12.0 * shape.stream();
    graph.run("modulate", Phase::InputGrad, stream(StreamingClass::Elementwise, bytes), &[normed, gradient]);
    let modulated = graph.makes("gradient", shape.stream());
    graph.run("modulation", Phase::InputGrad, input_grad(modulation_product(shape)), &[]);
    graph.run("modulation", Phase::WeightGrad, weight_grad(modulation_product(shape)), &[]);
    modulated
}

/// Adds dropout and residual addition as one kernel. The mask uses a byte per element.
fn residual(
    graph: &mut Builder,
    shape: &Shape<'_>,
    name: &'static str,
    x: TensorId,
    branch: TensorId,
) -> (TensorId, Option<TensorId>) {
    let elements = shape.n * shape.h() / shape.split();
    let mask = if shape.module.dropout { elements } else { 0.0 };
    let bytes = 3.0 * shape.stream() + mask;
    graph.run(name, Phase::Forward, stream(StreamingClass::Elementwise, bytes), &[x, branch]);
    let sum = graph.makes("residual stream", shape.stream());
    (sum, (mask > 0.0).then(|| graph.makes("dropout mask", mask)))
}

fn residual_backward(graph: &mut Builder, shape: &Shape<'_>, name: &'static str, mask: Option<TensorId>) -> TensorId {
    let elements = shape.n * shape.h() / shape.split();
    let bytes = 2.0 * shape.stream() + if mask.is_some() { elements } else { 0.0 };
    let reads: Vec<TensorId> = mask.into_iter().collect();
    graph.run(name, Phase::InputGrad, stream(StreamingClass::Elementwise, bytes), &reads);
    graph.makes("gradient", shape.stream())
}

/// Adds the dropout backward if the module has dropout.
fn masked_backward(graph: &mut Builder, shape: &Shape<'_>, mask: Option<TensorId>, gradient: TensorId) -> TensorId {
    let Some(mask) = mask else { return gradient };
    let bytes = 2.0 * shape.stream() + shape.n * shape.h() / shape.split();
    graph.run("dropout", Phase::InputGrad, stream(StreamingClass::Elementwise, bytes), &[mask, gradient]);
    graph.makes("gradient", shape.stream())
}

/// Adds the sequence all-gather before a column-parallel product. `rows` is the number of tokens,
/// or token copies for experts.
pub(super) fn gather(graph: &mut Builder, shape: &Shape<'_>, rows: f64, phase: Phase, overlapped_with: Option<u16>) {
    if shape.training.sequence_parallel {
        let bytes = shape.w * rows * shape.h();
        graph.tensor_collective(shape, "gather sequence", phase, Operation::AllGather, bytes, overlapped_with);
    }
}

/// Adds the all-gather of the input of a column-parallel product and returns the tensor that its
/// weight gradient reads: the gathered input if the framework stores it, otherwise the shard.
pub(super) fn gathered(graph: &mut Builder, shape: &Shape<'_>, input: TensorId, rows: f64) -> TensorId {
    gather(graph, shape, rows, Phase::Forward, None);
    if shape.t > 1.0 && shape.training.sequence_parallel && shape.training.profile().gathered_inputs {
        graph.makes("gathered input", shape.w * rows * shape.h())
    } else {
        input
    }
}

/// Repeats the input all-gather for a column-parallel product's weight gradient. It overlaps
/// `beside`.
pub(super) fn gather_again(graph: &mut Builder, shape: &Shape<'_>, rows: f64, overlapped_with: Option<u16>) {
    let before = graph.graph.operators.len();
    gather(graph, shape, rows, Phase::InputGrad, overlapped_with);
    for operator in &mut graph.graph.operators[before..] {
        operator.for_weights = true;
    }
}

/// Adds the reduction of the partial sums after a row-parallel product.
pub(super) fn reduce(graph: &mut Builder, shape: &Shape<'_>, rows: f64, phase: Phase, overlapped_with: Option<u16>) {
    let bytes = shape.w * rows * shape.h();
    let operation = if shape.training.sequence_parallel { Operation::ReduceScatter } else { Operation::AllReduce };
    graph.tensor_collective(shape, "reduce partial sums", phase, operation, bytes, overlapped_with);
}

/// Adds both gradients for a column-parallel product with the gathered input `input`. The input
/// all-gather overlaps the input gradient. The reduction of the input gradient overlaps the weight
/// gradient.
pub(super) fn column_backward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    name: &'static str,
    forward: MatMul,
    input: TensorId,
    gradient: TensorId,
) -> TensorId {
    let is_overlapped = shape.training.overlapped_backward;
    let at = graph.run(name, Phase::InputGrad, input_grad(forward), &[gradient]);
    let rows = forward.batch * forward.m;
    let result = graph.makes("gradient", shape.w * rows * shape.h());
    if !shape.training.profile().gathered_inputs {
        gather_again(graph, shape, rows, is_overlapped.then_some(at));
    }
    let at = weight_gradient(graph, shape, name, forward, &[input, gradient]);
    reduce(graph, shape, rows, Phase::InputGrad, at.filter(|_| is_overlapped));
    result
}

/// Adds both gradients for a row-parallel product. The output gradient is scattered and is gathered
/// first.
pub(super) fn row_backward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    name: &'static str,
    forward: MatMul,
    input: TensorId,
    gradient: TensorId,
) -> TensorId {
    gather(graph, shape, forward.batch * forward.m, Phase::InputGrad, None);
    graph.run(name, Phase::InputGrad, input_grad(forward), &[gradient]);
    let result = graph.makes("gradient", shape.w * forward.batch * forward.m * forward.k);
    weight_gradient(graph, shape, name, forward, &[input, gradient]);
    result
}

/// Adds the weight gradient, a separate accumulation kernel if gradients are not fused, and the
/// bias gradient. Returns its index, or `None` for the frozen weights of a module with adapters.
pub(super) fn weight_gradient(
    graph: &mut Builder,
    shape: &Shape<'_>,
    name: &'static str,
    forward: MatMul,
    reads: &[TensorId],
) -> Option<u16> {
    if shape.module.adapters.is_some() {
        return None;
    }
    let at = graph.run(name, Phase::WeightGrad, weight_grad(forward), reads);
    // With ZeRO-3, only reduced shards are accumulated.
    if !shape.training.fused_weight_gradients && shape.training.zero_stage() < 3 {
        // Read new gradient and sum, write sum.
        let bytes = (shape.w + 2.0 * shape.training.gradients.bytes()) * forward.batch * forward.k * forward.n;
        graph.run("accumulate gradient", Phase::WeightGrad, stream(StreamingClass::Elementwise, bytes), &[]);
    }
    if shape.module.bias == Bias::All {
        let bytes = shape.w * forward.batch * forward.m * forward.n;
        graph.run("bias gradient", Phase::WeightGrad, stream(StreamingClass::Norm, bytes), &[]);
    }
    Some(at)
}
