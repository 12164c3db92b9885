use super::*;
use crate::cluster::presets::cluster;
use crate::model::presets::model;

/// What a layer, and what stands before the first one, of Llama-3 8B cost on eight H100s.
fn on_eight(overlapped: bool, gradients: Gradients) -> (LayerCost, LayerCost) {
    let training = Training { overlapped_backward: overlapped, sequence_parallel: true, ..Training::default() };
    let (model, cluster) = (model("llama-3-8b").unwrap(), cluster("h100").unwrap());
    let layers = LayerModel::new(&model.modules[0], &cluster, &training, 8).with_gradients(gradients);
    let load = ModuleLoad::unpadded(8192.0, 8192.0 * 8192.0);
    (layers.layer(load), layers.input(load))
}

/// Reductions hide behind gradients of weights, for which inputs are gathered once more. Where a module is frozen there are none.
#[test]
fn a_frozen_layer_hides_nothing_behind_what_does_not_run() {
    let (hidden, _) = on_eight(true, Gradients::Inputs);
    let (open, _) = on_eight(false, Gradients::Inputs);
    assert_eq!(hidden.exposed_backward, open.exposed_backward);
    let (trained, _) = on_eight(true, Gradients::All);
    assert!(trained.exposed_backward < hidden.exposed_backward);
    // Four collectives of the forward and six of the backward; two of the six are for weights.
    assert!(hidden.communication.secs() < 0.85 * trained.communication.secs(), "{hidden:?} {trained:?}");
}

/// The sequence is gathered for the gradient of the embedding, which waits for it.
#[test]
fn gathering_for_the_embedding_is_communication() {
    let (_, input) = on_eight(true, Gradients::All);
    assert!(input.exposed_backward > Seconds::ZERO && input.exposed_backward <= input.input_grad);
}
