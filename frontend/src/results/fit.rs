//! Single changes that make the scenario fit, or that save most time. They are simulated on request.

mod changes;
mod devices;
mod field_names;
mod study;

pub(crate) use field_names::lines as change_lines;

use api::planner::fit::{DeviceTable, Fit};
use api::planner::outcome::{PlanOutcome, PlannerResult};
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;
use serde_json::Value;

use super::peak_memory::RankNeeds;
use super::{ranking, status};
use crate::explore::{Explore, PlanState, use_explore};
use crate::{format, pointer};
use study::{Study, StudyControls};

const MAKES_IT_FIT: &str = "Changes that make it fit";
const SAVES_TIME: &str = "Changes that save time";
const FIND: &str = "Find changes";
const OUTDATED: &str = "The scenario has changed since; these are the changes of the earlier one.";

/// Planners with a plan of their own, in the order of the scenario.
fn planners(scenario: &Value, results: &[PlannerResult]) -> Vec<PlannerKind> {
    let requested = pointer::get(scenario, "/planners").and_then(Value::as_array).cloned().unwrap_or_default();
    let kinds = requested.into_iter().filter_map(|id| serde_json::from_value(id).ok());
    kinds
        .filter(|planner| *planner != PlannerKind::Best && results.iter().any(|result| result.planner == *planner))
        .collect()
}

fn has_plan(results: &[PlannerResult], planner: Option<PlannerKind>) -> bool {
    let mut of_planner = results.iter().filter(|result| planner.is_none_or(|planner| result.planner == planner));
    of_planner.any(|result| matches!(result.answer, PlanOutcome::Planned(_)))
}

/// Returns the first planner with a plan, or the first planner.
fn default_planner(planners: &[PlannerKind], results: &[PlannerResult]) -> Option<PlannerKind> {
    let fitting = planners.iter().find(|planner| has_plan(results, Some(**planner)));
    fitting.or(planners.first()).copied()
}

/// Describes the answer in sentences.
fn answer_note(fit: &Fit) -> String {
    let simulated = format::count(fit.simulated.into());
    let found = match (fit.base.iteration_s, fit.changes.is_empty()) {
        (Some(_), true) => format!("None of {simulated} changes saves time."),
        (None, true) => format!("None of {simulated} changes makes it fit."),
        (Some(seconds), false) => {
            format!("Now {} per step. {simulated} changes simulated on one global batch.", format::seconds(seconds))
        }
        (None, false) => format!("{simulated} changes simulated on one global batch, {} do not fit.", fit.rejected),
    };
    let partial = if fit.is_partial { " The server's time limit was reached before all were simulated." } else { "" };
    format!("{}: {found}{partial}", ranking::short_title(fit.planner))
}

/// Describes what the button does.
const fn offer(fits: bool) -> &'static str {
    if fits {
        "Simulates single changes of layout, training, packing and cluster, and lists those that save most time."
    } else {
        "Simulates single changes of layout, training, packing and cluster, and lists the fastest that fit."
    }
}

/// True if the displayed plans are those of the edited scenario.
fn is_settled(explore: Explore) -> bool {
    explore.state.with(|state| matches!(state, PlanState::Done | PlanState::Infeasible))
        && !status::is_outdated(explore)
}

/// Panel below the ranking table.
#[component]
pub(super) fn FitPanel() -> impl IntoView {
    let explore = use_explore();
    let choices = Memo::new(move |_| explore.scenario.with(|scenario| planners(scenario, &explore.results())));
    let picked = RwSignal::new(None::<PlannerKind>);
    let planner = Memo::new(move |_| {
        let choices = choices.get();
        picked
            .get()
            .filter(|planner| choices.contains(planner))
            .or_else(|| default_planner(&choices, &explore.results()))
    });
    let fits = Memo::new(move |_| has_plan(&explore.results(), planner.get()));
    let id = Memo::new(move |_| explore.stored_scenario_id().filter(|_| is_settled(explore)));
    let url = Memo::new(move |_| Some(api::path::fit_analysis(&id.get()?, planner.get().map(PlannerKind::id))));
    let study = Study::<Fit>::new(url, explore.scenario);
    let is_stale = Memo::new(move |_| study.is_stale());
    let applied = RwSignal::new(None::<String>);
    let note = Signal::derive(move || {
        let Some(answer) = study.last.get() else { return offer(fits.get()).to_owned() };
        match (is_stale.get(), applied.get()) {
            (false, _) => answer_note(&answer.content),
            (true, Some(change)) => format!("Applied: {change}. {OUTDATED}"),
            (true, None) => OUTDATED.to_owned(),
        }
    });
    // An undone or replaced scenario has no applied change.
    Effect::new(move |_| {
        if !is_stale.get() {
            applied.set(None);
        }
    });
    let undo = move || {
        let is_offered = applied.with(Option::is_some) && explore.undoable.get().0;
        is_offered.then(|| view! { <button class="quiet" on:click=move |_| explore.undo()>"Undo"</button> })
    };
    let body = move || {
        study.last.get().map(|answer| {
            let fit = &answer.content;
            let table = (!fit.changes.is_empty()).then(|| {
                view! { <changes::Changes fit=fit document=&answer.document is_stale=is_stale explore=explore applied=applied /> }
            });
            let needs = fit.base.iteration_s.is_none().then(|| view! { <RankNeeds fit=fit /> });
            view! { {needs}{table} }
        })
    };
    view! {
        <section class="card fit" data-testid="card-fit">
            <header class="card-title">
                <h2>{move || if fits.get() { SAVES_TIME } else { MAKES_IT_FIT }}</h2>
                <Show when=move || choices.with(|choices| choices.len() > 1)>
                    <PlannerSelect choices=choices planner=planner picked=picked />
                </Show>
            </header>
            <StudyControls study=study label=FIND waiting="Simulating changes…" note=note further=undo />
            <div class:fit-stale=move || is_stale.get()>{body}</div>
            <FewestDevicesGroup id=id />
        </section>
    }
}

/// Selection of the planner whose changes are simulated.
#[component]
fn PlannerSelect(
    choices: Memo<Vec<PlannerKind>>,
    planner: Memo<Option<PlannerKind>>,
    picked: RwSignal<Option<PlannerKind>>,
) -> impl IntoView {
    let options = move || {
        let option = |kind: PlannerKind| {
            view! { <option value=kind.id() prop:selected=move || planner.get() == Some(kind)>{ranking::short_title(kind)}</option> }
        };
        choices.get().into_iter().map(option).collect_view()
    };
    let pick = move |event| {
        let id = event_target_value(&event);
        picked.set(choices.get_untracked().into_iter().find(|kind| kind.id() == id));
    };
    view! {
        <select aria-label="Planner whose changes are simulated" on:change=pick>{options}</select>
    }
}

/// Folded table of device types.
#[component]
fn FewestDevicesGroup(id: Memo<Option<String>>) -> impl IntoView {
    let explore = use_explore();
    let url = Memo::new(move |_| Some(api::path::fewest_devices(&id.get()?)));
    let study = Study::<DeviceTable>::new(url, explore.scenario);
    let is_stale = Memo::new(move |_| study.is_stale());
    let note = Signal::derive(move || match study.last.get() {
        None => "Plans the scenario on whole nodes and parts of a node of every device type. This can take a while."
            .to_owned(),
        Some(_) if is_stale.get() => {
            "The scenario has changed since; these are the devices of the earlier one.".to_owned()
        }
        Some(answer) => devices::note(&answer.content),
    });
    view! {
        <details class="advanced" data-testid="fit-devices">
            <summary>"Fewest devices per device type"</summary>
            <StudyControls study=study label="Find fewest devices" waiting="Planning device types…" note=note />
            <div class:fit-stale=move || is_stale.get()>
                {move || study.last.get().map(|answer| devices::show(&answer.content))}
            </div>
        </details>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::fit::FitResult;
    use serde_json::json;

    use super::*;
    use crate::results::breakdown::tests::planned;

    fn fit(iteration_s: Option<f64>, is_partial: bool) -> Fit {
        Fit {
            planner: PlannerKind::OneFOneB,
            base: FitResult {
                layout: None,
                iteration_s,
                tokens_per_s_per_device: None,
                peak_gib: None,
                stage_layers: Vec::new(),
                binding: None,
            },
            ranks: Vec::new(),
            limit_gib: 76.0,
            changes: Vec::new(),
            simulated: 12,
            rejected: 12,
            combination: None,
            is_partial,
        }
    }

    #[test]
    fn an_answer_without_changes_says_so() {
        assert_eq!(answer_note(&fit(None, false)), "1F1B: None of 12 changes makes it fit.");
        assert_eq!(
            answer_note(&fit(Some(2.0), true)),
            "1F1B: None of 12 changes saves time. The server's time limit was reached before all were simulated."
        );
    }

    #[test]
    fn the_first_planner_with_a_plan_is_studied() {
        let infeasible =
            PlanOutcome::Infeasible { binding: String::new(), search: api::planner::outcome::Search::default() };
        let results = [
            planned(PlannerKind::Best, Vec::new()),
            planned(PlannerKind::OneFOneB, Vec::new()),
            PlannerResult { planner: PlannerKind::Gpipe, title: String::new(), answer: infeasible },
        ];
        let requested = planners(&json!({"planners": ["best", "gpipe", "1f1b", "interleaved"]}), &results);
        assert_eq!(requested, [PlannerKind::Gpipe, PlannerKind::OneFOneB]);
        assert_eq!(default_planner(&requested, &results), Some(PlannerKind::OneFOneB));
        assert_eq!(default_planner(&requested, &results[2..]), Some(PlannerKind::Gpipe), "nothing fits");
        assert_eq!(default_planner(&[], &results), None);
        assert!(has_plan(&results, None) && !has_plan(&results, Some(PlannerKind::Gpipe)));
    }
}
