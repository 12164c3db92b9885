//! Keys of nanotron.

use planner::scenario::Scenario;
use planner::training::{AttentionKernel, Recompute};

use super::{Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    let set = |key, value: u32| Some(vec![Setting::set(&[key], value)]);
    match field {
        "/layout/tensor" => set("parallelism.tp", layout.tensor?),
        "/layout/pipeline" => set("parallelism.pp", layout.pipeline?),
        "/layout/microbatch" => set("tokens.micro_batch_size", layout.microbatch?),
        GLOBAL_BATCH => set("tokens.batch_accumulation_per_replica", target.accumulation()?),
        REPLICAS => set("parallelism.dp", target.replicas()),
        "/training/context_parallel" => {
            let keys = ["parallelism.context_parallel_size", "parallelism.cp"];
            Some(vec![Setting::set(&keys, training.context_parallel)])
        }
        "/training/expert_parallel" => {
            // The devices of a stage are those of the replicas of the experts.
            let copies =
                target.scenario.cluster.devices() / (layout.pipeline.unwrap_or(1) * training.expert_parallel).max(1);
            Some(vec![
                Setting::set(&["parallelism.expert_parallel_size"], training.expert_parallel),
                Setting::if_stated(&["parallelism.expert_data_parallel_size"], copies),
            ])
        }
        "/training/sequence_parallel" => {
            let mode = if training.sequence_parallel { "REDUCE_SCATTER" } else { "ALL_REDUCE" };
            Some(vec![Setting::set(&["parallelism.tp_mode"], mode)])
        }
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            let is_recomputed = match training.recompute {
                Recompute::None => false,
                Recompute::Full => true,
                Recompute::Selective | Recompute::Operators => return None,
            };
            Some(vec![Setting::set(&["parallelism.recompute_layer"], is_recomputed)])
        }
        // nanotron has no other stages.
        "/training/zero" | "/training/distributed_optimizer" if training.zero_stage() <= 1 => {
            set("optimizer.zero_stage", training.zero_stage())
        }
        "/training/attention" if matches!(training.attention, AttentionKernel::Flash | AttentionKernel::Flash2) => {
            Some(vec![Setting::set(&["model.model_config._attn_implementation"], "flash_attention_2")])
        }
        _ => None,
    }
}
