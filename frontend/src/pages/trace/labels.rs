//! Editable name, tags, note, run and rank for a trace.

use api::path;
use api::run::{RunList, RunSummary};
use api::trace::{TraceChange, TraceSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::form::restore_text;
use crate::listing::parse_tags;
use crate::notice::ErrorNotice;

/// Editable heading, and the other fields below.
#[component]
pub(super) fn TraceFields(trace: RwSignal<TraceSummary>) -> impl IntoView {
    let last_error = RwSignal::new(None::<RequestError>);
    let change = move |change: TraceChange| {
        let url = trace.with_untracked(|trace| path::trace(&trace.id));
        spawn_local(async move {
            let response = match serde_json::to_string(&change) {
                Ok(body) => client::send::<TraceSummary>("PATCH", &url, Body::Json(body)).await,
                Err(error) => Err(RequestError::Unreadable(error.to_string())),
            };
            match response {
                Ok(changed) => {
                    last_error.try_set(None);
                    trace.try_set(changed);
                }
                Err(problem) => drop(last_error.try_set(Some(problem))),
            }
        });
    };
    // Update a field only when its text changes, so that input in a different field is not
    // interrupted.
    let text = move |read: fn(&TraceSummary) -> String| Memo::new(move |_| trace.with(read));
    let name = text(|trace| trace.name.clone());
    let rank_text = text(|trace| trace.rank.map(|rank| rank.to_string()).unwrap_or_default());
    let rename = move |event: web_sys::Event| {
        let typed = event_target_value(&event).trim().to_owned();
        if typed.is_empty() {
            restore_text(&event, &name.get_untracked());
        } else if trace.with_untracked(|trace| trace.name != typed) {
            change(TraceChange { name: Some(typed), ..TraceChange::default() });
        }
    };
    let annotate =
        move |event| change(TraceChange { note: Some(event_target_value(&event)), ..TraceChange::default() });
    let tag = move |event| {
        change(TraceChange { tags: Some(parse_tags(&event_target_value(&event))), ..TraceChange::default() });
    };
    let attach = move |event| change(TraceChange { run: Some(event_target_value(&event)), ..TraceChange::default() });
    let rank = move |event: web_sys::Event| match event_target_value(&event).trim().parse() {
        Ok(rank) => change(TraceChange { rank: Some(rank), ..TraceChange::default() }),
        Err(_) => restore_text(&event, &rank_text.get_untracked()),
    };
    let tags = text(|trace| trace.tags.join(", "));
    let note = text(|trace| trace.note.clone().unwrap_or_default());
    view! {
        <h1>
            <span class="visually-hidden">{name}</span>
            <input
                class="title trace-name" data-testid="trace-title" aria-label="Name of the trace" maxlength="120" autocomplete="off" spellcheck="false"
                prop:value=move || name.get() on:change=rename
            />
        </h1>
        <div class="run-labels trace-labels">
            <label>
                <span>"Tags"</span>
                <input data-testid="trace-tags" placeholder="none; several by commas" prop:value=move || tags.get() on:change=tag />
            </label>
            <label>
                <span>"Note"</span>
                <input data-testid="trace-note" placeholder="none" maxlength="2000" prop:value=move || note.get() on:change=annotate />
            </label>
            <label>
                <span>"Run"</span>
                <RunSelect trace=trace on_change=Callback::new(attach) />
            </label>
            <label>
                <span>"Rank"</span>
                <input
                    data-testid="trace-rank" inputmode="numeric" placeholder="unknown" size="6"
                    prop:value=move || rank_text.get() on:change=rank
                />
            </label>
        </div>
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}

/// Select field for the run.
#[component]
fn RunSelect(trace: RwSignal<TraceSummary>, on_change: Callback<web_sys::Event>) -> impl IntoView {
    let runs = RwSignal::new(Vec::<RunSummary>::new());
    let fetch = move || {
        spawn_local(async move {
            // If the list request fails, the trace keeps its run.
            if let Ok(list) = client::get::<RunList>(path::RUNS).await {
                runs.try_set(list.runs);
            }
        });
    };
    fetch();
    let options = move || {
        let current_run = trace.with(|trace| trace.run.clone());
        let known = runs.get();
        let missing = current_run.clone().filter(|run_id| known.iter().all(|run| run.id != *run_id));
        let option = |id: String, name: String| {
            let selected = current_run.as_deref() == Some(id.as_str());
            view! { <option value=id selected=selected>{name}</option> }
        };
        let missing = missing.map(|id| option(id.clone(), id));
        let known = known.into_iter().map(|run| option(run.id, run.name)).collect_view();
        view! { <option value="" selected=current_run.is_none()>"none"</option>{missing}{known} }
    };
    view! { <select data-testid="trace-run" on:focus=move |_| fetch() on:change=move |event| on_change.run(event)>{options}</select> }
}
