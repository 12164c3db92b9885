//! Keys of torchtitan.

use planner::cost::partition::layers_with_ends;
use planner::scenario::Scenario;
use planner::training::{Execution, Recompute};
use serde_json::Value;

use super::{Job, Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS, STAGES};
use crate::export::torchtitan::model_parts;

const SCHEDULE_KEYS: [&str; 2] = ["parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"];
const PER_STAGE: &str = "parallelism.pipeline_parallel_layers_per_stage";
const PARTS: &str = "parallelism.module_fqns_per_model_part";

/// Keys of a degree. Until 2025 they were in other sections.
macro_rules! degree {
    ($name:literal) => {
        [concat!("parallelism.", $name), concat!("training.", $name), concat!("experimental.", $name)]
    };
}

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, workload, .. } = &target.scenario;
    let is_pipeline = layout.pipeline.unwrap_or(1) > 1;
    let set = |keys: &[&str], value: u32| Some(vec![Setting::set(keys, value)]);
    let local = ["training.local_batch_size", "training.batch_size"];
    match field {
        "/layout/tensor" => set(&degree!("tensor_parallel_degree"), layout.tensor?),
        "/layout/pipeline" if is_of_2024(job) => {
            set(&["experimental.pipeline_parallel_degree", "training.pipeline_parallel_degree"], layout.pipeline?)
        }
        "/layout/pipeline" => {
            let degree = Setting::set(&degree!("pipeline_parallel_degree"), layout.pipeline?);
            // torchtitan refuses an interleaved schedule with one stage per rank.
            let is_refused = layout.pipeline > Some(1) && layout.chunks.unwrap_or(1) == 1 && is_interleaved(job);
            let schedule = is_refused.then(|| Setting::if_stated(&SCHEDULE_KEYS, "1F1B"));
            Some([degree].into_iter().chain(schedule).collect())
        }
        "/layout/microbatch" if is_pipeline => set(
            &["parallelism.pipeline_parallel_microbatch_size", "experimental.pipeline_parallel_microbatch_size"],
            layout.microbatch?,
        ),
        "/layout/microbatch" => set(&local, layout.microbatch?),
        // Files of 2024 state the first layers of the stages, which are not written.
        "/layout/chunks" | STAGES if is_of_2024(job) => None,
        "/layout/chunks" | STAGES => Some(stages(target)),
        // A pipeline splits the local batch. Without one, gradients are accumulated.
        GLOBAL_BATCH if is_pipeline => set(
            &local,
            match training.microbatches_per_flush {
                Some(flush) => flush.saturating_mul(layout.microbatch?),
                None => target.replica_batch()?,
            },
        ),
        // Without a pipeline the local batch is the microbatch.
        GLOBAL_BATCH => Some(vec![
            Setting::if_stated(&local, layout.microbatch?),
            Setting::set(&["training.global_batch_size"], workload.global_batch),
        ]),
        REPLICAS => replicas(job, target.replicas()),
        "/training/context_parallel" if is_of_2024(job) => set(
            &["experimental.context_parallel_degree", "training.context_parallel_degree"],
            training.context_parallel,
        ),
        "/training/context_parallel" => set(&degree!("context_parallel_degree"), training.context_parallel),
        "/training/expert_parallel" => set(&degree!("expert_parallel_degree"), training.expert_parallel),
        "/training/expert_tensor_parallel" if training.expert_tensor_parallel == Some(1) => {
            set(&degree!("expert_tensor_parallel_degree"), 1)
        }
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            let mode = match training.recompute {
                Recompute::None => "none",
                Recompute::Operators => "selective",
                Recompute::Full => "full",
                // torchtitan has no recomputation of attention alone.
                Recompute::Selective => return None,
            };
            let mode = Setting::set(&["activation_checkpoint.mode"], mode);
            // The default of the option is every second layer.
            let is_by_operator = training.recompute == Recompute::Operators;
            let option = || Setting::set(&["activation_checkpoint.selective_ac_option"], "op");
            Some([mode].into_iter().chain(is_by_operator.then(option)).collect())
        }
        // One local batch per step has all sequences of a replica.
        "/training/microbatches_per_flush" => {
            let replica = training.context_parallel.max(1)
                * target.scenario.layout.tensor.unwrap_or(1)
                * target.scenario.layout.pipeline.unwrap_or(1);
            let replicas = (target.scenario.cluster.devices() / replica).max(1);
            let names = ["training.local_batch_size", "training.batch_size"];
            Some(vec![Setting::set(&names, (target.scenario.workload.global_batch / replicas).max(1))])
        }
        "/training/execution" if training.execution == Some(Execution::Compiled) => {
            let switch = Setting::set(&["compile.enable", "training.compile"], true);
            Some([switch].into_iter().chain(with_model(job)).collect())
        }
        "/training/tensor_overlap" => Some(vec![Setting::set(
            &["parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"],
            training.tensor_overlap > 0.0,
        )]),
        "/training/parameter_offload" => {
            Some(vec![Setting::set(&["training.enable_cpu_offload"], training.parameter_offload)])
        }
        // The option offloads the optimizer too.
        "/training/optimizer_offload" if is_offloading(job) && training.optimizer_offload == 0.0 => Some(Vec::new()),
        "/training/shard_degree" => {
            let (shards, copies) = target.shards_and_copies()?;
            // The devices of a context-parallel group share one shard degree.
            let context = training.context_parallel.max(1);
            shards.is_multiple_of(context).then(|| {
                let sharded = Setting::set(&degree!("data_parallel_shard_degree"), shards / context);
                vec![sharded, Setting::set(&degree!("data_parallel_replicate_degree"), copies)]
            })
        }
        "/training/zero" | "/training/distributed_optimizer" => {
            let reshard = match training.zero_stage() {
                2 => "never",
                3 => "always",
                _ => return None,
            };
            let keys = ["parallelism.fsdp_reshard_after_forward", "training.fsdp_reshard_after_forward"];
            Some(vec![Setting::set(&keys, reshard)])
        }
        _ => None,
    }
}

/// True if the file states a schedule of several stages per rank.
fn is_interleaved(job: &Job<'_>) -> bool {
    let schedule = SCHEDULE_KEYS.iter().find_map(|key| job.value(key)).unwrap_or_default().to_lowercase();
    ["interleaved", "looped", "zbv", "dualpipe"].iter().any(|name| schedule.contains(name))
}

/// Returns the setting that adds the layers to the compiled parts that a file states without them.
fn with_model(job: &Job<'_>) -> Option<Setting> {
    const COMPONENTS: &str = "compile.components";
    let stated = job.value(COMPONENTS)?;
    let others: Vec<String> = serde_json::from_str(stated).unwrap_or_default();
    let parts = [vec!["model".to_owned()], others].concat();
    (!stated.contains("model")).then(|| Setting::if_stated(&[COMPONENTS], parts))
}

fn is_offloading(job: &Job<'_>) -> bool {
    job.value("training.enable_cpu_offload") == Some("true")
}

/// True for a file with the sections of 2024, in which degrees are under `training` and `experimental`.
fn is_of_2024(job: &Job<'_>) -> bool {
    let names = ["tensor_parallel_degree", "data_parallel_degree", "data_parallel_shard_degree"];
    names.iter().any(|name| job.states(&[&format!("training.{name}")])) || job.has_section("experimental.")
}

/// Returns the stages: a number of layers per stage, or the modules of every stage if this number does not give them.
fn stages(target: &Target) -> Vec<Setting> {
    let Scenario { layout, model, .. } = &target.scenario;
    let count = layout.pipeline.unwrap_or(1).saturating_mul(layout.chunks.unwrap_or(1)).max(1);
    let layers = model.layers();
    // The embedding and the output head count as layers.
    let per_stage = layers.saturating_add(2).div_ceil(count);
    let usual = layers_with_ends(layers, count, (1, 1));
    let is_given = layers.saturating_add(2).div_ceil(per_stage) == count;
    let stages =
        target.stages().filter(|stages| usual.as_ref() != Some(stages)).or(if is_given { None } else { usual });
    let less = ["first", "last"].map(|end| format!("parallelism.pipeline_parallel_{end}_stage_less_layers"));
    let less = less.iter().map(|key| Setting::if_stated(&[key], 1));
    let (per_stage, parts) = match stages {
        Some(stages) => (Setting::if_stated(&[PER_STAGE], Value::Null), Setting::set(&[PARTS], model_parts(&stages))),
        None => (Setting::set(&[PER_STAGE], per_stage), Setting::if_stated(&[PARTS], Value::Null)),
    };
    less.chain([per_stage, parts]).collect()
}

/// Returns the settings of the data-parallel degrees that the file states. A degree of -1 is the rest of the devices.
fn replicas(job: &Job<'_>, replicas: u32) -> Option<Vec<Setting>> {
    let (sharded, replicated) = (degree!("data_parallel_shard_degree"), degree!("data_parallel_replicate_degree"));
    let value = |keys: &[&str]| keys.iter().find_map(|key| job.value(key)?.parse::<i64>().ok());
    let others = u32::try_from(value(&replicated).unwrap_or(1)).ok().filter(|&others| others > 0)?;
    match value(&sharded) {
        None | Some(..=0) => Some(Vec::new()),
        Some(1) => Some(vec![Setting::set(&replicated, replicas)]),
        Some(_) => replicas.is_multiple_of(others).then(|| vec![Setting::if_stated(&sharded, replicas / others)]),
    }
}
