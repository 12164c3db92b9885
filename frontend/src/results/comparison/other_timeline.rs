//! Timeline from the other outcome for the selected planner. It uses the time axis of the open
//! charts.

use std::sync::Arc;

use api::path;
use api::planner::outcome::PlanOutcome;
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::Reference;
use crate::client::{self, RequestError};
use crate::explore::use_explore;
use crate::gantt::{ComparedDevices, Gantt, RankDevices};
use crate::notice::ErrorNotice;
use crate::results::cards::rank_devices;
use crate::results::{selected_planner, short_title};

/// Chart number, above the numbers for planners and layouts.
const CHART: usize = 20_000;

/// Planner, iteration, timeline.
type Drawn = (PlannerKind, u32, Arc<Timeline>);

async fn fetch(reference: &Reference, planner: PlannerKind, iteration: u32) -> Result<Timeline, RequestError> {
    let engine = client::encode(&reference.outcome.outcome.engine);
    let url = path::engine_timeline(&reference.scenario.id, planner.id(), iteration, &engine);
    let bytes = client::get_bytes(&url, path::TIMELINE_MEDIA_TYPE).await?;
    api::timeline::decode(&bytes).map_err(|error| RequestError::Unreadable(error.to_string()))
}

/// Devices by rank for an iteration in the other outcome.
fn devices_there(reference: &Reference, planner: PlannerKind, iteration: u32) -> RankDevices {
    let context = reference.scenario.scenario.training.context_parallel;
    let result = reference.outcome.outcome.results.iter().find(|result| result.planner == planner);
    match result.map(|result| &result.answer) {
        Some(PlanOutcome::Planned(planned)) => RankDevices::from_plan(planned, iteration as usize, context),
        _ => RankDevices::default(),
    }
}

/// Timeline chart. Hidden if the other outcome contains no plan.
#[component]
pub(super) fn OtherTimeline(reference: Arc<Reference>) -> impl IntoView {
    let explore = use_explore();
    let planned: Vec<PlannerKind> = reference
        .outcome
        .outcome
        .results
        .iter()
        .filter(|result| matches!(result.answer, PlanOutcome::Planned(_)))
        .map(|result| result.planner)
        .collect();
    let last = u32::try_from(reference.outcome.outcome.batches.len()).unwrap_or(u32::MAX).saturating_sub(1);
    let wanted = Memo::new(move |_| {
        let selected = selected_planner(&explore.results(), explore.view.with(|view| view.planner));
        let planner = selected.filter(|planner| planned.contains(planner)).or_else(|| planned.first().copied())?;
        Some((planner, explore.displayed.with(|content| content.iteration).min(last)))
    });
    let there = Arc::clone(&reference);
    let drawn = RwSignal::new(None::<Drawn>);
    let last_error = RwSignal::new(None::<RequestError>);
    Effect::new(move |_| {
        last_error.set(None);
        let Some((planner, iteration)) = wanted.get() else { return drawn.set(None) };
        let reference = Arc::clone(&reference);
        spawn_local(async move {
            let result = fetch(&reference, planner, iteration).await;
            if wanted.try_get_untracked() != Some(Some((planner, iteration))) {
                return;
            }
            match result {
                Ok(timeline) => drawn.set(Some((planner, iteration, Arc::new(timeline)))),
                Err(problem) => last_error.set(Some(problem)),
            }
        });
    });
    let timeline = Signal::derive(move || drawn.with(|drawn| drawn.as_ref().map(|(_, _, it)| Arc::clone(it))));
    let against = Signal::derive(move || {
        let planner = drawn.with(|drawn| drawn.as_ref().map(|(planner, ..)| *planner))?;
        explore.displayed.with(|content| content.timeline(planner))
    });
    let devices = Memo::new(move |_| {
        let Some((planner, iteration)) = drawn.with(|drawn| drawn.as_ref().map(|(planner, at, _)| (*planner, *at)))
        else {
            return ComparedDevices::default();
        };
        ComparedDevices { current: devices_there(&there, planner, iteration), other: rank_devices(explore, planner) }
    });
    let extent = Memo::new(move |_| {
        let makespan_ns = timeline.with(|timeline| timeline.as_ref().map_or(0, |timeline| timeline.makespan_ns));
        makespan_ns.max(explore.displayed.with(crate::explore::DisplayedIteration::extent_ns))
    });
    let title = Signal::derive(move || {
        drawn.with(|drawn| match drawn {
            Some((planner, iteration, _)) => format!("{} there, iteration {iteration}", short_title(*planner)),
            None => String::new(),
        })
    });
    let has_timeline = Memo::new(move |_| drawn.with(Option::is_some));
    let (selection, hover) = (RwSignal::new(None), RwSignal::new(None));
    view! {
        {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
        <Show when=move || has_timeline.get()>
            <h3>{title}</h3>
            <Gantt
                chart=CHART
                id="comparison"
                title=title
                timeline=timeline
                against=against
                devices=devices
                extent_ns=extent
                window=explore.window
                selection=selection
                hover=hover
            />
        </Show>
    }
}
