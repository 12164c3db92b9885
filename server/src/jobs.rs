//! Planning jobs: off the async threads, bounded, cancellable, never twice for the same scenario.

mod at_once;
mod progress;
mod stopwatch;
mod table;

pub use at_once::NotPlanned;
pub use table::Entry;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::job::{Job, JobState};
use planner::engine::{self, Observer, PlanError};
use planner::outcome::Planning;
use planner::scenario::ValidScenario;
use tokio::sync::{Semaphore, watch};

use crate::clock::Clock;
use crate::store::Store;
use crate::workers::Threads;
use progress::Progress;
use table::Table;

/// What plans; tests put their own in its place.
pub type Engine = Arc<dyn Fn(&ValidScenario, &mut dyn Observer) -> Result<Planning, PlanError> + Send + Sync>;

/// Limits of planning.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Jobs that run at once.
    pub workers: usize,
    /// Jobs that may wait.
    pub queue: usize,
    /// Threads of one search within a job.
    pub search_threads: Threads,
}

/// The queue of planning jobs.
#[derive(Clone)]
pub struct Jobs {
    engine: Engine,
    store: Store,
    clock: Arc<dyn Clock>,
    workers: Arc<Semaphore>,
    limits: Limits,
    table: Arc<Mutex<Table>>,
    /// Who waits for an answer without a job.
    asking: Arc<AtomicUsize>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Why a job was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull(pub usize);

/// A job that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Started {
    /// It is new.
    New(Job),
    /// The scenario is being planned already.
    Known(Job),
}

impl Jobs {
    /// An empty queue.
    pub fn new(store: Store, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self::with_engine(store, clock, limits, Arc::new(engine::plan))
    }

    /// An empty queue in front of another engine.
    pub fn with_engine(store: Store, clock: Arc<dyn Clock>, limits: Limits, engine: Engine) -> Self {
        // Identifiers of another life of the server must not be taken for ours.
        let table = Table::new(clock.now().as_millisecond());
        let workers = Arc::new(Semaphore::new(limits.workers.max(1)));
        Self { engine, store, clock, workers, limits, table: Arc::new(Mutex::new(table)), asking: Arc::default() }
    }

    /// Turns at the processor, for whoever else computes.
    pub fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.workers)
    }

    /// Plans a scenario, unless that is being done already.
    pub fn start(&self, scenario: ValidScenario) -> Result<Started, QueueFull> {
        let entry = {
            let mut table = self.table();
            if let Some(running) = table.active(scenario.id().as_str()) {
                return Ok(Started::Known(running.job()));
            }
            if table.waiting() >= self.limits.queue {
                return Err(QueueFull(self.limits.queue));
            }
            table.add(scenario.id().as_str(), JobState::Queued)
        };
        let job = entry.job();
        tokio::spawn(self.clone().run(scenario, entry));
        Ok(Started::New(job))
    }

    /// A job of a scenario whose outcome is stored already: done before it began.
    pub fn done(&self, scenario: &str) -> Job {
        self.table().add(scenario, JobState::Done).job()
    }

    /// The job that plans a scenario at the moment.
    pub fn active(&self, scenario: &str) -> Option<Job> {
        self.table().active(scenario).map(Entry::job)
    }

    /// A job as it stands.
    pub fn job(&self, id: &str) -> Option<Job> {
        self.table().get(id).map(Entry::job)
    }

    /// A job as it changes, the present state first.
    pub fn watch(&self, id: &str) -> Option<watch::Receiver<Job>> {
        self.table().get(id).map(Entry::watch)
    }

    /// Cancels a job. A waiting one ends at once, a running one within a few milliseconds, a finished one not
    /// at all.
    pub fn cancel(&self, id: &str) -> Option<Job> {
        let table = self.table();
        let entry = table.get(id)?;
        entry.cancel();
        Some(entry.job())
    }

    /// Cancels the job that plans a scenario, if there is one.
    pub fn cancel_scenario(&self, scenario: &str) {
        if let Some(entry) = self.table().active(scenario) {
            entry.cancel();
        }
    }

    /// Cancels everything, for the end of the server.
    pub fn cancel_all(&self) {
        for entry in self.table().entries() {
            entry.cancel();
        }
    }

    async fn run(self, scenario: ValidScenario, entry: Entry) {
        let Ok(_worker) = self.workers.acquire().await else { return };
        if entry.is_cancelled() {
            return self.table().finish(&entry, JobState::Cancelled);
        }
        let mut progress = Progress::new(entry.clone(), Arc::clone(&self.clock), self.limits.search_threads);
        let engine = Arc::clone(&self.engine);
        let planned = tokio::task::spawn_blocking(move || {
            let planned = std::panic::catch_unwind(AssertUnwindSafe(|| engine(&scenario, &mut progress)));
            let times = match &planned {
                Ok(Ok(planning)) => progress.into_times(&planning.outcome),
                _ => Vec::new(),
            };
            (planned, times)
        })
        .await;
        let state = match planned {
            Ok((Ok(Ok(planning)), times)) => {
                match self.store.writer().store_outcome(&planning, &times, self.clock.now()).await {
                    Ok(()) => JobState::Done,
                    Err(error) => {
                        tracing::error!(job = entry.id(), "an outcome was not stored: {error}");
                        JobState::Failed { detail: "the outcome could not be stored; plan again".to_owned() }
                    }
                }
            }
            Ok((Ok(Err(PlanError::Cancelled(_))), _)) => JobState::Cancelled,
            Ok((Ok(Err(error @ PlanError::Refused { .. })), _)) => {
                tracing::error!(job = entry.id(), "{error}");
                JobState::Failed { detail: error.to_string() }
            }
            Ok((Err(_), _)) | Err(_) => {
                // The panic hook has written the place and the message.
                tracing::error!(job = entry.id(), "a planner stopped unexpectedly");
                JobState::Failed {
                    detail: "a planner stopped unexpectedly; this is a fault of Planscope, please report the scenario"
                        .to_owned(),
                }
            }
        };
        self.table().finish(&entry, state);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is changed in single steps, so it is whole even after a panic elsewhere.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
