//! Exports a plan as sections of a torchtitan job file.
//!
//! torchtitan trains one language model with the schedules of torch.distributed.pipelining. The file has the settings
//! that the plan determines; comments name what it cannot express.

mod notes;

use std::fmt::Write as _;

use super::full_batch::FullBatch;

use planner::model::ModuleRole;
use planner::outcome::{BatchSummary, Planned, layer_counts};
use planner::scenario::{PlannerKind, Scenario};
use planner::training::{Execution, Precision, Recompute, Training};

/// Reason why a plan cannot be exported.
pub(crate) type Refusal = &'static str;

/// Returns torch's name of the planner's schedule.
pub(crate) const fn schedule_name(planner: PlannerKind) -> Option<&'static str> {
    match planner {
        PlannerKind::Gpipe => Some("GPipe"),
        PlannerKind::OneFOneB => Some("1F1B"),
        PlannerKind::Interleaved => Some("Interleaved1F1B"),
        PlannerKind::LoopedBfs => Some("LoopedBFS"),
        PlannerKind::InterleavedZeroBubble => Some("InterleavedZeroBubble"),
        PlannerKind::Zbv => Some("ZBVZeroBubble"),
        _ => None,
    }
}

/// Formats the sections `training`, `parallelism`, `activation_checkpoint` and `compile`.
pub(crate) fn job_file(
    scenario: &Scenario,
    planner: PlannerKind,
    planned: &Planned,
    batches: &[BatchSummary],
) -> Result<String, Refusal> {
    // The best plan is the plan of another planner, and free settings have the values of the plan.
    let planner = planned.source.unwrap_or(planner);
    let chosen = planned.settings.map(|settings| scenario.with_settings(&settings));
    let scenario = chosen.as_ref().unwrap_or(scenario);
    let Some(schedule) = schedule_name(planner) else {
        return Err("torch has no such schedule: take the torch CSV or the execution plan");
    };
    let [module] = scenario.model.modules.as_slice() else {
        return Err("the model has more than one module; torchtitan's pipeline trains one language model");
    };
    if module.role != ModuleRole::Backbone {
        return Err("the model has no language model, and torchtitan's pipeline trains nothing else");
    }
    let counts = layer_counts(planned, module.layers).ok_or("the layers of the stages are not in order")?;
    let (layout, training) = (&planned.layout, &scenario.training);
    let mut text = format!(
        "# {} on {} devices: a plan of {} by Planscope, for torchtitan.\n# Model, data, optimizer and checkpoints are your \
         own. Planned: {:.4} s an iteration.\n",
        scenario.model.name.replace(['\n', '\r'], " "),
        scenario.cluster.devices(),
        planner.title_with(planned.layout.pipeline),
        planned.metrics.iteration_s
    );
    for note in notes::notes(scenario, planner, planned, module, batches) {
        let _ = writeln!(text, "# {note}");
    }
    let is_pipeline = layout.pipeline > 1;
    let batch = FullBatch::new(scenario, planned, batches);
    // A pipeline divides the local batch into microbatches. Without one, gradients are accumulated.
    let local = if is_pipeline { batch.global_batch / layout.data.max(1) } else { batch.microbatch };
    let precision = if training.precision == Precision::Fp32 { "float32" } else { "bfloat16" };
    let _ = write!(
        text,
        "\n[training]\nseq_len = {}\nlocal_batch_size = {local}\nglobal_batch_size = {}\nmixed_precision_param = \
         \"{precision}\"\n",
        scenario.workload.context_length, batch.global_batch
    );
    if training.offloads_parameters() {
        text.push_str("enable_cpu_offload = true\n");
    }
    let context = training.context_parallel.max(1);
    let (replicated, sharded) = match training.shards(layout.data.saturating_mul(context)) {
        _ if training.zero_stage() == 0 => (layout.data, 1),
        shards if shards.is_multiple_of(context) => (layout.data * context / shards, shards / context),
        // The devices of a context-parallel group share a copy in torchtitan. A note says so.
        _ => (layout.data, 1),
    };
    let reshards = if training.zero_stage() == 3 { "always" } else { "never" };
    let _ = write!(
        text,
        "\n[parallelism]\ndata_parallel_replicate_degree = {replicated}\ndata_parallel_shard_degree = {sharded}\n\
         fsdp_reshard_after_forward = \"{reshards}\"\ntensor_parallel_degree = {}\ncontext_parallel_degree = {}\n",
        layout.tensor, training.context_parallel
    );
    if has_async_tensor(training, layout.tensor) {
        text.push_str("enable_async_tensor_parallel = true\n");
    }
    if training.expert_parallel > 1 {
        let _ = writeln!(text, "expert_parallel_degree = {}", training.expert_parallel);
    }
    let _ = writeln!(text, "pipeline_parallel_degree = {}", layout.pipeline);
    if is_pipeline {
        let _ = write!(
            text,
            "pipeline_parallel_schedule = \"{schedule}\"\npipeline_parallel_microbatch_size = {}\n{}",
            batch.microbatch,
            format_parts(&counts)
        );
    }
    text.push_str(&checkpointing(training, &counts));
    if is_compiled(training, layout.tensor) {
        text.push_str("\n[compile]\nenable = true\n");
    }
    Ok(text)
}

/// True if the job compiles its layers. torchtitan refuses asynchronous tensor parallelism without it.
fn is_compiled(training: &Training, tensor: u32) -> bool {
    matches!(training.execution, Some(Execution::Compiled | Execution::CudaGraph)) || has_async_tensor(training, tensor)
}

fn has_async_tensor(training: &Training, tensor: u32) -> bool {
    training.tensor_overlap > 0.0 && tensor > 1
}

/// Returns the names of the modules of every stage.
pub(crate) fn model_parts(counts: &[u32]) -> Vec<Vec<String>> {
    let mut first = 0;
    let part = |(stage, &count): (usize, &u32)| {
        let embedding = (stage == 0).then(|| "tok_embeddings".to_owned());
        let head = (stage + 1 == counts.len()).then(|| ["norm".to_owned(), "output".to_owned()]);
        let layers = (first..first + count).map(|layer| format!("layers.{layer}"));
        let modules = embedding.into_iter().chain(layers).chain(head.into_iter().flatten()).collect();
        first += count;
        modules
    };
    counts.iter().enumerate().map(part).collect()
}

/// Formats the modules of every stage. Stages are explicit, because torchtitan's default counts the embedding and the
/// head as a layer each.
fn format_parts(counts: &[u32]) -> String {
    let mut text = "module_fqns_per_model_part = [\n".to_owned();
    for part in model_parts(counts) {
        let quoted: Vec<String> = part.iter().map(|module| format!("\"{module}\"")).collect();
        let _ = writeln!(text, "  [{}],", quoted.join(", "));
    }
    text.push_str("]\n");
    text
}

/// Formats the activation checkpointing. A limited number of recomputed layers is every n-th layer.
fn checkpointing(training: &Training, counts: &[u32]) -> String {
    let mut text = "\n[activation_checkpoint]\n".to_owned();
    match (training.recompute, every(training, counts)) {
        (Recompute::None, _) => text.push_str("mode = \"none\"\n"),
        (Recompute::Selective | Recompute::Operators, _) => {
            text.push_str("mode = \"selective\"\nselective_ac_option = \"op\"\n");
        }
        (Recompute::Full, Some(every)) if every > 1 => {
            let _ = write!(text, "mode = \"selective\"\nselective_ac_option = \"{every}\"\n");
        }
        (Recompute::Full, _) => text.push_str("mode = \"full\"\n"),
    }
    text
}

/// Returns n if every n-th layer of a stage is recomputed; `None` if the plan recomputes another number of layers.
fn every(training: &Training, counts: &[u32]) -> Option<u32> {
    let layers = *counts.iter().max()?;
    let recomputed = training.recompute_layers.map_or(layers, |limit| limit.min(layers));
    (recomputed > 0 && layers.is_multiple_of(recomputed)).then(|| layers / recomputed)
}

#[cfg(test)]
mod tests;
