//! Centre column: status, table, charts, memory.

use leptos::prelude::*;

use super::csv_download::CopyButton;
use super::{AskState, cards, memory_card, ranking_table, selection, use_schedules};
use crate::notice::ErrorNotice;

/// All results for the current input.
#[component]
pub(crate) fn ScheduleResults() -> impl IntoView {
    let schedules = use_schedules();
    let has_response = Memo::new(move |_| schedules.displayed.with(Option::is_some));
    let is_pending =
        Memo::new(move |_| schedules.state.with(|state| matches!(state, AskState::Asking | AskState::Idle)));
    let any_runs = Memo::new(move |_| {
        schedules.displayed.with(|content| content.as_ref().is_some_and(|current| !current.timelines.is_empty()))
    });
    // Results stay below an error. They are those of earlier input.
    let is_outdated = Memo::new(move |_| schedules.state.with(|state| matches!(state, AskState::Failed(_))));
    let request_error = move || match schedules.state.get() {
        AskState::Failed(error) if !error.names_fields() => Some(error),
        _ => None,
    };
    let empty = Memo::new(move |_| schedules.state.with(|state| *state == AskState::Empty));
    let link = Callback::new(move |()| {
        let origin = window().location().origin().unwrap_or_default();
        format!("{origin}/schedules#{}", untrack(|| schedules.fragment()))
    });
    let unlinked = move || {
        let count = schedules.unlinked.get();
        (count > 0).then(|| {
            let text = if count == 1 {
                "A table is too long for a link; send its CSV with the link."
            } else {
                "Some tables are too long for a link; send their CSVs with the link."
            };
            view! { <p class="hint">{text}</p> }
        })
    };
    view! {
        <div class="title-row">
            <h1>"Pipeline schedules"</h1>
            <CopyButton text=link label="Copy link" subject="this question and view".to_owned() />
        </div>
        <StatusLine />
        {unlinked}
        {move || request_error().map(|response_error| view! { <ErrorNotice error=response_error on_retry=move |()| schedules.request_now() /> })}
        <Show when=move || empty.get()>
            <div class="empty">
                <p>"No schedule is chosen."</p>
                <p><button class="primary" on:click=move |_| schedules.start_afresh()>"Begin with four"</button></p>
            </div>
        </Show>
        <Show
            when=move || has_response.get()
            fallback=move || (!empty.get()).then(|| view! { <div class="skeleton results-skeleton" class:still=move || !is_pending.get() aria-hidden="true"></div> })
        >
            <div
                class="results"
                data-busy=move || is_pending.get().then_some("true")
                data-outdated=move || is_outdated.get().then_some("true")
            >
                <ranking_table::ScheduleTable />
                <selection::SelectionCard />
                <cards::Cards />
                <Show when=move || any_runs.get()><memory_card::MemoryCard /></Show>
            </div>
        </Show>
    }
}

/// Status line: displayed result or error.
#[component]
fn StatusLine() -> impl IntoView {
    let schedules = use_schedules();
    let state = move || {
        schedules.state.with(|state| match state {
            AskState::Idle | AskState::Empty => "idle",
            AskState::Asking => "asking",
            AskState::Done => "done",
            AskState::Failed(_) => "error",
        })
    };
    let status_text = move || match schedules.state.get() {
        AskState::Idle | AskState::Empty => String::new(),
        AskState::Asking if schedules.displayed.with(Option::is_some) => {
            "Computing; the last results stay until then".to_owned()
        }
        AskState::Asking => "Computing".to_owned(),
        AskState::Failed(field_error) if field_error.names_fields() => {
            "A field has an error; the results are those of the last valid input".to_owned()
        }
        AskState::Failed(other_error) => other_error.title(),
        AskState::Done => {
            schedules.displayed.with(|content| content.as_ref().map(|current| summary(current)).unwrap_or_default())
        }
    };
    view! {
        <div class="status" role="status">
            <p data-testid="schedules-status" data-state=state>{status_text}</p>
        </div>
    }
}

fn summary(content: &super::DisplayedSchedules) -> String {
    let (all, run) = (content.response.entries.len(), content.timelines.len());
    let actions: usize = content.timelines.iter().map(|(_, timeline)| timeline.len()).sum();
    let schedules = if all == 1 { "1 schedule".to_owned() } else { format!("{all} schedules") };
    let rejected_text = if run < all { format!(", {} of them not built", all - run) } else { String::new() };
    format!("{schedules}{rejected_text}; {} spans", crate::format::count(actions as u64))
}
