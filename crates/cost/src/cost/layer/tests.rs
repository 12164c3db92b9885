use super::*;
use planscope_core::cluster::presets::cluster;
use planscope_core::model::presets::model;

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
