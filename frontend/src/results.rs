//! The middle of the explore page: title, iterations, ranked table, charts.

mod asked;
mod assignment;
mod beside;
mod breakdown;
mod budget;
mod cards;
mod execution_plan;
mod iteration_strip;
mod load_balance;
mod memory_card;
mod memory_figures;
mod peak_memory;
mod placement;
mod published;
mod ranking;
mod ranking_table;
mod status;
mod studies;
mod time_and_memory;
mod time_spent;
mod title;

pub(crate) use ranking::{chosen_planner, degrees, short_title};

use api::planner::outcome::Answer;
use leptos::context::Provider;
use leptos::prelude::*;

use crate::explore::{Explore, PlanState, use_explore};
use crate::notice::FailureNotice;

/// Everything that is shown of an answer.
#[component]
pub(crate) fn Results() -> impl IntoView {
    let explore = use_explore();
    let has_result = Memo::new(move |_| explore.result.with(Option::is_some));
    let busy = Memo::new(move |_| explore.state.with(PlanState::is_busy));
    let outdated = Memo::new(move |_| status::is_outdated(explore));
    let failure = move || {
        explore.state.with(|state| match state {
            // A wrong field has its message at the field.
            PlanState::Failed(failure) if !failure.names_fields() => Some(failure.clone()),
            _ => None,
        })
    };
    view! {
        <title::TitleRow />
        <status::StatusLine />
        {move || failure().map(|failure| {
            view! { <FailureNotice failure=failure on_retry=move |()| begin_again(explore) /> }
        })}
        <Show when=move || has_result.get() fallback=move || view! { <div class="skeleton results-skeleton" class:still=move || !busy.get() aria-hidden="true"></div> }>
            <div
                class="results"
                data-busy=move || busy.get().then_some("true")
                data-outdated=move || (outdated.get() && !busy.get()).then_some("true")
            >
                <iteration_strip::IterationStrip />
                <ranking_table::RankingTable />
                <peak_memory::MemoryAtTop />
                <cards::Cards />
                <Further />
            </div>
        </Show>
    }
}

/// What stands below the charts; it comes when these are painted, and follows a slider when that rests.
#[component]
fn Further() -> impl IntoView {
    let at_rest = use_explore().at_rest();
    let is_due = RwSignal::new(false);
    // Charts are painted in the frame after the one in which they were made.
    request_animation_frame(move || {
        request_animation_frame(move || {
            // Who has gone meanwhile needs them no more.
            is_due.try_set(true);
        });
    });
    view! {
        <Provider value=at_rest>
            <Show when=move || is_due.get()>
                <beside::BesideCard />
                <published::PublishedCard />
                <assignment::AssignmentCard />
                <placement::PlacementCard />
                <load_balance::LoadBalance />
                <BreakdownCards />
                <execution_plan::ExecutionPlanCard />
                <budget::BudgetCard />
                <crate::sweeps::ScalingCard />
                <studies::Studies />
            </Show>
        </Provider>
    }
}

/// Where time and memory of the ranks go; only where somebody found a plan.
#[component]
fn BreakdownCards() -> impl IntoView {
    let explore = use_explore();
    let any_plan =
        Memo::new(move |_| explore.results().iter().any(|result| matches!(result.answer, Answer::Planned(_))));
    view! {
        <Show when=move || any_plan.get()>
            <time_spent::TimeSpent />
            <peak_memory::PeakOfPlan />
            <time_and_memory::TimeAndMemory />
        </Show>
    }
}

/// Plans again; a link that did not open is opened again from the start.
fn begin_again(explore: Explore) {
    if explore.scenario.with_untracked(serde_json::Value::is_object) {
        explore.retry();
    } else {
        // A browser that refuses to reload leaves the page as it is.
        drop(window().location().reload());
    }
}
