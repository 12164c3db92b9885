//! Settings of a scenario that a job cannot have as stated.

use planner::scenario::Scenario;
use planner::training::{AttentionKernel, Recompute};

/// Returns a sentence for each setting that is stated and cannot take effect. The scenario is valid nevertheless.
pub fn remarks(scenario: &Scenario) -> Vec<String> {
    let Scenario { model, cluster, training, .. } = scenario;
    let mut remarks = Vec::new();
    let layers = model.layers();
    let stated = training.recompute_layers.filter(|_| training.recompute == Recompute::Full);
    if let Some(stated) = stated.filter(|&stated| stated > layers) {
        remarks.push(format!("{stated} layers are to be recomputed, and the model has {layers}. All are recomputed."));
    }
    // Devices before Hopper have no fp8.
    if training.attention == AttentionKernel::Flash3 && cluster.device.fp8_tflops.is_none() {
        remarks.push(format!(
            "FlashAttention 3 is documented for H100 and newer devices. Its rate on {} is an assumption.",
            cluster.name
        ));
    }
    remarks
}
