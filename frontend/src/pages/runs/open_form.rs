//! Form that opens a run: name, plan for comparison, and then the commands that upload the log.

use api::path;
use api::planner::scenario::PlannerKind;
use api::run::{CreatedRun, NewRun};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::notice::ErrorNotice;
use crate::runs::{LogTableField, LogTableFile, PlanSelect, SendingCommands, store_token};

/// The form, and the commands for the last opened run.
#[component]
pub(super) fn OpenRunForm(changed: Callback<()>) -> impl IntoView {
    let name = RwSignal::new(String::new());
    let scenario = RwSignal::new(None::<String>);
    let plan = RwSignal::new(None::<PlannerKind>);
    let table = RwSignal::new(None::<LogTableFile>);
    let last_error = RwSignal::new(None::<RequestError>);
    let opened = RwSignal::new(None::<CreatedRun>);
    let is_pending = RwSignal::new(false);
    let open = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let run = NewRun {
            name: Some(name.get_untracked().trim().to_owned()).filter(|name| !name.is_empty()),
            scenario: scenario.get_untracked(),
            plan: plan.get_untracked(),
            log_table: table.with_untracked(|table| table.as_ref().map(|table| table.text.clone())),
        };
        let Ok(body) = serde_json::to_string(&run) else { return };
        is_pending.set(true);
        spawn_local(async move {
            let response = client::send::<CreatedRun>("POST", path::RUNS, Body::Json(body)).await;
            if is_pending.try_set(false).is_some() {
                return;
            }
            match response {
                Ok(created) => {
                    store_token(&created.run, &created.ingest_token);
                    last_error.set(None);
                    name.set(String::new());
                    opened.set(Some(created));
                    changed.run(());
                }
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    };
    let commands = move || {
        opened.get().map(|CreatedRun { run, url, .. }| {
            let key = run.clone();
            view! {
                <div class="run-created" data-testid="run-created" data-run=key>
                    <p role="status"><b>"The run waits for its log. "</b><a href=url data-testid="run-link">"Open its page"</a></p>
                    <SendingCommands run=run />
                </div>
            }
        })
    };
    view! {
        <section class="card">
            <header class="card-title"><h2>"Track a live run"</h2><span class="muted">"of a running job"</span></header>
            <form class="open-run" on:submit=open>
                <label>
                    "Name"
                    <input
                        data-testid="run-name"
                        maxlength="120"
                        placeholder="Default: its start time"
                        prop:value=move || name.get()
                        on:input=move |event| name.set(event_target_value(&event))
                    />
                </label>
                <PlanSelect scenario=scenario plan=plan />
                <LogTableField table=table test_id="run-log-table" />
                <p class="actions"><button type="submit" class="primary" data-testid="open-run" disabled=move || is_pending.get()>"Create run"</button></p>
            </form>
            {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
            {commands}
        </section>
    }
}
