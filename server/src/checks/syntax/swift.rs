//! Arguments of ms-swift: those of the trainer, or of Megatron-LM with underscores.

use planner::training::ContextExchange;

use super::{Job, Setting, Target, megatron, transformers};

/// Words of a script that runs Megatron-LM.
const PROGRAMS: [&str; 4] = ["megatron sft", "megatron pt", "megatron rlhf", "cli/_megatron/"];

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    if !PROGRAMS.iter().any(|program| job.mentions(program)) {
        return transformers::settings(job, target, field);
    }
    let training = &target.scenario.training;
    let is_refused = match field {
        // ms-swift sets one connection of kernels, which Megatron-LM refuses with FSDP.
        "/training/zero" => training.zero_stage() > 1,
        "/training/context_exchange" => training.context_exchange == ContextExchange::AllToAll,
        // ms-swift does not have the argument.
        "/training/gradients" => true,
        _ => false,
    };
    if is_refused {
        return None;
    }
    let settings = megatron::settings(job, target, field)?;
    let renamed = settings
        .into_iter()
        .map(|setting| Setting { keys: setting.keys.iter().map(|key| key.replace('-', "_")).collect(), ..setting });
    Some(renamed.collect())
}
