//! Uploading traces: drag files here or choose them, and read what was made of each.

use api::path;
use api::trace::{TraceReport, UploadedTrace};
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, Failure};
use crate::format;
use crate::notice::FailureNotice;

/// A place to drop traces on.
#[component]
pub(crate) fn TraceUpload(#[prop(into)] on_uploaded: Callback<UploadedTrace>) -> impl IntoView {
    let input = NodeRef::<html::Input>::new();
    let over = RwSignal::new(false);
    let waiting = RwSignal::new(0_u32);
    let failures = RwSignal::new(Vec::<(String, Failure)>::new());
    let unit = RwSignal::new("us".to_owned());
    let send = move |files: web_sys::FileList| {
        failures.set(Vec::new());
        for file in (0..files.length()).filter_map(|at| files.get(at)) {
            let name = file.name();
            let url = format!("{}?name={}&unit={}", path::TRACES, client::encode(&name), unit.get_untracked());
            waiting.update(|waiting| *waiting += 1);
            spawn_local(async move {
                let answer = client::send::<UploadedTrace>("POST", &url, Body::File(file)).await;
                waiting.update(|waiting| *waiting -= 1);
                match answer {
                    Ok(uploaded) => on_uploaded.run(uploaded),
                    Err(failure) => failures.update(|failures| failures.push((name, failure))),
                }
            });
        }
    };
    let chosen = move |_| {
        let Some(input) = input.get() else { return };
        if let Some(files) = input.files() {
            send(files);
        }
    };
    let dropped = move |event: web_sys::DragEvent| {
        event.prevent_default();
        over.set(false);
        if let Some(files) = event.data_transfer().and_then(|data| data.files()) {
            send(files);
        }
    };
    let title = move || match waiting.get() {
        0 => "Drop or choose traces".to_owned(),
        1 => "Reading…".to_owned(),
        more => format!("Reading {more} traces…"),
    };
    let units = [("us", "microseconds, as the format says"), ("ms", "milliseconds"), ("ns", "nanoseconds")];
    view! {
        <label
            class="drop"
            class:over=move || over.get()
            aria-busy=move || (waiting.get() > 0).to_string()
            on:dragover=move |event| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=dropped
        >
            <input type="file" multiple=true class="visually-hidden" data-testid="trace-upload" node_ref=input on:change=chosen />
            <span class="drop-title">{title}</span>
            <small>"Kineto or other Chrome trace events, Perfetto, Chakra; packed with gzip or not"</small>
        </label>
        <div class="field picker">
            <label for="trace-unit">"Times are in"</label>
            <select id="trace-unit" on:change=move |event| unit.set(event_target_value(&event))>
                {units.map(|(id, name)| view! { <option value=id>{name}</option> }).collect_view()}
            </select>
        </div>
        {move || failures.get().into_iter().map(|(name, failure)| view! {
            <p class="trace-name">{name}</p>
            <FailureNotice failure=failure />
        }).collect_view()}
    }
}

/// What an import read and what it did not.
#[component]
pub(crate) fn TraceReportView(
    /// Name of the trace; none where it stands beside.
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
            {report.cut.then(|| view! { <span class="warning">"The file breaks off; what stands before was read."</span> })}
            {(!lines.is_empty()).then(|| view! { <details><summary>"What was repaired, left out and assumed"</summary><ul>{lines}</ul></details> })}
        </div>
    }
}
