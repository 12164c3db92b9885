//! Choosing what a run is held against: a stored scenario, and one of its planners.

use api::path;
use api::planner::outcome::{Answer, PlannerResult};
use api::planner::scenario::PlannerKind;
use api::scenario::{ScenarioLine, ScenarioList, StoredScenario};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::answered;
use crate::client;

/// A scenario without a plan is asked for one this often.
const AGAIN_MS: i32 = 2_000;

/// Planners of a scenario that have a plan of it.
#[derive(Debug, Clone, PartialEq)]
enum Planners {
    /// On their way, or no scenario.
    Unknown,
    /// The scenario has not been planned.
    Unplanned,
    /// With their titles, fastest first.
    Known(Vec<(PlannerKind, String)>),
}

impl Planners {
    fn of(results: Vec<PlannerResult>) -> Self {
        let planned = results.into_iter().filter(|result| matches!(result.answer, Answer::Planned(_)));
        Self::Known(planned.map(|result| (result.planner, result.title)).collect())
    }
}

/// Two fields: the scenario, and one of its planners.
#[component]
pub(crate) fn PlanChoice(
    /// Identifier of the scenario.
    scenario: RwSignal<Option<String>>,
    /// Planner; none: the fastest.
    plan: RwSignal<Option<PlannerKind>>,
) -> impl IntoView {
    let lines = RwSignal::new(None::<Vec<ScenarioLine>>);
    let planners = RwSignal::new(Planners::Unknown);
    spawn_local(async move {
        // Without the list there is nothing to choose; what is chosen already stays.
        if let Ok(list) = client::get::<ScenarioList>(path::SCENARIOS).await {
            lines.try_set(Some(list.scenarios));
        }
    });
    // A scenario that is not kept stands in no list; it is still what is chosen.
    Effect::new(move |_| {
        let (Some(id), Some(known)) = (scenario.get(), lines.get()) else { return };
        if known.iter().any(|line| line.id == id) {
            return;
        }
        spawn_local(async move {
            if let Ok(stored) = client::get::<StoredScenario>(&path::scenario(&id)).await {
                lines.try_update(|lines| lines.get_or_insert_default().push(line_of(stored)));
            }
        });
    });
    let chosen = Memo::new(move |_| scenario.get());
    Effect::new(move |_| {
        planners.set(Planners::Unknown);
        let Some(id) = chosen.get() else { return };
        spawn_local(async move {
            loop {
                let answer = answered::stored(&id).await;
                if chosen.try_get_untracked().flatten().as_deref() != Some(id.as_str()) {
                    return;
                }
                let found = match answer {
                    Ok(Some(stored)) => Planners::of(stored.outcome.results),
                    Ok(None) => Planners::Unplanned,
                    Err(_) => Planners::Unknown,
                };
                let comes = found == Planners::Unplanned;
                if planners.with_untracked(|planners| *planners != found) {
                    planners.set(found);
                }
                if !comes {
                    return;
                }
                // Another page may be planning it just now.
                client::pause(AGAIN_MS).await;
            }
        });
    });
    let scenario_options = move || {
        let option = |line: ScenarioLine| {
            let ScenarioLine { id, short, title, .. } = line;
            let (value, text) = (id.clone(), format!("{title} ({short})"));
            view! { <option value=value prop:selected=move || scenario.with(|chosen| chosen.as_ref() == Some(&id))>{text}</option> }
        };
        lines.get().unwrap_or_default().into_iter().map(option).collect_view()
    };
    let planner_options = move || {
        let known = match planners.get() {
            Planners::Known(known) => known,
            Planners::Unknown | Planners::Unplanned => {
                plan.get_untracked().map(|plan| (plan, plan.title().to_owned())).into_iter().collect()
            }
        };
        let option = |(planner, title): (PlannerKind, String)| {
            view! { <option value=planner.id() prop:selected=move || plan.get() == Some(planner)>{title}</option> }
        };
        known.into_iter().map(option).collect_view()
    };
    let choose_scenario = move |event| {
        let id = event_target_value(&event);
        plan.set(None);
        scenario.set((!id.is_empty()).then_some(id));
    };
    let unplanned = move || {
        let id = scenario.get().filter(|_| planners.with(|planners| *planners == Planners::Unplanned))?;
        let short = id.get(..10).unwrap_or(&id).to_owned();
        Some(
            view! { <p class="hint">"Not planned yet: "<a href=path::share(&short)>"open it once"</a>", and its planners stand here."</p> },
        )
    };
    view! {
        <label>
            "Held against the scenario"
            <select data-testid="choose-scenario" on:change=choose_scenario>
                <option value="" prop:selected=move || scenario.with(Option::is_none)>"none"</option>
                {scenario_options}
            </select>
        </label>
        <label>
            "Plan"
            <select
                data-testid="choose-plan"
                disabled=move || scenario.with(Option::is_none)
                on:change=move |event| plan.set(PlannerKind::from_id(&event_target_value(&event)))
            >
                <option value="" prop:selected=move || plan.with(Option::is_none)>"the fastest"</option>
                {planner_options}
            </select>
        </label>
        {unplanned}
    }
}

fn line_of(stored: StoredScenario) -> ScenarioLine {
    let StoredScenario { id, short, scenario, created_at, note, tags, pinned, .. } = stored;
    let title = scenario.title.unwrap_or_else(|| format!("{} on {}", scenario.model.name, scenario.cluster.name));
    ScenarioLine {
        id,
        short,
        title,
        model: scenario.model.name,
        cluster: scenario.cluster.name,
        best: None,
        created_at,
        note,
        tags,
        pinned,
        deleted_at: None,
        bytes: 0,
    }
}
