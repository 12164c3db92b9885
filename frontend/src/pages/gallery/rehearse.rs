//! From a ready scenario to a rehearsal of its fastest plan in one click.
//!
//! What plans and begins stands in the part of the explore page (ADR 38): the gallery itself reads no scenario and no plan.

use std::future::Future;
use std::pin::Pin;

use api::gallery::Gallery;
use api::path;
use api::planner::outcome::Answer;
use api::rehearsal::StartedRehearsal;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos::wasm_split::{SplitLoaderError, wasm_split};
use leptos_router::hooks::use_navigate;

use crate::answered::plan_to_the_end;
use crate::client::{self, Body, Failure};
use crate::notice::FailureNotice;
use crate::rehearsal;

/// What is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Planning,
    Beginning,
}

/// The button that plans a ready scenario where nobody has, rehearses its fastest pipeline and shows the run.
#[component]
pub(super) fn RehearseReady(slug: String, title: String) -> impl IntoView {
    let phase = RwSignal::new(Phase::Idle);
    let failure = RwSignal::new(None::<Failure>);
    let navigate = use_navigate();
    let ready = slug.clone();
    let begin = move |_| {
        phase.set(Phase::Planning);
        failure.set(None);
        let (navigate, ready) = (navigate.clone(), ready.clone());
        spawn_local(async move {
            let begun = match rehearsing().await {
                Ok(rehearse) => rehearse(ready, phase).await,
                Err(_) => Err(Failure::Offline),
            };
            if phase.try_set(Phase::Idle).is_some() {
                return;
            }
            match begun {
                Ok(started) => navigate(&path::run_page(&started.run), <_>::default()),
                Err(problem) => failure.set(Some(problem)),
            }
        });
    };
    let words = move || match phase.get() {
        Phase::Idle => "Watch a rehearsal",
        Phase::Planning => "Planning…",
        Phase::Beginning => "Beginning…",
    };
    view! {
        <button
            type="button"
            class="quiet rehearse"
            data-testid=format!("rehearse-{slug}")
            title="Executes the fastest plan on the server with one process per rank and shows it as a run"
            disabled=move || phase.get() != Phase::Idle
            on:click=begin
        >
            {words}
            <span class="visually-hidden">{format!(" of {title}")}</span>
        </button>
        {move || failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
    }
}

type Begin = fn(String, RwSignal<Phase>) -> Begun;
type Begun = Pin<Box<dyn Future<Output = Result<StartedRehearsal, Failure>>>>;

#[allow(clippy::unnecessary_wraps, reason = "fetching the part that it stands in can fail, not itself")]
#[wasm_split(explore, wasm_split_path = ::leptos::wasm_split, fallible)]
fn rehearsing() -> Result<Begin, SplitLoaderError> {
    Ok(|slug, phase| Box::pin(rehearse(slug, phase)))
}

/// Stores and plans a scenario, where that has not been done, and begins with its fastest plan that is a pipeline.
async fn rehearse(slug: String, phase: RwSignal<Phase>) -> Result<StartedRehearsal, Failure> {
    let gallery = client::get::<Gallery>(path::GALLERY).await?;
    let entry = gallery.entries.into_iter().find(|entry| entry.slug == slug);
    let scenario =
        entry.ok_or_else(|| Failure::Unreadable("The server has no such scenario any more.".to_owned()))?.scenario;
    let body = serde_json::to_string(&scenario).map_err(|error| Failure::Unreadable(error.to_string()))?;
    let stored = client::send::<StoredScenario>("PUT", path::SCENARIOS, Body::Json(body)).await?;
    let outcome = plan_to_the_end(&stored.id).await?.outcome;
    // Whoever left the page meanwhile does not want it any more.
    if phase.try_set(Phase::Beginning).is_some() {
        return Err(Failure::Unreadable(String::new()));
    }
    let mut refusal = Failure::Unreadable("No planner found a plan.".to_owned());
    let planned = outcome.results.iter().filter(|result| matches!(result.answer, Answer::Planned(_)));
    for result in planned {
        match rehearsal::begin(&stored.id, result.planner).await {
            // Ranks that work in groups hand nothing to each other; the next plan may be a pipeline.
            Err(failure) if failure.status() == Some(422) => refusal = failure,
            answer => return answer,
        }
    }
    Err(refusal)
}
