//! Deletion with undo. The row disappears immediately, and a toast offers to restore it.

use std::collections::BTreeMap;
use std::time::Duration;

use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::focus;
use crate::notice::ErrorNotice;

/// Time limit for undo.
const GRACE: Duration = Duration::from_secs(6);

/// Polling interval in ms while the server deletes an object.
const SHORTLY_MS: i32 = 50;

/// Pending deletions.
#[derive(Clone, Copy)]
pub(crate) struct Deletions {
    /// Names of objects in deletion, by identifier.
    waiting: RwSignal<BTreeMap<String, String>>,
    /// URLs that restore deleted objects, by identifier.
    restores: StoredValue<BTreeMap<String, String>>,
    last_error: RwSignal<Option<RequestError>>,
    /// Number of deletions and restorations that the server has completed.
    completed: RwSignal<u32>,
}

impl Deletions {
    pub(crate) fn new() -> Self {
        Self {
            waiting: RwSignal::default(),
            restores: StoredValue::default(),
            last_error: RwSignal::new(None),
            completed: RwSignal::new(0),
        }
    }

    /// Tracks completed deletions and restorations.
    pub(crate) fn track_completed(&self) {
        self.completed.track();
    }

    /// Removes the toast of an object that was restored elsewhere, for example in the list of deleted objects.
    pub(crate) fn forget(&self, id: &str) {
        self.restores.try_update_value(|restores| drop(restores.remove(id)));
        self.waiting.try_update(|waiting| drop(waiting.remove(id)));
    }

    /// Returns true if the object is in deletion.
    pub(crate) fn is_waiting(&self, id: &str) -> bool {
        self.waiting.with(|waiting| waiting.contains_key(id))
    }

    /// Deletes `id` with a DELETE request to `url`. Until the call of `gone`, a POST request to
    /// `restore` can undo the deletion.
    pub(crate) fn delete_restorable(
        &self,
        id: String,
        name: String,
        (url, restore): (String, String),
        gone: Callback<String>,
    ) {
        let this = *self;
        self.last_error.set(None);
        self.waiting.update(|waiting| drop(waiting.insert(id.clone(), name)));
        spawn_local(async move {
            if let Err(error) = client::submit("DELETE", &url, Body::Empty).await {
                this.last_error.try_set(Some(error));
                this.waiting.try_update(|waiting| drop(waiting.remove(&id)));
                return;
            }
            this.restores.try_update_value(|restores| drop(restores.insert(id.clone(), restore)));
            this.completed.try_update(|completed| *completed += 1);
            client::pause(GRACE.as_millis() as i32).await;
            // Otherwise the user restored the object or left the page.
            if this.restores.try_update_value(|restores| restores.remove(&id)).flatten().is_some() {
                gone.run(id.clone());
                this.waiting.try_update(|waiting| drop(waiting.remove(&id)));
            }
        });
    }

    fn undo(&self, id: &str) {
        let (this, id) = (*self, id.to_owned());
        spawn_local(async move {
            // If the user clicks Undo before the server responds, the loop polls until the restore
            // URL is available or the deletion fails.
            while this.waiting.try_with_untracked(|waiting| waiting.contains_key(&id)) == Some(true) {
                if let Some(restore) = this.restores.try_update_value(|restores| restores.remove(&id)).flatten() {
                    let response = client::submit("POST", &restore, Body::Empty).await;
                    let had_focus = focus::is_in(".toast");
                    this.last_error.try_set(response.err());
                    this.waiting.try_update(|waiting| drop(waiting.remove(&id)));
                    this.completed.try_update(|completed| *completed += 1);
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

/// Toasts for recent deletions with an Undo button each.
#[component]
pub(crate) fn DeletionToasts(deletions: Deletions) -> impl IntoView {
    let toasts = move || {
        let toast = |(id, name): (String, String)| {
            // A disabled button would lose the focus.
            let is_undone = RwSignal::new(false);
            let undo = move |_| {
                if !is_undone.get_untracked() {
                    is_undone.set(true);
                    deletions.undo(&id);
                }
            };
            view! {
                <p class="toast">
                    <span>{format!("Deleted {name}")}</span>
                    <button aria-disabled=move || is_undone.get().to_string() on:click=undo>
                        {move || if is_undone.get() { "Restoring…" } else { "Undo" }}
                    </button>
                </p>
            }
        };
        deletions.waiting.get().into_iter().map(toast).collect_view()
    };
    view! {
        <div class="toasts" role="status">{toasts}</div>
        {move || deletions.last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}
