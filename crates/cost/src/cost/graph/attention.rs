//! Attention operators: projections, rotary embedding, the fused or unfused attention core, and the
//! context-parallel exchange.

use super::super::kernel::{Attention, Collective, Kernel, MatMul, Operation, Product, StreamingClass};
use super::latent::{self, LatentParts};
use super::transformer::{column_backward, gather, gathered, reduce, row_backward};
use super::{Builder, Phase, Shape, Span, TensorId, product, stream};
use planscope_core::model::Mask;
use planscope_core::training::{ContextExchange, Kernels};

/// Traffic of eager rotary positions per value of queries and keys in bytes: forward and backward.
/// Liger-Kernel measured 1.93 and 2.32 ms for 8,192 tokens with 40 heads of 256 values on an A100.
const EAGER_ROTARY: (f64, f64) = (42.0, 51.0);
/// Traffic to add the result of a block to the result of the blocks before it, in bytes: per query
/// value in the forward, per query, key and value in the backward. From the published rates of a
/// zigzag ring on eight H800 and eight A100 (ring-flash-attention; docs/models.md, section 2).
const RING_MERGE: (f64, f64) = (24.0, 10.0);

/// Forward tensors required in the backward.
pub(super) struct AttentionParts {
    pub output: TensorId,
    /// Input of the first product.
    pub input: TensorId,
    /// Input of the projection.
    pub context: TensorId,
    /// Inputs of the products for queries, keys and values and for the output, as their weight gradients read them.
    product_inputs: [TensorId; 2],
    qkv: TensorId,
    latent: Option<LatentParts>,
    /// Softmax statistics (fused), or scores and dropout masks (unfused).
    core: Vec<TensorId>,
}

/// Total width of all query heads.
fn queries(shape: &Shape<'_>) -> f64 {
    f64::from(shape.module.query_width())
}

/// Total width of all key and value heads.
fn keys_and_values(shape: &Shape<'_>) -> f64 {
    f64::from(shape.module.kv_width()) + f64::from(shape.module.value_width())
}

/// Total width of the attention output.
fn contexts(shape: &Shape<'_>) -> f64 {
    f64::from(shape.module.context_width())
}

/// Returns the replication factor for key-value heads, r = max(1, c t / a_kv). An all-to-all group
/// with more devices than key-value heads replicates them.
fn repetition(shape: &Shape<'_>) -> f64 {
    match shape.training.context_exchange {
        ContextExchange::AllToAll => (shape.c * shape.t / f64::from(shape.module.kv_heads)).max(1.0),
        ContextExchange::Ring => 1.0,
    }
}

/// Query, key and value bytes per device at the attention core.
fn qkv_bytes(shape: &Shape<'_>) -> f64 {
    shape.w * shape.n * (attended(shape) / shape.t)
}

fn qkv_product(shape: &Shape<'_>) -> MatMul {
    let width = (queries(shape) + keys_and_values(shape)) / shape.t;
    product(shape.n, shape.h(), width, shape.format())
}

fn projection(shape: &Shape<'_>) -> MatMul {
    product(shape.n, contexts(shape) / shape.t, shape.h(), shape.format())
}

/// Returns the attention of the last device of a context-parallel group relative to the mean. With a
/// causal mask and consecutive parts of a sequence, it is 2 - 1/c.
fn imbalance(shape: &Shape<'_>) -> f64 {
    let is_unequal = !shape.training.context_balanced && shape.module.mask == Mask::Causal;
    let splits_tokens = shape.training.context_exchange == ContextExchange::Ring;
    if is_unequal && splits_tokens { 2.0 - 1.0 / shape.c } else { 1.0 }
}

/// Returns the fused attention kernel for one device.
fn fused(shape: &Shape<'_>, backward: bool) -> Attention {
    let module = shape.module;
    Attention {
        tokens: shape.n,
        squared: shape.attended_squared() * imbalance(shape),
        heads: f64::from(module.heads) / shape.t,
        kv_heads: f64::from(module.kv_heads) * repetition(shape) / shape.t,
        qk_dim: f64::from(module.head_dim()),
        v_dim: f64::from(module.value_dim()),
        causal: module.mask == Mask::Causal,
        backward,
    }
}

/// Returns the unfused score product, batched by head and sequence.
fn scores(shape: &Shape<'_>) -> MatMul {
    let heads = f64::from(shape.module.heads) / shape.t;
    let batch = heads * shape.n / shape.length.max(1.0);
    let dim = f64::from(shape.module.head_dim());
    MatMul { batch, m: shape.length, k: dim, n: shape.length, product: Product::Forward, format: shape.format() }
}

/// Returns the product scores x values. All other backward products except one have this shape or
/// its transpose.
fn values(shape: &Shape<'_>) -> MatMul {
    let scores = scores(shape);
    MatMul { k: scores.n, n: f64::from(shape.module.value_dim()), ..scores }
}

/// Number of stored attention scores.
fn score_elements(shape: &Shape<'_>) -> f64 {
    f64::from(shape.module.heads) / shape.t * shape.squared
}

/// Adds the ring exchange for keys and values, which overlaps the attention operator
/// `overlapped_with`, and the merge of the results after each hop.
fn ring(graph: &mut Builder, shape: &Shape<'_>, phase: Phase, passes: f64, overlapped_with: u16) {
    if shape.c > 1.0 && shape.training.context_exchange == ContextExchange::Ring {
        let ranks = shape.c as u32;
        let bytes = passes * shape.w * shape.n * keys_and_values(shape) / shape.t * (shape.c - 1.0);
        let collective = Collective { operation: Operation::SendReceive, bytes, ranks, ranks_per_node: 1 };
        graph.span("context ring", phase, Kernel::Collective(collective), Span::Context, Some(overlapped_with), &[]);
        let merged = match phase {
            Phase::Forward => RING_MERGE.0 * contexts(shape),
            _ => RING_MERGE.1 * (queries(shape) + keys_and_values(shape)),
        };
        let bytes = merged * shape.n / shape.t * (shape.c - 1.0);
        graph.run("merge ring blocks", phase, stream(StreamingClass::Elementwise, bytes), &[]);
    }
}

/// Adds an all-to-all that exchanges a token split for a head split, or the inverse, with `width`
/// values per token. No operator overlaps it.
fn all_to_all(graph: &mut Builder, shape: &Shape<'_>, phase: Phase, width: f64) {
    if shape.c > 1.0 && shape.training.context_exchange == ContextExchange::AllToAll {
        let bytes = shape.w * shape.n * width / shape.t;
        let ranks = shape.c as u32;
        let collective = Collective { operation: Operation::AllToAll, bytes, ranks, ranks_per_node: 1 };
        graph.span("context all-to-all", phase, Kernel::Collective(collective), Span::Context, None, &[]);
    }
}

/// Combined width of queries, keys and values, as exchanged and as stored for the backward.
fn attended(shape: &Shape<'_>) -> f64 {
    queries(shape) + keys_and_values(shape) * repetition(shape)
}

/// Adds the operators from the normalized input to the branch output.
pub(super) fn forward(graph: &mut Builder, shape: &Shape<'_>, input: TensorId) -> AttentionParts {
    let w = shape.w;
    let (input, latent) = if let Some(ranks) = shape.module.latent {
        (input, Some(latent::forward(graph, shape, ranks, input)))
    } else {
        let input = gathered(graph, shape, input, shape.n);
        graph.run("qkv", Phase::Forward, Kernel::MatMul(qkv_product(shape)), &[input]);
        (input, None)
    };
    let qkv = graph.makes("qkv", qkv_bytes(shape));
    rotary(graph, shape, Phase::Forward);
    all_to_all(graph, shape, Phase::Forward, attended(shape));
    let context_bytes = w * shape.n * contexts(shape) / shape.t;
    let heads = f64::from(shape.module.heads) / shape.t;
    let mut core = Vec::new();
    graph.core = true;
    let context = if shape.training.attention.is_fused() {
        let at = graph.run("attention", Phase::Forward, Kernel::Attention(fused(shape, false)), &[qkv]);
        let context = graph.makes("context", context_bytes);
        core.push(graph.makes("softmax statistics", 4.0 * heads * shape.n));
        ring(graph, shape, Phase::Forward, 1.0, at);
        context
    } else {
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
    };
    graph.core = false;
    all_to_all(graph, shape, Phase::Forward, contexts(shape));
    // Recomputation never drops the core output, because the projection's weight gradient requires
    // it.
    let context = keep(graph, context);
    let product_inputs = [input, context].map(|tensor| graph.product_input(shape, tensor));
    let projection = projection(shape);
    graph.run("projection", Phase::Forward, Kernel::MatMul(projection), &[context]);
    let output = graph.makes("attention output", w * shape.n * shape.h());
    reduce(graph, shape, shape.n, Phase::Forward, None);
    AttentionParts { output, input, context, product_inputs, qkv, latent, core }
}

/// Excludes the core output from selective recomputation.
fn keep(graph: &mut Builder, context: TensorId) -> TensorId {
    let first_outside = graph.graph.operators.len() as u16;
    let tensor = &mut graph.graph.tensors[usize::from(context.0)];
    // Register the next operator (the projection) as the producer. It is outside the core, so the
    // tensor stays stored.
    tensor.producer = Some(first_outside);
    context
}

/// Adds the gradient operators from the branch output to the normalized input.
pub(super) fn backward(graph: &mut Builder, shape: &Shape<'_>, parts: &AttentionParts, gradient: TensorId) -> TensorId {
    let w = shape.w;
    let context_gradient =
        row_backward(graph, shape, "projection", projection(shape), parts.product_inputs[1], gradient);
    all_to_all(graph, shape, Phase::InputGrad, contexts(shape));
    let mut reads = vec![parts.qkv, context_gradient];
    reads.extend(&parts.core);
    if shape.training.attention.is_fused() {
        reads.push(parts.context);
        let at = graph.run("attention", Phase::InputGrad, Kernel::Attention(fused(shape, true)), &reads);
        let result = graph.makes("qkv gradient", qkv_bytes(shape));
        ring(graph, shape, Phase::InputGrad, 2.0, at);
        finish(graph, shape, parts, result)
    } else {
        let elements = score_elements(shape);
        let (scores, values) = (scores(shape), values(shape));
        let as_gradient = |product: MatMul| Kernel::MatMul(MatMul { product: Product::InputGrad, ..product });
        let at = graph.run("context", Phase::InputGrad, as_gradient(scores), &reads);
        let score_gradient = graph.makes("score gradient", w * elements);
        ring(graph, shape, Phase::InputGrad, 2.0, at);
        graph.run("value gradient", Phase::InputGrad, as_gradient(values), &reads);
        if shape.module.dropout {
            let bytes = (2.0 * w + 1.0) * elements;
            graph.run("score dropout", Phase::InputGrad, stream(StreamingClass::Softmax, bytes), &parts.core);
        }
        let bytes = 3.0 * w * elements;
        graph.run("softmax", Phase::InputGrad, stream(StreamingClass::Softmax, bytes), &[score_gradient]);
        graph.run("query gradient", Phase::InputGrad, as_gradient(values), &[score_gradient, parts.qkv]);
        graph.run("key gradient", Phase::InputGrad, as_gradient(values), &[score_gradient, parts.qkv]);
        let result = graph.makes("qkv gradient", qkv_bytes(shape));
        finish(graph, shape, parts, result)
    }
}

fn finish(graph: &mut Builder, shape: &Shape<'_>, parts: &AttentionParts, qkv_gradient: TensorId) -> TensorId {
    all_to_all(graph, shape, Phase::InputGrad, attended(shape));
    rotary(graph, shape, Phase::InputGrad);
    match &parts.latent {
        Some(latent) => latent::backward(graph, shape, latent, qkv_gradient),
        None => column_backward(graph, shape, "qkv", qkv_product(shape), parts.product_inputs[0], qkv_gradient),
    }
}

/// Adds the rotary embedding, applied in place to queries and keys.
fn rotary(graph: &mut Builder, shape: &Shape<'_>, phase: Phase) {
    if shape.module.learned_positions == 0 && shape.module.patch.is_none() && shape.module.audio.is_none() {
        let width = match shape.module.latent {
            // One key with positions for all heads.
            Some(latent) => f64::from(latent.rotary_size) * (f64::from(shape.module.heads) / shape.t + 1.0),
            None => (queries(shape) + f64::from(shape.module.kv_width())) / shape.t,
        };
        let bytes = match (shape.training.profile().rotary, phase) {
            (Kernels::Fused, _) => 2.0 * shape.w * shape.n * width,
            (Kernels::Eager, Phase::Forward) => EAGER_ROTARY.0 * shape.n * width,
            (Kernels::Eager, _) => EAGER_ROTARY.1 * shape.n * width,
        };
        graph.run("rotary positions", phase, stream(StreamingClass::Activation, bytes), &[]);
    }
}

/// Cross-attention tensors required in the backward.
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
    let self_attention = fused(shape, backward);
    Attention { squared: shape.n * text_tokens(shape), causal: false, ..self_attention }
}

fn text_product(shape: &Shape<'_>) -> MatMul {
    product(shape.items.max(1.0) * text_tokens(shape), shape.h(), 2.0 * queries(shape) / shape.t, shape.format())
}

fn query_product(shape: &Shape<'_>) -> MatMul {
    product(shape.n, shape.h(), queries(shape) / shape.t, shape.format())
}

/// Adds cross-attention from items to their text, followed by a residual addition.
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

/// Adds the gradient operators for cross-attention.
pub(super) fn cross_backward(
    graph: &mut Builder,
    shape: &Shape<'_>,
    parts: Option<&CrossParts>,
    gradient: TensorId,
) -> TensorId {
    let Some(parts) = parts else { return gradient };
    let context_gradient = row_backward(graph, shape, "cross projection", projection(shape), parts.context, gradient);
    let reads = [parts.query, parts.keys_and_values, parts.context, context_gradient];
    graph.run("cross attention", Phase::InputGrad, Kernel::Attention(cross(shape, true)), &reads);
    let query_gradient = graph.makes("query gradient", shape.w * shape.n * queries(shape) / shape.t);
    let keys_and_values = super::weight_grad(text_product(shape));
    graph.run("cross keys and values", Phase::WeightGrad, keys_and_values, &[]);
    let result = column_backward(graph, shape, "cross query", query_product(shape), parts.stream, query_gradient);
    let add = stream(StreamingClass::Elementwise, 3.0 * shape.stream());
    graph.run("residual gradient", Phase::InputGrad, add, &[result, gradient]);
    graph.makes("gradient", shape.stream())
}

#[cfg(test)]
mod tests {
    use super::super::{Phase, Shape, layer};
    use crate::cost::kernel::{Kernel, Operation};
    use crate::cost::load::ModuleLoad;
    use crate::cost::operator::Rates;
    use planscope_core::training::{AttentionKernel, ContextExchange, Training};

    fn exchanges(exchange: ContextExchange, degree: u32) -> Vec<(Operation, f64)> {
        let training: Training = serde_json::from_value(serde_json::json!({
            "context_parallel": degree, "context_exchange": exchange
        }))
        .unwrap();
        let model = planscope_core::model::presets::model("llama-3-8b").unwrap();
        let load = ModuleLoad { tokens: 8192.0, squared: 8192.0 * 8192.0, ..ModuleLoad::default() };
        let graph = layer(&Shape::new(&model.modules[0], &training, 2.0, load));
        let is_exchange = |name: &str| name.starts_with("context ");
        let collective = |kernel: &Kernel| match kernel {
            Kernel::Collective(collective) => (collective.operation, collective.bytes),
            other => panic!("{other:?}"),
        };
        graph
            .operators
            .iter()
            .filter(|operator| is_exchange(operator.name))
            .map(|exchange| collective(&exchange.kernel))
            .collect()
    }

    /// Llama-3 8B: hidden size 4,096 and eight key-value heads with size 128. With CP 4, a rank
    /// holds 2,048 out of 8,192 tokens. For TP 2, queries, keys and values take 2 bytes x 2,048 x
    /// (4,096 + 2 x 1,024) / 2 = 12.58 MB, and the context takes 2 x 2,048 x 4,096 / 2 = 8.39 MB.
    /// The forward exchanges QKV, then the context. The backward exchanges the context, then QKV.
    #[test]
    fn all_to_all_exchanges_qkv_and_the_attention_context() {
        let (qkv, context) = (12_582_912.0, 8_388_608.0);
        let expected = [qkv, context, context, qkv].map(|bytes| (Operation::AllToAll, bytes));
        assert_eq!(exchanges(ContextExchange::AllToAll, 4), expected);
        assert_eq!(exchanges(ContextExchange::AllToAll, 1), []);
    }

    /// With sixteen ranks (512 tokens each) and TP 2, the eight key-value heads are replicated four
    /// times. Queries, keys and values take 2 x 512 x (4,096 + 2 x 4 x 1,024) / 2 = 6.29 MB, the
    /// context takes 2 x 512 x 4,096 / 2 = 2.10 MB.
    #[test]
    fn more_ranks_than_key_value_heads_repeat_them() {
        let (qkv, context) = (6_291_456.0, 2_097_152.0);
        let expected = [qkv, context, context, qkv].map(|bytes| (Operation::AllToAll, bytes));
        assert_eq!(exchanges(ContextExchange::AllToAll, 16), expected);
    }

    /// Qwen3 4B has 32 heads with size 128 and a hidden size of 2,560. The query width is 4,096:
    /// the qkv product has 4,096 + 2 x 1,024 columns, and the projection is 4,096 x 2,560.
    #[test]
    fn heads_may_be_wider_than_the_residual_stream() {
        let model = planscope_core::model::presets::model("qwen3-vl-4b").unwrap();
        let module = model.backbone().unwrap();
        let training = Training::default();
        let shape = Shape::new(module, &training, 1.0, ModuleLoad::unpadded(1024.0, 1024.0 * 1024.0));
        let graph = layer(&shape);
        let product = |name: &str| match graph.operators.iter().find(|operator| operator.name == name).unwrap().kernel {
            Kernel::MatMul(product) => [product.m, product.k, product.n],
            other => panic!("{other:?}"),
        };
        assert_eq!(product("qkv").map(|size| size as u32), [1024, 2560, 6144]);
        assert_eq!(product("projection").map(|dimension| dimension as u32), [1024, 4096, 2560]);
    }

    /// Keys and values take 2 x 2 bytes x 2,048 x 1,024 / 2 = 4.19 MB and make three hops in the
    /// forward.
    #[test]
    fn a_ring_hands_on_keys_and_values() {
        let found = exchanges(ContextExchange::Ring, 4);
        assert_eq!(found[0], (Operation::SendReceive, 3.0 * 4_194_304.0));
        assert!(found.iter().all(|(operation, _)| *operation == Operation::SendReceive));
        assert_eq!(exchanges(ContextExchange::Ring, 1), []);
    }

    /// ring-flash-attention measured a zigzag ring of eight devices with 8,192 tokens each. Relative
    /// to the kernel on one device, the forward takes 1.17 times (H800) and 1.22 times (A100) as long,
    /// forward and backward take 1.11 times as long.
    #[test]
    fn a_ring_is_slower_than_its_kernel() {
        let model = planscope_core::model::presets::model("llama-2-7b").unwrap();
        let module = model.backbone().unwrap();
        for cluster in ["h800", "a100-80gb"] {
            let cluster = planscope_core::cluster::presets::cluster(cluster).unwrap();
            let times = |phases: &[Phase], name: &str| -> f64 {
                let kernels = Training { attention: AttentionKernel::Flash2, ..Training::default() };
                let training = Training { context_parallel: 8, ..kernels };
                let load = ModuleLoad::unpadded(65_536.0, 65_536.0 * 65_536.0);
                let graph = layer(&Shape::new(module, &training, 1.0, load));
                let rates = Rates::for_training(&cluster.device, &training);
                let operators = graph.operators.iter().filter(|it| it.name == name && phases.contains(&it.phase));
                operators.map(|operator| rates.time(&operator.kernel).secs()).sum()
            };
            let ratio = |phases: &[Phase]| 1.0 + times(phases, "merge ring blocks") / times(phases, "attention");
            let (forward, both) = (ratio(&[Phase::Forward]), ratio(&[Phase::Forward, Phase::InputGrad]));
            assert!((1.12..1.26).contains(&forward), "{forward}");
            assert!((1.07..1.15).contains(&both), "{both}");
        }
    }
}
