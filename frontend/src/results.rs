//! Centre column on the explore page: title, iterations, ranking table, charts.

mod assignment;
mod breakdown;
mod budget;
mod cards;
mod comparison;
mod execution_plan;
mod fit;
mod gains;
mod iteration_strip;
mod load_balance;
mod memory_card;
mod memory_figures;
mod peak_memory;
mod placement;
mod published;
mod ranking;
mod ranking_table;
mod request_card;
mod status;
mod studies;
mod time_and_memory;
mod time_spent;
mod title;

pub(crate) use budget::{CostCard, Throughput};
pub(crate) use fit::change_lines;
pub(crate) use peak_memory::{PARTS as MEMORY_PARTS, fullest as fullest_rank, values as memory_values};
pub(crate) use ranking::{degrees, plan_degrees, selected_planner, settings_text, short_title, source_text};
pub(crate) use time_spent::{PARTS as TIME_PARTS, values as time_values};

use api::planner::outcome::PlanOutcome;
use leptos::context::Provider;
use leptos::prelude::*;

use crate::client::RequestError;
use crate::explore::{Explore, PlanState, use_explore};
use crate::format;
use crate::notice::ErrorNotice;

/// All results for the open scenario.
#[component]
pub(crate) fn Results() -> impl IntoView {
    let explore = use_explore();
    let has_result = Memo::new(move |_| explore.result.with(Option::is_some));
    let retries = Memo::new(move |_| {
        explore.state.with(|state| *state == PlanState::Failed(RequestError::Offline))
            && explore.is_unanswered()
            && explore.scenario.with(serde_json::Value::is_object)
    });
    let is_pending = Memo::new(move |_| explore.state.with(PlanState::is_pending));
    let outdated = Memo::new(move |_| status::is_outdated(explore));
    let plan_error = move || {
        explore.state.with(|state| match state {
            // Errors for a field appear next to this field.
            PlanState::Failed(error) if !error.names_fields() => Some(error.clone()),
            _ => None,
        })
    };
    view! {
        <title::TitleRow />
        <status::StatusLine />
        {move || plan_error().map(|request_error| {
            view! { <ErrorNotice error=request_error on_retry=move |()| plan_again(explore) /> }
        })}
        {move || retries.get().then(|| view! { <p class="hint" role="status">"The page tries again every few seconds, and then plans."</p> })}
        <Show when=move || has_result.get() fallback=move || view! { <NoResult is_pending=is_pending /> }>
            <div
                class="results"
                data-busy=move || is_pending.get().then_some("true")
                data-outdated=move || (outdated.get() && !is_pending.get()).then_some("true")
            >
                <iteration_strip::IterationStrip />
                <ranking_table::RankingTable />
                <peak_memory::MemoryAtTop />
                <fit::FitPanel />
                <cards::Cards />
                <Further />
            </div>
        </Show>
    }
}

/// What is in place of results before the first ones: a placeholder while they are awaited, and what happened instead.
#[component]
fn NoResult(is_pending: Memo<bool>) -> impl IntoView {
    let explore = use_explore();
    let is_over =
        Memo::new(move |_| explore.state.with(|state| matches!(state, PlanState::Cancelled | PlanState::Failed(_))));
    let cancelled = move || {
        explore.state.with(|state| *state == PlanState::Cancelled).then(|| {
            let best = explore.best_before_cancel().map(|best| {
                let (seconds, planner) = (format::seconds(best.iteration_s), best.planner.short_title());
                format!(" The fastest plan so far took {seconds} per step with {planner}. It is not stored.")
            });
            view! { <p class="hint" data-testid="no-result">"Planning was cancelled before it had a result."{best}" The button “Plan it” starts again."</p> }
        })
    };
    view! {
        {cancelled}
        <Show when=move || !is_over.get()>
            <p class="hint">{move || is_pending.get().then_some("The table and the charts appear with the first complete result.")}</p>
            <div class="skeleton results-skeleton short" class:still=move || !is_pending.get() aria-hidden="true"></div>
        </Show>
    }
}

/// Cards below the charts. They render after the first chart paint, and update only when a slider
/// stops.
#[component]
fn Further() -> impl IntoView {
    let at_rest = use_explore().at_rest();
    let is_due = RwSignal::new(false);
    // Charts are painted in the frame after their creation, so wait for two frames.
    request_animation_frame(move || {
        request_animation_frame(move || {
            // The user may have left the page.
            is_due.try_set(true);
        });
    });
    view! {
        <Provider value=at_rest>
            <Show when=move || is_due.get()>
                <comparison::ComparisonCard />
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

/// Breakdown of time and memory per rank. Hidden if no planner found a plan.
#[component]
fn BreakdownCards() -> impl IntoView {
    let explore = use_explore();
    let any_plan =
        Memo::new(move |_| explore.results().iter().any(|result| matches!(result.answer, PlanOutcome::Planned(_))));
    view! {
        <Show when=move || any_plan.get()>
            <time_spent::TimeSpent />
            <peak_memory::PlanPeak />
            <time_and_memory::TimeAndMemory />
        </Show>
    }
}

/// Plans again. A link that failed to open reloads the page.
fn plan_again(explore: Explore) {
    if explore.scenario.with_untracked(serde_json::Value::is_object) {
        explore.retry();
    } else {
        // If the browser refuses to reload, the page stays unchanged.
        drop(window().location().reload());
    }
}
