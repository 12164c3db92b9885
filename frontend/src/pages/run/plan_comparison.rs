//! Comparison with a plan: scenario, planner, and further plans for the charts.

use api::job::StoredOutcome;
use api::path;
use api::planner::outcome::PlanOutcome;
use api::planner::scenario::PlannerKind;
use api::run::RunChange;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::other_job::OtherJob;
use crate::accuracy_link::AccuracyLink;
use crate::client::{self, RequestError};
use crate::format;
use crate::notice::ErrorNotice;
use crate::runs::{PlanSelect, use_run_monitor};

/// Card with the choice of scenario and plans.
#[component]
pub(super) fn PlanComparison() -> impl IntoView {
    let monitor = use_run_monitor();
    let target = Memo::new(move |_| monitor.comparison_target());
    let scenario = RwSignal::new(None::<String>);
    let plan = RwSignal::new(None::<PlannerKind>);
    let last_error = RwSignal::new(None::<RequestError>);
    // The server stores the choice. Update the fields from the server state; the effect below sends
    // user changes.
    let follow = move |new_target: Option<(String, Option<PlannerKind>)>| {
        let (known, planner) = new_target.unzip();
        if scenario.with_untracked(|current| *current != known) {
            scenario.set(known);
        }
        if plan.get_untracked() != planner.flatten() {
            plan.set(planner.flatten());
        }
    };
    Effect::new(move |_| {
        last_error.set(None);
        follow(target.get());
    });
    let selected = Memo::new(move |_| (scenario.get(), plan.get()));
    Effect::new(move |before: Option<()>| {
        let (scenario, plan) = selected.get();
        let now = (scenario.clone(), scenario.as_ref().and(plan));
        let (known, planner) = target.get_untracked().unzip();
        if before.is_none() || (known, planner.flatten()) == now {
            return;
        }
        let change = RunChange { scenario: Some(scenario.unwrap_or_default()), plan, ..RunChange::default() };
        last_error.set(None);
        spawn_local(async move {
            let change_error = monitor.change(change).await.err();
            let is_rejected = change_error.is_some();
            if last_error.try_set(change_error).is_none() && is_rejected {
                follow(target.get_untracked());
            }
        });
    });
    let line = move || {
        monitor.comparison.with(|comparison| {
            comparison.as_ref().filter(|comparison| comparison.job.is_comparable()).map(|comparison| {
                let short = comparison.scenario.get(..10).unwrap_or(&comparison.scenario).to_owned();
                let text = comparison.plan.clone();
                view! { <p data-testid="plan-line"><span class="pill" data-planner-colour=comparison.planner.id()></span>" "{text}" · "<a href=path::share(&short)>"open the scenario"</a></p><AccuracyLink subject="The plan's times" /> }
            })
        })
    };
    let refusal = move || {
        // Status 409 means that the scenario is still being planned. The scenario field already
        // reports this.
        let error = monitor.refusal.get().filter(|current_error| current_error.status() != Some(409))?;
        Some(view! { <p class="notice" data-testid="no-comparison"><b>{error.title()}</b>" "{error.detail()}</p> })
    };
    view! {
        <section class="card" data-testid="plan-comparison">
            <header class="card-title"><h2>"Compare with a plan"</h2></header>
            <div class="choices">
                <PlanSelect scenario=scenario plan=plan on_planned=move |()| monitor.compare() />
            </div>
            {move || last_error.get().map(|request_error| view! { <ErrorNotice error=request_error /> })}
            {line}
            {refusal}
            <OtherJob />
            <OtherPlans />
        </section>
    }
}

/// Further planners for the scenario. Checked planners add their predictions to the charts.
#[component]
fn OtherPlans() -> impl IntoView {
    let monitor = use_run_monitor();
    let titles = RwSignal::new(Vec::<(PlannerKind, String)>::new());
    // Use the compared scenario: a newly chosen scenario may have no plan yet. Plans for a
    // different job are not drawn.
    let requested_scenario = Memo::new(move |_| {
        monitor.comparison.with(|comparison| {
            let same_job = comparison.as_ref().filter(|comparison| comparison.job.is_comparable())?;
            Some(same_job.scenario.clone())
        })
    });
    Effect::new(move |_| {
        titles.set(Vec::new());
        let Some(id) = requested_scenario.get() else { return };
        spawn_local(async move {
            // Without an outcome there are no further plans.
            let Ok(stored) = client::get::<StoredOutcome>(&path::outcome(&id)).await else { return };
            let planned =
                stored.outcome.results.into_iter().filter(|result| matches!(result.answer, PlanOutcome::Planned(_)));
            titles.try_set(planned.map(|result| (result.planner, result.title)).collect());
        });
    });
    let compared_planner = Memo::new(move |_| {
        monitor.comparison.with(|comparison| comparison.as_ref().map(|comparison| comparison.planner))
    });
    let boxes = move || {
        let option = |(planner, title): (PlannerKind, String)| {
            let predicted = move || {
                let comparison = monitor.plans.with(|plans| plans.get(&planner).cloned())?;
                let step = comparison
                    .predictions
                    .iter()
                    .find(|prediction| prediction.quantity == api::run::Quantity::StepTime)?;
                let error =
                    step.error.map(|error| format!(", measured {}", format::signed_percent(error))).unwrap_or_default();
                Some(format!("{}{error}", format::seconds(step.band.value)))
            };
            let is_drawn = move || monitor.view.with(|view| view.plans.contains(&planner));
            view! {
                <label class="check">
                    <input type="checkbox" data-testid=format!("plan-{}", planner.id()) prop:checked=is_drawn on:change=move |_| monitor.toggle_plan(planner) />
                    <span class="pill" data-planner-colour=planner.id()></span>
                    <span>{title}" "<small>{move || is_drawn().then(predicted)}</small></span>
                </label>
            }
        };
        let others: Vec<_> =
            titles.get().into_iter().filter(|(planner, _)| Some(*planner) != compared_planner.get()).collect();
        (!others.is_empty()).then(|| {
            view! {
                <fieldset class="ticks">
                    <legend>"Draw the predictions of other plans"</legend>
                    {others.into_iter().map(option).collect_view()}
                </fieldset>
            }
        })
    };
    view! { {boxes} }
}
