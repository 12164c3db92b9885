//! Keys of GPT-NeoX, with underscores or hyphens.

use planner::scenario::Scenario;
use planner::training::{AttentionKernel, Recompute};
use serde_json::{Value, json};

use super::{Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    let set = |name: &str, value: Value| Some(vec![Setting::set(&[name, &name.replace('_', "-")], value)]);
    match field {
        "/layout/tensor" => set("model_parallel_size", layout.tensor?.into()),
        "/layout/pipeline" => set("pipe_parallel_size", layout.pipeline?.into()),
        "/layout/microbatch" => set("train_micro_batch_size_per_gpu", layout.microbatch?.into()),
        GLOBAL_BATCH => {
            let keys = ["train_batch_size", "train-batch-size"];
            let total = Setting::if_stated(&keys, target.scenario.workload.global_batch);
            let steps = set("gradient_accumulation_steps", target.accumulation()?.into())?;
            Some(steps.into_iter().chain([total]).collect())
        }
        REPLICAS => Some(Vec::new()),
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            match training.recompute {
                Recompute::None => set("checkpoint_activations", false.into()),
                Recompute::Full => set("checkpoint_activations", true.into()),
                Recompute::Selective | Recompute::Operators => None,
            }
        }
        // A file with the kernels of its layers states them in a list, which is not changed.
        "/training/attention" if matches!(training.attention, AttentionKernel::Flash | AttentionKernel::Flash2) => {
            let layers = target.scenario.model.layers();
            set("attention_config", json!([[["flash"], layers]]))
        }
        "/training/zero" | "/training/distributed_optimizer" => {
            let keys = ["zero_optimization.stage", "zero-optimization.stage"];
            Some(vec![Setting::set(&keys, training.zero_stage())])
        }
        _ => None,
    }
}
