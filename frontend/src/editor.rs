//! Scenario editor in the left column of the explore page.

mod calibration;
mod cluster;
mod distribution;
pub(crate) mod field;
mod free;
mod job_config_report;
mod layer_kinds;
mod mixture;
mod model;
mod modules;
mod open_file;
mod preset;
mod scrub;
mod section;
pub(crate) mod slider;
mod source;
mod stage_layers;
mod training;
mod workload;

pub(crate) use training::{ATTENTION, EXECUTION, MOMENTS};

use leptos::prelude::*;
use serde_json::{Value, json};

use crate::catalogue::use_catalogue;
use crate::explore::use_explore;
use crate::pointer;
use field::{FieldError, NumberField};
use section::{HomelessErrors, Section};

/// Scenario editor with all sections.
#[component]
pub(crate) fn Editor() -> impl IntoView {
    let explore = use_explore();
    provide_context(explore.form());
    let report = RwSignal::new(None);
    let loaded = Memo::new(move |_| explore.scenario.with(Value::is_object));
    view! {
        <Show when=move || loaded.get() fallback=|| view! { <div class="skeleton editor-skeleton" aria-hidden="true"></div> }>
            <div class="editor-tools">
                <button class="quiet" on:click=move |_| explore.undo() disabled=move || !explore.undoable.get().0 title="Undo the last edit (Ctrl+Z)">
                    "Undo"
                </button>
                <button class="quiet" on:click=move |_| explore.redo() disabled=move || !explore.undoable.get().1 title="Redo (Ctrl+Shift+Z)">
                    "Redo"
                </button>
                <span class="grow"></span>
                <open_file::OpenFile report=report />
                <button class="quiet" on:click=move |_| explore.start_afresh() title="Discard this draft and start with a ready scenario">
                    "New"
                </button>
            </div>
            <job_config_report::JobConfigReport report=report />
            <HomelessErrors />
            <model::ModelSection />
            <cluster::ClusterSection />
            <workload::WorkloadSection />
            <LayoutSection />
            <PlannersSection />
            <training::TrainingSection />
            <RunSection />
        </Show>
    }
}

/// Fixed degrees of parallelism. The planner searches the degrees of empty fields.
#[component]
fn LayoutSection() -> impl IntoView {
    let explore = use_explore();
    let is_fixed = Memo::new(move |_| {
        explore.scenario.with(|scenario| {
            let degrees = pointer::get(scenario, "/layout").and_then(Value::as_object);
            degrees.is_some_and(|degrees| degrees.values().any(|degree| !degree.is_null()))
        })
    });
    let free_layout = move |_| {
        explore.edit("/layout", |scenario| {
            pointer::remove(scenario, "/layout");
            pointer::remove(scenario, free::LAYERS_PER_STAGE);
        });
    };
    view! {
        <Section title="Layout" pointer="/layout" note="empty = searched">
            <Show when=move || is_fixed.get()>
                <p class="hint">
                    "This scenario fixes degrees. "
                    <button class="quiet" data-testid="free-layout" on:click=free_layout>"Search all of them"</button>
                </p>
            </Show>
            <NumberField pointer="/layout/tensor" label="Tensor parallel" unit="TP" min=1.0 max=64.0 placeholder="search" />
            <NumberField pointer="/layout/pipeline" label="Pipeline stages" unit="PP" min=1.0 max=128.0 placeholder="search" />
            <NumberField pointer="/layout/chunks" label="Chunks per rank" unit="VPP" min=1.0 max=32.0 placeholder="search" />
            <NumberField pointer="/layout/microbatch" label="Microbatch" unit="sequences" min=1.0 max=256.0 placeholder="search" />
            <NumberField pointer="/layout/group" label="Group" unit="microbatches" min=1.0 max=1024.0 placeholder="PP" />
            <stage_layers::StageLayers />
            <free::SubMicrobatchSize />
        </Section>
    }
}

/// Selection of planners.
#[component]
fn PlannersSection() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let selected_kinds = move || {
        explore
            .scenario
            .with(|scenario| pointer::get(scenario, "/planners").and_then(Value::as_array).cloned().unwrap_or_default())
    };
    let toggle = move |id: &'static str, on: bool| {
        let mut planners = selected_kinds();
        planners.retain(|planner| planner != id);
        if on {
            planners.push(json!(id));
        }
        explore.set("/planners", Value::Array(planners));
    };
    let boxes = move || {
        let choices = catalogue.presets.get().map(|presets| presets.planners.clone()).unwrap_or_default();
        let rows = choices.into_iter().map(|item| {
            let id = item.id.id();
            view! {
                <label class="check">
                    <input
                        type="checkbox"
                        value=id
                        data-pointer=format!("/planners/{id}")
                        prop:checked=move || selected_kinds().iter().any(|planner| planner == id)
                        on:change=move |event| toggle(id, event_target_checked(&event))
                    />
                    <span class="pill" data-planner-colour=id></span>
                    <span>{item.title}<small class="below">{item.question}</small></span>
                </label>
            }
        });
        rows.collect_view()
    };
    view! {
        <Section title="Planners" pointer="/planners" note="">
            <fieldset class="plain" data-pointer="/planners">
                <legend class="visually-hidden">"Planners to run"</legend>
                {boxes}
            </fieldset>
            <FieldError pointer="/planners".to_owned() />
        </Section>
    }
}

/// Seed and iteration count.
#[component]
fn RunSection() -> impl IntoView {
    view! {
        <Section title="Evaluation" pointer="/iterations" note="">
            <NumberField pointer="/iterations" label="Iterations" unit="global batches" min=1.0 max=10_000.0 />
            <NumberField pointer="/seed" label="Seed" unit="" min=0.0 max=4_294_967_295.0 />
        </Section>
    }
}
