//! Uploading a file of lengths: drag it here or choose it, and read what was made of it.

use api::dataset::{ImportReport, Uploaded};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, Failure};
use crate::drop::FileDrop;
use crate::format;
use crate::notice::FailureNotice;

/// A place to drop a file of lengths on.
#[component]
pub(crate) fn Upload(
    /// A single line instead of a field to aim at.
    compact: bool,
    #[prop(into)] on_uploaded: Callback<Uploaded>,
) -> impl IntoView {
    let busy = RwSignal::new(false);
    let failure = RwSignal::new(None::<Failure>);
    let alternatives = RwSignal::new(Vec::<String>::new());
    let last_file = StoredValue::new_local(None::<web_sys::File>);
    let send = move |file: web_sys::File, column: Option<String>| {
        failure.set(None);
        busy.set(true);
        let mut url = format!("{}?name={}", path::DATASETS, client::encode(&file.name()));
        if let Some(column) = column {
            url.push_str("&column=");
            url.push_str(&client::encode(&column));
        }
        last_file.set_value(Some(file.clone()));
        spawn_local(async move {
            let answer = client::send::<Uploaded>("POST", &url, Body::File(file)).await;
            busy.set(false);
            match answer {
                Ok(uploaded) => {
                    alternatives.set(uploaded.report.alternatives.clone());
                    on_uploaded.run(uploaded);
                }
                Err(problem) => {
                    alternatives.set(Vec::new());
                    failure.set(Some(problem));
                }
            }
        });
    };
    let choose_column = move |event| {
        let column = event_target_value(&event);
        if let Some(file) = last_file.get_value() {
            send(file, Some(column));
        }
    };
    view! {
        <FileDrop
            title=Signal::stored("Drop or choose a file of lengths".to_owned())
            hint="CSV, JSON, JSON lines or plain numbers"
            test_id="upload"
            busy=busy
            compact=compact
            on_file=move |file| send(file, None)
        />
        {move || failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
        <Show when=move || !alternatives.get().is_empty()>
            <div class="field picker">
                <label for="upload-column">"Other column"</label>
                <select id="upload-column" on:change=choose_column>
                    <option value="" selected=true disabled=true>"choose…"</option>
                    {move || alternatives.get().into_iter().map(|name| view! { <option value=name.clone()>{name.clone()}</option> }).collect_view()}
                </select>
            </div>
        </Show>
    }
}

/// What an import read and what it did not.
#[component]
pub(crate) fn ImportReportView(report: ImportReport) -> impl IntoView {
    let mut read = format!("{} samples read", format::count(report.parsed + report.repaired));
    for (count, word) in [(report.repaired, "repaired"), (report.skipped, "left out")] {
        if count > 0 {
            read.push_str(", ");
            read.push_str(&format::count(count));
            read.push(' ');
            read.push_str(word);
        }
    }
    view! {
        <div class="import-report" data-testid="import-report" role="status">
            <b>{read}</b>
            <span>{format!("{}, {}", report.format, report.source)}</span>
            {report.first_problem.map(|problem| view! { <span class="warning">{problem}</span> })}
        </div>
    }
}
