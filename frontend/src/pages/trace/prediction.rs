//! Comparison of a trace with a prediction: choice of the plan, and the tables.

use std::sync::Arc;

use api::path;
use api::planner::trace_prediction::TracePrediction;
use api::run::RunDetail;
use api::trace::{BreakdownSource, TraceChange, TraceDetail, TraceSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::check::{Checked, Loaded, use_check};
use crate::client::{self, Body, RequestError};
use crate::form::restore_text;
use crate::notice::ErrorNotice;
use crate::runs::PlanSelect;
use crate::traces::{ComparedPlan, PredictionTables};

/// Card with the choice of a plan and the comparison of kernels with its operators.
#[component]
pub(super) fn PredictionCard(detail: Arc<TraceDetail>, plan: ComparedPlan) -> impl IntoView {
    let id = StoredValue::new(detail.trace.id.clone());
    let last_error = RwSignal::new(None::<RequestError>);
    follow_run(&detail.trace, plan);
    store_choice(id, plan, last_error);
    let devices = detail.busy.iter().filter(|device| device.source == BreakdownSource::Kernels);
    let ranks: Vec<Option<u32>> = devices.map(|device| device.rank).collect();
    let has_kernels = !ranks.is_empty();
    // The trace states no rank: 0 is compared.
    let default_rank = detail.trace.rank.or(ranks.first().copied().flatten()).unwrap_or(0);
    let rank = RwSignal::new(None::<u32>);
    let result = RwSignal::new(Loaded::<TracePrediction>::Absent);
    let wanted = Memo::new(move |_| {
        let (scenario, planner) = plan.ready().filter(|_| has_kernels)?;
        let planner = planner.map_or_else(String::new, |planner| format!("&planner={}", planner.id()));
        let rank = rank.get().map_or_else(String::new, |rank| format!("&rank={rank}"));
        Some(format!("?scenario={scenario}{planner}{rank}"))
    });
    let has_failed = RwSignal::new(false);
    let attempt = RwSignal::new(0_u32);
    Effect::new(move |_| {
        attempt.track();
        let Some(query) = wanted.get() else { return result.set(Loaded::Absent) };
        result.set(Loaded::Waiting);
        let url = format!("{}{query}", id.with_value(|id| path::trace_prediction(id)));
        spawn_local(async move {
            let response = client::get::<TracePrediction>(&url).await;
            if wanted.try_get_untracked().flatten() == Some(query) {
                result.set(Loaded::new(response));
            }
        });
    });
    let retry = move |()| attempt.update(|attempt| *attempt += 1);
    let content = move || {
        match result.get() {
        Loaded::Absent if !has_kernels => view! {
            <p class="muted">"The trace has no kernels of a device, so nothing is compared by type. Record with CUDA activity."</p>
        }
        .into_any(),
        Loaded::Absent if plan.scenario.with(Option::is_none) => view! {
            <p class="muted" data-testid="prediction-empty">
                "Choose the scenario of the traced job. Kernels are compared with the predicted operators by type, and exposed communication and idle time with the plan."
            </p>
        }
        .into_any(),
        // The field states the reason.
        Loaded::Absent if has_failed.get() => ().into_any(),
        Loaded::Absent | Loaded::Waiting => view! {
            <div class="skeleton prediction-skeleton" role="status" aria-label="Comparing"></div>
        }
        .into_any(),
        Loaded::Failed(error) => view! { <ErrorNotice error=error on_retry=retry /> }.into_any(),
        Loaded::Here(found) => {
            let scenario = plan.scenario.get_untracked().unwrap_or_default();
            view! { <PredictionTables found=(*found).clone() scenario=scenario /> }.into_any()
        }
    }
    };
    let change_rank = move |event: web_sys::Event| {
        let text = event_target_value(&event);
        match text.trim().parse::<u32>() {
            Ok(number) => rank.set(Some(number)),
            Err(_) if text.trim().is_empty() => rank.set(None),
            Err(_) => restore_text(&event, &rank.get_untracked().map_or_else(String::new, |rank| rank.to_string())),
        }
    };
    view! {
        <section class="card" data-testid="trace-prediction">
            <header class="card-title"><h2>"Compared with a prediction"</h2></header>
            <div class="choices prediction-choices">
                <PlanSelect
                    scenario=plan.scenario
                    plan=plan.planner
                    on_planned=move |()| plan.planned.set(plan.scenario.get_untracked())
                    on_failed=move |failed| has_failed.set(failed)
                />
                {has_kernels.then(|| view! {
                    <label>
                        "Rank"
                        <input
                            type="text" inputmode="numeric" autocomplete="off" data-testid="prediction-rank"
                            placeholder=default_rank.to_string()
                            prop:value=move || rank.get().map_or_else(String::new, |rank| rank.to_string())
                            on:change=change_rank
                        />
                    </label>
                })}
            </div>
            <CheckedConfiguration plan=plan last_error=last_error />
            {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
            {content}
        </section>
    }
}

/// Button that chooses the configuration of the check page. Absent if there is none.
#[component]
fn CheckedConfiguration(plan: ComparedPlan, last_error: RwSignal<Option<RequestError>>) -> impl IntoView {
    let checked = use_check().result;
    let is_waiting = RwSignal::new(false);
    let choose = move |checked: Arc<Checked>| {
        is_waiting.set(true);
        last_error.set(None);
        spawn_local(async move {
            let response = checked.store_own_scenario().await;
            is_waiting.try_set(false);
            match response {
                Ok(stored) => {
                    plan.planner.try_set(None);
                    plan.scenario.try_set(Some(stored.id));
                }
                Err(error) => drop(last_error.try_set(Some(error))),
            }
        });
    };
    move || {
        let checked = checked.get().here()?;
        let name = checked.request.name.clone();
        let name = if name.is_empty() { "the pasted configuration".to_owned() } else { name };
        Some(view! {
            <p>
                <button type="button" data-testid="use-checked" disabled=move || is_waiting.get() on:click=move |_| choose(Arc::clone(&checked))>
                    {format!("Compare with {name} from Check")}
                </button>
            </p>
        })
    }
}

/// Chooses the plan of the run if the trace has none of its own.
fn follow_run(trace: &TraceSummary, plan: ComparedPlan) {
    let Some(run) = trace.run.clone().filter(|_| plan.scenario.with_untracked(Option::is_none)) else { return };
    spawn_local(async move {
        // Without the run there is no choice to follow.
        let Ok(detail) = client::get::<RunDetail>(&path::run(&run)).await else { return };
        if plan.scenario.try_with_untracked(Option::is_none) == Some(true) && detail.summary.scenario.is_some() {
            let (scenario, planner) = (detail.summary.scenario, detail.summary.plan);
            plan.known.set_value((scenario.clone(), planner));
            plan.planner.set(planner);
            plan.scenario.set(scenario);
        }
    });
}

/// Stores each choice of the user with the trace.
fn store_choice(id: StoredValue<String>, plan: ComparedPlan, last_error: RwSignal<Option<RequestError>>) {
    let selected = Memo::new(move |_| (plan.scenario.get(), plan.planner.get()));
    Effect::new(move |_| {
        let choice = selected.get();
        if plan.known.with_value(|known| *known == choice) {
            return;
        }
        plan.known.set_value(choice.clone());
        let (scenario, planner) = choice;
        let change = TraceChange { scenario: Some(scenario.unwrap_or_default()), planner, ..TraceChange::default() };
        let body = serde_json::to_string(&change).expect("a change is made of texts");
        let url = id.with_value(|id| path::trace(id));
        last_error.set(None);
        spawn_local(async move {
            if let Err(error) = client::send::<TraceSummary>("PATCH", &url, Body::Json(body)).await {
                last_error.try_set(Some(error));
            }
        });
    });
}
