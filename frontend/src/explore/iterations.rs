//! Shows outcomes and iterations: executes the effects of [`super::timelines`].

use std::future::Future;
use std::sync::Arc;

use api::job::StoredOutcome;
use api::path;
use api::planner::outcome::PlanOutcome;
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use api::timeline::overview;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::timelines::{DisplayedIteration, Effect, Event, LoadNumber, TimelineLoader, clamped_iteration};
use super::{Explore, request};
use crate::client::{self, RequestError};

impl Explore {
    /// Shows an outcome after its timelines are loaded, so that table and charts update together.
    pub(super) fn show(self, outcome: Arc<StoredOutcome>) {
        let iteration = self.view.with_untracked(|view| view.iteration);
        self.load_timelines(Event::OutcomeArrived { outcome, iteration });
    }

    /// Shows another iteration. The index is clamped to the last iteration, because a link may
    /// contain a larger index.
    pub(crate) fn show_iteration(self, iteration: u32) {
        let last = |outcome: &Arc<StoredOutcome>| clamped_iteration(outcome, Some(iteration));
        let iteration = self.result.with_untracked(|outcome| outcome.as_ref().map_or(iteration, last));
        self.view.update(|view| view.iteration = Some(iteration));
        if self.is_preview.get_untracked() {
            // The next preview or stored outcome uses this iteration.
            if !self.state.with_untracked(request::PlanState::is_pending) {
                // After a cancelled or failed planning run, no outcome would follow.
                self.plan_command(request::Command::Edit);
            }
            self.request_preview();
            return;
        }
        let Some(outcome) = self.result.get_untracked() else { return };
        self.load_timelines(Event::IterationSelected { outcome, iteration });
    }

    /// Returns true if the outcome and all timelines are visible and were planned by the same
    /// engine version.
    pub(super) fn shows(self, outcome: &StoredOutcome) -> bool {
        let engine = |result: &StoredOutcome| result.outcome.engine == result.current_engine;
        let same = |result: &Arc<StoredOutcome>| result.outcome.scenario == outcome.outcome.scenario && engine(result);
        let iteration = self.view.with_untracked(|view| view.iteration.unwrap_or(0));
        let planned = outcome.outcome.results.iter().filter(|result| matches!(result.answer, PlanOutcome::Planned(_)));
        self.result.with_untracked(|result| result.as_ref().is_some_and(same))
            && self.displayed.with_untracked(|content| {
                content.iteration == iteration
                    && content.overviews.is_empty()
                    && content.has_all(planned.map(|it| it.planner))
            })
    }

    pub(super) fn load_timelines(self, event: Event) {
        let effects = self.loader.try_update_value(|loader| loader.handle(event)).unwrap_or_default();
        self.execute_timelines(effects);
    }

    fn timelines_respond(self, number: LoadNumber, event: Event) {
        let effects = self.loader.try_update_value(|loader| loader.respond(number, event)).unwrap_or_default();
        self.execute_timelines(effects);
    }

    fn execute_timelines(self, effects: Vec<Effect>) {
        let number = self.loader.with_value(TimelineLoader::number);
        for effect in effects {
            match effect {
                Effect::Fetch { outcome, iteration } => {
                    // All requests start at once.
                    let fetch = fetch_timelines(&outcome, iteration);
                    spawn_local(async move {
                        let result = fetch.await;
                        self.timelines_respond(number, Event::Loaded(result));
                    });
                }
                Effect::FetchTimeline { scenario, planner, iteration } => spawn_local(async move {
                    let result = fetch_timeline(&scenario, planner, iteration).await;
                    self.timelines_respond(number, Event::TimelineLoaded(planner, result));
                }),
                Effect::ShowOutcome { outcome, timelines, error } => self.show_outcome(outcome, timelines, error),
                Effect::ShowIteration(timelines) => self.replace_displayed(timelines),
                Effect::AddTimeline(planner, timeline) => {
                    let mut updated = self.displayed.get_untracked();
                    updated.insert(planner, timeline);
                    self.set_displayed(updated);
                }
                Effect::ShowError(error) => {
                    self.plan_respond(self.request_number(), request::Response::TimelineFailed(error));
                }
            }
        }
    }

    fn show_outcome(self, outcome: Arc<StoredOutcome>, timelines: DisplayedIteration, error: Option<RequestError>) {
        self.replace_displayed(timelines);
        self.result.set(Some(outcome));
        self.is_preview.set(false);
        self.select_named();
        match error {
            Some(error) => self.plan_respond(self.request_number(), request::Response::TimelineFailed(error)),
            None => self.finish(),
        }
    }

    /// Ends the planning request after the current outcome is shown.
    pub(super) fn finish(self) {
        let is_infeasible = self.result.with_untracked(|result| {
            result.as_ref().is_some_and(|result| {
                result.outcome.results.iter().all(|result| matches!(result.answer, PlanOutcome::Infeasible { .. }))
            })
        });
        let shown = request::Response::OutcomeShown { is_feasible: !is_infeasible };
        self.plan_respond(self.request_number(), shown);
    }

    /// Shows other timelines and clears the selection, which refers to the previous ones.
    fn replace_displayed(self, timelines: DisplayedIteration) {
        self.selection.set(None);
        self.hover.set(None);
        self.refit(timelines.extent_ns());
        self.set_displayed(timelines);
    }

    /// Sets the timelines in the charts and in the text.
    pub(super) fn set_displayed(&self, content: DisplayedIteration) {
        self.charted.set(content.clone());
        self.displayed.set(content);
        self.previews.update_value(super::preview::Previews::text_updated);
    }
}

/// Fetches the initial chart data of an iteration: timelines, and overviews of large timelines. All
/// requests start before the first one is awaited.
fn fetch_timelines(
    outcome: &StoredOutcome,
    iteration: u32,
) -> impl Future<Output = Result<DisplayedIteration, RequestError>> + use<> {
    let id = &outcome.outcome.scenario;
    let (mut planners, mut overviews, mut timelines) = (Vec::new(), Vec::new(), Vec::new());
    for result in &outcome.outcome.results {
        let PlanOutcome::Planned(planned) = &result.answer else { continue };
        let planner = result.planner;
        planners.push(planner);
        if overview::is_looked_at_first(planned, iteration) {
            overviews.push((planner, fetch_overview(id, planner, iteration)));
        } else {
            timelines.push((planner, fetch_timeline(id, planner, iteration)));
        }
    }
    async move {
        let mut content = DisplayedIteration { iteration, planners, ..DisplayedIteration::default() };
        for (planner, overview) in overviews {
            content.overviews.push((planner, overview.await?));
        }
        for (planner, timeline) in timelines {
            content.timelines.push((planner, timeline.await?));
        }
        Ok(content)
    }
}

fn fetch_overview(
    id: &str,
    planner: PlannerKind,
    iteration: u32,
) -> impl Future<Output = Result<Arc<Overview>, RequestError>> + use<> {
    let begun = client::start_bytes(&path::overview(id, planner.id(), iteration), path::OVERVIEW_MEDIA_TYPE);
    async move {
        let overview = overview::decode(&begun.await?);
        Ok(Arc::new(overview.map_err(|error| RequestError::Unreadable(error.to_string()))?))
    }
}

fn fetch_timeline(
    id: &str,
    planner: PlannerKind,
    iteration: u32,
) -> impl Future<Output = Result<Arc<Timeline>, RequestError>> + use<> {
    let begun = client::start_bytes(&path::timeline(id, planner.id(), iteration), path::TIMELINE_MEDIA_TYPE);
    async move {
        let timeline = api::timeline::decode(&begun.await?);
        Ok(Arc::new(timeline.map_err(|error| RequestError::Unreadable(error.to_string()))?))
    }
}
