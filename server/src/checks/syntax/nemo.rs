//! Keys of `NeMo` and of Megatron-Bridge, which are arguments of Megatron-LM under other names.

use planner::training::{AttentionKernel, GradientFormat};

use super::megatron::{self, CHUNKS};
use super::{Job, Setting, Target};

/// Key of the optimizer of `NeMo`.
const OPTIMIZER: &str = "model.optim.name";

/// Arguments with other names in `NeMo` and Megatron-Bridge.
const NAMES: [(&str, &[&str]); 5] = [
    ("tp-comm-overlap", &["ub_tp_comm_overlap"]),
    ("recompute-granularity", &["activations_checkpoint_granularity", "recompute_granularity"]),
    ("recompute-method", &["activations_checkpoint_method", "recompute_method"]),
    ("recompute-num-layers", &["activations_checkpoint_num_layers", "recompute_num_layers"]),
    (CHUNKS, &["virtual_pipeline_model_parallel_size"]),
];

/// Sections of Megatron-Bridge with arguments that are not in `model`.
const SECTIONS: [(&str, &str); 13] = [
    ("tp-comm-overlap", "comm_overlap"),
    ("overlap-grad-reduce", "ddp"),
    ("overlap-param-gather", "ddp"),
    ("micro-batch-size", "train"),
    ("global-batch-size", "train"),
    ("use-distributed-optimizer", "ddp"),
    ("ckpt-format", "checkpoint"),
    ("optimizer-cpu-offload", "optimizer"),
    ("optimizer-offload-fraction", "optimizer"),
    ("use-precision-aware-optimizer", "optimizer"),
    ("data-parallel-sharding-strategy", "ddp"),
    ("use-megatron-fsdp", "dist"),
    ("use-torch-fsdp2", "dist"),
];

/// Key of the layers of Transformer Engine.
const ENGINE: &str = "model.transformer_engine";

fn is_without_engine(job: &Job<'_>) -> bool {
    job.value(ENGINE).is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

/// Returns the settings of `NeMo`.
pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let training = &target.scenario.training;
    match field {
        "/training/zero" | "/training/distributed_optimizer" => {
            let name = match (job.value(OPTIMIZER)?, training.zero_stage()) {
                ("fused_adam" | "adamw", 1) => "distributed_fused_adam",
                ("distributed_fused_adam", 0) => "fused_adam",
                _ => return None,
            };
            Some(vec![Setting::if_stated(&[OPTIMIZER], name)])
        }
        "/training/gradients" => {
            // Only the distributed optimizer has this key.
            let is_short = training.gradients == GradientFormat::Bf16 && training.zero_stage() == 1;
            is_short.then(|| vec![Setting::set(&["model.optim.grad_sync_dtype"], "bf16")])
        }
        // The keys of the distributed optimizer of NeMo. Another one has none.
        "/training/data_overlap" if job.value(OPTIMIZER) == Some("distributed_fused_adam") => {
            let share = training.data_overlap;
            let switches = ["overlap_grad_sync", "overlap_param_sync"];
            let set = |name: &str| Setting::set(&[&format!("model.optim.{name}")], share >= 1.0);
            (share <= 0.0 || share >= 1.0).then(|| switches.map(set).to_vec())
        }
        "/training/attention" if is_without_engine(job) => {
            let backend = Setting::if_stated(&["model.attention_backend"], "flash");
            let is_fused = training.attention != AttentionKernel::Unfused;
            is_fused.then(|| vec![Setting::if_stated(&[ENGINE], true), backend])
        }
        // Layers without Transformer Engine have no such overlap.
        "/training/tensor_overlap" if is_without_engine(job) => None,
        // NeMo has no such setting.
        "/training/optimizer_offload" | "/training/data_overlap" => None,
        _ => Some(renamed(megatron::yaml_arguments(target, field)?, |name| {
            let others = NAMES.into_iter().find(|(argument, _)| *argument == name).map(|(_, names)| names.to_vec());
            let plain = name.replace('-', "_");
            let names = others.unwrap_or_else(|| vec![&plain]);
            names.iter().map(|name| format!("model.{name}")).collect()
        })),
    }
}

/// Returns the settings of Megatron-Bridge.
pub(super) fn bridge_settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    if field == "/training/gradients" {
        let is_long = target.scenario.training.gradients == GradientFormat::Fp32;
        return Some(vec![Setting::set(&["ddp.grad_reduce_in_fp32"], is_long)]);
    }
    Some(renamed(megatron::yaml_arguments(target, field)?, |name| {
        let section = SECTIONS.into_iter().find(|(argument, _)| *argument == name).map_or("model", |(_, it)| it);
        let name = if name == CHUNKS { "virtual-pipeline-model-parallel-size" } else { name };
        vec![format!("{section}.{}", name.replace('-', "_"))]
    }))
}

/// Renames the arguments of settings.
pub(super) fn renamed(settings: Vec<Setting>, names: impl Fn(&str) -> Vec<String>) -> Vec<Setting> {
    let renamed =
        |setting: Setting| Setting { keys: setting.keys.iter().flat_map(|name| names(name)).collect(), ..setting };
    settings.into_iter().map(renamed).collect()
}
