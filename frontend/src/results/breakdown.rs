//! Shared parts of the cards for rank time and memory: planner name, and a placeholder for missing
//! data.

use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::ranking;
use crate::explore::{Plan, PlanState, use_explore};

/// Returns the selected planner and its plan.
pub(super) fn selected_plan() -> Memo<Option<(PlannerKind, Plan)>> {
    let explore = use_explore();
    Memo::new(move |_| {
        let planner = ranking::selected_planner(&explore.results(), explore.view.get().planner)?;
        Some((planner, explore.planned(planner)?))
    })
}

/// Name of the planner selected in the ranking table.
#[component]
pub(super) fn PlanName() -> impl IntoView {
    let plan = selected_plan();
    let name = move || plan.with(|plan| plan.as_ref().map(|(planner, _)| *planner));
    view! {
        <span class="muted plan-name">
            {move || name().map(|planner| view! { <span class="pill" data-planner-colour=planner.id()></span>{planner.title()} })}
        </span>
    }
}

/// Placeholder for outcomes without a breakdown per rank.
#[component]
pub(super) fn NoBreakdown() -> impl IntoView {
    let explore = use_explore();
    let plan = selected_plan();
    let has_plan = Memo::new(move |_| plan.with(Option::is_some));
    let is_pending = move || explore.state.with(PlanState::is_pending);
    view! {
        <Show
            when=move || has_plan.get()
            fallback=|| view! { <p class="hint">"This planner found no plan; the reasons are in the panel “Why this plan”."</p> }
        >
            <p class="hint" data-testid="no-breakdown">
                "This answer was stored before ranks were broken down. "
                <button class="quiet" on:click=move |_| explore.retry() disabled=is_pending>"Re-run to see it"</button>
            </p>
        </Show>
    }
}

#[cfg(test)]
pub(super) mod tests {
    use api::planner::outcome::{
        Layout, Metrics, PlanOutcome, Planned, PlannerResult, Provenance, RankSummary, Search, SolverStatus,
    };

    use super::*;

    /// Returns a plan with these ranks and default values elsewhere.
    pub(in crate::results) fn planned(planner: PlannerKind, ranks: Vec<RankSummary>) -> PlannerResult {
        let metrics = Metrics {
            iteration_s: 1.0,
            tokens_per_s: 1.0,
            tokens_per_s_per_device: Some(0.25),
            tflops_per_device: 1.0,
            mfu: 0.5,
            bubble: 0.1,
            exposed_communication: 0.0,
            peak_memory_gib: 40.0,
            memory_limit_gib: 76.0,
            host_memory_gib: 0.0,
            lower_bound_s: 1.0,
            gap: 0.0,
        };
        let provenance =
            Provenance { algorithm: String::new(), seed: 0, status: SolverStatus::Optimal, search: Search::default() };
        let layout = Layout { tensor: 1, pipeline: 2, data: 1, chunks: 1, microbatch: 1, group: None };
        let plan = Planned {
            layout,
            stages: vec![],
            ranks,
            metrics,
            iterations: vec![],
            provenance,
            decisions: vec![],
            placement: None,
            settings: None,
            source: None,
            gains: vec![],
            all_layouts_bound_s: None,
        };
        PlannerResult { planner, title: planner.title().to_owned(), answer: PlanOutcome::Planned(Box::new(plan)) }
    }
}
