//! Attention: projections, rotary positions, the core by one fused kernel or by separate ones, the context ring.

use super::super::kernel::{Attention, Collective, Kernel, MatMul, Operation, Product, StreamingClass};
use super::transformer::{column_backward, gather, reduce, row_backward};
use super::{Builder, Phase, Shape, Span, TensorId, product, stream};
use crate::model::Mask;
use crate::training::{AttentionKernel, ContextExchange};

/// What the forward leaves for the backward.
pub(super) struct AttentionParts {
    pub output: TensorId,
    qkv: TensorId,
    context: TensorId,
    /// Softmax statistics, or scores with what dropout keeps of them.
    core: Vec<TensorId>,
}

/// Width of all query heads together.
fn queries(shape: &Shape<'_>) -> f64 {
    f64::from(shape.module.query_width())
}

/// How often keys and values stand in an all-to-all group that has more devices than there are heads of them.
fn repetition(shape: &Shape<'_>) -> f64 {
    match shape.training.context_exchange {
        ContextExchange::AllToAll => (shape.c * shape.t / f64::from(shape.module.kv_heads)).max(1.0),
        ContextExchange::Ring => 1.0,
    }
}

/// Bytes of queries, keys and values as attention reads them.
fn attended_bytes(shape: &Shape<'_>) -> f64 {
    shape.w * shape.n * (attended(shape) / shape.t)
}

fn qkv_product(shape: &Shape<'_>) -> MatMul {
    let width = (queries(shape) + 2.0 * f64::from(shape.module.kv_width())) / shape.t;
    product(shape.n, shape.h(), width, shape.format())
}

fn projection(shape: &Shape<'_>) -> MatMul {
    product(shape.n, queries(shape) / shape.t, shape.h(), shape.format())
}

/// The fused kernel over what one device holds.
fn fused(shape: &Shape<'_>, backward: bool) -> Attention {
    let module = shape.module;
    let dim = f64::from(module.head_dim());
    Attention {
        tokens: shape.n,
        squared: shape.squared,
        heads: f64::from(module.heads) / shape.t,
        kv_heads: f64::from(module.kv_heads) * repetition(shape) / shape.t,
        qk_dim: dim,
        v_dim: dim,
        causal: module.mask == Mask::Causal,
        backward,
    }
}

/// Scores by separate kernels: every head of every sequence is a product of its own.
fn scores(shape: &Shape<'_>) -> MatMul {
    let heads = f64::from(shape.module.heads) / shape.t;
    let batch = heads * shape.n / shape.length.max(1.0);
    let dim = f64::from(shape.module.head_dim());
    MatMul { batch, m: shape.length, k: dim, n: shape.length, product: Product::Forward, format: shape.format() }
}

/// Scores times values (and every product of the backward but one has this shape or its transpose).
fn values(shape: &Shape<'_>) -> MatMul {
    let scores = scores(shape);
    MatMul { k: scores.n, n: scores.k, ..scores }
}

/// Elements of the stored score matrix.
fn score_elements(shape: &Shape<'_>) -> f64 {
    f64::from(shape.module.heads) / shape.t * shape.squared
}

/// Keys and values go round the ring while attention works on what is there.
fn ring(graph: &mut Builder, shape: &Shape<'_>, phase: Phase, passes: f64, beside: u16) {
    if shape.c > 1.0 && shape.training.context_exchange == ContextExchange::Ring {
        let keys_and_values = 2.0 * shape.w * shape.n * f64::from(shape.module.kv_width()) / shape.t;
        let ranks = shape.c as u32;
        let bytes = passes * keys_and_values * (shape.c - 1.0);
        let collective = Collective { operation: Operation::SendReceive, bytes, ranks, ranks_per_node: 1 };
        graph.span("context ring", phase, Kernel::Collective(collective), Span::Context, Some(beside), &[]);
    }
}

/// Tokens are traded for heads, or heads for tokens: `width` values of every token. Nothing runs beside it.
fn trade(graph: &mut Builder, shape: &Shape<'_>, phase: Phase, width: f64) {
    if shape.c > 1.0 && shape.training.context_exchange == ContextExchange::AllToAll {
        let bytes = shape.w * shape.n * width / shape.t;
        let ranks = shape.c as u32;
        let collective = Collective { operation: Operation::AllToAll, bytes, ranks, ranks_per_node: 1 };
        graph.span("context all-to-all", phase, Kernel::Collective(collective), Span::Context, None, &[]);
    }
}

/// Width of queries, keys and values together, as they are traded and kept for the backward.
fn attended(shape: &Shape<'_>) -> f64 {
    queries(shape) + 2.0 * f64::from(shape.module.kv_width()) * repetition(shape)
}

/// From the normed input to the branch's output.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>, input: TensorId) -> AttentionParts {
    let w = shape.w;
    gather(graph, shape, shape.n, Phase::Forward, None);
    let qkv_product = qkv_product(shape);
    graph.run("qkv", Phase::Forward, Kernel::MatMul(qkv_product), &[input]);
    let qkv = graph.makes("qkv", attended_bytes(shape));
    rotary(graph, shape, Phase::Forward);
    trade(graph, shape, Phase::Forward, attended(shape));
    let context_bytes = w * shape.n * queries(shape) / shape.t;
    let heads = f64::from(shape.module.heads) / shape.t;
    let mut core = Vec::new();
    graph.core = true;
    let context = match shape.training.attention {
        AttentionKernel::Flash => {
            let at = graph.run("attention", Phase::Forward, Kernel::Attention(fused(shape, false)), &[qkv]);
            let context = graph.makes("context", context_bytes);
            core.push(graph.makes("softmax statistics", 4.0 * heads * shape.n));
            ring(graph, shape, Phase::Forward, 1.0, at);
            context
        }
        AttentionKernel::Unfused => {
            let elements = score_elements(shape);
            let at = graph.run("scores", Phase::Forward, Kernel::MatMul(scores(shape)), &[qkv]);
            ring(graph, shape, Phase::Forward, 1.0, at);
            graph.run("softmax", Phase::Forward, stream(StreamingClass::Softmax, 2.0 * w * elements), &[]);
            let mut probabilities = graph.makes("softmax", w * elements);
            core.push(probabilities);
            if shape.module.dropout {
                let bytes = (2.0 * w + 1.0) * elements;
                graph.run("score dropout", Phase::Forward, stream(StreamingClass::Softmax, bytes), &[probabilities]);
                core.push(graph.makes("score dropout mask", elements));
                probabilities = graph.makes("dropped scores", w * elements);
                core.push(probabilities);
            }
            graph.run("context", Phase::Forward, Kernel::MatMul(values(shape)), &[qkv, probabilities]);
            graph.makes("context", context_bytes)
        }
    };
    graph.core = false;
    trade(graph, shape, Phase::Forward, queries(shape));
    // The output of the core is kept whatever is recomputed: the projection's weight gradient reads it.
    let context = keep(graph, context);
    let projection = projection(shape);
    graph.run("projection", Phase::Forward, Kernel::MatMul(projection), &[context]);
    let output = graph.makes("attention output", w * shape.n * shape.h());
    reduce(graph, shape, shape.n, Phase::Forward, None);
    AttentionParts { output, qkv, context, core }
}

/// Selective recomputation does not drop the core's output.
fn keep(graph: &mut Builder, context: TensorId) -> TensorId {
    let first_outside = graph.graph.operators.len() as u16;
    let tensor = &mut graph.graph.tensors[usize::from(context.0)];
    // Made, for the memory scan, by the projection that follows: an operator outside the core.
    tensor.made_by = Some(first_outside);
    context
}

/// Gradients from the branch's output to the normed input.
pub(super) fn backward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    input: TensorId,
    parts: &AttentionParts,
    gradient: TensorId,
) -> TensorId {
    let w = shape.w;
    let of_context = row_backward(graph, shape, "projection", projection(shape), parts.context, gradient);
    trade(graph, shape, Phase::InputGrad, queries(shape));
    let mut reads = vec![parts.qkv, of_context];
    reads.extend(&parts.core);
    match shape.training.attention {
        AttentionKernel::Flash => {
            reads.push(parts.context);
            let at = graph.run("attention", Phase::InputGrad, Kernel::Attention(fused(shape, true)), &reads);
            let result = graph.makes("qkv gradient", attended_bytes(shape));
            ring(graph, shape, Phase::InputGrad, 2.0, at);
            finish(graph, shape, input, result)
        }
        AttentionKernel::Unfused => {
            let elements = score_elements(shape);
            let (scores, values) = (scores(shape), values(shape));
            let as_gradient = |product: MatMul| Kernel::MatMul(MatMul { product: Product::InputGrad, ..product });
            let at = graph.run("context", Phase::InputGrad, as_gradient(scores), &reads);
            let of_scores = graph.makes("score gradient", w * elements);
            ring(graph, shape, Phase::InputGrad, 2.0, at);
            graph.run("value gradient", Phase::InputGrad, as_gradient(values), &reads);
            if shape.module.dropout {
                let bytes = (2.0 * w + 1.0) * elements;
                graph.run("score dropout", Phase::InputGrad, stream(StreamingClass::Softmax, bytes), &parts.core);
            }
            let bytes = 3.0 * w * elements;
            graph.run("softmax", Phase::InputGrad, stream(StreamingClass::Softmax, bytes), &[of_scores]);
            graph.run("query gradient", Phase::InputGrad, as_gradient(values), &[of_scores, parts.qkv]);
            graph.run("key gradient", Phase::InputGrad, as_gradient(values), &[of_scores, parts.qkv]);
            let result = graph.makes("qkv gradient", attended_bytes(shape));
            finish(graph, shape, input, result)
        }
    }
}

fn finish(graph: &mut Builder, shape: &Shape<'_>, input: TensorId, qkv_gradient: TensorId) -> TensorId {
    trade(graph, shape, Phase::InputGrad, attended(shape));
    rotary(graph, shape, Phase::InputGrad);
    column_backward(graph, shape, "qkv", qkv_product(shape), input, qkv_gradient)
}

/// Rotary positions turn queries and keys in place.
fn rotary(graph: &mut Builder, shape: &Shape<'_>, phase: Phase) {
    if shape.module.learned_positions == 0 && shape.module.patch.is_none() && shape.module.audio.is_none() {
        let width = (queries(shape) + f64::from(shape.module.kv_width())) / shape.t;
        let bytes = 2.0 * shape.w * shape.n * width;
        graph.run("rotary positions", phase, stream(StreamingClass::Activation, bytes), &[]);
    }
}

/// What cross-attention leaves for its backward.
pub(super) struct CrossParts {
    stream: TensorId,
    query: TensorId,
    keys_and_values: TensorId,
    context: TensorId,
}

fn text_tokens(shape: &Shape<'_>) -> f64 {
    shape.module.diffusion.map_or(0.0, |diffusion| f64::from(diffusion.text_tokens))
}

fn cross(shape: &Shape<'_>, backward: bool) -> Attention {
    let own = fused(shape, backward);
    Attention { squared: shape.n * text_tokens(shape), causal: false, ..own }
}

fn text_product(shape: &Shape<'_>) -> MatMul {
    product(shape.items.max(1.0) * text_tokens(shape), shape.h(), 2.0 * queries(shape) / shape.t, shape.format())
}

fn query_product(shape: &Shape<'_>) -> MatMul {
    product(shape.n, shape.h(), queries(shape) / shape.t, shape.format())
}

/// Items attend to their text; a residual addition closes the branch.
pub(super) fn cross_forward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    middle: TensorId,
) -> (Option<CrossParts>, TensorId) {
    if text_tokens(shape) == 0.0 {
        return (None, middle);
    }
    let bytes = shape.w * shape.n * queries(shape) / shape.t;
    gather(graph, shape, shape.n, Phase::Forward, None);
    graph.run("cross query", Phase::Forward, Kernel::MatMul(query_product(shape)), &[middle]);
    let query = graph.makes("cross query", bytes);
    let text = text_product(shape);
    graph.run("cross keys and values", Phase::Forward, Kernel::MatMul(text), &[]);
    let keys_and_values = graph.makes("cross keys and values", shape.w * text.m * text.n);
    graph.run("cross attention", Phase::Forward, Kernel::Attention(cross(shape, false)), &[query, keys_and_values]);
    let context = graph.makes("cross context", bytes);
    graph.run("cross projection", Phase::Forward, Kernel::MatMul(projection(shape)), &[context]);
    let branch = graph.makes("cross output", shape.w * shape.n * shape.h());
    reduce(graph, shape, shape.n, Phase::Forward, None);
    let add = stream(StreamingClass::Elementwise, 3.0 * shape.stream());
    graph.run("cross residual", Phase::Forward, add, &[middle, branch]);
    let sum = graph.makes("residual stream", shape.stream());
    (Some(CrossParts { stream: middle, query, keys_and_values, context }), sum)
}

/// Gradients through cross-attention.
pub(super) fn cross_backward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    parts: Option<CrossParts>,
    gradient: TensorId,
) -> TensorId {
    let Some(parts) = parts else { return gradient };
    let of_context = row_backward(graph, shape, "cross projection", projection(shape), parts.context, gradient);
    let reads = [parts.query, parts.keys_and_values, parts.context, of_context];
    graph.run("cross attention", Phase::InputGrad, Kernel::Attention(cross(shape, true)), &reads);
    let of_query = graph.makes("query gradient", shape.w * shape.n * queries(shape) / shape.t);
    let keys_and_values = super::weight_grad(text_product(shape));
    graph.run("cross keys and values", Phase::WeightGrad, keys_and_values, &[]);
    let result = column_backward(graph, shape, "cross query", query_product(shape), parts.stream, of_query);
    let add = stream(StreamingClass::Elementwise, 3.0 * shape.stream());
    graph.run("residual gradient", Phase::InputGrad, add, &[result, gradient]);
    graph.makes("gradient", shape.stream())
}

#[cfg(test)]
mod tests {
    use super::super::{Shape, layer};
    use crate::cost::kernel::{Kernel, Operation};
    use crate::cost::load::ModuleLoad;
    use crate::training::{ContextExchange, Training};

    fn exchanges(exchange: ContextExchange, degree: u32) -> Vec<(Operation, f64)> {
        let training: Training = serde_json::from_value(serde_json::json!({
            "context_parallel": degree, "context_exchange": exchange
        }))
        .unwrap();
        let model = crate::model::presets::model("llama-3-8b").unwrap();
        let load = ModuleLoad { tokens: 8192.0, squared: 8192.0 * 8192.0, ..ModuleLoad::default() };
        let graph = layer(&Shape::new(&model.modules[0], &training, 2.0, load));
        let of = |name: &str| name.starts_with("context ");
        let collective = |kernel: &Kernel| match kernel {
            Kernel::Collective(collective) => (collective.operation, collective.bytes),
            other => panic!("{other:?}"),
        };
        graph.operators.iter().filter(|own| of(own.name)).map(|own| collective(&own.kernel)).collect()
    }

    /// Llama-3 8B: width 4,096, eight key-value heads of 128. 8,192 tokens over four ranks are 2,048; over TP 2, queries,
    /// keys and values hold 2 bytes x 2,048 x (4,096 + 2 x 1,024) / 2 = 12.58 MB and the context 2 x 2,048 x 4,096 / 2 =
    /// 8.39 MB. Forward trades the first and then the second, backward the second and then the first.
    #[test]
    fn an_all_to_all_trades_queries_keys_and_values_and_what_attention_makes() {
        let (qkv, context) = (12_582_912.0, 8_388_608.0);
        let expected = [qkv, context, context, qkv].map(|bytes| (Operation::AllToAll, bytes));
        assert_eq!(exchanges(ContextExchange::AllToAll, 4), expected);
        assert_eq!(exchanges(ContextExchange::AllToAll, 1), []);
    }

    /// Over sixteen ranks (512 tokens each) and TP 2 the eight key-value heads stand four times: queries, keys and values are 2 x 512 x
    /// (4,096 + 2 x 4 x 1,024) / 2 = 6.29 MB, the context 2 x 512 x 4,096 / 2 = 2.10 MB.
    #[test]
    fn more_ranks_than_key_value_heads_repeat_them() {
        let (qkv, context) = (6_291_456.0, 2_097_152.0);
        let expected = [qkv, context, context, qkv].map(|bytes| (Operation::AllToAll, bytes));
        assert_eq!(exchanges(ContextExchange::AllToAll, 16), expected);
    }

    /// Qwen3 4B: 32 heads of 128 beside a width of 2,560, so queries are 4,096 wide: the qkv product has 4,096 + 2 x 1,024 columns, and the projection
    /// 4,096 x 2,560.
    #[test]
    fn heads_may_be_wider_than_the_residual_stream() {
        let model = crate::model::presets::model("qwen3-vl-4b").unwrap();
        let module = model.backbone().unwrap();
        let training = Training::default();
        let shape = Shape::new(module, &training, 1.0, ModuleLoad::unpadded(1024.0, 1024.0 * 1024.0));
        let graph = layer(&shape);
        let product = |name: &str| match graph.operators.iter().find(|own| own.name == name).unwrap().kernel {
            Kernel::MatMul(product) => [product.m, product.k, product.n],
            other => panic!("{other:?}"),
        };
        assert_eq!(product("qkv").map(|of| of as u32), [1024, 2560, 6144]);
        assert_eq!(product("projection").map(|of| of as u32), [1024, 4096, 2560]);
    }

    /// Keys and values, 2 x 2 bytes x 2,048 x 1,024 / 2 = 4.19 MB, travel three hops forward.
    #[test]
    fn a_ring_hands_on_keys_and_values() {
        let found = exchanges(ContextExchange::Ring, 4);
        assert_eq!(found[0], (Operation::SendReceive, 3.0 * 4_194_304.0));
        assert!(found.iter().all(|(operation, _)| *operation == Operation::SendReceive));
        assert_eq!(exchanges(ContextExchange::Ring, 1), []);
    }
}
