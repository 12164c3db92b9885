//! Keys of `OLMo`.

use planner::scenario::Scenario;
use planner::training::{GradientFormat, Recompute};
use serde_json::Value;

use super::{Setting, Target};

pub(super) fn settings(target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    let set = |key, value: Value| Some(vec![Setting::set(&[key], value)]);
    match field {
        "/layout/microbatch" => set("device_train_microbatch_size", layout.microbatch?.into()),
        "/training/recompute" | "/training/recompute_layers" => {
            let kind = match training.recompute {
                Recompute::None => return Some(vec![Setting::if_stated(&["activation_checkpointing"], Value::Null)]),
                Recompute::Selective | Recompute::Operators => "fine_grained",
                Recompute::Full => part(target.scenario.model.layers(), training.recompute_layers)?,
            };
            set("activation_checkpointing", kind.into())
        }
        "/training/zero" | "/training/distributed_optimizer" => {
            set("fsdp.sharding_strategy", super::fsdp_strategy(training.zero_stage())?.into())
        }
        "/training/gradients" if training.gradients == GradientFormat::Bf16 => set("fsdp.precision", "pure".into()),
        "/training/attention" => set("model.flash_attention", training.attention.is_fused().into()),
        _ => None,
    }
}

/// Returns the kind of recomputation of a number of layers; of all layers without a number.
fn part(layers: u32, recomputed: Option<u32>) -> Option<&'static str> {
    let Some(recomputed) = recomputed else { return Some("whole_layer") };
    let parts = [
        (layers / 2, "one_in_two"),
        (layers / 3, "one_in_three"),
        (layers / 4, "one_in_four"),
        (layers / 8, "one_in_eight"),
        (layers - layers / 3, "two_in_three"),
        (layers - layers / 4, "three_in_four"),
    ];
    parts.into_iter().find(|(count, _)| *count == recomputed).map(|(_, kind)| kind)
}
