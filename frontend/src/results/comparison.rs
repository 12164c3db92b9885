//! Compares the open scenario with another scenario, or with the result from another engine
//! version.
//!
//! The link stores the choice (`cmp`, `cmpe`). A pinned scenario stays selected when the user opens
//! another scenario.

mod changes;
mod metrics;
mod other_timeline;
mod picker;

use std::sync::Arc;

use api::job::{EngineOutcomeList, StoredOutcome};
use api::path;
use api::planner::scenario::Scenario;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::explore::use_explore;
use crate::fragment::View;
use crate::links;
use crate::notice::ErrorNotice;
use crate::outcome_fetch::fetch_or_plan_while;

/// Scenario and outcome for comparison.
#[derive(Debug, Clone, PartialEq)]
struct Reference {
    scenario: StoredScenario,
    outcome: StoredOutcome,
}

/// Request state.
#[derive(Debug, Clone, PartialEq)]
enum ReferenceState {
    Nothing,
    Waiting,
    Here(Arc<Reference>),
    Failed(RequestError),
}

/// Scenario and engine as written in the link.
type Named = (String, Option<String>);

fn named(view: &View) -> Option<Named> {
    Some((view.compared?.as_str().to_owned(), view.compared_engine.clone()))
}

/// Returns `None` if planning was cancelled or the result is no longer needed.
async fn fetch(
    (scenario, engine): Named,
    is_wanted: impl Fn() -> bool + 'static,
) -> Result<Option<Reference>, RequestError> {
    let scenario = client::get::<StoredScenario>(&path::scenario(&scenario)).await?;
    let outcome = match engine {
        None => match fetch_or_plan_while(&scenario.id, is_wanted).await? {
            Some(outcome) => outcome,
            None => return Ok(None),
        },
        Some(name) => {
            let list = client::get::<EngineOutcomeList>(&path::engine_answers(&scenario.id)).await?;
            let found = list.answers.into_iter().find(|candidate| picker::link_name(&candidate.engine) == name);
            let engine = found.map(|entry| client::encode(&entry.engine)).ok_or_else(|| {
                RequestError::Unreadable(format!("No answer of the engine \u{201c}{name}\u{201d} is stored for it."))
            })?;
            client::get(&path::engine_outcome(&scenario.id, &engine)).await?
        }
    };
    Ok(Some(Reference { scenario, outcome }))
}

/// Returns the title, or model and cluster if the scenario has no title.
fn scenario_title(scenario: &Scenario) -> String {
    let devices = u64::from(scenario.cluster.nodes) * u64::from(scenario.cluster.devices_per_node);
    let default_title = || format!("{} on {devices} × {}", scenario.model.name, scenario.cluster.name);
    scenario.title.clone().unwrap_or_else(default_title)
}

/// Card with the selection, input differences, and result differences.
#[component]
pub(super) fn ComparisonCard() -> impl IntoView {
    let explore = use_explore();
    let requested = Memo::new(move |_| explore.view.with(named));
    let state = RwSignal::new(ReferenceState::Nothing);
    // Request number. Responses to older requests are discarded.
    let number = StoredValue::new(0_u64);
    let ask = move |named: Option<Named>| {
        number.update_value(|number| *number += 1);
        let Some(named) = named else { return state.set(ReferenceState::Nothing) };
        let mine = number.get_value();
        state.set(ReferenceState::Waiting);
        spawn_local(async move {
            let is_wanted = move || number.try_get_value() == Some(mine);
            let result = fetch(named, is_wanted).await;
            if is_wanted() {
                state.set(match result {
                    Ok(Some(reference)) => ReferenceState::Here(Arc::new(reference)),
                    // Another page cancelled the shared planning job.
                    Ok(None) => ReferenceState::Failed(RequestError::Unreadable(
                        "Planning was cancelled from another page.".to_owned(),
                    )),
                    Err(error) => ReferenceState::Failed(error),
                });
            }
        });
    };
    Effect::new(move |_| ask(requested.get()));
    let retry = Callback::new(move |()| ask(requested.get_untracked()));
    let body = move || {
        match state.get() {
        ReferenceState::Nothing => view! {
            <p class="hint">
                "Choose a scenario to compare with, or pin the present one and change it. Differences of fields and results are shown here."
            </p>
        }
        .into_any(),
        ReferenceState::Waiting => view! { <p class="hint" role="status">"Fetching the other answer\u{2026}"</p> }.into_any(),
        ReferenceState::Failed(request_error) => view! { <ErrorNotice error=request_error on_retry=retry /> }.into_any(),
        ReferenceState::Here(reference) => view! { <Compared reference=reference /> }.into_any(),
    }
    };
    view! {
        <section class="card" data-testid="card-comparison">
            <header class="card-title"><h2>"Compare with another scenario"</h2></header>
            <picker::TargetPicker />
            {body}
        </section>
    }
}

/// Differences section by section.
#[component]
fn Compared(reference: Arc<Reference>) -> impl IntoView {
    let explore = use_explore();
    let Reference { scenario, outcome } = reference.as_ref();
    let title = scenario_title(&scenario.scenario);
    let engine = outcome.outcome.engine.clone();
    let link = path::share(&scenario.short);
    let (id, to) = (scenario.id.clone(), link.clone());
    let go = move |event: web_sys::MouseEvent| {
        if links::is_plain(&event) {
            event.prevent_default();
            explore.open_linked(&id, &to);
        }
    };
    let there = StoredValue::new(serde_json::to_value(&scenario.scenario).unwrap_or_default());
    let differing = move || {
        let here = explore.stored.with(|stored| serde_json::to_value(&stored.as_ref()?.scenario).ok());
        here.map(|here| changes::show(&there.with_value(|there| changes::between(there, &here))))
    };
    let reference_metrics = Arc::clone(&reference);
    let table = move || explore.result.get().map(|here| metrics::show(&here, &reference_metrics.outcome));
    view! {
        <p class="comparison-other">
            "Compared with "<a href=link data-testid="comparison-link" on:click=go>{title}</a>
            <span class="muted">{format!(" planned by {engine}")}</span>
        </p>
        {differing}
        {table}
        <other_timeline::OtherTimeline reference=reference />
    }
}
