//! Input and output blocks: operators before the first and after the last layer of a module.

use super::super::kernel::{Kernel, MatMul, Operation, StreamingClass};
use super::transformer::norm_kernel;
use super::{Builder, OperatorGraph, Phase, Shape, TensorId, input_grad, product, stream, weight_grad};
use planscope_core::training::Kernels;

/// Builds the input block: token embedding, patch projection for images or video, or convolutions
/// over a spectrogram.
pub fn input(shape: &Shape<'_>) -> OperatorGraph {
    let mut graph = Builder::new();
    let (n, h, w) = (shape.n, shape.h(), shape.w);
    let products = input_products(shape);
    let mut tensors = Vec::new();
    for &product in &products {
        let reads: Vec<_> = tensors.last().copied().into_iter().collect();
        graph.run("item projection", Phase::Forward, Kernel::MatMul(product), &reads);
        tensors.push(graph.makes("projected", w * product.m * product.n));
    }
    if products.is_empty() {
        let bytes = 2.0 * w * n * h / shape.t;
        graph.run("embedding", Phase::Forward, stream(StreamingClass::Embedding, bytes), &[]);
    }
    super::transformer::reduce(&mut graph, shape, n, Phase::Forward, None);
    let mask = if shape.module.dropout {
        let bytes = 2.0 * shape.stream() + n * h / shape.split();
        graph.run("embedding dropout", Phase::Forward, stream(StreamingClass::Elementwise, bytes), &[]);
        Some(graph.makes("dropout mask", n * h / shape.split()))
    } else {
        None
    };
    graph.turn();
    if let Some(mask) = mask {
        let bytes = 2.0 * shape.stream() + n * h / shape.split();
        graph.run("embedding dropout", Phase::WeightGrad, stream(StreamingClass::Elementwise, bytes), &[mask]);
    }
    super::transformer::gather(&mut graph, shape, n, Phase::InputGrad, None);
    for (index, &product) in products.iter().enumerate().rev() {
        // Convolution 0 reads data and needs no input gradient.
        if index > 0 {
            graph.run("item projection", Phase::InputGrad, input_grad(product), &[]);
        }
        let reads = if index > 0 { &tensors[index - 1..index] } else { &[] };
        graph.run("item projection", Phase::WeightGrad, weight_grad(product), reads);
    }
    if products.is_empty() {
        let bytes = 3.0 * w * n * h / shape.t;
        graph.run("embedding", Phase::WeightGrad, stream(StreamingClass::Embedding, bytes), &[]);
    }
    graph.graph
}

fn input_products(shape: &Shape<'_>) -> Vec<MatMul> {
    let (n, h) = (shape.n, shape.h());
    let columns = h / shape.t;
    if let Some(patch) = shape.module.patch {
        let edge = f64::from(patch.patch_px);
        return vec![product(n, 3.0 * edge * edge, columns, shape.wide_format())];
    }
    if let Some(video) = shape.module.video {
        return vec![product(n, f64::from(video.values_per_token), columns, shape.wide_format())];
    }
    if let Some(audio) = shape.module.audio {
        // Kernel width three. Convolution 1 has stride two, so convolution 0 has 2 n frames.
        let frames = 2.0 * n;
        return vec![
            product(frames, 3.0 * f64::from(audio.mel_bins), columns, shape.wide_format()),
            product(n, 3.0 * h, columns, shape.wide_format()),
        ];
    }
    Vec::new()
}

/// Builds the output block: final norm, output head and loss for modules with a vocabulary and a
/// head, patch merging for modules with a projection.
pub fn output(shape: &Shape<'_>) -> OperatorGraph {
    let mut graph = Builder::new();
    let (n, h, w) = (shape.n, shape.h(), shape.w);
    let x = graph.given("input", shape.stream());
    graph.run("final norm", Phase::Forward, norm_kernel(shape, Phase::Forward), &[x]);
    let v = f64::from(shape.module.predicted()) / shape.t;
    let normed = graph.makes("normed", shape.stream());
    // Pairs (product, input). DeepStack projectors use inner layer outputs, with the same size as
    // the final output.
    let mut projected = Vec::new();
    for _ in 0..shape.module.projectors() {
        let mut input = normed;
        for projection in projections(shape) {
            projected.push((projection, input));
            graph.run("merge and project", Phase::Forward, Kernel::MatMul(projection), &[input]);
            let bytes = w * projection.m * projection.n;
            graph.run("activation", Phase::Forward, stream(StreamingClass::Activation, 2.0 * bytes), &[]);
            input = graph.makes("projected", bytes);
        }
    }
    let logits = (v > 0.0).then(|| {
        super::transformer::gather(&mut graph, shape, n, Phase::Forward, None);
        graph.run("output head", Phase::Forward, Kernel::MatMul(product(n, h, v, shape.wide_format())), &[normed]);
        loss_forward(&mut graph, shape, v)
    });
    graph.turn();
    if let Some(logits) = logits {
        let read: &[TensorId] = if shape.training.chunked_loss { &[] } else { &[logits] };
        graph.run("loss", Phase::InputGrad, stream(StreamingClass::Loss, loss_bytes(shape).1 * n * v), read);
        let gradient = graph.makes("logit gradient", w * n * v * chunk(shape, v));
        let head = product(n, h, v, shape.wide_format());
        let is_overlapped = shape.training.overlapped_backward;
        let at = graph.run("output head", Phase::InputGrad, input_grad(head), &[gradient]);
        graph.makes("gradient", w * n * h);
        super::transformer::gather_again(&mut graph, shape, n, is_overlapped.then_some(at));
        let at = graph.run("output head", Phase::WeightGrad, weight_grad(head), &[normed, gradient]);
        super::transformer::reduce(&mut graph, shape, n, Phase::InputGrad, is_overlapped.then_some(at));
    }
    for &(projection, input) in projected.iter().rev() {
        let bytes = 3.0 * w * projection.m * projection.n;
        graph.run("activation", Phase::InputGrad, stream(StreamingClass::Activation, bytes), &[]);
        graph.run("merge and project", Phase::InputGrad, input_grad(projection), &[]);
        graph.run("merge and project", Phase::WeightGrad, weight_grad(projection), &[input]);
    }
    graph.run("final norm", Phase::InputGrad, norm_kernel(shape, Phase::InputGrad), &[x]);
    graph.graph
}

/// Runs the loss on `v` logits per token and returns the logits.
fn loss_forward(graph: &mut Builder, shape: &Shape<'_>, v: f64) -> TensorId {
    let n = shape.n;
    let (forward, _) = loss_bytes(shape);
    graph.run("loss", Phase::Forward, stream(StreamingClass::Loss, forward * n * v), &[]);
    graph.tensor_collective(shape, "sum over vocabulary", Phase::Forward, Operation::AllReduce, 12.0 * n, None);
    // The logit gradient in bf16 is part of the peak.
    graph.makes("logits", (shape.training.profile().logit_bytes - 2.0) * n * v * chunk(shape, v))
}

/// Returns the share of the tokens whose logits are in memory at a time. The logits of a chunk have the size of
/// the input, as in Liger-Kernel.
fn chunk(shape: &Shape<'_>, v: f64) -> f64 {
    if shape.training.chunked_loss { (shape.h() / v).min(1.0) } else { 1.0 }
}

/// Builds the loss, which is part of the output block.
pub fn loss(shape: &Shape<'_>) -> OperatorGraph {
    let mut graph = Builder::new();
    let v = f64::from(shape.module.predicted()) / shape.t;
    if v > 0.0 {
        let logits = loss_forward(&mut graph, shape, v);
        graph.turn();
        let bytes = loss_bytes(shape).1 * shape.n * v;
        graph.run("loss", Phase::InputGrad, stream(StreamingClass::Loss, bytes), &[logits]);
        graph.makes("logit gradient", shape.w * shape.n * v);
    } else {
        graph.turn();
    }
    graph.graph
}

/// Builds the operators before a layer of multi-token prediction: norms of the last stream and of
/// the embedding of the next token, and the projection of both to one stream.
pub fn prediction(shape: &Shape<'_>) -> OperatorGraph {
    let mut graph = Builder::new();
    let x = graph.given("input", shape.stream());
    let norms = |graph: &mut Builder, phase| {
        for _ in 0..2 {
            graph.run("prediction norm", phase, norm_kernel(shape, phase), &[x]);
        }
    };
    let projection = product(shape.n / shape.split(), 2.0 * shape.h(), shape.h(), shape.wide_format());
    norms(&mut graph, Phase::Forward);
    let both = graph.makes("two streams", 2.0 * shape.stream());
    graph.run("prediction projection", Phase::Forward, Kernel::MatMul(projection), &[both]);
    graph.turn();
    graph.run("prediction projection", Phase::InputGrad, input_grad(projection), &[]);
    graph.run("prediction projection", Phase::WeightGrad, weight_grad(projection), &[both]);
    norms(&mut graph, Phase::InputGrad);
    graph.graph
}

/// Returns the traffic of the cross entropy per logit in bytes, forward and backward.
///
/// Fused: conversion to fp32, maximum, exponentials, sum and quotient in 15 passes of two bytes.
/// Eager: Liger-Kernel measured 20.7 and 39.7 ms for 16,384 tokens and 131,072 words in fp32 on an
/// A100; the conversions from and to bf16 take 6 bytes each.
fn loss_bytes(shape: &Shape<'_>) -> (f64, f64) {
    match shape.training.profile().loss {
        Kernels::Fused => (30.0, 14.0),
        Kernels::Eager => (22.0, 36.0),
    }
}

/// Returns the products that project merged patches to the backbone width: those of an MLP, or one for averaged patches.
fn projections(shape: &Shape<'_>) -> Vec<MatMul> {
    let Some(width) = shape.module.patch.and_then(|patch| patch.projected_width) else { return Vec::new() };
    let merged = f64::from(shape.module.merged_patches());
    let rows = shape.n / merged;
    if shape.module.pools_patches() {
        return vec![product(rows, shape.h(), f64::from(width) / shape.t, shape.wide_format())];
    }
    let input = merged * shape.h();
    let inner = shape.module.patch.and_then(|patch| patch.inner_width).map_or(input, f64::from);
    vec![
        product(rows, input, inner / shape.t, shape.wide_format()),
        product(rows, inner / shape.t, f64::from(width), shape.wide_format()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::ModuleLoad;
    use planscope_core::model::presets::model;
    use planscope_core::training::Training;

    #[test]
    fn a_text_encoder_scores_no_vocabulary() {
        let training = Training::default();
        let load = ModuleLoad::unpadded(2048.0, 2048.0 * 2048.0);
        let names = |headless| {
            let mut module = model("llama-3-8b").unwrap().modules.remove(0);
            module.headless = headless;
            let graph = output(&Shape::new(&module, &training, 4.0, load));
            graph.operators.iter().map(|operator| operator.name).collect::<Vec<_>>()
        };
        assert!(names(false).contains(&"output head") && names(false).contains(&"loss"));
        assert_eq!(names(true), ["final norm", "final norm"], "forward and backward");
    }

    /// A projector has two forward and four backward products. DeepStack adds three such
    /// projectors.
    #[test]
    fn deepstack_projects_as_often_as_it_has_mergers() {
        let count = |id: &str| {
            let module = model(id).unwrap().modules.remove(0);
            let load = ModuleLoad { items: 1.0, ..ModuleLoad::unpadded(784.0, 784.0 * 784.0) };
            let graph = output(&Shape::new(&module, &Training::default(), 1.0, load));
            graph.operators.iter().filter(|operator| operator.name == "merge and project").count()
        };
        assert_eq!((count("qwen3-vl-2b-without-deepstack"), count("qwen3-vl-2b")), (6, 24));
    }

    /// 16 s at 512 tokens per second, 64 values per token: the product is (8192 x 64)(64 x h/t).
    #[test]
    fn video_enters_by_a_latent_projection() {
        let module = &model("dit-5b").unwrap().modules[0];
        let load = ModuleLoad { items: 1.0, ..ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0) };
        let products = input_products(&Shape::new(module, &Training::default(), 4.0, load));
        let format = products[0].format;
        assert_eq!(products, [product(8192.0, 64.0, 896.0, format)]);
    }
}
