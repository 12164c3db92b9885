//! Button that opens a live run from an example log.

use api::path;
use api::run::RunDetail;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_navigate;

use crate::client::{self, Body, RequestError};
use crate::notice::ErrorNotice;

/// Replays the example log and opens the page of its run.
#[component]
pub(super) fn ReplayExample() -> impl IntoView {
    let is_pending = RwSignal::new(false);
    let last_error = RwSignal::new(None::<RequestError>);
    let navigate = use_navigate();
    let replay = move |_| {
        is_pending.set(true);
        last_error.set(None);
        let navigate = navigate.clone();
        spawn_local(async move {
            let result = client::send::<RunDetail>("POST", path::RUN_REPLAY, Body::Empty).await;
            // The user has left the page.
            if is_pending.try_set(false).is_some() {
                return;
            }
            match result {
                Ok(detail) => navigate(&path::run_page(&detail.summary.id), <_>::default()),
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    };
    view! {
        <p class="replay">
            "No training job at hand? "
            <button type="button" class="quiet" data-testid="replay-example" disabled=move || is_pending.get() on:click=replay>
                {move || if is_pending.get() { "Starting…" } else { "Replay an example log" }}
            </button>
            <span class="muted">" GPT-3 175B on 64 A100, a synthetic Megatron-LM log, four steps per second"</span>
        </p>
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}
