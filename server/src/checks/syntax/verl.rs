//! Keys of verl: the training step of the actor, or of supervised fine-tuning.

use planner::scenario::Scenario;
use planner::training::{ContextExchange, Recompute};
use serde_json::Value;

use super::{Job, Setting, Target};
use crate::checks::expected::REPLICAS;

const MEGATRON: &str = "actor_rollout_ref.actor.megatron.";
const TRANSFORMER: &str = "actor_rollout_ref.actor.megatron.override_transformer_config.";

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    let is_actor = job.has_section("actor_rollout_ref.");
    let is_megatron = job.has_section(MEGATRON);
    let of_megatron =
        |name: &str, value: Value| is_megatron.then(|| vec![Setting::set(&[&format!("{MEGATRON}{name}")], value)]);
    let either = |actor, tuning| if is_actor { actor } else { tuning };
    match field {
        REPLICAS => Some(Vec::new()),
        "/layout/tensor" => of_megatron("tensor_model_parallel_size", layout.tensor?.into()),
        "/layout/pipeline" => of_megatron("pipeline_model_parallel_size", layout.pipeline?.into()),
        "/layout/chunks" => of_megatron("virtual_pipeline_model_parallel_size", layout.chunks.into()),
        "/layout/microbatch" if is_actor => {
            // The limit of tokens replaces the number of sequences.
            let dynamic = job.value("actor_rollout_ref.actor.use_dynamic_bsz");
            if dynamic.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
                return None;
            }
            Some(vec![Setting::set(&["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"], layout.microbatch?)])
        }
        "/layout/microbatch" => {
            let keys = ["data.micro_batch_size_per_gpu", "data.micro_batch_size"];
            Some(vec![Setting::set(&keys, layout.microbatch?)])
        }
        "/training/context_parallel" | "/training/context_exchange" if is_megatron => {
            of_megatron("context_parallel_size", training.context_parallel.into())
        }
        "/training/context_parallel" | "/training/context_exchange" => {
            let is_ulysses = training.context_exchange == ContextExchange::AllToAll || training.context_parallel == 1;
            let actor = "actor_rollout_ref.actor.ulysses_sequence_parallel_size";
            let key = either(actor, "ulysses_sequence_parallel_size");
            let keys = [key, "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size"];
            is_ulysses.then(|| vec![Setting::set(&keys, training.context_parallel)])
        }
        "/training/expert_parallel" => of_megatron("expert_model_parallel_size", training.expert_parallel.into()),
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            if is_megatron {
                return Some(megatron_recompute(training.recompute));
            }
            let key =
                either("actor_rollout_ref.model.enable_gradient_checkpointing", "model.enable_gradient_checkpointing");
            match training.recompute {
                Recompute::None => Some(vec![Setting::set(&[key], false)]),
                Recompute::Full => Some(vec![Setting::set(&[key], true)]),
                Recompute::Selective | Recompute::Operators => None,
            }
        }
        "/training/shard_degree" if is_actor && !is_megatron => {
            let key = "actor_rollout_ref.actor.fsdp_config.fsdp_size";
            Some(vec![match target.shards_and_copies()? {
                (_, 1) => Setting::if_stated(&[key], -1),
                (shards, _) => Setting::set(&[key], shards),
            }])
        }
        // Liger-Kernel has fused kernels and a loss in chunks.
        "/training/chunked_loss" if training.chunked_loss && !is_megatron => {
            Some(vec![Setting::set(&[either("actor_rollout_ref.model.use_liger", "model.use_liger")], true)])
        }
        "/training/execution" if training.chunked_loss && !is_megatron => Some(Vec::new()),
        // The first version of FSDP has no such option in verl.
        "/training/parameter_offload" if is_actor && !is_megatron => {
            let key = "actor_rollout_ref.actor.fsdp_config.offload_policy";
            let is_second = job.value("actor_rollout_ref.actor.strategy") == Some("fsdp2");
            is_second.then(|| vec![Setting::set(&[key], training.parameter_offload)])
        }
        "/training/zero" | "/training/distributed_optimizer" if !is_megatron => {
            let key = either(
                "actor_rollout_ref.actor.fsdp_config.reshard_after_forward",
                "model.fsdp_config.reshard_after_forward",
            );
            let stage = training.zero_stage();
            (stage >= 2).then(|| vec![Setting::set(&[key], stage == 3)])
        }
        _ => None,
    }
}

/// Returns the settings of layers that Megatron-LM recomputes: it needs a method for whole layers, and refuses a number of
/// layers for others.
fn megatron_recompute(recompute: Recompute) -> Vec<Setting> {
    let key = |name: &str| format!("{TRANSFORMER}{name}");
    let set = |name: &str, value: Value| Setting::set(&[&key(name)], value);
    let away = |name: &str| Setting::if_stated(&[&key(name)], Value::Null);
    match recompute {
        Recompute::None => {
            vec![away("recompute_granularity"), away("recompute_method"), away("recompute_num_layers")]
        }
        Recompute::Selective | Recompute::Operators => vec![
            set("recompute_granularity", "selective".into()),
            away("recompute_method"),
            away("recompute_num_layers"),
        ],
        Recompute::Full => vec![
            set("recompute_granularity", "full".into()),
            set("recompute_method", "uniform".into()),
            set("recompute_num_layers", 1.into()),
        ],
    }
}
