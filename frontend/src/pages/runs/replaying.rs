//! Button that opens a live run from an example log.

use api::path;
use api::run::RunDetail;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_navigate;

use crate::client::{self, Body, Failure};
use crate::notice::FailureNotice;

/// Replays the example log and opens the page of its run.
#[component]
pub(super) fn ReplayExample() -> impl IntoView {
    let busy = RwSignal::new(false);
    let failure = RwSignal::new(None::<Failure>);
    let navigate = use_navigate();
    let replay = move |_| {
        busy.set(true);
        failure.set(None);
        let navigate = navigate.clone();
        spawn_local(async move {
            let result = client::send::<RunDetail>("POST", path::RUN_REPLAY, Body::Empty).await;
            // The user has left the page.
            if busy.try_set(false).is_some() {
                return;
            }
            match result {
                Ok(detail) => navigate(&path::run_page(&detail.summary.id), <_>::default()),
                Err(problem) => failure.set(Some(problem)),
            }
        });
    };
    view! {
        <p class="replay">
            "No training job at hand? "
            <button type="button" class="quiet" data-testid="replay-example" disabled=move || busy.get() on:click=replay>
                {move || if busy.get() { "Starting…" } else { "Replay an example log" }}
            </button>
            <span class="muted">" GPT-3 175B on 64 A100, a synthetic Megatron-LM log, four steps per second"</span>
        </p>
        {move || failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
    }
}
