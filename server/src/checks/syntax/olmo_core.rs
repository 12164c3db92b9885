//! Keys of OLMo-core. Batches are counted in tokens.

use planner::training::{Execution, Recompute};

use super::{Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let scenario = &target.scenario;
    let tokens = |sequences: u32| sequences.checked_mul(scenario.workload.context_length);
    let degree =
        |name: &str, value: u32| Some(vec![Setting::if_stated(&[&format!("train_module.{name}.degree")], value)]);
    match field {
        "/layout/microbatch" => {
            Some(vec![Setting::set(&["train_module.rank_microbatch_size"], tokens(scenario.layout.microbatch?)?)])
        }
        "/layout/tensor" => degree("tp_config", scenario.layout.tensor?),
        "/layout/pipeline" => degree("pp_config", scenario.layout.pipeline?),
        "/training/context_parallel" => degree("cp_config", scenario.training.context_parallel),
        GLOBAL_BATCH => {
            Some(vec![Setting::set(&["data_loader.global_batch_size"], tokens(scenario.workload.global_batch)?)])
        }
        REPLICAS => Some(Vec::new()),
        "/training/recompute" | "/training/recompute_layers" if scenario.training.recompute_layers.is_none() => {
            match scenario.training.recompute {
                Recompute::Full => Some(vec![Setting::if_stated(&["train_module.ac_config.mode"], "full")]),
                Recompute::None | Recompute::Selective | Recompute::Operators => None,
            }
        }
        "/training/execution" if scenario.training.execution == Some(Execution::Compiled) => {
            Some(vec![Setting::set(&["train_module.compile_model"], true)])
        }
        _ => None,
    }
}
