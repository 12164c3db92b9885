//! Training settings.

use api::planner::scenario::FreeSetting;
use api::planner::training::{Framework, Optimizer, RecomputedModule};
use leptos::prelude::*;
use serde_json::json;

use super::field::{CheckField, NumberField, OptionalField, SelectField};
use super::free::{IfFixed, is_free};
use super::section::{Advanced, Section};
use crate::explore::use_explore;
use crate::form::use_form;
use crate::pointer;

/// Training section.
#[component]
pub(super) fn TrainingSection() -> impl IntoView {
    let explore = use_explore();
    let keeps_no_scores = Memo::new(move |_| {
        explore.scenario.with(|scenario| {
            let training_field = |field: &str| pointer::text(scenario, &format!("/training/{field}"));
            !is_free(scenario, FreeSetting::Recompute)
                && training_field("recompute").as_deref() == Some("selective")
                && training_field("attention").as_deref() != Some("unfused")
        })
    });
    view! {
        <Section title="Training" pointer="/training" note="">
            <SelectField
                pointer="/training/recompute"
                label="Recompute"
                options=&[("none", "None"), ("selective", "Attention"), ("operators", "Every second product"), ("full", "Whole layers")]
                free=FreeSetting::Recompute
            />
            <Show when=move || keeps_no_scores.get()>
                <p class="hint" data-testid="recompute-hint">
                    "With fused attention, \u{201c}Attention\u{201d} equals \u{201c}None\u{201d}: the kernel keeps no scores, and its backward computes them again in any case. Choose \u{201c}Whole layers\u{201d} to save memory."
                </p>
            </Show>
            <SelectField pointer="/training/attention" label="Attention" options=&ATTENTION />
            <SelectField pointer="/training/framework" label="Framework" options=&FRAMEWORKS />
            <SelectField
                pointer="/training/precision"
                label="Precision"
                options=&[("bf16", "bf16"), ("fp8", "fp8 products"), ("fp32", "fp32 (TF32)")]
            />
            <CheckField pointer="/training/sequence_parallel" label="Sequence parallel" when_absent=true />
            <IfFixed setting=FreeSetting::Zero>
                <CheckField pointer="/training/distributed_optimizer" label="Distributed optimizer (ZeRO-1)" when_absent=true />
            </IfFixed>
            <NumberField pointer="/training/memory_reserve_gib" label="Memory reserve" unit="GiB" min=0.0 max=1024.0 step=0.5 />
            <Advanced title="Advanced" prefixes=ADVANCED.map(str::to_owned).to_vec()>
                <h4>"Memory"</h4>
                <IfFixed setting=FreeSetting::Recompute>
                    <RecomputedModules />
                    <NumberField pointer="/training/recompute_layers" label="Recomputed" unit="layers a stage" min=1.0 max=1024.0 placeholder="automatic" />
                </IfFixed>
                <p class="hint">"Automatic: all layers. Counts with whole layers recomputed only."</p>
                <NumberField pointer="/training/activation_offload" label="Offloaded" unit="0 – 1" min=0.0 max=1.0 step=0.05 placeholder="0" free=FreeSetting::ActivationOffload />
                <p class="hint">"Share of the stored activations in host memory until the backward."</p>
                <SelectField pointer="/training/optimizer" label="Optimizer" options=&OPTIMIZERS />
                <NumberField pointer="/training/optimizer_offload" label="Optimizer on the host" unit="0 – 1" min=0.0 max=1.0 step=0.05 placeholder="0" />
                <OptionalField
                    pointer="/training/zero"
                    label="ZeRO stage"
                    options=&[(0, "0: nothing"), (1, "1: optimizer"), (2, "2: + gradients"), (3, "3: + weights")]
                    free=FreeSetting::Zero
                />
                <SelectField pointer="/training/gradients" label="Gradients" options=&[("fp32", "fp32"), ("bf16", "bf16")] />
                <CheckField pointer="/training/fused_weight_gradients" label="Accumulate inside the product" when_absent=true />
                <h4>"Communication"</h4>
                <NumberField pointer="/training/tensor_overlap" label="TP hidden" unit="0 – 1" min=0.0 max=1.0 step=0.05 />
                <NumberField pointer="/training/data_overlap" label="DP hidden" unit="0 – 1" min=0.0 max=1.0 step=0.05 />
                <NumberField pointer="/training/expert_overlap" label="EP hidden" unit="0 – 1" min=0.0 max=1.0 step=0.05 placeholder="0" />
                <CheckField pointer="/training/dispatch_by_node" label="Tokens cross to a node once (DeepEP)" />
                <CheckField pointer="/training/overlapped_backward" label="TP beside weight gradients" when_absent=true />
                <h4>"Kernels"</h4>
                <SelectField pointer="/training/execution" label="Execution" options=&EXECUTION />
                <p class="hint">"The framework selects fused or eager kernels, the memory of the loss and the host time. Execution replaces its choice."</p>
                <h4>"Further degrees"</h4>
                <NumberField pointer="/training/context_parallel" label="Context parallel" unit="CP" min=1.0 max=1024.0 placeholder="1" free=FreeSetting::ContextParallel />
                <CheckField pointer="/training/context_balanced" label="Balanced causal attention (CP)" when_absent=true />
                <NumberField pointer="/training/expert_parallel" label="Expert parallel" unit="EP" min=1.0 max=1024.0 placeholder="1" free=FreeSetting::ExpertParallel />
                <OptionalField pointer="/training/expert_tensor_parallel" label="Expert tensor parallel" options=&[(1, "1: whole experts")] />
            </Advanced>
        </Section>
    }
}

/// Modules of selective recomputation, in Megatron-LM's names, with their titles.
const MODULES: [(RecomputedModule, &str); 7] = [
    (RecomputedModule::CoreAttn, "Attention core"),
    (RecomputedModule::MlaUpProj, "Up-projections of latent attention"),
    (RecomputedModule::Layernorm, "Norms"),
    (RecomputedModule::MoeAct, "Activation of experts"),
    (RecomputedModule::Mlp, "MLP without experts"),
    (RecomputedModule::Moe, "Experts with their exchange"),
    (RecomputedModule::SharedExperts, "Shared experts"),
];

/// Selection of the modules that selective recomputation repeats.
#[component]
fn RecomputedModules() -> impl IntoView {
    const AT: &str = "/training/recompute_modules";
    let form = use_form();
    let is_selective = Memo::new(move |_| {
        form.document.with(|scenario| pointer::text(scenario, "/training/recompute")).as_deref() == Some("selective")
    });
    let selected = move || {
        form.document.with(|scenario| {
            let modules = pointer::get(scenario, AT).cloned().unwrap_or_default();
            serde_json::from_value::<Vec<RecomputedModule>>(modules).unwrap_or_default()
        })
    };
    let toggle = move |module: RecomputedModule, is_on: bool| {
        let selected = selected();
        let stays = |other: &RecomputedModule| if *other == module { is_on } else { selected.contains(other) };
        let modules: Vec<RecomputedModule> = RecomputedModule::ALL.into_iter().filter(stays).collect();
        if modules.is_empty() {
            form.remove(AT);
        } else {
            form.set(AT, json!(modules));
        }
    };
    let boxes = move || {
        let checks = MODULES.map(|(module, title)| {
            view! {
                <label class="check">
                    <input
                        type="checkbox"
                        data-module=module.id()
                        prop:checked=move || selected().contains(&module)
                        on:change=move |event| toggle(module, event_target_checked(&event))
                    />
                    {title}
                </label>
            }
        });
        view! {
            <fieldset class="plain" data-testid="recomputed-modules">
                <legend>"Recomputed modules"</legend>
                {checks.into_iter().collect_view()}
                <p class="hint">"None selected: the attention core."</p>
            </fieldset>
        }
    };
    move || is_selective.get().then(boxes)
}

/// Attention kernels: value, title.
pub(crate) const ATTENTION: [(&str, &str); 6] = [
    ("flash", "Fused, device default"),
    ("unfused", "Unfused"),
    ("flash1", "FlashAttention 1"),
    ("flash2", "FlashAttention 2"),
    ("flash3", "FlashAttention 3"),
    ("cudnn", "cuDNN"),
];

const FRAMEWORKS: [(&str, &str); Framework::ALL.len()] = {
    let mut options = [("", ""); Framework::ALL.len()];
    let mut index = 0;
    while index < options.len() {
        options[index] = (Framework::ALL[index].id(), Framework::ALL[index].title());
        index += 1;
    }
    options
};

/// Optimizers: value, title.
const OPTIMIZERS: [(&str, &str); Optimizer::ALL.len()] = {
    let mut options = [("", ""); Optimizer::ALL.len()];
    let mut index = 0;
    while index < options.len() {
        options[index] = (Optimizer::ALL[index].id(), Optimizer::ALL[index].title());
        index += 1;
    }
    options
};

/// Executions: value, title. Without a value, the framework decides.
pub(crate) const EXECUTION: [(&str, &str); 4] =
    [("", "As usual in the framework"), ("eager", "Eager"), ("compiled", "Compiled"), ("cuda_graph", "CUDA graph")];

const ADVANCED: [&str; 18] = [
    "/training/recompute_modules",
    "/training/expert_tensor_parallel",
    "/training/expert_overlap",
    "/training/dispatch_by_node",
    "/training/optimizer",
    "/training/optimizer_offload",
    "/training/recompute_layers",
    "/training/activation_offload",
    "/training/zero",
    "/training/gradients",
    "/training/fused_weight_gradients",
    "/training/tensor_overlap",
    "/training/data_overlap",
    "/training/overlapped_backward",
    "/training/execution",
    "/training/context_balanced",
    "/training/context_parallel",
    "/training/expert_parallel",
];
