//! Keys of torchtune.

use planner::scenario::Scenario;
use planner::training::{Execution, Recompute};

use super::{Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    match field {
        "/layout/microbatch" => Some(vec![Setting::set(&["batch_size"], layout.microbatch?)]),
        // A degree needs a plan for the layers of the model, and newer recipes.
        "/layout/tensor" => Some(vec![Setting::if_stated(&["tensor_parallel_dim"], layout.tensor?)]),
        "/training/context_parallel" => {
            Some(vec![Setting::if_stated(&["context_parallel_dim"], training.context_parallel)])
        }
        GLOBAL_BATCH => Some(vec![Setting::set(&["gradient_accumulation_steps"], target.accumulation()?)]),
        REPLICAS => Some(Vec::new()),
        "/training/recompute" if training.recompute_layers.is_none() => match training.recompute {
            Recompute::None => Some(vec![Setting::set(&["enable_activation_checkpointing"], false)]),
            Recompute::Full => Some(vec![Setting::set(&["enable_activation_checkpointing"], true)]),
            Recompute::Selective | Recompute::Operators => None,
        },
        "/training/recompute_layers" if training.recompute_layers.is_none() => Some(Vec::new()),
        "/training/parameter_offload" => Some(vec![Setting::set(&["fsdp_cpu_offload"], training.parameter_offload)]),
        // The option offloads the optimizer too.
        "/training/optimizer_offload" if training.optimizer_offload == 0.0 && !training.parameter_offload => {
            Some(Vec::new())
        }
        "/training/shard_degree" => {
            let (shards, copies) = target.shards_and_copies()?;
            let context = training.context_parallel.max(1);
            shards.is_multiple_of(context).then(|| {
                let sharded = Setting::set(&["data_parallel_shard_dim"], shards / context);
                vec![sharded, Setting::set(&["data_parallel_replicate_dim"], copies)]
            })
        }
        "/training/zero" | "/training/distributed_optimizer" => {
            let stage = training.zero_stage();
            (stage >= 2).then(|| vec![Setting::set(&["fsdp_reshard_after_forward"], stage == 3)])
        }
        "/training/execution" if training.execution == Some(Execution::Compiled) => {
            Some(vec![Setting::set(&["compile"], true)])
        }
        _ => None,
    }
}
