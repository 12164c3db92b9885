//! The page of links that hold a whole scenario.

use api::contained::{self, ContainedError};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::explore::Workbench;
use crate::explore::use_explore;
use crate::format;
use crate::saving;

/// The scenario of the link with its results where the server has them, else as it is until it is planned; or the error of the link.
#[component]
pub(crate) fn ContainedPage() -> impl IntoView {
    let explore = use_explore();
    // The router tells of a link before the address bar does.
    let hash = use_location().hash.get_untracked();
    let read = contained::read(hash.trim_start_matches('#'));
    // Another such link in the same tab is another page.
    let listener = window_event_listener(leptos::ev::hashchange, move |_| {
        let hash = window().location().hash().unwrap_or_default();
        if hash.trim_start_matches('#').starts_with(contained::FIRST_FORM) {
            // A browser that refuses to reload leaves the page as it is.
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
    let words = format::sentence(&error.to_string());
    let raw = match error {
        ContainedError::Newer { text, .. } => Some(view! {
            <p><button on:click=move |_| drop(saving::text("scenario.json", &text))>"Save its JSON"</button></p>
        }),
        _ => None,
    };
    view! {
        <main id="main" class="page unopened" tabindex="-1">
            <h1>"This link cannot be opened"</h1>
            <p class="lead" data-testid="link-error" role="alert">{words}</p>
            {raw}
            <p><a href="/">"Ready scenarios"</a>" · "<a href="/new">"New scenario"</a>" · "<a href="/scenarios">"Stored scenarios"</a></p>
        </main>
    }
}
