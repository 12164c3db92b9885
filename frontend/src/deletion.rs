//! Deleting with a moment to think again: the line goes at once, and a toast offers the way back.

use std::collections::BTreeMap;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, Failure};
use crate::focus;
use crate::notice::FailureNotice;

/// How long a deletion can be taken back.
const GRACE: Duration = Duration::from_secs(6);

/// Between two looks at whether the server has deleted something.
const SHORTLY_MS: i32 = 50;

/// Deletions that are under way.
#[derive(Clone, Copy)]
pub(crate) struct Deletions {
    /// Names of what is on its way out, by identifier.
    waiting: RwSignal<BTreeMap<String, String>>,
    /// Where what is deleted already can be brought back, by identifier.
    restores: StoredValue<BTreeMap<String, String>>,
    failure: RwSignal<Option<Failure>>,
}

impl Deletions {
    /// No deletions.
    pub(crate) fn new() -> Self {
        Self { waiting: RwSignal::default(), restores: StoredValue::default(), failure: RwSignal::new(None) }
    }

    /// Whether something is on its way out.
    pub(crate) fn is_waiting(&self, id: &str) -> bool {
        self.waiting.with(|waiting| waiting.contains_key(id))
    }

    /// Deletes `id` at `url` at once; until `gone` is told, it can be brought back by a POST to `restore`.
    pub(crate) fn delete_restorable(
        &self,
        id: String,
        name: String,
        (url, restore): (String, String),
        gone: Callback<String>,
    ) {
        let this = *self;
        self.failure.set(None);
        self.waiting.update(|waiting| drop(waiting.insert(id.clone(), name)));
        spawn_local(async move {
            if let Err(failure) = client::tell("DELETE", &url, Body::Empty).await {
                this.failure.try_set(Some(failure));
                this.waiting.try_update(|waiting| drop(waiting.remove(&id)));
                return;
            }
            this.restores.try_update_value(|restores| drop(restores.insert(id.clone(), restore)));
            client::pause(GRACE.as_millis() as i32).await;
            // Brought back meanwhile, or the page was left.
            if this.restores.try_update_value(|restores| restores.remove(&id)).flatten().is_some() {
                gone.run(id.clone());
                this.waiting.try_update(|waiting| drop(waiting.remove(&id)));
            }
        });
    }

    fn undo(&self, id: &str) {
        let (this, id) = (*self, id.to_owned());
        spawn_local(async move {
            // Whoever is faster than the server waits until there is something to bring back, or the deletion has failed.
            while this.waiting.try_with_untracked(|waiting| waiting.contains_key(&id)) == Some(true) {
                if let Some(restore) = this.restores.try_update_value(|restores| restores.remove(&id)).flatten() {
                    let answer = client::tell("POST", &restore, Body::Empty).await;
                    let had_focus = focus::is_in(".toast");
                    this.failure.try_set(answer.err());
                    this.waiting.try_update(|waiting| drop(waiting.remove(&id)));
                    if had_focus {
                        focus::move_to(format!("tr[data-id=\"{id}\"] :is(a, button)"));
                    }
                    return;
                }
                client::pause(SHORTLY_MS).await;
            }
        });
    }
}

/// What was just deleted, each with its way back.
#[component]
pub(crate) fn DeletionToasts(deletions: Deletions) -> impl IntoView {
    let toasts = move || {
        let toast = |(id, name): (String, String)| {
            view! {
                <p class="toast">
                    <span>{format!("Deleted {name}")}</span>
                    <button on:click=move |_| deletions.undo(&id)>"Undo"</button>
                </p>
            }
        };
        deletions.waiting.get().into_iter().map(toast).collect_view()
    };
    view! {
        <div class="toasts" role="status">{toasts}</div>
        {move || deletions.failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
    }
}
