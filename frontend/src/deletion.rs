//! Deleting with a moment to think again: the line goes at once, the server hears of it a little later.

use std::collections::BTreeMap;
use std::time::Duration;

use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, Failure};
use crate::notice::FailureNotice;

/// How long a deletion can be taken back.
const GRACE: Duration = Duration::from_secs(6);

/// Deletions that are under way.
#[derive(Clone, Copy)]
pub(crate) struct Deletions {
    /// Names of what is on its way out, by identifier.
    waiting: RwSignal<BTreeMap<String, String>>,
    timers: StoredValue<BTreeMap<String, (TimeoutHandle, String)>>,
    /// Where what is deleted already can be brought back, by identifier.
    restores: StoredValue<BTreeMap<String, String>>,
    failure: RwSignal<Option<Failure>>,
}

impl Deletions {
    /// No deletions. What still waits when the page is left is deleted then.
    pub(crate) fn new() -> Self {
        let deletions = Self {
            waiting: RwSignal::default(),
            timers: StoredValue::default(),
            restores: StoredValue::default(),
            failure: RwSignal::new(None),
        };
        let timers = deletions.timers;
        on_cleanup(move || {
            for (timer, url) in timers.try_update_value(std::mem::take).unwrap_or_default().into_values() {
                timer.clear();
                // The page that could show a failure is gone; the list shows what is left the next time.
                spawn_local(async move { drop(client::tell("DELETE", &url, Body::Empty).await) });
            }
        });
        deletions
    }

    /// Whether something is on its way out.
    pub(crate) fn is_waiting(&self, id: &str) -> bool {
        self.waiting.with(|waiting| waiting.contains_key(id))
    }

    /// Deletes `id` at `url` after a moment, then tells `gone`.
    pub(crate) fn delete(&self, id: String, name: String, url: String, gone: Callback<String>) {
        let this = *self;
        let (key, address) = (id.clone(), url.clone());
        let timer = set_timeout_with_handle(
            move || {
                this.timers.update_value(|timers| drop(timers.remove(&key)));
                spawn_local(async move {
                    match client::tell("DELETE", &address, Body::Empty).await {
                        Ok(()) => gone.run(key.clone()),
                        Err(failure) => this.failure.set(Some(failure)),
                    }
                    this.waiting.update(|waiting| drop(waiting.remove(&key)));
                });
            },
            GRACE,
        );
        if let Ok(timer) = timer {
            self.timers.update_value(|timers| drop(timers.insert(id.clone(), (timer, url))));
            self.waiting.update(|waiting| drop(waiting.insert(id, name)));
        }
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
        if let Some(restore) = self.restores.try_update_value(|restores| restores.remove(id)).flatten() {
            let (this, id) = (*self, id.to_owned());
            spawn_local(async move {
                let answer = client::tell("POST", &restore, Body::Empty).await;
                this.failure.try_set(answer.err());
                this.waiting.try_update(|waiting| drop(waiting.remove(&id)));
            });
            return;
        }
        if let Some((timer, _)) = self.timers.try_update_value(|timers| timers.remove(id)).flatten() {
            timer.clear();
            self.waiting.update(|waiting| drop(waiting.remove(id)));
        }
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
