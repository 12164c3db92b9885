//! The log of a run: what was read from it, its files, and how more of it is sent.

use api::run::{RunOrigin, RunState};
use leptos::prelude::*;

use crate::runs::{LogReportView, SendingCommands, of_detail, size, use_observed};

/// The cards of report and commands.
#[component]
pub(super) fn Log() -> impl IntoView {
    let observed = use_observed();
    let report = Memo::new(move |_| of_detail(observed, |detail| detail.report.clone()));
    let files = Memo::new(move |_| of_detail(observed, |detail| detail.files.clone()).unwrap_or_default());
    let file_words = move || {
        let files = files.get();
        (files.len() > 1).then(|| {
            let list = files
                .iter()
                .map(|file| format!("file {}: {}", file.file + 1, size(file.bytes)))
                .collect::<Vec<_>>()
                .join(", ");
            format!("The log was rotated or written anew: {list}.")
        })
    };
    let origin = Memo::new(move |_| of_detail(observed, |detail| detail.summary.origin));
    let id = observed.feed.id();
    // Where bytes are waited for, the commands are what one came for.
    let waits = observed.feed.state.get_untracked() == Some(RunState::Waiting);
    view! {
        <Show when=move || origin.get() == Some(RunOrigin::Live)>
            <details class="card folded" open=waits>
                <summary><h2>"Send its log"</h2><span class="muted">"commands to paste, and a new token"</span></summary>
                <SendingCommands run=id.clone() />
            </details>
        </Show>
        <section class="card">
            <header class="card-title"><h2>"What was read from the log"</h2></header>
            {move || report.get().map(|report| view! { <LogReportView report=report /> })}
            {move || file_words().map(|words| view! { <p class="hint">{words}</p> })}
        </section>
    }
}
