//! Keys of the ZeRO stage: DeepSpeed, FSDP, or the distributed optimizer of Megatron-LM.

use serde_json::Value;

use super::super::{Job, Setting, fsdp_strategy};

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
