//! Planning after an edit: stores the scenario, starts the job, follows it, and fetches outcome and
//! timelines.

use std::future::Future;
use std::sync::Arc;

use api::job::{Job, JobState, StoredOutcome};
use api::path;
use api::planner::outcome::PlanOutcome;
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use api::scenario::StoredScenario;
use api::timeline::overview;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::{DisplayedIteration, Explore, PlanState};
use crate::client::{self, Body, RequestError};
use crate::field_errors::FieldErrors;

/// Maximum attempts if another page cancels the job or the queue is full.
const ATTEMPTS: u32 = 4;
const PAUSE_MS: i32 = 700;

impl Explore {
    /// Stores and plans the current scenario.
    pub(super) fn send(self, generation: u64) {
        self.abandon_job();
        let body = self.scenario.with_untracked(ToString::to_string);
        self.cancel_full_preview(&body);
        spawn_local(async move {
            let response = client::send::<StoredScenario>("PUT", path::SCENARIOS, Body::Json(body)).await;
            if !self.is_current(generation) {
                return;
            }
            match response {
                Ok(stored) => {
                    self.errors.set(FieldErrors::default());
                    let id = stored.id.clone();
                    // Intermediate scenarios of an edit sequence do not belong in the list of
                    // recent scenarios.
                    if !self.history.with_value(crate::undo::History::can_undo) {
                        crate::recent::remember(&stored);
                    }
                    self.unsaved.set(None);
                    // A file may refer to presets. The fields show the resolved values.
                    let names_presets = self.scenario.with_untracked(|scenario| {
                        ["/model/preset", "/cluster/preset"]
                            .into_iter()
                            .any(|field_pointer| scenario.pointer(field_pointer).is_some())
                    });
                    if names_presets {
                        self.scenario.set(serde_json::to_value(&stored.scenario).unwrap_or_default());
                    }
                    self.stored.set(Some(stored));
                    self.write_address();
                    self.plan(generation, id).await;
                }
                Err(error) => self.fail(error),
            }
        });
    }

    /// Plans a stored scenario and shows the outcome.
    pub(super) async fn plan(self, generation: u64, id: String) {
        match self.run_job(generation, &id).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                if self.is_current(generation) {
                    self.fail(error);
                }
                return;
            }
        }
        let response = client::get::<StoredOutcome>(&path::outcome(&id)).await;
        if !self.is_current(generation) {
            return;
        }
        match response {
            // The preview already loaded these timelines, and they are identical byte for byte.
            // Only the planning time differs.
            Ok(outcome) if self.shows(&outcome) => {
                self.result.set(Some(Arc::new(outcome)));
                self.is_preview.set(false);
                self.finish();
            }
            Ok(outcome) => self.show(generation, outcome).await,
            Err(request_error) => self.fail(request_error),
        }
    }

    /// Runs the planning job. Returns false if the request is obsolete or all attempts were
    /// cancelled.
    async fn run_job(self, generation: u64, id: &str) -> Result<bool, RequestError> {
        for attempt in 1..=ATTEMPTS {
            self.state.set(PlanState::Queued);
            let job = match client::send::<Job>("POST", &path::plan(id), Body::Empty).await {
                Err(error) if error.status() == Some(503) && attempt < ATTEMPTS => {
                    client::pause(PAUSE_MS).await;
                    if !self.is_current(generation) {
                        return Ok(false);
                    }
                    continue;
                }
                response => response?,
            };
            self.job.set_value(Some(job.id.clone()));
            if !self.is_current(generation) {
                // The scenario changed while the job was created.
                self.abandon_job();
                return Ok(false);
            }
            let job = client::follow(job, move |job| {
                let current = self.is_current(generation);
                if current {
                    self.note_progress(&job.state);
                }
                current
            })
            .await;
            if !self.is_current(generation) {
                return Ok(false);
            }
            self.job.set_value(None);
            match job?.state {
                JobState::Failed { detail } => return Err(RequestError::Unreadable(detail)),
                // Another page cancelled the shared job. Try again.
                JobState::Cancelled => {}
                JobState::Done | JobState::Queued | JobState::Running { .. } => return Ok(true),
            }
        }
        self.state.set(PlanState::Cancelled);
        Ok(false)
    }

    fn note_progress(self, state: &JobState) {
        match state {
            JobState::Queued => self.state.set(PlanState::Queued),
            JobState::Running { planner, phase, done, total, best } => self.state.set(PlanState::Running {
                planner: planner.title(),
                phase: phase.clone(),
                done: *done,
                total: *total,
                best: *best,
            }),
            JobState::Done | JobState::Cancelled | JobState::Failed { .. } => {}
        }
    }

    /// Shows an outcome after its timelines are loaded, so that table and charts update together.
    pub(super) async fn show(self, generation: u64, outcome: StoredOutcome) {
        self.show_while_loading(generation, outcome, || ()).await;
    }

    /// Same as [`Self::show`], and runs `meanwhile` while the timelines load.
    pub(super) async fn show_while_loading(self, generation: u64, outcome: StoredOutcome, meanwhile: impl FnOnce()) {
        let iteration = clamped_iteration(&outcome, self.view.get_untracked().iteration);
        let begun = fetch_timelines(&outcome, iteration);
        meanwhile();
        let loaded = begun.await;
        if !self.is_current(generation) {
            return;
        }
        self.selection.set(None);
        self.hover.set(None);
        let (content, load_error) = match loaded {
            Ok(content) => (content, None),
            Err(error) => (DisplayedIteration { iteration, ..DisplayedIteration::default() }, Some(error)),
        };
        self.refit(content.extent_ns());
        self.fetch_the_rest(generation, outcome.outcome.scenario.clone(), &content);
        self.set_displayed(content);
        self.result.set(Some(Arc::new(outcome)));
        self.is_preview.set(false);
        self.select_named();
        match load_error {
            Some(error) => self.state.set(PlanState::Failed(error)),
            None => self.finish(),
        }
    }

    /// Returns true if the outcome and all timelines are visible and were planned by the same
    /// engine version.
    fn shows(self, outcome: &StoredOutcome) -> bool {
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

    /// Sets the final state after the current outcome is shown.
    fn finish(self) {
        let infeasible = self.result.with_untracked(|result| {
            result.as_ref().is_some_and(|result| {
                result.outcome.results.iter().all(|result| matches!(result.answer, PlanOutcome::Infeasible { .. }))
            })
        });
        self.state.set(if infeasible { PlanState::Infeasible } else { PlanState::Done });
    }

    /// Shows another iteration. The index is clamped to the last iteration, because a link may
    /// contain a larger index.
    pub(crate) fn show_iteration(self, iteration: u32) {
        let last = |outcome: &Arc<StoredOutcome>| clamped_iteration(outcome, Some(iteration));
        let iteration = self.result.with_untracked(|outcome| outcome.as_ref().map_or(iteration, last));
        self.view.update(|view| view.iteration = Some(iteration));
        if self.is_preview.get_untracked() {
            // The next preview or stored outcome uses this iteration.
            if !self.state.with_untracked(PlanState::is_pending) {
                // After a cancelled or failed planning run, no outcome would follow.
                self.plan_soon();
            }
            self.request_preview();
            return;
        }
        let Some(outcome) = self.result.get_untracked() else { return };
        let generation = self.generation.get_value();
        spawn_local(async move {
            let loaded = fetch_timelines(&outcome, iteration).await;
            let wanted = self.view.with_untracked(|view| view.iteration == Some(iteration));
            if !self.is_current(generation) || !wanted {
                return;
            }
            match loaded {
                Ok(content) => {
                    self.selection.set(None);
                    self.hover.set(None);
                    self.refit(content.extent_ns());
                    self.fetch_the_rest(generation, outcome.outcome.scenario.clone(), &content);
                    self.set_displayed(content);
                }
                Err(error) => self.state.set(PlanState::Failed(error)),
            }
        });
    }

    /// Stores and plans the scenario again, after an error or for a newer engine version.
    pub(crate) fn retry(self) {
        let generation = self.next_generation();
        self.state.set(PlanState::Sending);
        self.send(generation);
    }

    /// Stops planning. The current outcome remains visible.
    pub(crate) fn cancel(self) {
        self.next_generation();
        self.abandon_job();
        self.cancel_preview();
        self.state.set(PlanState::Cancelled);
    }

    /// Cancels the obsolete job and frees its worker.
    pub(super) fn abandon_job(self) {
        let job = self.job.try_update_value(Option::take).flatten();
        if let Some(job) = job {
            spawn_local(async move {
                // The request may fail because the job has ended or the server is down. In both
                // cases there is no worker to free.
                drop(client::submit("DELETE", &path::job(&job), Body::Empty).await);
            });
        }
    }

    /// Detaches the current job, so that later edits do not cancel it. A copied link needs its
    /// outcome.
    pub(crate) fn leave_job(self) {
        self.job.set_value(None);
    }

    pub(super) fn fail(self, error: RequestError) {
        if let RequestError::Problem(problem) = &error {
            self.errors.set(FieldErrors::from_problems(&problem.errors));
        }
        self.state.set(PlanState::Failed(error));
    }
}

/// Clamps the requested iteration to the last iteration of the outcome.
fn clamped_iteration(outcome: &StoredOutcome, wanted: Option<u32>) -> u32 {
    let last = u32::try_from(outcome.outcome.batches.len()).unwrap_or(u32::MAX).saturating_sub(1);
    wanted.unwrap_or(0).min(last)
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

impl Explore {
    /// Fetches the timelines that are shown as overviews. If a request fails, the overview remains
    /// with an error.
    fn fetch_the_rest(self, generation: u64, id: String, content: &DisplayedIteration) {
        let iteration = content.iteration;
        let waiting: Vec<PlannerKind> = content.overviews.iter().map(|(planner, _)| *planner).collect();
        spawn_local(async move {
            for planner in waiting {
                let timeline = fetch_timeline(&id, planner, iteration).await;
                let wanted = self.displayed.with_untracked(|current| current.iteration == iteration);
                if !self.is_current(generation) || !wanted {
                    return;
                }
                match timeline {
                    // If the user switches to another iteration and back, the timeline is fetched
                    // twice.
                    Ok(_) if self.displayed.with_untracked(|visible| visible.timeline(planner).is_some()) => {}
                    Ok(timeline) => {
                        let mut updated = self.displayed.get_untracked();
                        updated.timelines.push((planner, timeline));
                        let planner_index =
                            |kind: PlannerKind| updated.planners.iter().position(|planner| *planner == kind);
                        updated.timelines.sort_by_key(|(planner, _)| planner_index(*planner));
                        self.set_displayed(updated);
                    }
                    Err(error) => self.state.set(PlanState::Failed(error)),
                }
            }
        });
    }
}
