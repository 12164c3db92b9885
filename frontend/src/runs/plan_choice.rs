//! Selects the plan to compare with a run: scenario and planner.

use api::job::StoredOutcome;
use api::path;
use api::planner::outcome::{PlanOutcome, PlannerResult};
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::plan_search::PlanSearch;
use crate::client::RequestError;
use crate::notice::ErrorNotice;
use crate::outcome_fetch;

/// Planners with a feasible plan for the scenario.
#[derive(Debug, Clone, PartialEq)]
enum Planners {
    /// No scenario is selected, or the response is pending.
    Unknown,
    Planning,
    Failed(RequestError),
    /// Planners with titles, fastest plan first.
    Known(Vec<(PlannerKind, String)>),
}

impl Planners {
    fn from_response(response: Result<Option<StoredOutcome>, RequestError>) -> Self {
        match response {
            Ok(Some(stored)) => Self::from_results(stored.outcome.results),
            Ok(None) => Self::Failed(RequestError::Unreadable("Planning was cancelled from another page.".to_owned())),
            Err(error) => Self::Failed(error),
        }
    }

    fn from_results(results: Vec<PlannerResult>) -> Self {
        let planned = results.into_iter().filter(|result| matches!(result.answer, PlanOutcome::Planned(_)));
        Self::Known(planned.map(|result| (result.planner, result.title)).collect())
    }
}

/// Fields for scenario and planner. A scenario without an outcome is planned.
#[component]
pub(crate) fn PlanSelect(
    /// Scenario identifier.
    scenario: RwSignal<Option<String>>,
    /// Planner, or `None` for the fastest.
    plan: RwSignal<Option<PlannerKind>>,
    /// Called when the plans for the scenario are available.
    #[prop(optional, into)]
    on_planned: Option<Callback<()>>,
    /// Called with true if planning failed, and with false when it begins.
    #[prop(optional, into)]
    on_failed: Option<Callback<bool>>,
) -> impl IntoView {
    let planners = RwSignal::new(Planners::Unknown);
    let selected_scenario = Memo::new(move |_| scenario.get());
    let report = move |has_failed: bool| {
        if let Some(on_failed) = on_failed {
            on_failed.run(has_failed);
        }
    };
    let ask = move |id: String| {
        report(false);
        spawn_local(async move {
            let is_current = {
                let id = id.clone();
                move || selected_scenario.try_get_untracked().flatten().as_deref() == Some(id.as_str())
            };
            // Continue planning if the user leaves the page, because the scenario may be attached
            // to a run.
            let is_wanted = {
                let id = id.clone();
                move || {
                    selected_scenario.try_get_untracked().is_none_or(|current| current.as_deref() == Some(id.as_str()))
                }
            };
            let known = outcome_fetch::stored(&id).await;
            if !is_current() {
                return;
            }
            let result = match known {
                Ok(None) => {
                    planners.set(Planners::Planning);
                    outcome_fetch::fetch_or_plan_while(&id, is_wanted).await
                }
                known => known,
            };
            if !is_current() {
                return;
            }
            let answer = Planners::from_response(result);
            let is_known = matches!(answer, Planners::Known(_));
            report(!is_known);
            planners.set(answer);
            if let Some(on_planned) = on_planned.filter(|_| is_known) {
                on_planned.run(());
            }
        });
    };
    Effect::new(move |_| {
        planners.set(Planners::Unknown);
        if let Some(id) = selected_scenario.get() {
            ask(id);
        }
    });
    let planner_options = move || {
        let known = match planners.get() {
            Planners::Known(known) => known,
            Planners::Unknown | Planners::Planning | Planners::Failed(_) => {
                plan.get_untracked().map(|plan| (plan, plan.title().to_owned())).into_iter().collect()
            }
        };
        let option = |(planner, title): (PlannerKind, String)| {
            view! { <option value=planner.id() prop:selected=move || plan.get() == Some(planner)>{title}</option> }
        };
        known.into_iter().map(option).collect_view()
    };
    let state = move || match planners.get() {
        Planners::Planning => {
            Some(view! { <p class="hint" data-testid="choice-planning">"Planning the scenario…"</p> }.into_any())
        }
        Planners::Failed(request_error) => {
            let retry = move |()| {
                if let Some(id) = selected_scenario.get_untracked() {
                    ask(id);
                }
            };
            Some(view! { <ErrorNotice error=request_error on_retry=retry /> }.into_any())
        }
        Planners::Known(known) if known.is_empty() => {
            let id = scenario.get_untracked().unwrap_or_default();
            let short = id.get(..10).unwrap_or(&id).to_owned();
            Some(
                view! { <p class="hint">"No planner found a plan of this scenario. "<a href=path::share(&short)>"Open the scenario"</a>" to see why."</p> }
                    .into_any(),
            )
        }
        Planners::Known(_) | Planners::Unknown => None,
    };
    view! {
        <PlanSearch scenario=scenario on_select=move |()| plan.set(None) />
        <label>
            "Plan"
            <select
                data-testid="choose-plan"
                disabled=move || scenario.with(Option::is_none)
                on:change=move |event| plan.set(PlannerKind::from_id(&event_target_value(&event)))
            >
                <option value="" prop:selected=move || plan.with(Option::is_none)>"Fastest"</option>
                {planner_options}
            </select>
        </label>
        {state}
    }
}
