//! Differences between the plan and a torchtitan job.

use super::super::full_batch::FullBatch;
use super::{every, has_async_tensor, layer_counts};
use planner::model::Module;
use planner::outcome::{BatchSummary, Planned};
use planner::scenario::{PlannerKind, Scenario};
use planner::training::{ContextExchange, Execution, Fp8Recipe, Framework, Optimizer, Precision, Recompute, Training};
use planner::workload::Packing;

/// Formats the differences, one or two sentences each.
pub(super) fn notes(
    scenario: &Scenario,
    planner: PlannerKind,
    planned: &Planned,
    module: &Module,
    batches: &[BatchSummary],
) -> Vec<String> {
    let mut notes = vec![format!(
        "Choose the flavor with {} layers of hidden size {} and {} heads, vocabulary {}; [model] is not written.",
        module.layers, module.hidden, module.heads, module.vocab
    )];
    batch(scenario, planned, batches, &mut notes);
    parallelism(scenario, planner, planned, &mut notes);
    kernels(scenario, planned, &mut notes);
    activations(&scenario.training, planned, module, &mut notes);
    notes
}

fn batch(scenario: &Scenario, planned: &Planned, batches: &[BatchSummary], notes: &mut Vec<String>) {
    let workload = &scenario.workload;
    let batch = FullBatch::new(scenario, planned, batches);
    notes.extend(batch.note(scenario));
    if workload.packing == Packing::Packed {
        notes.push("Cannot express: attention that stays inside a sample; torchtitan joins documents.".to_owned());
    }
    let at_once = batch.microbatch * planned.layout.data;
    if !batch.global_batch.is_multiple_of(at_once.max(1)) {
        notes.push(format!(
            "Cannot express: a global batch of {} that microbatch x DP = {at_once} does not divide.",
            batch.global_batch
        ));
    }
}

fn parallelism(scenario: &Scenario, planner: PlannerKind, planned: &Planned, notes: &mut Vec<String>) {
    let training = &scenario.training;
    if training.zero_stage() == 1 {
        notes.push(
            "Cannot express: ZeRO-1. FSDP2 without resharding shards gradients and weights too, which needs less memory \
             and communicates more."
                .to_owned(),
        );
    }
    if training.context_parallel > 1 && training.context_exchange == ContextExchange::AllToAll {
        notes.push("Cannot express: all-to-all context parallelism; torchtitan's exchange is a ring.".to_owned());
    }
    if training.context_parallel > 1 && training.zero_stage() == 0 {
        notes.push("Cannot express: context parallelism without sharding over its devices.".to_owned());
    }
    if planned.layout.tensor > 1 && !training.sequence_parallel {
        notes.push("Cannot express: tensor parallelism without sequence parallelism.".to_owned());
    }
    if planned.layout.group.is_some() {
        notes.push("Cannot express: the number of microbatches per group of the interleaved schedule.".to_owned());
    }
    if matches!(planner, PlannerKind::Zbv | PlannerKind::InterleavedZeroBubble) && planned.layout.pipeline > 1 {
        notes.push(
            "Cannot express: the order of this plan, which follows from its stage times; torch's order is fixed. Take the \
             torch CSV for the planned order."
                .to_owned(),
        );
    }
    let context = training.context_parallel.max(1);
    let shards = training.shards(planned.layout.data.saturating_mul(context));
    if training.zero_stage() > 0 && !shards.is_multiple_of(context) {
        notes.push(format!(
            "Cannot express: sharding over {shards} devices; each group of CP {context} shares a copy, so the memory differs."
        ));
    }
    let usual = Framework::Torchtitan.tensor_overlap();
    let is_other = training.tensor_overlap > 0.0 && usual != Some(training.tensor_overlap);
    if is_other || (training.data_overlap > 0.0 && training.data_overlap < 1.0) {
        notes.push("Cannot express: the share of communication that the plan overlaps; measure it.".to_owned());
    }
    if training.precision == Precision::Fp8 {
        let recipe = training.used_recipe().map_or("", Fp8Recipe::id);
        notes.push(format!("fp8: add the float8 converter for your version of torchtitan, with scales {recipe}."));
    }
    if !training.overrides.is_empty() || !scenario.profiles.is_empty() {
        notes.push("The plan uses measured times; they change no setting.".to_owned());
    }
}

/// Appends differences of the kernels, and of the communication that torchtitan always hides.
fn kernels(scenario: &Scenario, planned: &Planned, notes: &mut Vec<String>) {
    let training = &scenario.training;
    let replicas = planned.layout.data.saturating_mul(training.context_parallel.max(1));
    if training.data_overlap <= 0.0 && replicas > 1 {
        notes.push(
            "Cannot express: data-parallel communication without overlap; torchtitan hides it behind computation, so a step \
             is faster than planned."
                .to_owned(),
        );
    }
    if training.fused_weight_gradients {
        notes.push(
            "Cannot express: weight gradients that the matrix products accumulate; torchtitan adds them in a kernel of its own."
                .to_owned(),
        );
    }
    let attention = Framework::Torchtitan.fused_attention(scenario.cluster.device.fp8_tflops.is_some());
    if training.attention != attention {
        notes.push(format!(
            "Cannot express: attention with {}; that of torchtitan is {}.",
            training.attention.title(),
            attention.title()
        ));
    }
    if training.framework != Framework::Torchtitan {
        notes.push(format!(
            "Cannot express: the kernels and the host time of {}; those of torchtitan differ.",
            training.framework.title()
        ));
    }
    match training.execution {
        Some(Execution::CudaGraph) => notes.push(
            "Cannot express: CUDA graphs. The layers are compiled, and the host launches their kernels.".to_owned(),
        ),
        None | Some(Execution::Eager) if has_async_tensor(training, planned.layout.tensor) => notes.push(
            "Asynchronous tensor parallelism needs [compile], which also fuses operators that the plan does not fuse."
                .to_owned(),
        ),
        _ => {}
    }
}

fn activations(training: &Training, planned: &Planned, module: &Module, notes: &mut Vec<String>) {
    if module.adapters.is_some() {
        notes.push("Cannot express: adapters (LoRA); all parameters are trained.".to_owned());
    }
    // The offload of all states has an option.
    let is_offloaded = training.optimizer_offload > 0.0 && !training.offloads_parameters();
    if training.optimizer != Optimizer::Adam || is_offloaded {
        notes
            .push("Cannot express: the optimizer of the plan, or its offload; AdamW on the device is used.".to_owned());
    }
    if training.chunked_loss {
        notes.push("Cannot express: the loss in chunks; the logits need more memory than planned.".to_owned());
    }
    if (training.moments, training.master_weights) != Default::default() {
        notes.push("Cannot express: the formats of master weights and moments; both are fp32.".to_owned());
    }
    if training.activation_offload > 0.0 {
        notes.push(format!(
            "Cannot express: {:.0} % of the activations in host memory, so more memory is needed.",
            100.0 * training.activation_offload
        ));
    }
    if training.recompute == Recompute::Selective {
        notes.push(
            "Selective recomputation by operator is not the recomputation of attention in the plan; compare the memory."
                .to_owned(),
        );
    }
    let counts = layer_counts(planned, module.layers).unwrap_or_default();
    if training.recompute == Recompute::Full && every(training, &counts).is_none() {
        notes.push(format!(
            "Cannot express: recomputation of {} layers per stage; all layers are recomputed.",
            training.recompute_layers.unwrap_or(0)
        ));
    }
}
