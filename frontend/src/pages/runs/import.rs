//! Imports a complete log and shows the parse report.

use api::path;
use api::run::RunDetail;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::drop::FileDrop;
use crate::file_uploads::FileUploads;
use crate::format;
use crate::notice::ErrorNotice;
use crate::runs::{LogReportView, LogTableField, LogTableFile};

/// Drop area for logs.
#[component]
pub(super) fn ImportLog(changed: Callback<()>) -> impl IntoView {
    let sending = FileUploads::new();
    let failures = RwSignal::new(Vec::<(String, RequestError)>::new());
    let imported = RwSignal::new(Vec::<RunDetail>::new());
    let table = RwSignal::new(None::<LogTableFile>);
    let send = move |file: web_sys::File| {
        let name = file.name();
        let mut url = format!("{}?name={}", path::RUN_IMPORT, client::encode(&name));
        if let Some(table) = table.get_untracked() {
            url = format!("{url}&table={}", client::encode(&table.text));
        }
        failures.set(Vec::new());
        spawn_local(async move {
            let Some(response) = sending.send::<RunDetail>(&url, file).await else { return };
            match response {
                Ok(detail) => {
                    imported.update(|imported| imported.insert(0, detail));
                    changed.run(());
                }
                Err(error) => failures.update(|failures| failures.push((name, error))),
            }
        });
    };
    let reports = move || {
        let report = |detail: RunDetail| {
            let summary = detail.summary;
            let read = format!(" · {} points", format::count(summary.points));
            view! {
                <div class="imported" data-testid="imported" data-run=summary.id.clone()>
                    <p role="status"><a href=path::run_page(&summary.id)>{summary.name}</a>{read}</p>
                    <LogReportView report=detail.report />
                </div>
            }
        };
        imported.get().into_iter().map(report).collect_view()
    };
    let refusals = move || {
        let refusal = |(name, upload_error): (String, RequestError)| view! { <p class="muted">{name}</p><ErrorNotice error=upload_error /> };
        failures.get().into_iter().map(refusal).collect_view()
    };
    view! {
        <section class="card">
            <header class="card-title"><h2>"Import a log"</h2><span class="muted">"of a finished job, or part of one"</span></header>
            <FileDrop
                title=Signal::stored("Drop or choose logs".to_owned())
                hint="Megatron-LM, NeMo, torchtitan, DeepSpeed, Hugging Face, nanotron, GPT-NeoX, MaxText, OLMo, verl and other trainers; MLPerf, TensorBoard, Weights & Biases, MLflow"
                test_id="import-log"
                sending=sending
                multiple=true
                on_file=send
            />
            <LogTableField table=table test_id="import-log-table" />
            {refusals}
            {reports}
        </section>
    }
}
