//! Shell commands that upload the log of a run. They contain the token if this tab knows it.

use api::path;
use api::run::{ClientCommands, CreatedRun};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::token::{store_token, stored_token};
use crate::client::{self, Body, RequestError};
use crate::clipboard;
use crate::notice::ErrorNotice;

/// Placeholder for an unknown token.
const UNKNOWN: &str = "TOKEN";
/// Display time of the "copied" message.
const SAID: std::time::Duration = std::time::Duration::from_secs(4);

/// Upload commands, and a button that creates a new token.
#[component]
pub(crate) fn SendingCommands(run: String) -> impl IntoView {
    let token = RwSignal::new(stored_token(&run));
    let last_error = RwSignal::new(None::<RequestError>);
    let asking = RwSignal::new(false);
    let id = StoredValue::new(run);
    let renew = move |_| {
        asking.set(true);
        spawn_local(async move {
            let Some(run) = id.try_get_value() else { return };
            let response = client::send::<CreatedRun>("POST", &path::run_token(&run), Body::Empty).await;
            if asking.try_set(false).is_some() {
                return;
            }
            match response {
                Ok(created) => {
                    store_token(&run, &created.ingest_token);
                    last_error.set(None);
                    token.set(Some(created.ingest_token));
                }
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    };
    let commands = move || {
        let origin = window().location().origin().unwrap_or_default();
        let ClientCommands { looped, streamed, finish } =
            id.with_value(|run| ClientCommands::new(&origin, run, token.get().as_deref().unwrap_or(UNKNOWN)));
        view! {
            <Command
                name="Next to the trainer, a loop of sh and curl; survives restarts of either side"
                test_id="command-looped"
                text=looped
            />
            <Command name="Or a streaming command" test_id="command-streamed" text=streamed />
            <Command name="After the job ends, with its exit code" test_id="command-finish" text=finish />
        }
    };
    let hint = move || {
        if token.with(Option::is_some) {
            "The token is shown only once; the server stores its hash. train.log is the log file of the trainer."
        } else {
            "Replace TOKEN with the token that was shown when the run was created. A new token invalidates the old one."
        }
    };
    let label = move || if token.with(Option::is_some) { "New token" } else { "Make a new token" };
    view! {
        <div class="commands" data-testid="commands">
            <p class="hint">{hint}</p>
            {commands}
            <p class="actions">
                <button data-testid="new-token" disabled=move || asking.get() on:click=renew>{label}</button>
            </p>
            {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
        </div>
    }
}

/// Command with a copy button.
#[component]
fn Command(name: &'static str, test_id: &'static str, text: String) -> impl IntoView {
    let done = RwSignal::new(None::<bool>);
    let copied = text.clone();
    let copy = move |_| {
        let text = copied.clone();
        spawn_local(async move {
            if done.try_set(Some(clipboard::copy(&text).await)).is_none() {
                set_timeout(
                    move || {
                        done.try_set(None);
                    },
                    SAID,
                );
            }
        });
    };
    let label = move || match done.get() {
        None => "Copy",
        Some(true) => "Copied",
        Some(false) => "Copy by hand",
    };
    view! {
        <div class="command">
            <p>
                <span>{name}</span>
                <button aria-label=move || format!("{}: {name}", label()) on:click=copy>{label}</button>
                <span class="visually-hidden" role="status">{move || done.get().map(|done| if done { "Copied" } else { "The browser refuses to copy" })}</span>
            </p>
            <pre tabindex="0" aria-label=name><code data-testid=test_id>{text}</code></pre>
        </div>
    }
}
