//! Log of a run: parse report, log files, and commands that send more.

use api::path;
use api::run::{LogFile, RunOrigin, RunState};
use leptos::prelude::*;

use crate::runs::{LogReportView, SendingCommands, read_detail, size, use_run_monitor};

/// Cards for parse report and commands.
#[component]
pub(super) fn Log() -> impl IntoView {
    let monitor = use_run_monitor();
    let report = Memo::new(move |_| read_detail(monitor, |detail| detail.report.clone()));
    let files = Memo::new(move |_| read_detail(monitor, |detail| detail.files.clone()).unwrap_or_default());
    let downloads = move || {
        let id = monitor.feed.id();
        let name = monitor.summary().map_or_else(|| id.clone(), |summary| summary.name);
        let files = files.get();
        let several = files.len() > 1;
        let link = |file: LogFile| {
            let (number, bytes) = (file.file + 1, size(file.bytes));
            let as_file = if several { format!("{name}-{number}.log") } else { format!("{name}.log") };
            let label = if several { format!("File {number}") } else { "The log".to_owned() };
            view! {
                <li>
                    <a href=path::run_log_file(&id, file.file) download=as_file data-testid=format!("log-file-{}", file.file)>{label}</a>
                    " "<small class="muted">{bytes}</small>
                </li>
            }
        };
        (!files.is_empty()).then(|| {
            view! {
                {several.then(|| view! { <p class="hint">"The log was rotated or rewritten:"</p> })}
                <ul class="plain">{files.into_iter().map(link).collect_view()}</ul>
            }
        })
    };
    // An empty log has no report.
    let has_log =
        Memo::new(move |_| read_detail(monitor, |detail| detail.summary.bytes).is_some_and(|bytes| bytes > 0));
    let origin = Memo::new(move |_| read_detail(monitor, |detail| detail.summary.origin));
    let id = monitor.feed.id();
    // If the run waits for its first bytes, expand the commands.
    let waits = monitor.feed.state.get_untracked() == Some(RunState::Waiting);
    view! {
        <Show when=move || origin.get() == Some(RunOrigin::Live)>
            <details class="card folded" open=waits>
                <summary><h2>"Send its log"</h2><span class="muted">"commands to paste, and a new token"</span></summary>
                <SendingCommands run=id.clone() />
            </details>
        </Show>
        <Show when=move || has_log.get()>
            <section class="card">
                <header class="card-title"><h2>"What was read from the log"</h2></header>
                {move || report.get().map(|report| view! { <LogReportView report=report /> })}
                {downloads}
            </section>
        </Show>
    }
}
