//! Page for links that contain a complete scenario.

use api::contained::{self, ContainedError};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::explore::Workbench;
use crate::download;
use crate::explore::use_explore;
use crate::format;

/// Shows the scenario from the link. The results follow if the server has them, or after planning.
/// An invalid link shows an error.
#[component]
pub(crate) fn ContainedPage() -> impl IntoView {
    let explore = use_explore();
    // The router updates the hash before the address bar changes.
    let hash = use_location().hash.get_untracked();
    let read = contained::read(hash.trim_start_matches('#'));
    // Reload, because a second link of this kind in the same tab is a different page.
    let listener = window_event_listener(leptos::ev::hashchange, move |_| {
        let hash = window().location().hash().unwrap_or_default();
        if hash.trim_start_matches('#').starts_with(contained::FIRST_FORM) {
            // If the browser refuses to reload, the page stays unchanged.
            drop(window().location().reload());
        }
    });
    on_cleanup(move || listener.remove());
    match read {
        Ok(scenario) => {
            explore.arrived.set_value(Some(hash.clone()));
            explore.start_unsaved(scenario, hash.trim_start_matches('#').to_owned());
            view! { <Workbench /> }.into_any()
        }
        Err(error) => view! { <Wrong error=error /> }.into_any(),
    }
}

#[component]
fn Wrong(error: ContainedError) -> impl IntoView {
    document().set_title("Unreadable link · Planscope");
    let message = format::sentence(&error.to_string());
    let raw = match error {
        ContainedError::Newer { text, .. } => Some(view! {
            <p><button on:click=move |_| drop(download::text("scenario.json", &text))>"Save its JSON"</button></p>
        }),
        _ => None,
    };
    view! {
        <main id="main" class="page open-error" tabindex="-1">
            <h1>"This link cannot be opened"</h1>
            <p class="lead" data-testid="link-error" role="alert">{message}</p>
            {raw}
            <p><a href="/">"Ready scenarios"</a>" · "<a href="/new">"New scenario"</a>" · "<a href="/scenarios">"Stored scenarios"</a></p>
        </main>
    }
}
