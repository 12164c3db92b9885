//! Fields of the parts that differ between kinds of layers: experts, latent attention, windows, linear
//! attention, adapters. A switch adds or removes each part.

use leptos::prelude::*;
use serde_json::{Value, json};

use super::field::{CheckField, NumberField, SelectField};
use crate::explore::use_explore;
use crate::pointer;

/// Optional parts of a module that have fields here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a part that a module has or has not")]
pub(super) struct Parts {
    pub(super) backbone: bool,
    pub(super) experts: bool,
    /// Experts have a width of their own.
    pub(super) expert_width: bool,
    latent: bool,
    window: bool,
    linear: bool,
    adapters: bool,
}

impl Parts {
    pub(super) fn from_module(module: &Value) -> Self {
        Self {
            backbone: module["role"] == "backbone",
            experts: module["moe"].is_object(),
            expert_width: module["moe"]["expert_width"].is_number(),
            latent: module["latent"].is_object(),
            window: module["window"].is_object(),
            linear: module["linear"].is_object(),
            adapters: module["adapters"].is_object(),
        }
    }
}

/// An optional part: JSON field, label, and the value that the switch adds.
type Part = (&'static str, &'static str, fn() -> Value);

/// Values of new parts: experts as in Mixtral, latent attention as in DeepSeek-V3, a window as in
/// Gemma 3, linear attention as in Qwen3-Next, adapters as in the LoRA paper.
const EXPERTS: Part = ("moe", "Mixture of experts", || json!({ "experts": 8, "top_k": 2 }));
const LATENT: Part = (
    "latent",
    "Latent attention (MLA)",
    || json!({ "query_rank": 1536, "kv_rank": 512, "content_size": 128, "rotary_size": 64, "value_size": 128 }),
);
const WINDOW: Part = ("window", "Sliding window", || json!({ "tokens": 1024, "full_every": 6 }));
const LINEAR: Part = ("linear", "Linear attention", || {
    json!({
        "recurrence": "gated_delta", "key_heads": 16, "value_heads": 32, "key_size": 128, "value_size": 128,
        "convolution": 4, "full_every": 4
    })
});
const ADAPTERS: Part = ("adapters", "Adapters (LoRA)", || json!({ "rank": 16, "mlp": true }));

/// Checkbox that adds or removes a part of a module.
#[component]
fn PartSwitch(index: usize, part: Part) -> impl IntoView {
    let explore = use_explore();
    let (field, label, value) = part;
    let at = StoredValue::new(format!("/model/modules/{index}/{field}"));
    let is_on = move || explore.scenario.with(|scenario| at.with_value(|at| pointer::get(scenario, at).is_some()));
    let change = move |event| {
        at.with_value(|at| {
            if !event_target_checked(&event) {
                explore.remove(at);
                return;
            }
            explore.edit(at, |scenario| {
                pointer::set(scenario, at, value());
                if field == "latent" {
                    // Latent attention has keys and values for all heads.
                    let heads = pointer::get(scenario, &format!("/model/modules/{index}/heads")).cloned();
                    pointer::set(scenario, &format!("/model/modules/{index}/kv_heads"), heads.unwrap_or_default());
                }
            });
        });
    };
    let test_id = if field == "moe" { format!("experts-{index}") } else { format!("{field}-{index}") };
    view! {
        <label class="check">
            <input type="checkbox" data-testid=test_id prop:checked=is_on on:change=change />
            {label}
        </label>
    }
}

/// Fields of experts.
#[component]
pub(super) fn ExpertFields(index: usize, parts: Parts) -> impl IntoView {
    let at = move |field: &str| format!("/model/modules/{index}/moe/{field}");
    let fields = parts.experts.then(|| {
        view! {
            <NumberField pointer=at("experts") label="Experts" unit="" min=1.0 max=1024.0 />
            <NumberField pointer=at("top_k") label="Experts per token" unit="top k" min=1.0 max=256.0 />
            <NumberField pointer=at("expert_width") label="Width of an expert" unit="" min=16.0 max=1_048_576.0 step=128.0 placeholder="MLP width" />
            <NumberField pointer=at("shared_width") label="Shared experts" unit="total width" min=0.0 max=1_048_576.0 step=128.0 placeholder="none" />
            <NumberField pointer=at("dense_layers") label="Dense layers" unit="at the start" min=0.0 max=1023.0 placeholder="0" />
            <NumberField pointer=at("every") label="Layers with experts" unit="every n-th" min=1.0 max=1024.0 placeholder="1" />
            <NumberField pointer=at("node_limit") label="Nodes of a token" unit="at most" min=0.0 max=1024.0 placeholder="no limit" />
            <NumberField pointer=at("skew") label="Router skew" unit="max / mean" min=1.0 max=1024.0 step=0.1 placeholder="1" />
        }
    });
    view! {
        <PartSwitch index=index part=EXPERTS />
        {fields}
    }
}

/// Fields of attention and training of a backbone.
#[component]
pub(super) fn AttentionFields(index: usize, parts: Parts) -> impl IntoView {
    if !parts.backbone {
        return ().into_any();
    }
    let at = move |field: &str| format!("/model/modules/{index}/{field}");
    let latent = parts.latent.then(|| {
        view! {
            <NumberField pointer=at("latent/query_rank") label="Query rank" unit="0: none" min=0.0 max=131_072.0 step=64.0 />
            <NumberField pointer=at("latent/kv_rank") label="Key-value rank" unit="" min=1.0 max=131_072.0 step=64.0 />
            <NumberField pointer=at("latent/content_size") label="Head size, content" unit="" min=1.0 max=2048.0 />
            <NumberField pointer=at("latent/rotary_size") label="Head size, rotary" unit="" min=0.0 max=2048.0 />
            <NumberField pointer=at("latent/value_size") label="Head size, values" unit="" min=1.0 max=2048.0 />
        }
    });
    let window = parts.window.then(|| {
        view! {
            <NumberField pointer=at("window/tokens") label="Window" unit="tokens" min=1.0 max=16_777_216.0 />
            <NumberField pointer=at("window/full_every") label="Full attention" unit="every n-th layer" min=0.0 max=1024.0 placeholder="0: none" />
            <CheckField pointer=at("window/chunked") label="Chunks instead of a sliding window" />
        }
    });
    let linear = parts.linear.then(|| {
        view! {
            <SelectField pointer=at("linear/recurrence") label="Recurrence" options=&[("gated_delta", "Gated delta rule"), ("state_space", "Mamba-2")] />
            <NumberField pointer=at("linear/key_heads") label="Key heads" unit="groups" min=1.0 max=1024.0 />
            <NumberField pointer=at("linear/value_heads") label="Value heads" unit="" min=1.0 max=1024.0 />
            <NumberField pointer=at("linear/key_size") label="Key head size" unit="state" min=1.0 max=4096.0 />
            <NumberField pointer=at("linear/value_size") label="Value head size" unit="" min=1.0 max=4096.0 />
            <NumberField pointer=at("linear/convolution") label="Convolution" unit="width" min=0.0 max=64.0 />
            <NumberField pointer=at("linear/full_every") label="Full attention" unit="every n-th layer" min=0.0 max=1024.0 placeholder="0: none" />
        }
    });
    let adapters = parts.adapters.then(|| {
        view! {
            <NumberField pointer=at("adapters/rank") label="Rank" unit="r" min=1.0 max=4096.0 />
            <CheckField pointer=at("adapters/mlp") label="Adapt the MLP" />
            <NumberField pointer=at("adapters/base_bits") label="Base weights" unit="bits" min=4.0 max=8.0 step=4.0 placeholder="16" />
        }
    });
    view! {
        <PartSwitch index=index part=LATENT />
        {latent}
        <PartSwitch index=index part=WINDOW />
        {window}
        <PartSwitch index=index part=LINEAR />
        {linear}
        <NumberField pointer=at("predicted_ahead") label="Multi-token prediction" unit="further tokens" min=0.0 max=8.0 placeholder="0" />
        <PartSwitch index=index part=ADAPTERS />
        {adapters}
    }
    .into_any()
}
