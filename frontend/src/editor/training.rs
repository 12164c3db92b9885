//! Training settings.

use api::planner::scenario::FreeSetting;
use api::planner::training::{Framework, MasterWeights, MomentFormat, Optimizer, RecomputedModule};
use leptos::prelude::*;
use serde_json::{Value, json};

use super::field::{CheckField, NumberField, OptionalField, SelectField};
use super::free::{FreeCheck, IfFixed, is_free};
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
                options=&[("none", "None"), ("selective", "Attention"), ("operators", "Every second matrix product"), ("full", "Whole layers")]
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
            <div class="choosable-check">
                <IfFixed setting=FreeSetting::SequenceParallel>
                    <CheckField pointer="/training/sequence_parallel" label="Sequence parallel" when_absent=true />
                </IfFixed>
                <FreeCheck setting=FreeSetting::SequenceParallel />
            </div>
            <IfFixed setting=FreeSetting::Zero>
                <CheckField pointer="/training/distributed_optimizer" label="Distributed optimizer (ZeRO-1)" when_absent=true />
            </IfFixed>
            <NumberField pointer="/training/memory_reserve_gib" label="Memory reserve" unit="GiB" min=0.0 max=1024.0 step=0.5 />
            <NumberField pointer="/max_memory_risk" label="Highest risk of running out of memory" unit="share" min=0.001 max=0.5 step=0.05 placeholder="no limit" />
            <Advanced title="Advanced" prefixes=ADVANCED.map(str::to_owned).to_vec()>
                <h4>"Memory"</h4>
                <IfFixed setting=FreeSetting::Recompute>
                    <RecomputedModules />
                    <NumberField pointer="/training/recompute_layers" label="Recomputed" unit="layers per stage" min=1.0 max=1024.0 placeholder="automatic" />
                </IfFixed>
                <p class="hint">"Empty: all layers. Used only if Recompute is \u{201c}Whole layers\u{201d}."</p>
                <NumberField pointer="/training/activation_offload" label="Activations on the host" unit="share" min=0.0 max=1.0 step=0.05 placeholder="0" free=FreeSetting::ActivationOffload />
                <p class="hint">"Share of the activations that are offloaded to host memory, 0 to 1."</p>
                <SelectField pointer="/training/optimizer" label="Optimizer" options=&OPTIMIZERS />
                <SelectField pointer="/training/master_weights" label="Master weights" options=&MASTER_WEIGHTS />
                <SelectField pointer="/training/moments" label="Moments" options=&MOMENTS />
                <NumberField pointer="/training/optimizer_offload" label="Optimizer state on the host" unit="share" min=0.0 max=1.0 step=0.05 placeholder="0" free=FreeSetting::OptimizerOffload />
                <OptionalField
                    pointer="/training/zero"
                    label="ZeRO stage"
                    options=&[(0, "0 (nothing)"), (1, "1 (optimizer)"), (2, "2 (+ gradients)"), (3, "3 (+ weights)")]
                    free=FreeSetting::Zero
                />
                <CheckField pointer="/training/parameter_offload" label="Weights and gradients on the host" />
                <p class="hint">"Needs ZeRO stage 3. The optimizer state is on the host too, as with CPU offload of FSDP and offload_param of DeepSpeed."</p>
                <NumberField pointer="/training/shard_degree" label="Shard over" unit="devices" min=1.0 max=131_072.0 placeholder="all" />
                <p class="hint">"Devices (DP x CP) that share a copy of the states under ZeRO. Empty: all. Fewer: hybrid sharding (HSDP), for example 8 for a copy per node."</p>
                <SelectField pointer="/training/gradients" label="Gradients" options=&[("fp32", "fp32"), ("bf16", "bf16")] />
                <CheckField pointer="/training/fused_weight_gradients" label="Accumulate weight gradients inside the matrix product" when_absent=true />
                <NumberField pointer="/training/microbatches_per_flush" label="Microbatches per pipeline flush" unit="" min=1.0 max=1_000_000.0 placeholder="all" />
                <p class="hint">"Empty: the pipeline is flushed once per step. torchtitan flushes it in each step of gradient accumulation, after local batch / microbatch."</p>
                <h4>"Communication"</h4>
                <NumberField pointer="/training/tensor_overlap" label="TP communication overlapped" unit="share" min=0.0 max=1.0 step=0.05 placeholder="0" />
                <p class="hint">"Runs in chunks next to the matrix products: 1 with --tp-comm-overlap of Megatron-LM, 0.5 with asynchronous TP of torchtitan."</p>
                <NumberField pointer="/training/data_overlap" label="DP communication overlapped" unit="share" min=0.0 max=1.0 step=0.05 placeholder="0" />
                <NumberField pointer="/training/expert_overlap" label="EP communication hidden" unit="share" min=0.0 max=1.0 step=0.05 placeholder="0" />
                <CheckField pointer="/training/dispatch_by_node" label="Send each token to a node only once (as DeepEP)" />
                <CheckField pointer="/training/overlapped_backward" label="Overlap TP all-reduce with the weight gradient" when_absent=true />
                <h4>"Kernels"</h4>
                <SelectField pointer="/training/fp8_recipe" label="Scaling of fp8" options=&FP8_RECIPES />
                <CheckField pointer="/training/fp8_weights" label="Weights of layers in fp8" />
                <CheckField pointer="/training/fp8_activation_input" label="Inputs of activation functions stored in fp8" />
                <p class="hint">"All three need the precision \u{201c}fp8 products\u{201d}. Master weights do not change."</p>
                <SelectField pointer="/training/execution" label="Execution" options=&EXECUTION />
                <p class="hint">"The framework sets kernels (fused or eager), memory of the loss and host time. \u{201c}Execution\u{201d} overrides the kernels."</p>
                <CheckField pointer="/training/chunked_loss" label="Loss in chunks, without stored logits (as Liger-Kernel)" />
                <CheckField pointer="/training/in_place_loss" label="Loss in place, one copy of the logits (as verl without padding)" />
                <CheckField pointer="/training/unsharded_gradients" label="Unsharded gradients between microbatches (FSDP without synchronization)" />
                <CheckField pointer="/training/grouped_experts" label="Experts as grouped products (as transformers 5)" />
                <h4>"Further degrees"</h4>
                <NumberField pointer="/training/context_parallel" label="Context parallel" unit="CP" min=1.0 max=1024.0 placeholder="1" free=FreeSetting::ContextParallel />
                <CheckField pointer="/training/context_balanced" label="Balanced causal attention (CP)" when_absent=true />
                <NumberField pointer="/training/expert_parallel" label="Expert parallel" unit="EP" min=1.0 max=1024.0 placeholder="1" free=FreeSetting::ExpertParallel />
                <OptionalField pointer="/training/expert_tensor_parallel" label="Expert tensor parallel" options=&[(1, "1 (whole experts)")] free=FreeSetting::ExpertTensorParallel />
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
    (RecomputedModule::Mlp, "Dense MLP"),
    (RecomputedModule::Moe, "Experts and their all-to-all"),
    (RecomputedModule::SharedExperts, "Shared experts"),
];

/// Modules of a scenario that lists none.
const DEFAULT_MODULES: [RecomputedModule; 1] = [RecomputedModule::CoreAttn];

/// Returns the modules that are recomputed for the list of a scenario.
fn shown_modules(listed: Vec<RecomputedModule>) -> Vec<RecomputedModule> {
    if listed.is_empty() { DEFAULT_MODULES.to_vec() } else { listed }
}

/// Returns the modules after a change of one of them, in the order of all modules.
fn toggled(selected: &[RecomputedModule], module: RecomputedModule, is_on: bool) -> Vec<RecomputedModule> {
    let stays = |other: &RecomputedModule| if *other == module { is_on } else { selected.contains(other) };
    RecomputedModule::ALL.into_iter().filter(stays).collect()
}

/// Parts that no module of the model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AbsentParts {
    latent: bool,
    experts: bool,
    shared_experts: bool,
}

impl AbsentParts {
    fn of_scenario(scenario: &Value) -> Self {
        let modules = pointer::get(scenario, "/model/modules").and_then(Value::as_array).cloned().unwrap_or_default();
        let none = |has: fn(&Value) -> bool| !modules.iter().any(has);
        Self {
            latent: none(|module| module["latent"].is_object()),
            experts: none(|module| module["moe"].is_object()),
            shared_experts: none(|module| module["moe"]["shared_width"].as_u64().is_some_and(|width| width > 0)),
        }
    }

    /// Returns why the model has no such module. `None` if it has.
    fn reason(self, module: RecomputedModule) -> Option<&'static str> {
        match module {
            RecomputedModule::MlaUpProj => self.latent.then_some("The model has no latent attention."),
            RecomputedModule::MoeAct | RecomputedModule::Moe => self.experts.then_some("The model has no experts."),
            RecomputedModule::SharedExperts => self.shared_experts.then_some("The model has no shared experts."),
            RecomputedModule::CoreAttn | RecomputedModule::Layernorm | RecomputedModule::Mlp => None,
        }
    }
}

/// Selection of the modules that selective recomputation repeats.
#[component]
fn RecomputedModules() -> impl IntoView {
    const AT: &str = "/training/recompute_modules";
    let form = use_form();
    let is_selective = Memo::new(move |_| {
        form.document.with(|scenario| pointer::text(scenario, "/training/recompute")).as_deref() == Some("selective")
    });
    let selected = Memo::new(move |_| {
        form.document.with(|scenario| {
            let modules = pointer::get(scenario, AT).cloned().unwrap_or_default();
            shown_modules(serde_json::from_value(modules).unwrap_or_default())
        })
    });
    let absent = Memo::new(move |_| form.document.with(AbsentParts::of_scenario));
    let toggle = move |module: RecomputedModule, is_on: bool| {
        let modules = selected.with_untracked(|selected| toggled(selected, module, is_on));
        if modules == DEFAULT_MODULES {
            form.remove(AT);
        } else {
            form.set(AT, json!(modules));
        }
    };
    let boxes = move || {
        let checks = MODULES.map(|(module, title)| {
            let is_on = move || selected.with(|selected| selected.contains(&module));
            let is_only = move || is_on() && selected.with(|selected| selected.len() == 1);
            // A selected module without effect can be removed.
            let reason = move || {
                let missing = absent.get().reason(module).filter(|_| !is_on());
                missing.or_else(|| is_only().then_some("At least one module is recomputed."))
            };
            view! {
                <label class="check" title=reason>
                    <input
                        type="checkbox"
                        data-module=module.id()
                        disabled=move || reason().is_some()
                        prop:checked=is_on
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
                <p class="hint">"The attention core is recomputed by default; further modules are added to it."</p>
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

/// Master weights: value, title.
const MASTER_WEIGHTS: [(&str, &str); MasterWeights::ALL.len()] = [
    (MasterWeights::Fp32.id(), "fp32"),
    (MasterWeights::Half.id(), "16 bits"),
    (MasterWeights::None.id(), "None (pure bf16)"),
];

/// Formats of the moments: value, title.
pub(crate) const MOMENTS: [(&str, &str); MomentFormat::ALL.len()] =
    [(MomentFormat::Fp32.id(), "fp32"), (MomentFormat::Bf16.id(), "bf16"), (MomentFormat::Fp8.id(), "fp8")];

/// Executions: value, title. Without a value, the framework decides.
pub(crate) const EXECUTION: [(&str, &str); 4] =
    [("", "As usual in the framework"), ("eager", "Eager"), ("compiled", "Compiled"), ("cuda_graph", "CUDA graph")];

/// Recipes of fp8: value, title. Without a value, the framework decides.
const FP8_RECIPES: [(&str, &str); 6] = [
    ("", "As usual in the framework"),
    ("delayed", "Delayed, by tensor"),
    ("tensorwise", "Current, by tensor"),
    ("rowwise", "By row"),
    ("blockwise", "By block of 128"),
    ("mxfp8", "MXFP8, by 32 values"),
];

const ADVANCED: [&str; 30] = [
    "/training/recompute_modules",
    "/training/expert_tensor_parallel",
    "/training/expert_overlap",
    "/training/dispatch_by_node",
    "/training/optimizer",
    "/training/optimizer_offload",
    "/training/master_weights",
    "/training/moments",
    "/training/recompute_layers",
    "/training/activation_offload",
    "/training/zero",
    "/training/shard_degree",
    "/training/parameter_offload",
    "/training/microbatches_per_flush",
    "/training/fp8_recipe",
    "/training/fp8_weights",
    "/training/fp8_activation_input",
    "/training/chunked_loss",
    "/training/in_place_loss",
    "/training/grouped_experts",
    "/training/unsharded_gradients",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_added_to_the_attention_core() {
        use RecomputedModule::{CoreAttn, Layernorm};
        let shown = shown_modules(Vec::new());
        assert_eq!(shown, [CoreAttn]);
        let both = toggled(&shown, Layernorm, true);
        assert!(both.len() == 2 && both.contains(&CoreAttn) && both.contains(&Layernorm), "{both:?}");
        assert_eq!(toggled(&both, CoreAttn, false), [Layernorm]);
        assert_eq!(toggled(&both, Layernorm, false), DEFAULT_MODULES);
    }

    #[test]
    fn modules_that_the_model_has_not_are_named() {
        let scenario = |module: Value| json!({"model": {"modules": [{"layers": 2}, module]}});
        let reasons = |module: Value| {
            let absent = AbsentParts::of_scenario(&scenario(module));
            RecomputedModule::ALL.into_iter().filter(|module| absent.reason(*module).is_some()).count()
        };
        assert_eq!(reasons(json!({})), 4, "latent attention, activation, experts, shared experts");
        assert_eq!(reasons(json!({"moe": {"experts": 8}})), 2, "latent attention, shared experts");
        assert_eq!(reasons(json!({"moe": {"experts": 8, "shared_width": 2048}, "latent": {"kv_rank": 512}})), 0);
    }
}
