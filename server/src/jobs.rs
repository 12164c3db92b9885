//! Planning jobs: off the async threads, bounded, cancellable, never twice for the same scenario.
//!
//! A job that was answered for stands in the database until it is over, so that the next server takes up what this one leaves,
//! under the same identifier.

mod at_once;
mod progress;
mod stopwatch;
mod table;
mod time_limit;

pub use at_once::NotPlanned;
pub use table::{Census, Entry};
pub(crate) use time_limit::{Asker, TimeLimit};

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::job::{Job, JobState};
use planner::engine::{self, Observer, PlanError};
use planner::outcome::Planning;
use planner::scenario::ValidScenario;
use tokio::sync::{Semaphore, watch};

use crate::clock::Clock;
use crate::store::{LeftJob, NewOutcome, Store, StoreError};
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
    /// How long one planning may take from its turn on: a job, a point of a sweep, or an answer that somebody waits for.
    pub plan_time: Duration,
    /// Whether anything is planned at all.
    pub takes_work: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            workers: 1,
            queue: 64,
            search_threads: Threads::new(1),
            plan_time: Duration::from_mins(10),
            takes_work: true,
        }
    }
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
    /// The server ends; what is not over is left to the next one.
    stopping: Arc<AtomicBool>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Servers that may end while they plan a scenario before it is given up.
const MOST_ATTEMPTS: u32 = 3;

/// Why a job was not taken.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// Too many wait already.
    #[error("{0} planning jobs are waiting already")]
    Full(usize),
    /// It could not be noted.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server plans nothing.
    #[error("the server was started without work")]
    WithoutWork,
    /// The server is stopping.
    #[error("the server is stopping")]
    Closing,
}

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
        Self {
            engine,
            store,
            clock,
            workers,
            limits,
            table: Arc::new(Mutex::new(table)),
            asking: Arc::default(),
            stopping: Arc::default(),
        }
    }

    /// Turns at the processor, for whoever else computes.
    pub fn turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.workers)
    }

    /// Plans a scenario, unless that is being done already. What is answered is planned, even if this server ends.
    pub async fn start(&self, scenario: ValidScenario) -> Result<Started, NotStarted> {
        let entry = loop {
            if let Some(job) = self.active(scenario.id().as_str()).await {
                return Ok(Started::Known(job));
            }
            if !self.limits.takes_work {
                return Err(NotStarted::WithoutWork);
            }
            let mut table = self.table();
            // Somebody else was faster.
            if table.active(scenario.id().as_str()).is_some() {
                continue;
            }
            if table.waiting() >= self.limits.queue {
                return Err(NotStarted::Full(self.limits.queue));
            }
            break table.add(scenario.id().as_str(), JobState::Queued);
        };
        let job = entry.job();
        let jobs = self.clone();
        // A task of its own: whoever asked may go at any moment, and no job may be left that nobody works at.
        let entered = tokio::spawn(async move {
            let now = jobs.clock.now();
            match jobs.store.writer().enter_job(&entry.id(), scenario.id().as_str(), now).await {
                Ok(()) => {
                    entry.note(true);
                    tokio::spawn(jobs.run(scenario, entry));
                    Ok(())
                }
                Err(error) => {
                    let detail = "the job could not be noted; plan again".to_owned();
                    jobs.table().finish(&entry, JobState::Failed { detail });
                    // Whoever waits for it asks for one of his own, and is told why there is none.
                    entry.note(false);
                    Err(NotStarted::Store(error))
                }
            }
        });
        entered.await.map_err(|_| NotStarted::Closing)??;
        Ok(Started::New(job))
    }

    /// Takes up a job that a server before left, under its identifier.
    pub fn take_up(&self, left: &LeftJob, scenario: ValidScenario) {
        let entry = self.table().put(&left.id, &left.scenario, JobState::Queued);
        entry.note(true);
        tokio::spawn(self.clone().run(scenario, entry));
    }

    /// Shows a job that a server before left and that is left to a later one, so that it can be cancelled.
    pub fn show(&self, left: &LeftJob) {
        self.table().put(&left.id, &left.scenario, JobState::Queued).note(true);
    }

    /// Whether anything is planned at all.
    pub fn takes_work(&self) -> bool {
        self.limits.takes_work
    }

    /// The time that one planning has from now on.
    pub(crate) fn time_limit(&self) -> TimeLimit {
        TimeLimit::start(Arc::clone(&self.clock), self.limits.plan_time)
    }

    /// How long one planning may take.
    pub(crate) fn plan_time(&self) -> Duration {
        self.limits.plan_time
    }

    /// Ends a job that a server before left.
    pub async fn give_up(&self, left: &LeftJob, state: JobState) -> Result<(), StoreError> {
        let entry = self.table().put(&left.id, &left.scenario, JobState::Queued);
        self.table().finish(&entry, state);
        self.store.writer().strike_job(&left.id).await
    }

    /// Whether so many servers ended while they planned it that it is better given up.
    pub fn is_hopeless(left: &LeftJob) -> bool {
        left.attempts >= MOST_ATTEMPTS
    }

    /// How many jobs there are, and how those of this server ended.
    pub fn census(&self) -> Census {
        self.table().census()
    }

    /// A job of a scenario whose outcome is stored already: done before it began.
    pub fn done(&self, scenario: &str) -> Job {
        self.table().add(scenario, JobState::Done).job()
    }

    /// The job that plans a scenario at the moment, once the next server would take it up.
    pub async fn active(&self, scenario: &str) -> Option<Job> {
        let entry = self.table().active(scenario).cloned()?;
        entry.is_noted().await.then(|| entry.job())
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
    pub async fn cancel(&self, id: &str) -> Result<Option<Job>, StoreError> {
        let Some(entry) = self.table().get(id).cloned() else { return Ok(None) };
        if !entry.job().state.is_final() {
            // First of all, so that the next server does not take it up.
            self.store.writer().strike_job(id).await?;
        }
        entry.cancel();
        Ok(Some(entry.job()))
    }

    /// Cancels the job that plans a scenario, if there is one.
    pub fn cancel_scenario(&self, scenario: &str) {
        if let Some(entry) = self.table().active(scenario) {
            entry.cancel();
        }
    }

    /// Interrupts everything, for the end of the server. What is not over stays noted for the next one.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        for entry in self.table().entries() {
            entry.interrupt();
        }
    }

    async fn run(self, scenario: ValidScenario, entry: Entry) {
        let Ok(_worker) = self.workers.acquire().await else { return };
        if entry.is_cancelled() {
            return self.end(&entry, JobState::Cancelled).await;
        }
        if let Err(error) = self.store.writer().begin_job(&entry.id()).await {
            // Then only one more server may try.
            tracing::warn!(job = entry.id(), "the beginning of a job was not noted: {error}");
        }
        let (clock, limit) = (Arc::clone(&self.clock), self.time_limit());
        let mut progress = Progress::new(entry.clone(), clock, limit, self.limits.search_threads);
        let engine = Arc::clone(&self.engine);
        let planned = tokio::task::spawn_blocking(move || {
            let planned = std::panic::catch_unwind(AssertUnwindSafe(|| engine(&scenario, &mut progress)));
            planned.map(|planned| {
                planned.map(|planning| {
                    let times = progress.into_times(&planning.outcome);
                    NewOutcome::pack(planning, &times)
                })
            })
        })
        .await;
        let state = match planned {
            Ok(Ok(Ok(outcome))) => match self.store.writer().store_outcome(&outcome, self.clock.now()).await {
                Ok(()) => JobState::Done,
                Err(error) => {
                    tracing::error!(job = entry.id(), "an outcome was not stored: {error}");
                    JobState::Failed { detail: "the outcome could not be stored; plan again".to_owned() }
                }
            },
            Ok(Ok(Err(PlanError::Cancelled(_)))) if entry.is_cancelled() => JobState::Cancelled,
            Ok(Ok(Err(PlanError::Cancelled(_)))) => JobState::Failed { detail: too_long(self.limits.plan_time) },
            Ok(Ok(Err(error @ PlanError::TooLarge(_)))) => JobState::Failed { detail: error.to_string() },
            Ok(Ok(Err(error @ PlanError::Refused { .. }))) => {
                tracing::error!(job = entry.id(), "{error}");
                JobState::Failed { detail: error.to_string() }
            }
            Ok(Err(_)) | Err(_) => {
                // The panic hook has written the place and the message.
                tracing::error!(job = entry.id(), "a planner stopped unexpectedly");
                JobState::Failed {
                    detail: "a planner stopped unexpectedly; this is a fault of Planscope, please report the scenario"
                        .to_owned(),
                }
            }
        };
        self.end(&entry, state).await;
    }

    /// Tells everyone who watches, and strikes the job out; one that the end of the server interrupts stays as it is.
    async fn end(&self, entry: &Entry, state: JobState) {
        if state == JobState::Cancelled && self.stopping.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.store.writer().strike_job(&entry.id()).await {
            // The next server finds the outcome, or plans again.
            tracing::warn!(job = entry.id(), "the end of a job was not noted: {error}");
        }
        self.table().finish(entry, state);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // The table is changed in single steps, so it is whole even after a panic elsewhere.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why planning was ended that took too long.
pub(crate) fn too_long(limit: Duration) -> String {
    format!(
        "planning takes longer than {} s; ask for fewer iterations or planners, fix more degrees, or start the server with a larger \
         --plan-seconds",
        limit.as_secs()
    )
}
