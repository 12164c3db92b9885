//! Settings of a scenario that a job cannot have as stated.

use planner::cluster::presets;
use planner::scenario::Scenario;
use planner::training::{AttentionKernel, Fp8Recipe, Framework, Precision, Recompute};

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
    if training.precision == Precision::Bf16 && presets::lacks_bf16(cluster) {
        remarks.push(format!("{} has no bf16. Train in fp16, which has the same size and rate here.", cluster.name));
    }
    remarks
}

/// Returns a sentence for each reason why the framework does not start the job. The scenario is valid nevertheless.
pub fn refusals(scenario: &Scenario) -> Vec<String> {
    let Scenario { cluster, training, .. } = scenario;
    let mut refusals = Vec::new();
    if training.precision == Precision::Fp8
        && training.fp8_recipe == Some(Fp8Recipe::Mxfp8)
        && presets::lacks_mxfp8(cluster)
    {
        refusals
            .push(format!("{} has no mxfp8, which needs Blackwell or MI350. Use another fp8 recipe.", cluster.name));
    }
    let pipeline = scenario.layout.pipeline.unwrap_or(1);
    if training.framework == Framework::MegatronDeepspeed && training.zero_stage() >= 2 && pipeline > 1 {
        refusals.push(format!(
            "DeepSpeed refuses ZeRO {} with pipeline parallelism ({pipeline} stages). Use ZeRO 1 or no pipeline.",
            training.zero_stage()
        ));
    }
    if training.framework == Framework::Megatron
        && scenario.layout.chunks > Some(1)
        && let Some(microbatches) = microbatches(scenario).filter(|count| !count.is_multiple_of(pipeline.max(1)))
    {
        refusals.push(format!(
            "Megatron-LM interleaves only if the microbatches of a replica ({microbatches}) are a multiple of the stages \
             ({pipeline}). Change the batch, or leave out the virtual stages."
        ));
    }
    refusals.extend(degrees(scenario));
    refusals
}

/// Returns a sentence for each degree that no framework accepts for the model and the devices.
fn degrees(scenario: &Scenario) -> Vec<String> {
    let Scenario { model, cluster, training, layout, .. } = scenario;
    let mut refusals = Vec::new();
    if training.framework == Framework::Megatron && layout.chunks > Some(1) && layout.pipeline == Some(1) {
        refusals.push(
            "Megatron-LM interleaves only with 2 or more pipeline stages. Leave out the virtual stages.".to_owned(),
        );
    }
    let (Some(tensor), Some(pipeline)) = (layout.tensor, layout.pipeline) else { return refusals };
    let heads = model.modules.iter().map(|module| module.heads).find(|heads| !heads.is_multiple_of(tensor.max(1)));
    if let Some(heads) = heads.filter(|_| training.framework == Framework::Megatron) {
        refusals.push(format!(
            "Tensor parallelism of {tensor} does not divide the {heads} attention heads. Change the degree."
        ));
    }
    let stage = cluster.devices() / pipeline.max(1);
    let expert = training.expert_parallel.saturating_mul(training.expert_tensor(tensor));
    if training.expert_parallel > 1 && !stage.is_multiple_of(expert.max(1)) {
        refusals.push(format!(
            "The {stage} devices of a stage are no multiple of expert parallelism ({} x TP {} of the experts). Change the \
             degrees or the devices.",
            training.expert_parallel,
            training.expert_tensor(tensor)
        ));
    }
    refusals
}

/// Number of microbatches of a replica, if the degrees are fixed and divide the batch.
fn microbatches(scenario: &Scenario) -> Option<u32> {
    let layout = scenario.layout;
    let replica = layout.tensor?.checked_mul(layout.pipeline?)?.checked_mul(scenario.training.context_parallel)?;
    let replicas = (scenario.cluster.devices() / replica.max(1)).max(1);
    let sequences = replicas.checked_mul(layout.microbatch?)?;
    scenario.workload.global_batch.is_multiple_of(sequences).then(|| scenario.workload.global_batch / sequences)
}
