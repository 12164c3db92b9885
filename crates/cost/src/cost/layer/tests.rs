mod kinds;

use super::*;
use planscope_core::cluster::presets::cluster;
use planscope_core::model::Adapters;
use planscope_core::model::presets::model;
use planscope_core::training::{Execution, Fp8Recipe, Framework, Precision};

/// Returns the costs of a Llama-3 8B layer and input block on eight H100s.
fn on_eight(overlapped: bool, gradients: Gradients) -> (LayerCost, LayerCost) {
    let training = Training { overlapped_backward: overlapped, sequence_parallel: true, ..Training::default() };
    let (model, cluster) = (model("llama-3-8b").unwrap(), cluster("h100").unwrap());
    let layers = LayerModel::new(&model.modules[0], &cluster, &training, 8).with_gradients(gradients);
    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    (layers.layer(load), layers.input(load))
}

/// Reductions overlap weight gradients, which require a second input all-gather. A frozen module
/// has no weight gradients.
#[test]
fn frozen_layer_overlaps_no_absent_operator() {
    let (hidden, _) = on_eight(true, Gradients::Inputs);
    let (open, _) = on_eight(false, Gradients::Inputs);
    assert_eq!(hidden.exposed_backward, open.exposed_backward);
    let (trained, _) = on_eight(true, Gradients::All);
    assert!(trained.exposed_backward < hidden.exposed_backward);
    // Four forward collectives and six backward collectives. Two from the six serve weight
    // gradients.
    assert!(hidden.communication.secs() < 0.85 * trained.communication.secs(), "{hidden:?} {trained:?}");
}

/// The embedding gradient waits for a sequence all-gather.
#[test]
fn gathering_for_the_embedding_is_communication() {
    let (_, input) = on_eight(true, Gradients::All);
    assert!(input.exposed_backward > Seconds::ZERO && input.exposed_backward <= input.input_grad);
}

fn costs(training: &Training, tensor: u32, load: ModuleLoad) -> (LayerCost, LayerCost) {
    let (model, cluster) = (model("llama-3-8b").unwrap(), cluster("h100").unwrap());
    let layers = LayerModel::new(&model.modules[0], &cluster, training, tensor);
    (layers.layer(load), layers.output(load))
}

/// Llama-3 8B with 8,192 tokens: every logit takes 16 bytes in nanotron and 6 in Megatron-LM, 10 x 8,192
/// x 128,256 more. The activated gate of nanotron takes 2 x 8,192 x 14,336 bytes. With TP 8, nanotron
/// stores two gathered inputs of 2 x 8,192 x 4,096 bytes instead of shards of an eighth.
#[test]
fn frameworks_store_logits_and_gathered_inputs() {
    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    let nanotron = Training { framework: Framework::Nanotron, ..Training::default() };
    let (megatron_layer, megatron_output) = costs(&Training::default(), 1, load);
    let (nanotron_layer, nanotron_output) = costs(&nanotron, 1, load);
    let logits = nanotron_output.activation - megatron_output.activation;
    assert!((logits - 10.0 * 8192.0 * 128_256.0).abs() < 1.0, "{logits}");
    let gate = 2.0 * 8192.0 * 14_336.0;
    assert!((nanotron_layer.activation - megatron_layer.activation - gate).abs() < 1.0);
    let (shards, gathered) = (costs(&Training::default(), 8, load).0, costs(&nanotron, 8, load).0);
    let inputs = gathered.activation - shards.activation;
    assert!((inputs - 2.0 * 2.0 * 8192.0 * 4096.0 * 0.875 - gate / 8.0).abs() < 1.0, "{inputs}");
}

/// Recomputation by operator is between none and full, in time and in memory. Attention is not repeated.
#[test]
fn recomputation_by_operator_is_between_none_and_full() {
    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    let layer = |recompute| costs(&Training { recompute, ..Training::default() }, 1, load).0;
    let [none, operators, full] = [Recompute::None, Recompute::Operators, Recompute::Full].map(layer);
    assert!(full.activation < operators.activation && operators.activation < 0.7 * none.activation);
    assert!(none.recomputed < operators.recomputed && operators.recomputed.secs() < 0.6 * full.recomputed.secs());
    let longer = ModuleLoad::unpadded(8192.0, 32_768.0 * 8192.0);
    let by_operator = Training { recompute: Recompute::Operators, ..Training::default() };
    assert_eq!(costs(&by_operator, 1, longer).0.recomputed, operators.recomputed);
}

/// Without balance, the last of four devices has 2 - 1/4 times the mean causal attention.
#[test]
fn an_unbalanced_ring_waits_for_its_last_device() {
    let load = ModuleLoad::unpadded(131_072.0, 131_072.0 * 131_072.0);
    let time = |context_balanced| {
        let training = Training { context_parallel: 4, context_balanced, ..Training::default() };
        costs(&training, 1, load).0.total().secs()
    };
    let ratio = time(false) / time(true);
    assert!(ratio > 1.4 && ratio < 1.75, "{ratio}");
}

/// Eager norms, rotary positions and conversions to fp8 cost time; compiled ones do not.
#[test]
fn eager_kernels_are_slower() {
    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    let time = |framework, execution, precision| {
        let training = Training { framework, execution, precision, ..Training::default() };
        costs(&training, 1, load).0.total().secs()
    };
    let bf16 = Precision::Bf16;
    let fused = time(Framework::Megatron, None, bf16);
    assert!(time(Framework::Torchtitan, None, bf16) > 1.2 * fused);
    let compiled = time(Framework::Torchtitan, Some(Execution::Compiled), bf16);
    assert!((compiled / fused - 1.0).abs() < 1e-9);
    let casts = time(Framework::Torchtitan, Some(Execution::Compiled), Precision::Fp8);
    assert!(casts > 1.05 * time(Framework::Megatron, None, Precision::Fp8));
}

/// Eight experts with six operators of 56 µs host time each run one after another, and the device waits in the forward.
#[test]
fn a_loop_over_experts_waits_for_the_host() {
    let (model, cluster) = (model("mixtral-8x7b").unwrap(), cluster("a100-80gb").unwrap());
    let load = ModuleLoad::unpadded(4096.0, 4096.0 * 4096.0);
    let layer = |framework| {
        let execution = Some(Execution::Compiled);
        let training = Training { framework, execution, recompute: Recompute::Full, ..Training::default() };
        LayerModel::new(&model.modules[0], &cluster, &training, 1).layer(load)
    };
    let (looped, together) = (layer(Framework::HuggingFace), layer(Framework::Megatron));
    let wait = (looped.forward - together.forward).secs();
    assert!((wait - 8.0 * 6.0 * 56e-6).abs() < 1e-9, "{wait}");
    let again = (looped.input_grad - together.input_grad).secs();
    assert!((again - wait).abs() < 1e-9, "{again}");
    // The backward launches the six operators again, and at least six of its own.
    assert!((looped.host_backward - together.host_backward).secs() > 7.0 * 12.0 * 56e-6);
}

/// An A100 converts about 150e9 weights of 4 bits per second, in the forward and in the backward.
#[test]
fn quantized_weights_are_converted() {
    let (mut model, cluster) = (model("llama-3-8b").unwrap(), cluster("a100-80gb").unwrap());
    let load = ModuleLoad::unpadded(2048.0, 2048.0 * 2048.0);
    let mut layer = |base_bits| {
        model.modules[0].adapters = Some(Adapters { rank: 8, mlp: true, base_bits });
        LayerModel::new(&model.modules[0], &cluster, &Training::default(), 1).layer(load)
    };
    let (whole, quantized) = (layer(None), layer(Some(4)));
    let weights = 218_112_000.0;
    for added in [quantized.forward - whole.forward, quantized.input_grad - whole.input_grad] {
        let rate = weights / added.secs();
        assert!(rate > 130e9 && rate < 170e9, "{rate:e}");
    }
}

/// Conversion costs time with scales of this step, and none with delayed scaling. The output head is in bf16.
#[test]
fn recipes_of_fp8_convert_operands() {
    let (model, cluster) = (model("llama-3-8b").unwrap(), cluster("h100").unwrap());
    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    let costs = |precision, fp8_recipe| {
        let training = Training { precision, fp8_recipe, ..Training::default() };
        let layers = LayerModel::new(&model.modules[0], &cluster, &training, 1);
        (layers.layer(load).total().secs(), layers.output(load).total().secs())
    };
    let fp8 = |recipe| costs(Precision::Fp8, Some(recipe));
    let (bf16, head) = costs(Precision::Bf16, None);
    let delayed = fp8(Fp8Recipe::Delayed);
    assert!(delayed.0 < bf16 && (delayed.1 - head).abs() < 1e-12, "{delayed:?} {bf16} {head}");
    let (tensorwise, rowwise, mxfp8) = (fp8(Fp8Recipe::Tensorwise), fp8(Fp8Recipe::Rowwise), fp8(Fp8Recipe::Mxfp8));
    assert!(delayed.0 < mxfp8.0 && mxfp8.0 < tensorwise.0 && tensorwise.0 < bf16, "{mxfp8:?} {tensorwise:?}");
    assert!(mxfp8.0 < rowwise.0 && rowwise.0 < bf16, "{rowwise:?}");
    // Of the operands of four products with 218,112,000 weights, 6 bytes per value are read and written in the forward, and
    // as many for the gradient of the output.
    let tokens = 8192.0;
    let (inputs, outputs) = (3.0 * 4096.0 + 14_336.0, 6144.0 + 4096.0 + 28_672.0 + 4096.0);
    let bytes = 6.0 * (tokens * (inputs + outputs) + 218_112_000.0);
    let rate = bytes / (tensorwise.0 - delayed.0);
    assert!(rate > 1.5e12 && rate < 3.35e12, "{rate:e}");
}

/// With TP 8 and an overlap of 1, an eighth of a collective of 1 s is exposed and the rest slows its product by 12.56 %
/// of the time in which both run. A product of 0.5 s hides only half of the collective.
#[test]
fn tensor_collectives_in_chunks_overlap_their_products() {
    let (model, cluster) = (model("llama-3-70b").unwrap(), cluster("h100").unwrap());
    let training = |tensor_overlap| Training { tensor_overlap, ..Training::default() };
    let second = Seconds::from_secs(1.0);
    let full = training(1.0);
    let layers = LayerModel::new(&model.modules[0], &cluster, &full, 8);
    let exposed = |product| layers.in_chunks(second, 8, product).secs();
    assert!((exposed(Some(second * 10.0)) - (0.125 + 0.875 * 0.1256)).abs() < 1e-9);
    assert!((exposed(Some(second * 0.5)) - (0.5 + 0.5 * 0.1256)).abs() < 1e-9);
    assert_eq!(layers.in_chunks(second, 8, None), second);

    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    let layer = |overlap, tensor| LayerModel::new(&model.modules[0], &cluster, &training(overlap), tensor).layer(load);
    let (alone, chunked) = (layer(0.0, 8), layer(1.0, 8));
    assert!(chunked.exposed_forward.secs() < 0.5 * alone.exposed_forward.secs(), "{chunked:?} {alone:?}");
    // The gathers of gradients are in chunks too. The other collectives of the backward overlap products already.
    assert!(chunked.exposed_backward < alone.exposed_backward && chunked.weight_grad == alone.weight_grad);
    assert_eq!(chunked.communication, alone.communication);
    assert_eq!(layer(1.0, 1), layer(0.0, 1));
}

/// Four units of 0.25 s: the first gather and the last reduction are exposed, the other three quarters slow the
/// computation by 12.56 %. In the backward, weights are gathered again.
#[test]
fn the_first_gather_and_the_last_reduction_are_exposed() {
    let second = Seconds::from_secs(1.0);
    let pass = LayerCost { forward: second * 10.0, input_grad: second * 20.0, ..LayerCost::default() };
    let traffic = ShardedTraffic {
        gather: second,
        gather_backward: second,
        reduce: second * 2.0,
        units: 4.0,
        ..ShardedTraffic::default()
    };
    let cost = pass.with_sharding(traffic, 1.0);
    assert!((cost.exposed_forward.secs() - (0.25 + 0.75 * 0.1256)).abs() < 1e-9, "{cost:?}");
    assert!((cost.exposed_backward.secs() - (0.5 + 2.5 * 0.1256)).abs() < 1e-9, "{cost:?}");
    let alone = pass.with_sharding(traffic, 0.0);
    assert!((alone.exposed_forward.secs() - 1.0).abs() < 1e-9 && (alone.exposed_backward.secs() - 3.0).abs() < 1e-9);
    assert_eq!(pass.with_sharding(ShardedTraffic::default(), 1.0), pass);
}

/// A loss in chunks stores no logits: 4 bytes per logit less in Megatron-LM. The logits of 8,192 tokens take 6 bytes each
/// at the peak; a chunk has as many as the input has values. Times are equal.
#[test]
fn a_loss_in_chunks_stores_no_logits() {
    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    let (whole, chunked) = (
        costs(&Training::default(), 1, load).1,
        costs(&Training { chunked_loss: true, ..Training::default() }, 1, load).1,
    );
    let logits = 8192.0 * 128_256.0;
    assert!((whole.activation - chunked.activation - 4.0 * logits).abs() < 1.0, "{whole:?} {chunked:?}");
    assert!(whole.transient - chunked.transient >= 2.0 * (logits - 8192.0 * 4096.0) - 1.0, "{whole:?} {chunked:?}");
    assert_eq!(whole.total(), chunked.total());
}
