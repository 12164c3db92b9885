//! Scenario title and save button.

use api::path;
use api::scenario::Keep;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::explore::use_explore;
use crate::notice::ErrorNotice;
use crate::pointer;

/// Title field, save button, and save errors.
#[component]
pub(super) fn TitleRow() -> impl IntoView {
    let explore = use_explore();
    let title = move || explore.scenario.with(|scenario| pointer::text(scenario, "/title")).unwrap_or_default();
    let saved = RwSignal::new(None::<(String, String)>);
    // An edit that the server does not have cannot be saved.
    let here = move || {
        explore
            .stored
            .with(|stored| stored.as_ref().map(|stored| (stored.id.clone(), title())))
            .filter(|_| !explore.is_unstored())
    };
    let is_saved = move || {
        let now = here();
        now.is_some()
            && (saved.get() == now
                || explore.stored.with(|stored| {
                    stored.as_ref().is_some_and(|stored| {
                        stored.kept && stored.scenario.title.clone().unwrap_or_default() == title().trim()
                    })
                }))
    };
    // Scenario, title, and save error. After a change to either, the error no longer applies.
    let unsaved = RwSignal::new(None::<((String, String), RequestError)>);
    let save_error = move || {
        unsaved
            .get()
            .filter(|(saved_state, _)| here().as_ref() == Some(saved_state))
            .map(|(_, stored_error)| stored_error)
    };
    let save = move |_| {
        let Some((id, title)) = untrack(here) else { return };
        unsaved.set(None);
        let keep = Keep { title: (!title.trim().is_empty()).then(|| title.trim().to_owned()), source: None };
        let Ok(body) = serde_json::to_string(&keep) else { return };
        spawn_local(async move {
            match client::submit("POST", &path::keep(&id), Body::Json(body)).await {
                Ok(()) => drop(saved.try_set(Some((id, title)))),
                Err(error) => drop(unsaved.try_set(Some(((id, title), error)))),
            }
        });
    };
    let rename = move |event| {
        let typed = event_target_value(&event);
        if typed.is_empty() {
            explore.remove("/title");
        } else {
            explore.set("/title", typed.into());
        }
    };
    view! {
        <div class="title-row">
            <h1>
                <input
                    class="title"
                    data-testid="title"
                    aria-label="Title of the scenario"
                    placeholder="Untitled scenario"
                    maxlength="120"
                    autocomplete="off"
                    spellcheck="false"
                    prop:value=title
                    on:input=rename
                />
            </h1>
            <button data-testid="save" on:click=save disabled=move || here().is_none() || is_saved()>
                {move || if is_saved() { "Saved" } else { "Save" }}
            </button>
        </div>
        {move || save_error().map(|request_error| view! { <ErrorNotice error=request_error /> })}
    }
}
