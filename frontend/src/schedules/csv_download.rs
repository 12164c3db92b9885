//! Exports a schedule table as a file or to the clipboard.

use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::{clipboard, download};

/// Buttons that save and copy a table.
#[component]
pub(super) fn SaveAndCopy(
    /// Schedule name.
    name: String,
    /// Returns the table as CSV.
    #[prop(into)]
    csv: Callback<(), String>,
) -> impl IntoView {
    let file = format!("{}.csv", download::file_name(&name, "schedule"));
    let is_rejected = RwSignal::new(false);
    let save = move |_| is_rejected.set(download::text(&file, &csv.run(())).is_err());
    view! {
        <button class="quiet" aria-label=format!("Save CSV: {name}") data-testid="save-csv" on:click=save>"Save CSV"</button>
        <CopyButton text=csv label="Copy CSV" subject=name />
        {move || is_rejected.get().then(|| view! { <span class="field-error" role="alert">"The browser refuses to save a file."</span> })}
    }
}

/// Button that copies a text and confirms it.
#[component]
pub(super) fn CopyButton(
    #[prop(into)] text: Callback<(), String>,
    label: &'static str,
    /// Description for screen readers.
    subject: String,
) -> impl IntoView {
    let done = RwSignal::new(None::<bool>);
    let press = move |_| {
        let text = text.run(());
        spawn_local(async move {
            let copied = clipboard::copy(&text).await;
            done.try_set(Some(copied));
            set_timeout(
                move || {
                    done.try_set(None);
                },
                std::time::Duration::from_secs(3),
            );
        });
    };
    let button_text = move || match done.get() {
        None => label,
        Some(true) => "Copied",
        Some(false) => "Refused",
    };
    let spoken = [label.to_owned(), subject].join(": ");
    view! {
        <button class="quiet" aria-label=spoken on:click=press>{button_text}</button>
        <span class="visually-hidden" role="status">
            {move || done.get().map(|done| if done { "Copied" } else { "The browser refuses to copy" })}
        </span>
    }
}
