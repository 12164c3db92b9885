//! Keys of llm-foundry.

use planner::scenario::Scenario;
use planner::training::{AttentionKernel, GradientFormat, Recompute};
use serde_json::Value;

use super::{Setting, Target};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    let set = |key, value: Value| Some(vec![Setting::set(&[key], value)]);
    match field {
        "/layout/microbatch" => set("device_train_microbatch_size", layout.microbatch?.into()),
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            let is_recomputed = match training.recompute {
                Recompute::None => false,
                Recompute::Full => true,
                Recompute::Selective | Recompute::Operators => return None,
            };
            set("fsdp_config.activation_checkpointing", is_recomputed.into())
        }
        "/training/zero" | "/training/distributed_optimizer" => {
            set("fsdp_config.sharding_strategy", super::fsdp_strategy(training.zero_stage())?.into())
        }
        "/training/gradients" if training.gradients == GradientFormat::Bf16 => {
            set("fsdp_config.mixed_precision", "PURE".into())
        }
        "/training/attention" if matches!(training.attention, AttentionKernel::Flash | AttentionKernel::Flash2) => {
            Some(vec![Setting::if_stated(&["model.attn_config.attn_impl"], "flash")])
        }
        _ => None,
    }
}
