//! Uploads traces by drag and drop or file selection, and shows the import report of each.

use api::path;
use api::trace::{TraceReport, UploadedTrace};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::drop::FileDrop;
use crate::file_uploads::FileUploads;
use crate::format;
use crate::notice::ErrorNotice;

/// Drop area for traces.
#[component]
pub(crate) fn TraceUpload(#[prop(into)] on_uploaded: Callback<UploadedTrace>) -> impl IntoView {
    let sending = FileUploads::new();
    let failures = RwSignal::new(Vec::<(String, RequestError)>::new());
    let unit = RwSignal::new("us".to_owned());
    let stage = RwSignal::new(String::new());
    let send = move |file: web_sys::File| {
        failures.set(Vec::new());
        let name = file.name();
        let mut url = format!("{}?name={}&unit={}", path::TRACES, client::encode(&name), unit.get_untracked());
        let given = stage.get_untracked();
        if !given.trim().is_empty() {
            url.push_str("&stage=");
            url.push_str(&client::encode(given.trim()));
        }
        spawn_local(async move {
            match sending.send::<UploadedTrace>(&url, file).await {
                Some(Ok(uploaded)) => on_uploaded.run(uploaded),
                Some(Err(error)) => failures.update(|failures| failures.push((name, error))),
                None => {}
            }
        });
    };
    let units = [("us", "microseconds, as the format says"), ("ms", "milliseconds"), ("ns", "nanoseconds")];
    view! {
        <FileDrop
            title=Signal::stored("Drop or choose traces".to_owned())
            hint="Kineto or other Chrome trace events, Perfetto, Chakra, SQLite exports of Nsight Systems; packed with gzip or not"
            test_id="trace-upload"
            sending=sending
            multiple=true
            on_file=send
        />
        <div class="field picker trace-option">
            <label for="trace-unit">"Times are in"</label>
            <select id="trace-unit" on:change=move |event| unit.set(event_target_value(&event))>
                {units.map(|(id, name)| view! { <option value=id>{name}</option> }).collect_view()}
            </select>
        </div>
        <div class="field picker trace-option">
            <label for="trace-stage" title="For action names without a stage, such as 'Forward 0'">"Pipeline stage, if not in the names"</label>
            <input
                id="trace-stage"
                inputmode="numeric"
                placeholder="as the file says"
                on:input=move |event| stage.set(event_target_value(&event))
            />
        </div>
        {move || failures.get().into_iter().map(|(name, request_error)| view! {
            <p class="trace-name">{name}</p>
            <ErrorNotice error=request_error />
        }).collect_view()}
    }
}

/// Import report: recognized and unrecognized content.
#[component]
pub(crate) fn TraceReportView(
    /// Trace name. `None` if the page shows it elsewhere.
    #[prop(optional_no_strip)]
    name: Option<String>,
    report: TraceReport,
) -> impl IntoView {
    let mut read = format!("{} of {} events used", format::count(report.used), format::count(report.events));
    for (count, word) in [
        (report.repaired, "repaired"),
        (report.skipped, "left out"),
        (report.overflowed, "on lanes of their own because they overlap"),
    ] {
        if count > 0 {
            read.push_str(", ");
            read.push_str(&format::count(count));
            read.push(' ');
            read.push_str(word);
        }
    }
    let problems = report.problems.into_iter().map(|problem| {
        let count = format::count(problem.count);
        view! { <li>{format!("{}: {count} times, first at event {} (byte {})", problem.reason, format::count(problem.event), format::count(problem.offset))}</li> }
    });
    let assumptions = report.assumptions.into_iter().map(|assumption| view! { <li>{assumption}</li> });
    let lines: Vec<_> = problems.map(IntoAny::into_any).chain(assumptions.map(IntoAny::into_any)).collect();
    view! {
        <div class="import-report" data-testid="trace-report" role="status">
            {name.map(|name| view! { <b class="trace-name">{name}</b> })}
            <span>{read}</span>
            {report.cut.then(|| view! { <span class="warning">"The file is truncated. The part before the end was read."</span> })}
            {(!lines.is_empty()).then(|| view! { <details><summary>"What was repaired, left out and assumed"</summary><ul>{lines}</ul></details> })}
        </div>
    }
}
