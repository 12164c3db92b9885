//! Multi-head latent attention: projections to vectors of low rank and from them to heads
//! (DeepSeek-V2, Sec. 2.1).

use super::super::kernel::{Kernel, MatMul, Operation, Streaming, StreamingClass};
use super::transformer::weight_gradient;
use super::{Builder, Phase, Shape, TensorId, input_grad, product, stream};
use planscope_core::model::LatentAttention;

/// A projection to a vector of low rank, a norm, and a projection to the heads.
struct Path {
    name: [&'static str; 2],
    /// `None` if the heads are projected from the hidden state.
    down: Option<MatMul>,
    up: MatMul,
    /// Inputs of `down` and `up`, as their weight gradients read them.
    inputs: [TensorId; 2],
}

/// Forward tensors required in the backward.
pub(super) struct LatentParts {
    paths: [Path; 2],
    /// Width of the vectors that tensor parallelism gathers.
    gathered: f64,
}

/// Adds the projections of queries, keys and values. The projections to low rank run on the
/// sequence shard of a device, so that tensor parallelism gathers the vectors of low rank.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>, latent: LatentAttention, input: TensorId) -> LatentParts {
    let heads = f64::from(shape.module.heads) / shape.t;
    let (query_rank, kv_rank) = (f64::from(latent.query_rank), f64::from(latent.kv_rank));
    let queries = f64::from(shape.module.query_width()) / shape.t;
    let content = heads * f64::from(latent.content_size + latent.value_size);
    let rows = shape.n / shape.split();
    let down = |width: f64| product(rows, shape.h(), width, shape.format());
    let up = |rank: f64, width: f64| product(shape.n, rank, width, shape.format());
    let gathered = if query_rank > 0.0 { query_rank } else { shape.h() } + kv_rank + f64::from(latent.rotary_size);
    let query_down = (query_rank > 0.0).then(|| down(query_rank));
    let query_up = up(if query_rank > 0.0 { query_rank } else { shape.h() }, queries);
    let kv_down = Some(down(kv_rank + f64::from(latent.rotary_size)));
    let all = [
        (["query down", "query up"], query_down, query_up),
        (["key-value down", "key-value up"], kv_down, up(kv_rank, content)),
    ];
    let paths = all.map(|(name, down, up)| {
        let latent = down.map_or(input, |down| {
            graph.run(name[0], Phase::Forward, Kernel::MatMul(down), &[input]);
            let projected = graph.makes("latent", shape.w * down.m * down.n);
            graph.run("latent norm", Phase::Forward, norm(shape, down, 2.0), &[projected]);
            graph.makes("normed latent", shape.w * down.m * down.n)
        });
        (Path { name, down, up, inputs: [input, latent].map(|tensor| graph.product_input(shape, tensor)) }, latent)
    });
    if shape.training.sequence_parallel {
        let bytes = shape.w * shape.n * gathered;
        graph.tensor_collective(shape, "gather latent", Phase::Forward, Operation::AllGather, bytes, None);
    }
    let paths = paths.map(|(path, latent)| {
        graph.run(path.name[1], Phase::Forward, Kernel::MatMul(path.up), &[latent]);
        path
    });
    LatentParts { paths, gathered }
}

/// Returns the norm of a vector of low rank, which reads and writes `passes` x its values.
fn norm(shape: &Shape<'_>, down: MatMul, passes: f64) -> Kernel {
    Kernel::Streaming(Streaming { class: StreamingClass::Norm, bytes: passes * shape.w * down.m * down.n })
}

/// Adds the gradient operators from the gradient of queries, keys and values to the normalized
/// hidden state.
pub(super) fn backward(graph: &mut Builder, shape: &Shape<'_>, parts: &LatentParts, gradient: TensorId) -> TensorId {
    for path in parts.paths.iter().rev() {
        graph.run(path.name[1], Phase::InputGrad, input_grad(path.up), &[gradient]);
        weight_gradient(graph, shape, path.name[1], path.up, &[path.inputs[1], gradient]);
    }
    let bytes = shape.w * shape.n * parts.gathered;
    let operation = if shape.training.sequence_parallel { Operation::ReduceScatter } else { Operation::AllReduce };
    graph.tensor_collective(shape, "reduce latent gradient", Phase::InputGrad, operation, bytes, None);
    for path in parts.paths.iter().rev() {
        let Some(down) = path.down else { continue };
        graph.run("latent norm", Phase::InputGrad, norm(shape, down, 4.0), &[]);
        graph.run(path.name[0], Phase::InputGrad, input_grad(down), &[]);
        weight_gradient(graph, shape, path.name[0], down, &[path.inputs[0]]);
    }
    graph.run("add gradients", Phase::InputGrad, stream(StreamingClass::Elementwise, 3.0 * shape.stream()), &[]);
    graph.makes("gradient", shape.stream())
}
