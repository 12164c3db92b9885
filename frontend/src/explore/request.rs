//! State machine of the planning request: store the scenario, run the job, show the outcome.
//!
//! The machine has no side effects. [`super::planning`] executes its effects and reports their
//! results. Every edit starts a new request, and results of older requests are ignored.

use api::job::{Job, JobState};
use api::planner::observer::BestSoFar;

use crate::client::RequestError;
use crate::field_errors::FieldErrors;

/// Maximum attempts if another page cancels the job or the queue is full.
const MAX_ATTEMPTS: u32 = 4;

/// State of the planning request, for display.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PlanState {
    Idle,
    /// The page loads a scenario.
    Opening,
    /// An edit is not yet stored on the server.
    Sending,
    /// The job waits for a worker.
    Queued,
    /// The job runs.
    Running {
        planner: &'static str,
        /// Phase of the planner.
        phase: String,
        /// Completed steps.
        done: u32,
        /// Total steps.
        total: u32,
        /// Fastest plan of `best` so far.
        best: Option<BestSoFar>,
    },
    /// The outcome is shown.
    Done,
    /// The outcome is shown, and no planner found a plan.
    Infeasible,
    /// Cancelled by the user.
    Cancelled,
    Failed(RequestError),
}

impl PlanState {
    /// True while the page waits for an outcome.
    pub(crate) const fn is_pending(&self) -> bool {
        matches!(self, Self::Opening | Self::Sending | Self::Queued | Self::Running { .. })
    }
}

/// Phase of the request. `shown` is the last progress of the job.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Idle,
    Opening,
    /// Further edits may follow.
    Debouncing,
    Storing,
    /// The job is being created.
    Creating {
        scenario: String,
        attempt: u32,
    },
    /// The queue is full.
    Pausing {
        scenario: String,
        attempt: u32,
    },
    /// The job runs on the server.
    Following {
        scenario: String,
        attempt: u32,
        shown: PlanState,
    },
    /// The job is done, and outcome and timelines are being fetched.
    Fetching {
        shown: PlanState,
    },
    Done,
    Infeasible,
    /// The fastest plan that `best` had before.
    Cancelled(Option<BestSoFar>),
    Failed(RequestError, Failure),
}

/// What a failed request lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// The edited scenario is not stored.
    Unstored,
    /// The scenario has no outcome.
    Unplanned,
    /// The outcome is shown without some of its timelines.
    Timelines,
}

/// Event that the user causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Another scenario is opened or created.
    Open,
    /// The scenario is edited.
    Edit,
    /// The scenario is to be planned without delay, after an error or for a newer engine version.
    Plan,
    /// Planning is cancelled. The current outcome stays visible.
    Cancel,
    /// Later edits must not cancel the job, because a copied link needs its outcome.
    DetachJob,
}

/// Result of an effect.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Response {
    /// A new scenario is complete.
    ScenarioCreated,
    /// The scenario of a self-contained link is shown. The user decides whether to plan it.
    ContainedShown,
    /// The opened scenario has no stored outcome.
    OutcomeMissing {
        scenario: String,
    },
    /// The debounce interval is over.
    DebounceEnded,
    /// The scenario is stored under this identifier.
    Stored(Result<String, RequestError>),
    JobCreated(Result<Job, RequestError>),
    PauseEnded,
    JobChanged(JobState),
    JobEnded(Result<JobState, RequestError>),
    /// Outcome and timelines are shown.
    OutcomeShown {
        is_feasible: bool,
    },
    /// A request that opens the scenario or fetches its outcome failed.
    Failed(RequestError),
    /// The outcome is shown without some of its timelines.
    TimelineFailed(RequestError),
}

/// Action that the page executes for the current request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    StartDebounce,
    StoreScenario,
    CreateJob {
        scenario: String,
    },
    StartPause,
    FollowJob(Job),
    /// Frees the worker of an obsolete job.
    CancelJob {
        id: String,
    },
    FetchOutcome {
        scenario: String,
    },
    ShowFieldErrors(FieldErrors),
    /// Plans again when the server answers.
    AwaitServer,
}

/// The planning request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlanRequest {
    /// Number of the request.
    number: u64,
    /// Number of the request that opened the scenario.
    opened: u64,
    phase: Phase,
    /// Job that the next request cancels.
    job: Option<String>,
}

impl Default for PlanRequest {
    fn default() -> Self {
        Self { number: 0, opened: 0, phase: Phase::Idle, job: None }
    }
}

impl PlanRequest {
    /// Number of the current request. Effects report it with their result.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// State for display.
    pub(super) fn state(&self) -> PlanState {
        match &self.phase {
            Phase::Idle => PlanState::Idle,
            Phase::Opening => PlanState::Opening,
            Phase::Debouncing | Phase::Storing => PlanState::Sending,
            Phase::Creating { .. } | Phase::Pausing { .. } => PlanState::Queued,
            Phase::Following { shown, .. } | Phase::Fetching { shown } => shown.clone(),
            Phase::Done => PlanState::Done,
            Phase::Infeasible => PlanState::Infeasible,
            Phase::Cancelled(_) => PlanState::Cancelled,
            Phase::Failed(error, _) => PlanState::Failed(error.clone()),
        }
    }

    /// True if the request failed before it had an outcome: displayed results are of an earlier scenario.
    pub(super) const fn is_unanswered(&self) -> bool {
        matches!(self.phase, Phase::Failed(_, Failure::Unstored | Failure::Unplanned))
    }

    /// True if the server does not have the edited scenario: it is being sent, or it could not be stored.
    pub(super) const fn is_unstored(&self) -> bool {
        self.is_storing() || matches!(self.phase, Phase::Failed(_, Failure::Unstored))
    }

    /// Fastest plan before planning was cancelled.
    pub(super) const fn best_before_cancel(&self) -> Option<BestSoFar> {
        match self.phase {
            Phase::Cancelled(best) => best,
            _ => None,
        }
    }

    /// True while edits are not yet stored, so that previews follow the edits.
    pub(super) const fn is_storing(&self) -> bool {
        matches!(self.phase, Phase::Debouncing | Phase::Storing)
    }

    /// Returns true if a preview that was requested during request `number` may be shown. The
    /// complete outcome ends the preview phase, and opening another scenario makes older previews
    /// obsolete.
    pub(super) const fn accepts_preview(&self, number: u64) -> bool {
        let is_waiting = matches!(
            self.phase,
            Phase::Debouncing
                | Phase::Storing
                | Phase::Creating { .. }
                | Phase::Pausing { .. }
                | Phase::Following { .. }
                | Phase::Fetching { .. }
        );
        is_waiting && number <= self.number && self.opened <= number
    }

    /// Handles an event of the user.
    pub(super) fn command(&mut self, command: Command) -> Vec<Effect> {
        if command == Command::DetachJob {
            self.job = None;
            return Vec::new();
        }
        self.number += 1;
        let mut effects: Vec<Effect> = self.job.take().map(|id| Effect::CancelJob { id }).into_iter().collect();
        self.phase = match command {
            Command::Open => {
                self.opened = self.number;
                Phase::Opening
            }
            Command::Edit => {
                effects.push(Effect::StartDebounce);
                Phase::Debouncing
            }
            Command::Plan => {
                effects.push(Effect::StoreScenario);
                Phase::Storing
            }
            Command::Cancel | Command::DetachJob => Phase::Cancelled(match self.state() {
                PlanState::Running { best, .. } => best,
                _ => None,
            }),
        };
        effects
    }

    /// Handles the result of an effect of request `number`.
    pub(super) fn respond(&mut self, number: u64, response: Response) -> Vec<Effect> {
        if number != self.number {
            // The scenario changed while the job was created.
            return match response {
                Response::JobCreated(Ok(job)) => vec![Effect::CancelJob { id: job.id }],
                _ => Vec::new(),
            };
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        let (next, effects) = self.transition(phase, response);
        self.phase = next;
        effects
    }

    fn transition(&mut self, phase: Phase, response: Response) -> (Phase, Vec<Effect>) {
        match (phase, response) {
            (Phase::Opening, Response::ScenarioCreated) | (Phase::Debouncing, Response::DebounceEnded) => {
                (Phase::Storing, vec![Effect::StoreScenario])
            }
            (Phase::Opening, Response::ContainedShown) => (Phase::Idle, Vec::new()),
            (Phase::Opening | Phase::Idle, Response::OutcomeMissing { scenario })
            | (Phase::Storing, Response::Stored(Ok(scenario))) => create_job(scenario, 1),
            (Phase::Pausing { scenario, attempt }, Response::PauseEnded) => create_job(scenario, attempt + 1),
            (Phase::Creating { scenario, attempt }, Response::JobCreated(Ok(job))) => {
                self.job = Some(job.id.clone());
                let phase = Phase::Following { scenario, attempt, shown: PlanState::Queued };
                (phase, vec![Effect::FollowJob(job)])
            }
            (Phase::Creating { scenario, attempt }, Response::JobCreated(Err(error)))
                if error.status() == Some(503) && attempt < MAX_ATTEMPTS =>
            {
                (Phase::Pausing { scenario, attempt }, vec![Effect::StartPause])
            }
            (Phase::Following { scenario, attempt, shown }, Response::JobChanged(state)) => {
                let shown = progress(state).unwrap_or(shown);
                (Phase::Following { scenario, attempt, shown }, Vec::new())
            }
            (Phase::Following { scenario, attempt, shown }, Response::JobEnded(result)) => {
                self.job = None;
                match result {
                    Ok(JobState::Done | JobState::Queued | JobState::Running { .. }) => {
                        (Phase::Fetching { shown }, vec![Effect::FetchOutcome { scenario }])
                    }
                    // Another page cancelled the shared job.
                    Ok(JobState::Cancelled) if attempt < MAX_ATTEMPTS => create_job(scenario, attempt + 1),
                    Ok(JobState::Cancelled) => (Phase::Cancelled(None), Vec::new()),
                    Ok(JobState::Failed { detail }) => fail(RequestError::Unreadable(detail), Failure::Unplanned),
                    Err(error) => fail(error, Failure::Unplanned),
                }
            }
            (_, Response::OutcomeShown { is_feasible: true }) => (Phase::Done, Vec::new()),
            (_, Response::OutcomeShown { is_feasible: false }) => (Phase::Infeasible, Vec::new()),
            (_, Response::TimelineFailed(error)) => (Phase::Failed(error, Failure::Timelines), Vec::new()),
            (Phase::Storing, Response::Stored(Err(error))) => fail(error, Failure::Unstored),
            (Phase::Creating { .. }, Response::JobCreated(Err(error))) | (_, Response::Failed(error)) => {
                fail(error, Failure::Unplanned)
            }
            (phase, _) => (phase, Vec::new()),
        }
    }
}

fn create_job(scenario: String, attempt: u32) -> (Phase, Vec<Effect>) {
    let effect = Effect::CreateJob { scenario: scenario.clone() };
    (Phase::Creating { scenario, attempt }, vec![effect])
}

fn fail(error: RequestError, failure: Failure) -> (Phase, Vec<Effect>) {
    let effects = match &error {
        RequestError::Problem(problem) => {
            vec![Effect::ShowFieldErrors(FieldErrors::from_problems(&problem.errors))]
        }
        RequestError::Offline => vec![Effect::AwaitServer],
        RequestError::Unreadable(_) => Vec::new(),
    };
    (Phase::Failed(error, failure), effects)
}

/// Progress of a job, or `None` for a final state.
fn progress(state: JobState) -> Option<PlanState> {
    match state {
        JobState::Queued => Some(PlanState::Queued),
        JobState::Running { planner, phase, done, total, best } => {
            Some(PlanState::Running { planner: planner.title(), phase, done, total, best })
        }
        JobState::Done | JobState::Cancelled | JobState::Failed { .. } => None,
    }
}

#[cfg(test)]
mod tests;
