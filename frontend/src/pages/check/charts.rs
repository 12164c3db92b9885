//! Memory by rank, time by rank, and the schedule on one time axis with the best plan.

use std::sync::Arc;

use api::planner::outcome::{Planned, RankNeed, RankTime};
use api::planner::scenario::Scenario;
use leptos::prelude::*;

use super::changes::{device_risk_text, fastest_without_risk};
use super::verdict::OpenInExplore;
use crate::charts::{Limit, Measure, StackedBars, StackedRow};
use crate::check::{Checked, DrawnPlan, Loaded, use_check};
use crate::format;
use crate::gantt::{Gantt, Legend};
use crate::notice::ErrorNotice;
use crate::results::{
    MEMORY_PARTS, TIME_PARTS, fullest_rank, memory_values, plan_degrees, settings_text, source_text, time_values,
};

/// Memory need by rank and term, also of a job that does not fit.
#[component]
pub(super) fn MemoryCard(checked: Arc<Checked>) -> impl IntoView {
    let fit = &checked.check.fit;
    let row = |need: &RankNeed| StackedRow {
        label: format!("rank {}", need.rank),
        values: memory_values(&need.memory).to_vec(),
    };
    let rows: Vec<StackedRow> = fit.ranks.iter().map(row).collect();
    if rows.is_empty() {
        return ().into_any();
    }
    let label = fit.ranks.iter().map(|need| format!("rank {}: {}", need.rank, format::gib(need.memory.resident_gib())));
    let label = format!("Memory by rank. {}", label.take(8).collect::<Vec<_>>().join("; "));
    let caption = memory_caption(&fit.ranks, fit.limit_gib);
    let limit = Some(Limit { value: fit.limit_gib, name: "limit" });
    view! {
        <section class="card" data-testid="check-memory-card">
            <header class="card-title"><h2>"Memory by rank"</h2></header>
            <StackedBars parts=&MEMORY_PARTS rows=Signal::stored(rows) measure=Measure::Gib limit=Signal::stored(limit) label=Signal::stored(label) />
            <p class="hint">{caption}</p>
        </section>
    }
    .into_any()
}

/// Describes the fullest rank and the reserve.
fn memory_caption(ranks: &[RankNeed], limit_gib: f64) -> Option<String> {
    let fullest = fullest_rank(ranks, |need| &need.memory)?;
    let parts = memory_values(&fullest.memory);
    let (part, value) = MEMORY_PARTS.iter().zip(parts).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let reserve = fullest.memory.reserve_gib;
    Some(format!(
        "Rank {} needs {}; its largest part: {}, {}. The limit is {} of device memory minus a reserve of {} for fragmentation, communication library and framework.",
        fullest.rank,
        format::gib(fullest.memory.resident_gib()),
        part.name,
        format::gib(value),
        format::gib(limit_gib + reserve),
        format::gib(reserve)
    ))
}

/// Time of a step by rank.
#[component]
pub(super) fn TimeCard(checked: Arc<Checked>) -> impl IntoView {
    let Some(plan) = &checked.check.plan else { return ().into_any() };
    let rows: Vec<StackedRow> = plan
        .ranks
        .iter()
        .map(|rank| StackedRow { label: format!("rank {}", rank.rank), values: time_values(&rank.time).to_vec() })
        .collect();
    let busy = |time: &RankTime| time.compute_s + time.recompute_s + time.exposed_s;
    let slowest = plan.ranks.iter().rev().max_by(|a, b| busy(&a.time).total_cmp(&busy(&b.time)));
    let caption = slowest.map(|rank| {
        format!(
            "Rank {} is busy longest: {} computation, {} recomputation, {} exposed communication. Idle time of all ranks: {}.",
            rank.rank,
            format::seconds(rank.time.compute_s),
            format::seconds(rank.time.recompute_s),
            format::seconds(rank.time.exposed_s),
            format::percent(plan.metrics.bubble)
        )
    });
    let label = format!("Where the time goes. {}", caption.clone().unwrap_or_default());
    view! {
        <section class="card" data-testid="check-time-card">
            <header class="card-title"><h2>"Where the time goes"</h2></header>
            <StackedBars parts=&TIME_PARTS rows=Signal::stored(rows) measure=Measure::Seconds limit=Signal::stored(None) label=Signal::stored(label) />
            <p class="hint">{caption}</p>
        </section>
    }
    .into_any()
}

/// Gantt charts of the job and of the best plan.
#[component]
pub(super) fn ScheduleCard(checked: Arc<Checked>) -> impl IntoView {
    let state = use_check();
    let (selection, hover) = (RwSignal::new(None), RwSignal::new(None));
    let extent = Signal::derive(move || state.extent_ns());
    let timeline = |plan: RwSignal<Loaded<DrawnPlan>>| {
        Signal::derive(move || {
            plan.with(|plan| {
                plan.here().and_then(|plan| plan.as_ref().as_ref().map(|(_, timeline)| Arc::clone(timeline)))
            })
        })
    };
    let (own, best) = (timeline(state.own), timeline(state.best));
    let timelines = Signal::derive(move || [own.get(), best.get()].into_iter().flatten().collect::<Vec<_>>());
    let own_s = checked.check.plan.as_ref().map(|plan| plan.metrics.iteration_s);
    let searched = StoredValue::new(checked.check.best_scenario.clone());
    let best_scenario = move || Scenario { max_memory_risk: state.max_risk.get(), ..searched.get_value() };
    let own_title = own_s.map(|seconds| format!("Your configuration: {}", format::seconds(seconds)));
    let has_own = own_s.is_some();
    let own_name = own_title.clone().unwrap_or_default();
    let best_state = move || match state.best.get() {
        Loaded::Absent => ().into_any(),
        Loaded::Waiting => view! {
            <p class="progress" role="status"><progress aria-label="Searching"></progress>"Searching a plan…"</p>
        }
        .into_any(),
        Loaded::Failed(error) => view! {
            <ErrorNotice error=error />
            <p><OpenInExplore scenario=best_scenario() />" runs the full search."</p>
        }
        .into_any(),
        Loaded::Here(plan) => match plan.as_ref() {
            None => {
                let limit = state.max_risk.get().map_or("", |_| " with this risk");
                view! { <p>{format!("No plan fits these devices{limit}. ")}{searched_text(&best_scenario())}</p> }
                    .into_any()
            }
            Some((planned, _)) => {
                view! { <BestLine planned=planned own_s=own_s scenario=best_scenario() /> }.into_any()
            }
        },
    };
    view! {
        <section class="card" data-testid="check-schedule-card">
            <header class="card-title"><h2>"Schedule"</h2><span class="muted">"one step, same time axis"</span></header>
            <Show when=move || timelines.with(|timelines| !timelines.is_empty())>
                <Legend timelines=timelines />
            </Show>
            {has_own.then(|| view! {
                <h3>{own_name.clone()}</h3>
                <Gantt chart=0 id="own" title=Signal::stored(own_name) timeline=own extent_ns=extent window=state.window selection=selection hover=hover />
            })}
            <h3>"Plan of the planner "<code>"best"</code>", free layout and settings"</h3>
            <MaxRisk />
            {best_state}
            <Show when=move || best.with(Option::is_some)>
                <Gantt chart=1 id="best" title=Signal::stored("Plan of best".to_owned()) timeline=best extent_ns=extent window=state.window selection=selection hover=hover />
            </Show>
        </section>
    }
}

/// Highest risks of running out of memory that can be selected, in %. 0: no limit.
const RISKS: [u32; 5] = [1, 10, 25, 50, 0];

/// Selects the highest risk of the best plan.
#[component]
fn MaxRisk() -> impl IntoView {
    let state = use_check();
    let choose = move |event| {
        let percent = event_target_value(&event).parse::<u32>().unwrap_or(0);
        state.set_max_risk((percent > 0).then(|| f64::from(percent) / 100.0));
    };
    let option = |percent: u32| {
        let selected = move || state.max_risk.get().map_or(0, |risk| (100.0 * risk).round() as u32) == percent;
        let text = if percent > 0 { format!("at most {percent}\u{202f}%") } else { "no limit".to_owned() };
        view! { <option value=percent.to_string() prop:selected=selected>{text}</option> }
    };
    view! {
        <label class="max-risk">
            "Risk of running out of memory"
            <select data-testid="max-risk" on:change=choose>{RISKS.map(option).collect_view()}</select>
        </label>
    }
}

/// Names what is searched.
fn searched_text(scenario: &Scenario) -> String {
    let settings = scenario.free.iter().map(|setting| setting.title()).collect::<Vec<_>>().join(", ");
    format!(
        "Searched: all layouts, with these settings free: {settings}. Other settings are changed only in the list of changes."
    )
}

/// Time, layout, settings and risk of the plan of `best`, and the fastest listed change without risk.
#[component]
fn BestLine<'a>(
    planned: &'a Planned,
    /// Time of the configuration, if it fits.
    own_s: Option<f64>,
    scenario: Scenario,
) -> impl IntoView + use<> {
    let seconds = planned.metrics.iteration_s;
    let difference = own_s.map(|own| {
        format!(" ({}, {})", format::seconds_difference(seconds - own), format::signed_percent(seconds / own - 1.0))
    });
    // The decisions of a shortened search state its steps.
    let is_shortened = planned.decisions.iter().any(|decision| decision.starts_with("The search stopped after"));
    let parts = [
        Some(plan_degrees(planned)),
        settings_text(planned),
        source_text(planned),
        Some(format!("peak {}", format::gib(planned.metrics.peak_memory_gib))),
    ];
    let device_gib = scenario.cluster.device.memory_gib;
    let risk = device_risk_text(planned.metrics.peak_memory_gib, device_gib);
    let is_at_risk = risk.is_some();
    let state = use_check();
    let other = move || {
        let changes = state.changes.with(Loaded::here)?;
        let (other_s, text) = fastest_without_risk(&changes, device_gib)?;
        // The list can contain the same plan.
        let is_faster = other_s < 0.999 * seconds;
        (is_at_risk || is_faster).then(|| {
            let comparison = if is_faster { "faster" } else { "not faster" };
            format!("Fastest alternative without a memory risk ({comparison} than this plan): {text}.")
        })
    };
    let searched = searched_text(&scenario);
    let framework = scenario.training.framework;
    let is_foreign = planned.source.is_some_and(|planner| !planner.runs_in(framework, planned.layout.pipeline));
    let foreign = is_foreign.then(|| format!("{} does not have this schedule. ", framework.title()));
    view! {
        <p data-testid="check-best">
            <b>{format::seconds(seconds)}</b>{difference}": "
            {parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")}
            {risk.map(|risk| view! { <span class="slower">{risk}</span> })}". "
            {foreign}
            {is_shortened.then_some("Found by a shortened search. ")}
            <OpenInExplore scenario=scenario />
            {is_shortened.then_some(" runs the full search.")}
        </p>
        <p class="hint">{searched}" "<b data-testid="check-fastest">{other}</b></p>
    }
}
