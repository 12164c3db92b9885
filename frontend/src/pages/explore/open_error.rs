//! Page content for a link that opens no scenario: the link is ambiguous, or the scenario is
//! deleted or unknown.

use api::path;
use api::problem::{Problem, ScenarioCandidate};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::explore::{Explore, PlanState, use_explore};
use crate::format;
use crate::notice::ErrorNotice;
use crate::recent::OpenedLast;

/// Returns the server error that prevents the scenario from opening.
fn refusal(explore: &Explore) -> Option<Problem> {
    let is_open = explore.scenario.with(serde_json::Value::is_object);
    explore.state.with(|state| match state {
        PlanState::Failed(RequestError::Problem(problem))
            if !is_open && matches!(problem.status, 300 | 400 | 404 | 410) =>
        {
            Some((**problem).clone())
        }
        _ => None,
    })
}

/// True if the link opens no scenario.
pub(super) fn is_open_error(explore: &Explore) -> bool {
    refusal(explore).is_some()
}

/// Error message and alternatives for a link that opens no scenario.
#[component]
pub(super) fn OpenErrorPage() -> impl IntoView {
    let explore = use_explore();
    let body = move || {
        refusal(&explore).map(|problem| match problem.status {
            300 => view! { <Chooser candidates=problem.scenarios() /> }.into_any(),
            410 => view! { <Gone problem=problem /> }.into_any(),
            _ => view! { <Nothing problem=problem /> }.into_any(),
        })
    };
    view! {
        <main id="main" class="page open-error" tabindex="-1">
            {body}
            <OpenedLast heading="Opened last in this browser" />
            <p><a href="/scenarios">"Stored scenarios"</a>" · "<a href="/">"Ready scenarios"</a>" · "<a href="/new">"New scenario"</a></p>
        </main>
    }
}

#[component]
fn Chooser(candidates: Vec<ScenarioCandidate>) -> impl IntoView {
    document().set_title("Which scenario? · Planscope");
    let line = |candidate: ScenarioCandidate| {
        let ScenarioCandidate { short, title, created_at, deleted_at, .. } = candidate;
        let link = path::share(&short);
        let when = match deleted_at {
            Some(at) => format!("deleted {} UTC", format::moment(&at)),
            None => format!("stored {} UTC", format::moment(&created_at)),
        };
        view! { <li><a href=link>{title}</a>" "<code>{short}</code>" "<span class="muted">{when}</span></li> }
    };
    view! {
        <h1>"This link matches several scenarios"</h1>
        <p class="lead">"The identifier in the link is too short. Choose a scenario; its own link is unique."</p>
        <ul class="candidates" data-testid="candidates">{candidates.into_iter().map(line).collect_view()}</ul>
    }
}

#[component]
fn Gone(problem: Problem) -> impl IntoView {
    document().set_title("Deleted · Planscope");
    let explore = use_explore();
    let last_error = RwSignal::new(None::<RequestError>);
    let when =
        problem.deleted.as_ref().map(|deleted| format!("It was deleted on {} UTC.", format::moment(&deleted.at)));
    let restore = problem.deleted.and_then(|deleted| deleted.restore);
    let is_lasting = restore.is_none();
    let button = restore.map(|restore| {
        let bring_back = move |_| {
            let restore = restore.clone();
            spawn_local(async move {
                match client::send::<api::scenario::StoredScenario>("POST", &restore, Body::Empty).await {
                    Ok(stored) => explore.open(stored.id),
                    Err(problem) => drop(last_error.try_set(Some(problem))),
                }
            });
        };
        view! { <button class="primary" data-testid="restore" on:click=bring_back>"Restore"</button> }
    });
    view! {
        <h1>"This scenario was deleted"</h1>
        <p class="lead" data-testid="deleted-when">{when.unwrap_or(problem.detail)}</p>
        {if is_lasting {
            view! { <p>"It cannot be restored. A saved file or a self-contained link can still open it."</p> }.into_any()
        } else {
            view! { <p class="actions">{button}<span class="muted">"Restores its plans, name and tags."</span></p> }.into_any()
        }}
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}

#[component]
fn Nothing(problem: Problem) -> impl IntoView {
    document().set_title("No such scenario · Planscope");
    view! {
        <h1>"No scenario for this link"</h1>
        <p class="lead">{problem.detail}</p>
        <p>"Scenarios are stored on the server that planned them. Drafts that are not saved expire. A self-contained link from the Export menu works on every server."</p>
    }
}
