//! Gantt chart card per plan on a shared time axis, and a memory chart below.

use api::job::BatchPlanning;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::gains::Gains;
use super::memory_card::MemoryCard;
use super::ranking;
use crate::explore::{Explore, chart_index, use_explore};
use crate::gantt::{CompareBar, ComparedDevices, Differences, Gantt, Legend, RankDevices};
use crate::{format, pointer};

#[component]
pub(super) fn Cards() -> impl IntoView {
    let explore = use_explore();
    let planners = Memo::new(move |_| {
        let charted = explore.charted.with(|content| content.planners.clone());
        in_table_order(&explore.results().iter().map(|result| result.planner).collect::<Vec<_>>(), charted)
    });
    let drawn = Signal::derive(move || {
        explore.displayed.with(|content| {
            content.timelines.iter().map(|(_, timeline)| std::sync::Arc::clone(timeline)).collect::<Vec<_>>()
        })
    });
    // Memoize the devices: edits that do not change them must not trigger a new comparison.
    let devices = Memo::new(move |_| devices(explore));
    let refusal = Memo::new(move |_| devices.with(|devices| refusal(explore, devices)));
    view! {
        <Show when=move || planners.with(|planners| !planners.is_empty())>
            <div class="legend-row">
                <Legend timelines=drawn />
                <CompareBar baseline=Signal::derive(move || compared(explore).map(|(_, name)| name)) refusal=refusal />
                <p class="keys-hint" aria-hidden="true">"W S zoom · A D pan · . , next · F fit · ? help"</p>
            </div>
            <For each=move || planners.get() key=|planner| *planner let:planner>
                <PlannerCard planner=planner />
            </For>
            <MemoryCard />
        </Show>
    }
}

/// Returns the baseline and its short title. Returns `None` if it is the only chart or has no
/// chart.
fn compared(explore: Explore) -> Option<(PlannerKind, String)> {
    let results = explore.results();
    let baseline = ranking::baseline_planner(&results, explore.view.get().baseline)?;
    let drawn = explore.displayed.with(|content| (content.timelines.len() > 1).then(|| content.timeline(baseline)));
    drawn.flatten().map(|_| (baseline, ranking::short_title(baseline).to_owned()))
}

/// Span limit for an automatic comparison. Larger charts are compared on request.
const FEW_SPANS: usize = 30_000;

/// The baseline, and the device mapping for each compared plan.
type Devices = Option<(PlannerKind, Vec<(PlannerKind, ComparedDevices)>)>;

fn devices(explore: Explore) -> Devices {
    let (baseline, _) = compared(explore)?;
    let planners: Vec<PlannerKind> =
        explore.displayed.with(|content| content.timelines.iter().map(|(planner, _)| *planner).collect());
    let planner_devices = |planner: PlannerKind| (planner, compared_devices(explore, planner, baseline));
    Some((baseline, planners.into_iter().filter(|planner| *planner != baseline).map(planner_devices).collect()))
}

/// Returns the reason if no chart can be compared with the baseline by action. Returns `None` if a
/// comparison is possible, or if a chart is too large to check.
fn refusal(explore: Explore, devices: &Devices) -> Option<String> {
    let (baseline, others) = devices.as_ref()?;
    explore.displayed.with(|content| {
        let reference = content.timeline(*baseline)?;
        let mut first = None;
        for (planner, devices) in others {
            let timeline = content.timeline(*planner)?;
            if timeline.len().max(reference.len()) > FEW_SPANS {
                return None;
            }
            let refusal = Differences::between(&timeline, &reference, devices).refusal()?;
            first.get_or_insert(refusal);
        }
        first
    })
}

/// Device mappings for a plan and its baseline.
fn compared_devices(explore: Explore, planner: PlannerKind, baseline: PlannerKind) -> ComparedDevices {
    ComparedDevices { current: rank_devices(explore, planner), other: rank_devices(explore, baseline) }
}

/// Device mapping for the ranks in the selected iteration.
pub(in crate::results) fn rank_devices(explore: Explore, planner: PlannerKind) -> RankDevices {
    let fixed = explore.scenario.with(|scenario| {
        let degree = pointer::get(scenario, "/training/context_parallel").and_then(serde_json::Value::as_u64);
        degree.and_then(|degree| u32::try_from(degree).ok()).unwrap_or(1)
    });
    let iteration = explore.displayed.with(|content| content.iteration as usize);
    let Some(planned) = explore.planned(planner) else { return RankDevices::default() };
    // A free degree differs between the plans.
    let context = planned.settings.as_ref().map_or(fixed, |settings| settings.context_parallel);
    RankDevices::from_plan(&planned, iteration, context)
}

/// Formats a time. Includes the iteration number if there are several iterations.
fn time_with_iteration(iteration: usize, iterations: usize, time: &str) -> String {
    if iterations > 1 { format!("iteration {iteration}: {time}") } else { time.to_owned() }
}

/// Explains the source of the numbers in [`planning_text`].
const MEASURED: &str = "Planning was measured on the server that computed this plan; it goes on while the batch before is computed, whose time is simulated";

/// Relative tolerance. Smaller differences are rounding errors.
const ALIKE: f64 = 0.000_5;

/// Formats the planning time of a batch, and the part not hidden by the previous step.
fn planning_text(batch: &BatchPlanning) -> String {
    let took = format::seconds(batch.ms / 1e3);
    match (batch.step_before_ms, batch.exposed_ms) {
        (Some(step), Some(exposed)) if exposed > 0.0 => {
            let (step, exposed) = (format::seconds(step / 1e3), format::seconds(exposed / 1e3));
            format!("planned in {took} (measured): {exposed} more than the step before, {step}")
        }
        (Some(step), _) => {
            format!("planned in {took} (measured) during the step before, {}", format::seconds(step / 1e3))
        }
        _ => format!("planned in {took} (measured) before training begins"),
    }
}

/// Sorts planners with a chart in table order. Planners missing from the table come last.
fn in_table_order(table: &[PlannerKind], mut charted: Vec<PlannerKind>) -> Vec<PlannerKind> {
    let table_position = |planner: &PlannerKind| table.iter().position(|row| row == planner).unwrap_or(table.len());
    charted.sort_by_key(table_position);
    charted
}

#[component]
fn PlannerCard(planner: PlannerKind) -> impl IntoView {
    let explore = use_explore();
    let baseline = Memo::new(move |_| ranking::baseline_planner(&explore.results(), explore.view.get().baseline));
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    let title = Memo::new(move |_| {
        let result = explore.results().find_planner(planner);
        result.map_or_else(|| planner.title().to_owned(), |result| result.title.clone())
    });
    let iteration_time = move |planner: PlannerKind| {
        let iteration = explore.displayed.with(|content| content.iteration as usize);
        Some(explore.planned(planner)?.iterations.get(iteration)?.iteration_s)
    };
    let facts = move || {
        let planned = explore.planned(planner)?;
        let iteration = explore.displayed.with(|content| content.iteration as usize);
        let time = format::seconds(iteration_time(planner)?);
        Some(format!(
            "{} · {}",
            time_with_iteration(iteration, planned.iterations.len(), &time),
            ranking::plan_degrees(&planned)
        ))
    };
    let choices = move || {
        let planned = explore.planned(planner)?;
        let texts = [ranking::source_text(&planned), ranking::settings_text(&planned)];
        let text = texts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        (!text.is_empty()).then_some(text)
    };
    let planning = move || {
        let iteration = explore.displayed.with(|content| content.iteration as usize);
        explore.result.with(|result| {
            let times = result.as_ref()?.planning_ms.iter().find(|time| time.planner == planner)?;
            times.batches.get(iteration).map(planning_text)
        })
    };
    let difference = move || {
        let reference = baseline.get().filter(|baseline| *baseline != planner)?;
        let (mine, other) = (iteration_time(planner)?, iteration_time(reference)?);
        let name = ranking::short_title(reference);
        if (mine - other).abs() < ALIKE * other {
            return Some((0.0, format!("as fast as {name}")));
        }
        Some((mine - other, format!("{} against {name}", format::seconds_difference(mine - other))))
    };
    let timeline = Signal::derive(move || explore.charted.with(|content| content.timeline(planner)));
    let extent = Memo::new(move |_| explore.charted.with(crate::explore::DisplayedIteration::extent_ns));
    let reference = Memo::new(move |_| Some(compared(explore)?.0).filter(|baseline| *baseline != planner));
    let against = Signal::derive(move || {
        let reference = reference.get()?;
        explore.charted.with(|content| content.timeline(reference))
    });
    let devices = Memo::new(move |_| {
        reference.get().map(|reference| compared_devices(explore, planner, reference)).unwrap_or_default()
    });
    let overview = Signal::derive(move || explore.charted.with(|content| content.overview(planner)));
    view! {
        <section class="card" data-testid=format!("card-{}", planner.id()) class:chosen=move || selected.get() == Some(planner)>
            <header class="card-title">
                <h2>
                    <button class="row-button" on:click=move |_| explore.view.update(|view| view.planner = Some(planner)) title="Show the reasons of this plan">
                        <span class="pill" data-planner-colour=planner.id()></span>
                        {move || title.get()}
                    </button>
                </h2>
                <span class="muted">{facts}</span>
                {move || choices().map(|choices| view! { <span class="muted" data-testid="plan-settings">{choices}</span> })}
                {move || difference().map(|(difference, text)| view! { <span class:faster=difference < 0.0 class:slower={difference > 0.0}>{text}</span> })}
                {move || planning().map(|planning_label| view! { <span class="muted" data-testid="batch-planning" title=MEASURED>{planning_label}</span> })}
                <span class="grow"></span>
            </header>
            <Gantt
                chart=chart_index(planner)
                id=planner.id()
                title=title
                timeline=timeline
                overview=overview
                against=against
                devices=devices
                extent_ns=extent
                window=explore.window
                selection=explore.selection
                hover=explore.hover
            />
            <Gains planner=planner />
        </section>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::outcome::{ModulePlacement, PlanOutcome};

    use super::*;

    #[test]
    fn a_time_names_its_iteration_where_there_are_several() {
        assert_eq!(time_with_iteration(0, 8, "16.2 s"), "iteration 0: 16.2 s");
        assert_eq!(time_with_iteration(0, 1, "16.2 s"), "16.2 s");
    }

    /// TP 2 and CP 2 in a static layout. Modules on devices 0 to 3 and 4 to 5 have separate rank
    /// numbers.
    #[test]
    fn rank_devices_follow_layout() {
        let result = super::super::breakdown::tests::planned(PlannerKind::OneFOneB, Vec::new());
        let PlanOutcome::Planned(mut planned) = result.answer else { panic!("a plan") };
        planned.layout.tensor = 2;
        assert_eq!(RankDevices::from_plan(&planned, 0, 2), RankDevices::Uniform(4));
        let placement = ModulePlacement { devices: vec![(0, 4), (4, 6)], ..ModulePlacement::default() };
        planned.placement = Some(placement);
        assert_eq!(RankDevices::from_plan(&planned, 0, 2), RankDevices::Each(vec![4, 2]));
    }

    #[test]
    fn charts_follow_the_table() {
        use PlannerKind::{Gpipe, Interleaved, OneFOneB};
        let table = [Interleaved, OneFOneB];
        assert_eq!(in_table_order(&table, vec![Gpipe, OneFOneB, Interleaved]), [Interleaved, OneFOneB, Gpipe]);
        assert_eq!(in_table_order(&[], vec![Gpipe, OneFOneB]), [Gpipe, OneFOneB]);
    }

    #[test]
    fn planning_text_names_the_hiding_step() {
        let text_for = |ms, before| planning_text(&BatchPlanning::during_step(ms, before)).replace('\u{202f}', " ");
        assert_eq!(text_for(12.0, None), "planned in 12.0 ms (measured) before training begins");
        assert_eq!(text_for(12.0, Some(800.0)), "planned in 12.0 ms (measured) during the step before, 800 ms");
        assert_eq!(
            text_for(900.0, Some(800.0)),
            "planned in 900 ms (measured): 100 ms more than the step before, 800 ms"
        );
    }
}
