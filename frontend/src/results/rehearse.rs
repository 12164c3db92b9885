//! Rehearsing a plan: the server walks through it, a process for every rank, and its page shows how it goes.

use api::path;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_navigate;

use crate::client::Failure;
use crate::explore::use_explore;
use crate::notice::FailureNotice;
use crate::rehearsal;

/// The button that begins a rehearsal of a planner's plan.
#[component]
pub(super) fn Rehearse(planner: PlannerKind, failure: RwSignal<Option<Failure>>) -> impl IntoView {
    let explore = use_explore();
    let busy = RwSignal::new(false);
    let navigate = use_navigate();
    let begin = move |_| {
        let (Some(id), navigate) = (untrack(|| explore.kept_scenario()), navigate.clone()) else { return };
        busy.set(true);
        failure.set(None);
        spawn_local(async move {
            let answer = rehearsal::begin(&id, planner).await;
            if busy.try_set(false).is_some() {
                return;
            }
            match answer {
                Ok(started) => navigate(&path::run_page(&started.run), <_>::default()),
                Err(problem) => failure.set(Some(problem)),
            }
        });
    };
    view! {
        <button
            class="quiet rehearse"
            data-testid=format!("rehearse-{}", planner.id())
            title="Walk through this plan on the server's machine, a process for every rank, and watch it as a run"
            disabled=move || busy.get() || explore.kept_scenario().is_none()
            on:click=begin
        >
            {move || if busy.get() { "Beginning…" } else { "Rehearse" }}
            <span class="visually-hidden">{format!(" the plan of {}", planner.title())}</span>
        </button>
    }
}

/// Why a rehearsal did not begin.
#[component]
pub(super) fn RehearsalFailure(failure: RwSignal<Option<Failure>>) -> impl IntoView {
    move || failure.get().map(|failure| view! { <FailureNotice failure=failure /> })
}
