//! Keys of the ZeRO stage: DeepSpeed, FSDP, or the distributed optimizer of Megatron-LM.

use api::job_config::ConfigFormat;
use serde_json::{Value, json};

use super::super::{Job, Setting, Target, fsdp_strategy};

pub(super) const STAGE: [&str; 2] = ["deepspeed.zero_optimization.stage", "accelerate.deepspeed_config.zero_stage"];
const STRATEGY: [&str; 4] = [
    "accelerate.fsdp_config.fsdp_sharding_strategy",
    "fsdp_config.fsdp_sharding_strategy",
    "fsdp_config.sharding_strategy",
    "fsdp_sharding_strategy",
];
const RESHARD: [&str; 4] = [
    "accelerate.fsdp_config.fsdp_reshard_after_forward",
    "fsdp_config.fsdp_reshard_after_forward",
    "fsdp_config.reshard_after_forward",
    "fsdp_reshard_after_forward",
];
const OPTIMIZER: [&str; 1] = ["use_distributed_optimizer"];

/// Returns the settings of hybrid sharding: MiCS of DeepSpeed, or the strategy of FSDP for a copy per node.
pub(super) fn hybrid(job: &Job<'_>, target: &Target) -> Option<Vec<Setting>> {
    let (shards, copies) = target.shards_and_copies()?;
    let training = &target.scenario.training;
    if job.states(&STAGE) || job.has_section("deepspeed.") {
        let key = ["deepspeed.zero_optimization.mics_shard_size"];
        let is_mics = training.zero_stage() == 3 && job.has_section("deepspeed.");
        return is_mics
            .then(|| vec![if copies > 1 { Setting::set(&key, shards) } else { Setting::if_stated(&key, -1) }]);
    }
    let is_node = shards == target.scenario.cluster.devices_per_node;
    let strategy = match (training.zero_stage(), copies > 1) {
        (3, true) if is_node => "HYBRID_SHARD",
        (3, false) => "FULL_SHARD",
        (2, true) if is_node => "HYBRID_SHARD_ZERO2",
        (2, false) => "SHARD_GRAD_OP",
        _ => return None,
    };
    job.states(&STRATEGY).then(|| vec![Setting::if_stated(&STRATEGY, strategy)])
}

pub(super) fn settings(job: &Job<'_>, stage: u32) -> Option<Vec<Setting>> {
    if job.states(&STAGE) || job.has_section("deepspeed.") {
        return Some(vec![Setting::set(&STAGE, stage)]);
    }
    let fsdp = job.value("fsdp").filter(|text| !matches!(*text, "" | "[]" | "false"));
    if job.states(&STRATEGY) || job.states(&RESHARD) {
        let strategy = fsdp_strategy(stage)?;
        // The first version of FSDP accepts a strategy under the key of the second, which is true or false.
        let is_named = |key: &&str| job.value(key).is_some_and(|value| value.contains('_'));
        let reshard: Value = match stage {
            _ if RESHARD.iter().any(is_named) => strategy.into(),
            2 | 3 => (stage == 3).into(),
            _ => return Some(vec![Setting::if_stated(&STRATEGY, strategy)]),
        };
        return Some(vec![Setting::if_stated(&STRATEGY, strategy), Setting::if_stated(&RESHARD, reshard)]);
    }
    if let Some(text) = fsdp {
        let words = ["full_shard", "shard_grad_op", "no_shard"];
        let old = words.into_iter().find(|word| text.contains(word))?;
        let new = fsdp_strategy(stage)?.to_lowercase();
        return Some(vec![Setting::if_stated(&["fsdp"], text.replace(old, &new))]);
    }
    (stage <= 1 && job.states(&OPTIMIZER)).then(|| vec![Setting::if_stated(&OPTIMIZER, stage == 1)])
}

/// Returns the setting that reduces and shards the gradients of FSDP after each microbatch.
pub(super) fn gradients(job: &Job<'_>) -> Option<Vec<Setting>> {
    // LLaMA-Factory has a trainer of its own for this key.
    if job.format == ConfigFormat::OpenRlhf || job.states(&["accelerator_config", "dist_config.name"]) {
        return None;
    }
    let section = json!({"gradient_accumulation_kwargs": {"sync_each_batch": true}});
    Some(vec![if job.has_section("accelerator_config.") {
        Setting::set(&["accelerator_config.gradient_accumulation_kwargs.sync_each_batch"], true)
    } else if job.is_command() {
        // JSON is the value of the argument.
        Setting::set(&["accelerator_config"], section.to_string())
    } else {
        Setting::set(&["accelerator_config"], section)
    }])
}
