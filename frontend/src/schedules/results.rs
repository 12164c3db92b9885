//! Centre column: status, table, charts, memory.

use leptos::prelude::*;

use super::csv_download::CopyButton;
use super::{AskState, cards, memory_card, ranking_table, selection, use_schedules};
use crate::notice::FailureNotice;

/// All results for the current input.
#[component]
pub(crate) fn ScheduleResults() -> impl IntoView {
    let schedules = use_schedules();
    let has_answer = Memo::new(move |_| schedules.shown.with(Option::is_some));
    let busy = Memo::new(move |_| schedules.state.with(|state| matches!(state, AskState::Asking | AskState::Idle)));
    let any_runs = Memo::new(move |_| {
        schedules.shown.with(|shown| shown.as_ref().is_some_and(|shown| !shown.timelines.is_empty()))
    });
    let failure = move || match schedules.state.get() {
        AskState::Failed(failure) if !failure.names_fields() => Some(failure),
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
            let words = if count == 1 {
                "A table is too long for a link; send its CSV beside it."
            } else {
                "Some tables are too long for a link; send their CSVs beside it."
            };
            view! { <p class="hint">{words}</p> }
        })
    };
    view! {
        <div class="title-row">
            <h1>"Pipeline schedules"</h1>
            <CopyButton text=link label="Copy link" what="this question and view".to_owned() />
        </div>
        <StatusLine />
        {unlinked}
        {move || failure().map(|failure| view! { <FailureNotice failure=failure on_retry=move |()| schedules.ask() /> })}
        <Show when=move || empty.get()>
            <div class="empty">
                <p>"No schedule is chosen."</p>
                <p><button class="primary" on:click=move |_| schedules.start_afresh()>"Begin with four"</button></p>
            </div>
        </Show>
        <Show
            when=move || has_answer.get()
            fallback=move || (!empty.get()).then(|| view! { <div class="skeleton results-skeleton" class:still=move || !busy.get() aria-hidden="true"></div> })
        >
            <div class="results" data-busy=move || busy.get().then_some("true")>
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
    let words = move || match schedules.state.get() {
        AskState::Idle | AskState::Empty => String::new(),
        AskState::Asking if schedules.shown.with(Option::is_some) => {
            "Computing; the last answer stays until then".to_owned()
        }
        AskState::Asking => "Computing".to_owned(),
        AskState::Failed(failure) if failure.names_fields() => {
            "A field is wrong; what is shown is the last answer".to_owned()
        }
        AskState::Failed(failure) => failure.title(),
        AskState::Done => schedules.shown.with(|shown| shown.as_ref().map(|shown| summary(shown)).unwrap_or_default()),
    };
    view! {
        <div class="status" role="status">
            <p data-testid="schedules-status" data-state=state>{words}</p>
        </div>
    }
}

fn summary(shown: &super::Shown) -> String {
    let (all, run) = (shown.answer.entries.len(), shown.timelines.len());
    let actions: usize = shown.timelines.iter().map(|(_, timeline)| timeline.len()).sum();
    let schedules = if all == 1 { "1 schedule".to_owned() } else { format!("{all} schedules") };
    let refused = if run < all { format!(", {} of them not built", all - run) } else { String::new() };
    format!("{schedules}{refused}; {} spans", crate::format::count(actions as u64))
}
