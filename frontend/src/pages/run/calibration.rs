//! Calibration: fit a profile to a run, plan the scenario again, and compare both plans with the
//! measurements.

mod check;

use api::job::StoredOutcome;
use api::path;
use api::planner::outcome::PlanOutcome;
use api::planner::scenario::PlannerKind;
use api::profile::{AppliedProfile, ApplyProfile, Profile};
use api::run::Quantity;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, RequestError};
use crate::format;
use crate::notice::ErrorNotice;
use crate::outcome_fetch::fetch_or_plan;
use crate::profiles::{EffectSummary, Factors, ProfileLink};
use crate::runs::use_run_monitor;

/// Scenario and plans before and after calibration.
#[derive(Debug, Clone, PartialEq)]
struct Replanned {
    before: StoredScenario,
    after: StoredScenario,
    /// Changes from `before` to `after`.
    changes: Vec<String>,
    /// Planner, title, mean iteration time before and after in s.
    times: Vec<(PlannerKind, String, Option<f64>, Option<f64>)>,
}

/// Calibration card. It is hidden without a plan.
#[component]
pub(super) fn Calibration() -> impl IntoView {
    let monitor = use_run_monitor();
    let profile = RwSignal::new(None::<Profile>);
    let replanned = RwSignal::new(None::<Replanned>);
    let last_error = RwSignal::new(None::<RequestError>);
    let progress_text = RwSignal::new(None::<&'static str>);
    let has_steps = Memo::new(move |_| monitor.summary().is_some_and(|summary| summary.points > 0));
    let is_possible = Memo::new(move |_| {
        let is_same_job = |comparison: &std::sync::Arc<api::run::Comparison>| comparison.job.is_comparable();
        has_steps.get() && monitor.comparison.with(|comparison| comparison.as_ref().is_some_and(is_same_job))
    });
    let calibrate = move |_| {
        progress_text.set(Some("Calibrating…"));
        last_error.set(None);
        replanned.set(None);
        spawn_local(async move {
            let response =
                client::send::<Profile>("POST", &path::run_calibration(&monitor.feed.id()), Body::Empty).await;
            if progress_text.try_set(None).is_some() {
                return;
            }
            match response {
                Ok(fitted) => profile.set(Some(fitted)),
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    };
    let replan = move |_| {
        let Some((scenario, _)) = untrack(|| monitor.comparison_target()) else { return };
        let Some(id) = profile.with_untracked(|profile| profile.as_ref().map(|profile| profile.summary.id.clone()))
        else {
            return;
        };
        progress_text.set(Some("Planning again…"));
        last_error.set(None);
        spawn_local(async move {
            let replan_response = replan_with(&id, scenario).await;
            if progress_text.try_set(None).is_some() {
                return;
            }
            match replan_response {
                Ok(plans) => replanned.set(Some(plans)),
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    };
    let result = move || {
        profile.get().map(|profile| {
            view! {
                <div data-testid="calibrated">
                    <p role="status">"Stored as the profile "<ProfileLink summary=profile.summary.clone() />". No scenario uses it yet."</p>
                    <EffectSummary effect=profile.effect />
                    <Factors factors=profile.factors />
                    <check::Check profile=profile.summary.id.clone() />
                    <p class="actions">
                        <button class="primary" data-testid="replan" disabled=move || progress_text.get().is_some() on:click=replan>"Plan the scenario with this profile"</button>
                    </p>
                </div>
            }
        })
    };
    view! {
        <Show when=move || is_possible.get()>
            <section class="card" data-testid="calibration-card">
                <header class="card-title">
                    <h2>"Calibrate"</h2>
                    <span class="muted">"creates a profile with correction factors from this run"</span>
                </header>
                <p class="actions">
                    <button data-testid="calibrate" disabled=move || progress_text.get().is_some() on:click=calibrate>"Calibrate with this run"</button>
                    <span class="muted" role="status">{move || progress_text.get()}</span>
                </p>
                {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
                {result}
                {move || replanned.get().map(|plans| view! { <BeforeAndAfter plans=plans /> })}
            </section>
        </Show>
    }
}

async fn replan_with(profile: &str, scenario: String) -> Result<Replanned, RequestError> {
    let before = client::get::<StoredScenario>(&path::scenario(&scenario)).await?;
    let old = client::get::<StoredOutcome>(&path::outcome(&scenario)).await?;
    let body = serde_json::to_string(&ApplyProfile { scenario })
        .map_err(|error| RequestError::Unreadable(error.to_string()))?;
    let AppliedProfile { scenario, changes } =
        client::send("POST", &path::profile_apply(profile), Body::Json(body)).await?;
    let after = client::get::<StoredScenario>(&path::scenario(&scenario)).await?;
    let new = fetch_or_plan(&scenario).await?;
    Ok(Replanned { times: times(&old, &new), before, after, changes })
}

/// Returns mean iteration times for all planners in both outcomes, in the order of the first
/// outcome.
fn times(old: &StoredOutcome, new: &StoredOutcome) -> Vec<(PlannerKind, String, Option<f64>, Option<f64>)> {
    let time = |outcome: &StoredOutcome, planner: PlannerKind| {
        let result = outcome.outcome.results.iter().find(|result| result.planner == planner)?;
        match &result.answer {
            PlanOutcome::Planned(planned) => Some(planned.metrics.iteration_s),
            PlanOutcome::Infeasible { .. } => None,
        }
    };
    let lines = old.outcome.results.iter().map(|result| {
        let planner = result.planner;
        (planner, result.title.clone(), time(old, planner), time(new, planner))
    });
    lines.collect()
}

/// Formats the factor of a change with three digits: "layer forward: x 1.019886" becomes "layer forward: × 1.02".
fn factor_text(line: &str) -> String {
    let Some((text, factor)) = line.rsplit_once(" x ") else { return line.to_owned() };
    factor
        .parse::<f64>()
        .map_or_else(|_| line.to_owned(), |factor| format!("{text} × {}", format::three_digits(factor)))
}

#[component]
fn BeforeAndAfter(plans: Replanned) -> impl IntoView {
    let monitor = use_run_monitor();
    let Replanned { before, after, changes, times } = plans;
    let changes = changes.into_iter().map(|line| view! { <li>{factor_text(&line)}</li> }).collect_view();
    let compared_planner =
        monitor.comparison.with_untracked(|comparison| comparison.as_ref().map(|comparison| comparison.planner));
    let measured = Memo::new(move |_| {
        monitor.comparison.with(|comparison| {
            let predictions = &comparison.as_ref()?.predictions;
            predictions.iter().find(|prediction| prediction.quantity == Quantity::StepTime)?.measured
        })
    });
    let rows = times.into_iter().map(|(planner, title, before, after)| {
        let is_compared = compared_planner == Some(planner);
        let figure = move |time: Option<f64>| {
            let time_text = time.map_or_else(|| "no plan".to_owned(), format::seconds);
            let error = move || {
                let error = time.zip(measured.get()).filter(|(time, _)| is_compared && *time > 0.0);
                error.map(|(time, measured)| format!(" measured {}", format::signed_percent(measured / time - 1.0)))
            };
            view! { <td class="number">{time_text}<small>{error}</small></td> }
        };
        view! {
            <tr class:chosen=is_compared>
                <th scope="row"><span class="pill" data-planner-colour=planner.id()></span>" "{title}{is_compared.then_some(" (this run)")}</th>
                {figure(before)}
                {figure(after)}
            </tr>
        }
    });
    view! {
        <div class="table-scroll" role="region" aria-label="Plans before and after calibration" tabindex="0">
            <table class="list figures" data-testid="before-after">
                <thead>
                    <tr>
                        <th scope="col">"Predicted step time"</th>
                        <th scope="col" class="number"><a href=path::share(&before.short)>"before"</a></th>
                        <th scope="col" class="number"><a href=path::share(&after.short)>"after"</a></th>
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </div>
        <ul class="notes">{changes}</ul>
        <p class="hint">
            {move || measured.get().map(|time| format!("Measured: {}. ", format::seconds(time)))}
            <a href=path::share(&after.short)>"Explore the new plans"</a>
        </p>
    }
}

#[cfg(test)]
mod tests {
    use super::factor_text;

    #[test]
    fn factors_have_three_digits() {
        assert_eq!(factor_text("every module, layer forward: x 1.019886"), "every module, layer forward: × 1.02");
        assert_eq!(factor_text("3 nodes x 8 devices"), "3 nodes x 8 devices");
    }
}
