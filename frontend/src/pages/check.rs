//! Check page: a training configuration, whether it fits, its time and memory, and what to change.

mod changes;
mod charts;
mod dropped_trace;
mod input;
mod log_comparison;
mod read;
mod slowness;
mod verdict;

use std::sync::Arc;

use api::check::Check;
use leptos::prelude::*;

use crate::check::{Checked, Loaded, use_check};
use crate::focus;
use crate::gantt::{Measure, set_measure};
use crate::notice::ErrorNotice;
use crate::results::{CostCard, Throughput};
use changes::ChangesPanel;
use charts::{MemoryCard, ScheduleCard, TimeCard};
use input::Input;
use read::ReadPanel;
use slowness::SlownessCard;
use verdict::VerdictPanel;

/// Page of a training configuration.
#[component]
pub(crate) fn CheckPage() -> impl IntoView {
    document().set_title("Check · Planscope");
    set_measure(Measure::Physical);
    let state = use_check();
    // The first page opens this page with a check: the focus would be lost with the field.
    if !state.result.with_untracked(|result| matches!(result, Loaded::Absent)) {
        focus::move_to("#main".to_owned());
    }
    // After a reload, the tab still has the configuration.
    let has_text = state.text.with_untracked(|text| !text.is_empty());
    if has_text && state.result.with_untracked(|result| matches!(result, Loaded::Absent)) {
        state.run();
    }
    // The text of the configuration closes with the result.
    Effect::new(move |_| {
        let is_here = state.result.with(|result| matches!(result, Loaded::Here(_)));
        if is_here && (focus::is_in(".check-input textarea") || focus::is_lost()) {
            focus::move_to("#check-headline".to_owned());
        }
    });
    let announced = move || {
        state.result.with(|result| match result {
            Loaded::Here(checked) => Some(format!("Checked: {}", checked.check.verdict.title())),
            _ => None,
        })
    };
    let content = move || match state.result.get() {
        Loaded::Absent => view! { <Promise /> }.into_any(),
        Loaded::Waiting => view! {
            <p class="progress" role="status">
                <progress aria-label="Checking"></progress>
                "Planning and simulating…"
                <button class="quiet" on:click=move |_| state.cancel()>"Cancel"</button>
            </p>
        }
        .into_any(),
        // The field shows its own error. An earlier error of the server does not apply to the new input.
        Loaded::Failed(_) if state.devices_error().is_some() => ().into_any(),
        Loaded::Failed(error) => view! { <ErrorNotice error=error on_retry=move |()| state.run() /> }.into_any(),
        Loaded::Here(checked) => view! { <Answer checked=checked /> }.into_any(),
    };
    view! {
        <main id="main" class="page check-page" tabindex="-1">
            <h1 class="visually-hidden">"Check a training configuration"</h1>
            <Input />
            <p class="visually-hidden" role="status">{announced}</p>
            {content}
        </main>
    }
}

/// Text of an empty page.
#[component]
fn Promise() -> impl IntoView {
    view! {
        <section class="check-promise">
            <h2>"What you get"</h2>
            <ul>
                <li>"Whether the job fits: peak memory by rank and term, also when it does not fit."</li>
                <li>"Step time, tokens/s per GPU and MFU, and where the time goes."</li>
                <li>"The single changes that help most, each simulated, as lines of your own file."</li>
                <li>"The plan that the planner "<code>"best"</code>" finds with free layout and settings, on the same time axis."</li>
            </ul>
            <p class="hint">
                "The text is sent to this server for the check and is not stored there. Values of unknown keys are never returned. This tab \
                 has the text until it closes, without lines with credentials."
            </p>
        </section>
    }
}

#[component]
fn Answer(checked: Arc<Checked>) -> impl IntoView {
    let Check { plan, fit, certainty, scenario, schedule, .. } = &checked.check;
    let step_s = certainty.as_ref().map(|certainty| certainty.step_s);
    let plan = plan.as_ref();
    let plan = plan.map(|plan| Throughput {
        planner: fit.planner,
        title: schedule.clone(),
        metrics: plan.metrics.clone(),
        step_s,
    });
    let (plans, devices) = (plan.into_iter().collect::<Vec<_>>(), scenario.cluster.devices());
    view! {
        <VerdictPanel checked=Arc::clone(&checked) />
        <div class="check-columns">
            <ReadPanel checked=Arc::clone(&checked) />
            <div class="check-charts">
                <MemoryCard checked=Arc::clone(&checked) />
                <TimeCard checked=Arc::clone(&checked) />
                <ScheduleCard checked=Arc::clone(&checked) />
                <SlownessCard checked=Arc::clone(&checked) />
                <CostCard plans=plans devices=devices />
            </div>
            <ChangesPanel checked=checked />
        </div>
    }
}
