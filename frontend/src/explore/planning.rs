//! Stores and plans the scenario after an edit: executes the effects of [`super::request`].

use std::sync::Arc;

use api::job::{Job, StoredOutcome};
use api::path;
use api::planner::observer::BestSoFar;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::request::{Command, Effect, PlanRequest, Response};
use super::{Explore, timelines};
use crate::client::{self, Body};
use crate::field_errors::FieldErrors;

/// Debounce interval for storing edits. The preview appears earlier.
const DEBOUNCE: std::time::Duration = std::time::Duration::from_millis(350);
/// Pause in ms before the next health check of a server that cannot be reached.
const ASK_AGAIN_MS: i32 = 5_000;
/// Pause in ms before a job is created again.
const PAUSE_MS: i32 = 700;

impl Explore {
    /// Stores and plans the scenario again, after an error or for a newer engine version.
    pub(crate) fn retry(self) {
        self.plan_command(Command::Plan);
    }

    /// Stops planning. The current outcome remains visible.
    pub(crate) fn cancel(self) {
        self.plan_command(Command::Cancel);
        self.cancel_preview();
    }

    /// Detaches the current job, so that later edits do not cancel it. A copied link needs its
    /// outcome.
    pub(crate) fn leave_job(self) {
        self.plan_command(Command::DetachJob);
    }

    /// True if the displayed results are of an earlier scenario, because the request for this one failed.
    pub(crate) fn is_unanswered(self) -> bool {
        self.request.with(PlanRequest::is_unanswered)
    }

    /// True if the server does not have the edited scenario.
    pub(crate) fn is_unstored(self) -> bool {
        self.request.with(PlanRequest::is_unstored)
    }

    /// Fastest plan before planning was cancelled.
    pub(crate) fn best_before_cancel(self) -> Option<BestSoFar> {
        self.request.with(PlanRequest::best_before_cancel)
    }

    /// Number of the current planning request.
    pub(super) fn request_number(self) -> u64 {
        self.request.with_untracked(PlanRequest::number)
    }

    fn is_current(self, number: u64) -> bool {
        self.request_number() == number
    }

    pub(super) fn plan_command(self, command: Command) {
        if command != Command::DetachJob {
            self.load_timelines(timelines::Event::Abandoned);
        }
        let effects = self.request.try_update(|request| request.command(command)).unwrap_or_default();
        self.execute_planning(effects);
    }

    pub(super) fn plan_respond(self, number: u64, response: Response) {
        let effects = self.request.try_update(|request| request.respond(number, response)).unwrap_or_default();
        self.execute_planning(effects);
    }

    fn execute_planning(self, effects: Vec<Effect>) {
        let number = self.request_number();
        for effect in effects {
            self.execute_planning_effect(number, effect);
        }
    }

    fn execute_planning_effect(self, number: u64, effect: Effect) {
        match effect {
            Effect::StartDebounce => set_timeout(move || self.plan_respond(number, Response::DebounceEnded), DEBOUNCE),
            Effect::StoreScenario => self.store_scenario(number),
            Effect::CreateJob { scenario } => spawn_local(async move {
                let result = client::send::<Job>("POST", &path::plan(&scenario), Body::Empty).await;
                self.plan_respond(number, Response::JobCreated(result));
            }),
            Effect::StartPause => spawn_local(async move {
                client::pause(PAUSE_MS).await;
                self.plan_respond(number, Response::PauseEnded);
            }),
            Effect::FollowJob(job) => spawn_local(async move {
                let report = move |job: &Job| {
                    self.plan_respond(number, Response::JobChanged(job.state.clone()));
                    self.is_current(number)
                };
                let result = client::follow(job, report).await;
                self.plan_respond(number, Response::JobEnded(result.map(|job| job.state)));
            }),
            Effect::CancelJob { id } => spawn_local(async move {
                // The request may fail because the job has ended or the server is down. In both
                // cases there is no worker to free.
                drop(client::submit("DELETE", &path::job(&id), Body::Empty).await);
            }),
            Effect::FetchOutcome { scenario } => spawn_local(async move {
                let result = client::get::<StoredOutcome>(&path::outcome(&scenario)).await;
                if !self.is_current(number) {
                    return;
                }
                match result {
                    // The preview already loaded these timelines, and they are identical byte for
                    // byte. Only the planning time differs.
                    Ok(outcome) if self.shows(&outcome) => {
                        self.result.set(Some(Arc::new(outcome)));
                        self.is_preview.set(false);
                        self.finish();
                    }
                    Ok(outcome) => self.show(Arc::new(outcome)),
                    Err(error) => self.plan_respond(number, Response::Failed(error)),
                }
            }),
            Effect::ShowFieldErrors(errors) => self.errors.set(errors),
            Effect::AwaitServer => spawn_local(async move {
                // A health check does not disturb the notice, which stays until the server answers.
                while self.is_current(number) {
                    client::pause(ASK_AGAIN_MS).await;
                    if client::get_bytes(path::HEALTH, "application/json").await.is_ok() {
                        let is_editable = self.scenario.with_untracked(serde_json::Value::is_object);
                        if is_editable && self.is_current(number) {
                            self.retry();
                        }
                        return;
                    }
                }
            }),
        }
    }

    fn store_scenario(self, number: u64) {
        let body = self.scenario.with_untracked(ToString::to_string);
        self.cancel_full_preview(&body);
        spawn_local(async move {
            let result = client::send::<StoredScenario>("PUT", path::SCENARIOS, Body::Json(body)).await;
            if !self.is_current(number) {
                return;
            }
            let result = result.map(|stored| {
                let id = stored.id.clone();
                self.note_stored(stored);
                id
            });
            self.plan_respond(number, Response::Stored(result));
        });
    }

    /// Updates editor and address after the scenario is stored.
    fn note_stored(self, stored: StoredScenario) {
        self.errors.set(FieldErrors::default());
        // Intermediate scenarios of an edit sequence do not belong in the list of recent scenarios.
        if !self.history.with_value(crate::undo::History::can_undo) {
            crate::recent::remember(&stored);
        }
        self.unsaved.set(None);
        // A file may refer to presets. The fields show the resolved values.
        let names_presets = self.scenario.with_untracked(|scenario| {
            ["/model/preset", "/cluster/preset"].into_iter().any(|pointer| scenario.pointer(pointer).is_some())
        });
        if names_presets {
            self.scenario.set(serde_json::to_value(&stored.scenario).unwrap_or_default());
        }
        self.stored.set(Some(stored));
        self.write_address();
    }
}
