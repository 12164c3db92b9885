//! Name, state, progress, note and tags. All except the state are editable.

use api::path;
use api::run::{RunChange, RunOrigin, RunState, RunSummary};
use js_sys::Date;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{RequestError, pause};
use crate::form::restore_text;
use crate::format;
use crate::listing::parse_tags;
use crate::notice::ErrorNotice;
use crate::runs::{
    FeedMode, StateBadge, ago, has_ended_early, origin_text, progress_text, remaining_text, size, use_run_monitor,
};

/// Clock interval in ms.
const TICK_MS: i32 = 1_000;

/// Returns the current time, updated every second.
fn clock_now() -> RwSignal<f64> {
    let now = RwSignal::new(Date::now());
    spawn_local(async move {
        while now.try_set(Date::now()).is_none() {
            pause(TICK_MS).await;
        }
    });
    now
}

/// Returns the time of the last data of a run. An imported file does not change, so it has none.
fn last_data_at(summary: &RunSummary) -> Option<String> {
    if summary.origin == RunOrigin::Imported { None } else { summary.updated_at.clone() }
}

/// Page header.
#[component]
pub(super) fn RunTitle() -> impl IntoView {
    let monitor = use_run_monitor();
    let feed = monitor.feed;
    let summary = Memo::new(move |_| monitor.summary());
    let last_error = RwSignal::new(None::<RequestError>);
    let change = Callback::new(move |change: RunChange| {
        spawn_local(async move { drop(last_error.try_set(monitor.change(change).await.err())) });
    });
    let text = move |read: fn(&RunSummary) -> String| {
        Memo::new(move |_| summary.with(|summary| summary.as_ref().map(read).unwrap_or_default()))
    };
    let name = text(|summary| summary.name.clone());
    let note = text(|summary| summary.note.clone().unwrap_or_default());
    let tags = text(|summary| summary.tags.join(", "));
    let rename = move |event: web_sys::Event| {
        let typed = event_target_value(&event).trim().to_owned();
        if typed.is_empty() {
            restore_text(&event, &name.get_untracked());
        } else if typed != name.get_untracked() {
            change.run(RunChange { name: Some(typed), ..RunChange::default() });
        }
    };
    let annotate = move |event| {
        let typed = event_target_value(&event).trim().to_owned();
        if typed != note.get_untracked() {
            change.run(RunChange { note: Some(typed), ..RunChange::default() });
        }
    };
    let tag = move |event| {
        let typed = parse_tags(&event_target_value(&event));
        if typed.join(", ") != tags.get_untracked() {
            change.run(RunChange { tags: Some(typed), ..RunChange::default() });
        }
    };
    let state = Memo::new(move |_| feed.state.get().unwrap_or(RunState::Waiting));
    let exit_code = Memo::new(move |_| summary.with(|summary| summary.as_ref().and_then(|summary| summary.exit_code)));
    let end_reason = Memo::new(move |_| {
        let reason = summary.with(|summary| summary.as_ref().and_then(|summary| summary.end_reason.clone()))?;
        Some(format::sentence(&reason))
    });
    let ended_early = Memo::new(move |_| summary.with(|summary| summary.as_ref().is_some_and(has_ended_early)));
    let now = clock_now();
    let updated = Memo::new(move |_| {
        let at = summary.with(|summary| summary.as_ref().and_then(last_data_at))?;
        let moment = Date::parse(&at);
        moment.is_finite().then(|| format!("last data {}", ago(moment, now.get())))
    });
    let remaining = Memo::new(move |_| {
        let is_live = state.get() == RunState::Live;
        is_live.then(|| summary.with(|summary| summary.as_ref().and_then(remaining_text))).flatten()
    });
    let progress = Memo::new(move |_| {
        summary.with(|summary| {
            let summary = summary.as_ref()?;
            let total = summary.total_steps.filter(|total| *total > 0)?;
            Some((summary.last_step.unwrap_or(0).min(total), total))
        })
    });
    let mode_text = move || match feed.mode.get() {
        FeedMode::Loading => Some("connecting…"),
        FeedMode::Streaming => Some("live updates"),
        FeedMode::Polling => Some("updates every two seconds: the event stream is blocked"),
        // The run state already shows this.
        FeedMode::Over => None,
    };
    let exports = move || exports(&feed.id(), &name.get());
    view! {
        <div class="title-row">
            <h1>
                <span class="visually-hidden">{name}</span>
                <input class="title" data-testid="run-title" aria-label="Name of the run" maxlength="120" autocomplete="off" spellcheck="false" prop:value=move || name.get() on:change=rename />
            </h1>
            <span class="export-links" role="group" aria-label="Export">{exports}</span>
        </div>
        <div class="run-status">
            <span role="status" data-testid="run-state">
                {move || view! { <StateBadge state=state ended_early=ended_early exit_code=exit_code.get() /> }}
            </span>
            {move || progress.get().map(|(done, total)| view! { <progress max=total.to_string() prop:value=done as f64 aria-label="Steps"></progress> })}
            <span data-testid="run-progress">{text(progress_text)}</span>
            {move || remaining.get().map(|text| view! { <span>{text}</span> })}
            {move || updated.get().map(|updated_text| view! { <span class="muted">{updated_text}</span> })}
            <span class="muted">{text(|summary| format!("{}, {}, {} points", origin_text(summary.origin), size(summary.bytes), format::count(summary.points)))}</span>
            {move || mode_text().map(|mode_text| view! { <span class="muted">{mode_text}</span> })}
        </div>
        {move || end_reason.get().map(|reason| view! { <p class="notice end-reason" class:bad=move || state.get() == RunState::Crashed role="status" data-testid="end-reason">{reason}</p> })}
        <div class="run-labels">
            <label>
                <span>"Tags"</span>
                <input data-testid="run-tags" placeholder="none; several by commas" prop:value=move || tags.get() on:change=tag />
            </label>
            <label>
                <span>"Note"</span>
                <input data-testid="run-note" placeholder="none" maxlength="2000" prop:value=move || note.get() on:change=annotate />
            </label>
        </div>
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}

/// Download links for points and log bytes.
fn exports(id: &str, file: &str) -> impl IntoView + use<> {
    view! {
        <a class="button" href=path::run_export(id, "csv") download=format!("{file}.csv")>"CSV"</a>
        <a class="button" href=path::run_export(id, "json") download=format!("{file}.json")>"JSON"</a>
        <a class="button" href=path::run_log(id) download=format!("{file}.log")>"Raw log"</a>
    }
}
