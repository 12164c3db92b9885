//! Synchronous planning for what-if requests. It creates no job, stores no data and is cancelled
//! when the client disconnects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::job::PlanningTime;
use planner::engine::{Observer, PlanError};
use planner::host::{BatchClock, Cancellation, Workers};
use planner::outcome::{Outcome, Planning};
use planner::scenario::budget::plan_bytes;
use planner::scenario::{FieldError, PlannerKind, ValidScenario};

use super::blocking::{RunError, catch_panic, run_blocking};
use super::stopwatch::Stopwatch;
use super::time_limit::{Patience, TimeLimit};
use super::{Asker, Jobs, more_memory, outgrown};
use crate::clock::Clock;
use crate::turns::{Claimant, Demand, Turn};
use crate::workers::Threads;

/// Maximum number of pending requests.
const MAX_WAITING: usize = 32;
/// Maximum number of pending requests per client.
const MAX_PER_CLIENT: usize = 8;

/// Reason why a what-if request failed.
#[derive(Debug, thiserror::Error)]
pub enum NotPlanned {
    /// Too many requests are pending.
    #[error("{0} questions wait already")]
    Full(usize),
    /// The server was started with planning disabled.
    #[error("the server was started without work")]
    WithoutWork,
    /// Planning exceeds this time limit.
    #[error(
        "this takes longer than {} s while somebody waits; plan it as a job, ask for fewer iterations or planners, or start the server with a \
         larger --what-if-seconds",
        .0.as_secs()
    )]
    TooLong(Duration),
    /// The plans have too many spans for a response, or need more memory than the limit.
    #[error(transparent)]
    TooLarge(FieldError),
    /// The checker rejected a plan, or a planner panicked. The text describes this internal error.
    #[error("{0}")]
    Fault(String),
}

impl Jobs {
    /// Plans a scenario in the queue shared with jobs. Returns the timelines of the given
    /// iteration, or of the last iteration if there are fewer. Planning is cancelled when the
    /// future is dropped.
    pub async fn plan_at_once(
        &self,
        scenario: ValidScenario,
        claimant: &Claimant,
        iteration: u32,
    ) -> Result<(Planning, Vec<PlanningTime>), NotPlanned> {
        if !self.limits.takes_work {
            return Err(NotPlanned::WithoutWork);
        }
        let limit = self.limits.plan_memory;
        if let Some(error) = self.memory_error(&scenario) {
            return Err(NotPlanned::TooLarge(error));
        }
        let _slot = RequestSlot::take(&self.asking, claimant)?;
        let threads = self.limits.search_threads.count();
        let at_once = threads.saturating_mul(threads.min(scenario.scenario().planners.len()));
        let mut bytes = plan_bytes(scenario.scenario(), at_once);
        let asker = Asker::default();
        let scenario = Arc::new(scenario);
        loop {
            let turn = self.turns.take(claimant, Demand::turn(bytes)).await;
            let had = turn.bytes();
            match self.plan_in_turn((Arc::clone(&scenario), iteration), &asker, turn).await {
                Ok((planning, times)) => {
                    let times = Stopwatch::with_iteration_times(times, &planning.outcome);
                    return Ok((planning, times));
                }
                Err(RunError::Plan(PlanError::Outgrown { bytes: needed })) => match more_memory(had, needed, limit) {
                    Some(more) => bytes = more,
                    None => return Err(NotPlanned::TooLarge(FieldError::new("/iterations", outgrown(needed, limit)))),
                },
                Err(RunError::Plan(error)) => return Err(self.not_planned(&error)),
                Err(RunError::Stopped) => {
                    return Err(NotPlanned::Fault("a planner stopped unexpectedly".to_owned()));
                }
            }
        }
    }

    fn not_planned(&self, error: &PlanError) -> NotPlanned {
        match error {
            PlanError::Cancelled(_) => NotPlanned::TooLong(self.limits.preview_time),
            PlanError::TooLarge(_) | PlanError::Outgrown { .. } => {
                NotPlanned::TooLarge(FieldError::new("/iterations", error.to_string()))
            }
            PlanError::Rejected { .. } => NotPlanned::Fault(error.to_string()),
        }
    }

    async fn plan_in_turn(
        &self,
        (scenario, iteration): (Arc<ValidScenario>, u32),
        asker: &Asker,
        turn: Turn,
    ) -> Result<(Planning, Vec<PlanningTime>), RunError> {
        let limit = TimeLimit::start(Arc::clone(&self.clock), self.limits.preview_time);
        let patience = Arc::new(asker.patience(limit));
        let mut observer =
            RequestObserver::new(patience, Arc::clone(&self.clock), (self.limits.search_threads, turn.bytes()));
        let engine = Arc::clone(&self.engine);
        run_blocking(move || {
            // The turn is released when planning stops, which may be slightly later than the
            // request.
            let _turn = turn;
            let planning = catch_panic(|| engine(&scenario, &mut observer))?;
            // Frees the memory of the other timelines while the turn is still active.
            Ok((only(planning, iteration), observer.times()))
        })
        .await
    }
}

/// Removes the timelines of all other iterations.
fn only(mut planning: Planning, wanted: u32) -> Planning {
    let iteration = displayed_iteration(&planning.outcome, wanted);
    planning.timelines.retain(|planned| planned.iteration == iteration);
    planning
}

/// Returns the index of the wanted iteration, limited to the last iteration.
pub(crate) fn displayed_iteration(outcome: &Outcome, wanted: u32) -> u32 {
    wanted.min(u32::try_from(outcome.batches.len()).unwrap_or(u32::MAX).saturating_sub(1))
}

/// Slot for a pending request.
struct RequestSlot {
    asking: Arc<Mutex<HashMap<Claimant, usize>>>,
    claimant: Claimant,
}

impl RequestSlot {
    /// Reserves a slot within the limits.
    fn take(asking: &Arc<Mutex<HashMap<Claimant, usize>>>, claimant: &Claimant) -> Result<Self, NotPlanned> {
        let mut known = asking.lock().unwrap_or_else(PoisonError::into_inner);
        if known.values().sum::<usize>() >= MAX_WAITING {
            return Err(NotPlanned::Full(MAX_WAITING));
        }
        let count = known.entry(claimant.clone()).or_default();
        if *count >= MAX_PER_CLIENT {
            return Err(NotPlanned::Full(MAX_PER_CLIENT));
        }
        *count += 1;
        Ok(Self { asking: Arc::clone(asking), claimant: claimant.clone() })
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        let mut known = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = known.get_mut(&self.claimant) {
            *count -= 1;
            if *count == 0 {
                known.remove(&self.claimant);
            }
        }
    }
}

/// Observer for the planners of one request. Planners that run in parallel have separate observers.
struct RequestObserver {
    patience: Arc<Patience>,
    clock: Arc<dyn Clock>,
    stopwatch: Stopwatch,
    /// Times of all finished planners in the request.
    times: Arc<Mutex<Vec<PlanningTime>>>,
    threads: Threads,
    max_bytes: u64,
}

impl RequestObserver {
    fn new(patience: Arc<Patience>, clock: Arc<dyn Clock>, (threads, max_bytes): (Threads, u64)) -> Self {
        let stopwatch = Stopwatch::new(Arc::clone(&clock));
        Self { patience, clock, stopwatch, times: Arc::default(), threads, max_bytes }
    }

    fn times(&self) -> Vec<PlanningTime> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for RequestObserver {
    fn started(&mut self, planner: PlannerKind) {
        self.stopwatch.started(planner);
    }

    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}

    fn finished(&mut self, planner: PlannerKind) {
        self.stopwatch.finished(planner);
        self.times.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.stopwatch.take_times());
    }

    fn cancelled(&self) -> bool {
        self.patience.is_over()
    }

    fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    fn workers(&self) -> &dyn Workers {
        &self.threads
    }

    fn batch_clock(&self) -> &dyn BatchClock {
        &self.stopwatch
    }

    /// Runs all planners in parallel, because latency matters and progress is not reported.
    fn split(&self, planners: &[PlannerKind]) -> Option<Vec<Box<dyn Observer + Send>>> {
        let observer = |_: &PlannerKind| -> Box<dyn Observer + Send> {
            let (patience, clock) = (Arc::clone(&self.patience), Arc::clone(&self.clock));
            Box::new(Self {
                times: Arc::clone(&self.times),
                ..Self::new(patience, clock, (self.threads, self.max_bytes))
            })
        };
        (self.threads.count() > 1).then(|| planners.iter().map(observer).collect())
    }
}
