//! Overrides of Primus: arguments of Megatron-LM with underscores, or keys of `MaxText`.

use super::megatron::CHUNKS;
use super::nemo::renamed;
use super::{Job, Setting, Target, maxtext, megatron};

const OVERRIDES: &str = "modules.pre_trainer.overrides";

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    if job.value("modules.pre_trainer.framework")? == "maxtext" {
        return maxtext::settings_in(OVERRIDES, job, target, field);
    }
    let key = |name: &str| format!("{OVERRIDES}.{}", name.replace('-', "_"));
    let is_counted = field == "/layout/chunks" && job.states(&[&key(CHUNKS)]);
    let settings = if is_counted || field == "/training/recompute_modules" {
        megatron::yaml_arguments(target, field)
    } else {
        megatron::settings(job, target, field)
    };
    Some(renamed(settings?, |name| vec![key(name)]))
}
