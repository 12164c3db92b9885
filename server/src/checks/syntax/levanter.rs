//! Keys of Levanter.

use planner::training::Recompute;

use super::{Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let scenario = &target.scenario;
    match field {
        "/layout/microbatch" => {
            Some(vec![Setting::set(&["trainer.per_device_parallelism"], scenario.layout.microbatch?)])
        }
        "/layout/tensor" => Some(vec![Setting::if_stated(&["trainer.model_axis_size"], scenario.layout.tensor?)]),
        GLOBAL_BATCH => Some(vec![Setting::set(&["trainer.train_batch_size"], scenario.workload.global_batch)]),
        REPLICAS => Some(Vec::new()),
        "/training/recompute" | "/training/recompute_layers" if scenario.training.recompute_layers.is_none() => {
            match scenario.training.recompute {
                Recompute::None => Some(vec![Setting::set(&["model.gradient_checkpointing"], false)]),
                Recompute::Full => Some(vec![Setting::set(&["model.gradient_checkpointing"], true)]),
                Recompute::Selective | Recompute::Operators => None,
            }
        }
        _ => None,
    }
}
