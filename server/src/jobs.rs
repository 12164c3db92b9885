//! Planning jobs. They run outside the async threads, with limited concurrency and cancellation. A
//! scenario is planned by at most one job at a time.
//!
//! An accepted job is in the database until it finishes. After a restart the server continues
//! unfinished jobs under the same identifiers.

mod at_once;
mod blocking;
mod progress;
mod stopwatch;
mod table;
mod time_limit;

pub use at_once::NotPlanned;
pub(crate) use at_once::displayed_iteration;
pub use table::{Census, Entry};
pub(crate) use time_limit::{Asker, TimeLimit};

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::job::{Job, JobState};
use planner::engine::{self, Observer, PlanError};
use planner::outcome::Planning;
use planner::scenario::budget::{memory_error, plan_bytes};
use planner::scenario::{FieldError, ValidScenario};
use tokio::sync::watch;

use crate::clock::Clock;
use crate::store::{NewOutcome, Store, StoreError, UnfinishedJob};
use crate::turns::{Claimant, Demand, Turn, Turns};
use crate::workers::Threads;
use blocking::{RunError, catch_panic, run_blocking};
use progress::Progress;
use table::Table;

/// Planning function. Tests replace it.
pub type Engine = Arc<dyn Fn(&ValidScenario, &mut dyn Observer) -> Result<Planning, PlanError> + Send + Sync>;

/// Limits for planning.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of concurrent jobs.
    pub workers: usize,
    /// Maximum number of queued jobs.
    pub queue: usize,
    /// Number of search threads per job.
    pub search_threads: Threads,
    /// Time limit for a job or a sweep point, from the start of the turn.
    pub plan_time: Duration,
    /// Time limit for a what-if request, from the start of the turn.
    pub preview_time: Duration,
    /// Memory limit in bytes for all concurrent computations together.
    pub plan_memory: u64,
    /// If false, the server rejects all planning.
    pub takes_work: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            workers: 1,
            queue: 64,
            search_threads: Threads::new(1),
            plan_time: Duration::from_mins(10),
            preview_time: Duration::from_mins(1),
            plan_memory: 1 << 30,
            takes_work: true,
        }
    }
}

/// Queue of planning jobs.
#[derive(Clone)]
pub struct Jobs {
    engine: Engine,
    store: Store,
    clock: Arc<dyn Clock>,
    turns: Turns,
    limits: Limits,
    table: Arc<Mutex<Table>>,
    /// Number of pending what-if requests per client.
    asking: Arc<Mutex<HashMap<Claimant, usize>>>,
    /// True while the server stops. Unfinished jobs continue after the restart.
    stopping: Arc<AtomicBool>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Number of attempts to plan a scenario. A job that is interrupted this often by the end of the
/// server process fails permanently.
const MAX_ATTEMPTS: u32 = 3;

/// Reason why a job was rejected.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    /// Too many jobs are queued.
    #[error("{0} planning jobs are waiting already")]
    Full(usize),
    /// The job could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server was started with planning disabled.
    #[error("the server was started without work")]
    WithoutWork,
    /// The server is stopping.
    #[error("the server is stopping")]
    Closing,
    /// Planning exceeds the memory limit.
    #[error(transparent)]
    TooLarge(FieldError),
}

/// Result of a request to plan a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Started {
    /// A new job was created.
    New(Job),
    /// A job for the scenario already exists.
    Known(Job),
}

impl Jobs {
    /// Creates an empty queue.
    pub fn new(store: Store, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self::with_engine(store, clock, limits, Arc::new(engine::plan))
    }

    /// Creates an empty queue with the given planning function.
    pub fn with_engine(store: Store, clock: Arc<dyn Clock>, limits: Limits, engine: Engine) -> Self {
        // The start time makes identifiers unique across restarts of the server.
        let table = Table::new(clock.now().as_millisecond());
        let turns = Turns::new(limits.workers, limits.plan_memory);
        Self {
            engine,
            store,
            clock,
            turns,
            limits,
            table: Arc::new(Mutex::new(table)),
            asking: Arc::default(),
            stopping: Arc::default(),
        }
    }

    /// Returns the shared turns and memory.
    pub fn turns(&self) -> Turns {
        self.turns.clone()
    }

    /// Starts planning a scenario, unless a job exists. A returned job is in the database and
    /// survives a restart.
    pub async fn start(&self, scenario: ValidScenario, claimant: Claimant) -> Result<Started, NotStarted> {
        if let Some(error) = self.memory_error(&scenario) {
            return Err(NotStarted::TooLarge(error));
        }
        let entry = loop {
            if let Some(job) = self.active(scenario.id().as_str()).await {
                return Ok(Started::Known(job));
            }
            if !self.limits.takes_work {
                return Err(NotStarted::WithoutWork);
            }
            let mut table = self.table();
            // A concurrent request has created a job.
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
        // Runs in a separate task. If the client disconnects, the job must still either start or
        // fail.
        let entered = tokio::spawn(async move {
            let now = jobs.clock.now();
            match jobs.store.writer().enter_job(&entry.id(), scenario.id().as_str(), now).await {
                Ok(()) => {
                    entry.note(true);
                    tokio::spawn(jobs.run(scenario, entry, claimant));
                    Ok(())
                }
                Err(error) => {
                    let detail = "the job could not be noted; plan again".to_owned();
                    jobs.table().finish(&entry, JobState::Failed { detail });
                    // Concurrent requests for the scenario then create a new job and receive its
                    // error.
                    entry.note(false);
                    Err(NotStarted::Store(error))
                }
            }
        });
        entered.await.map_err(|_| NotStarted::Closing)??;
        Ok(Started::New(job))
    }

    /// Continues a job from an earlier server under the same identifier.
    pub fn take_up(&self, left: &UnfinishedJob, scenario: ValidScenario) {
        let entry = self.table().put(&left.id, &left.scenario, JobState::Queued);
        entry.note(true);
        tokio::spawn(self.clone().run(scenario, entry, Claimant::server()));
    }

    /// Adds a job from an earlier server but does not run it. Users can cancel it; a later server
    /// will run it.
    pub fn show(&self, left: &UnfinishedJob) {
        self.table().put(&left.id, &left.scenario, JobState::Queued).note(true);
    }

    /// Returns true if the server accepts planning.
    pub fn takes_work(&self) -> bool {
        self.limits.takes_work
    }

    /// Returns a time limit for one planning that starts now.
    pub(crate) fn time_limit(&self) -> TimeLimit {
        TimeLimit::start(Arc::clone(&self.clock), self.limits.plan_time)
    }

    /// Returns an error if planning the scenario exceeds the memory limit.
    pub(crate) fn memory_error(&self, scenario: &ValidScenario) -> Option<FieldError> {
        memory_error(scenario.scenario(), self.limits.search_threads.count(), self.limits.plan_memory)
    }

    /// Time limit for one planning.
    pub(crate) fn plan_time(&self) -> Duration {
        self.limits.plan_time
    }

    /// Finishes a job from an earlier server. The cause of a failure is stored in the database.
    pub async fn give_up(&self, left: &UnfinishedJob, state: JobState) -> Result<(), StoreError> {
        let entry = self.table().put(&left.id, &left.scenario, JobState::Queued);
        self.table().finish(&entry, state.clone());
        match state {
            JobState::Failed { detail } => self.store.writer().fail_job(&left.id, &detail).await,
            _ => self.store.writer().delete_job(&left.id).await,
        }
    }

    /// Adds the failed jobs from earlier servers, with the error messages.
    pub async fn show_given_up(&self) -> Result<(), StoreError> {
        for failed in self.store.reader().failed_jobs().await? {
            let mut table = self.table();
            let entry = table.put(&failed.id, &failed.scenario, JobState::Queued);
            table.finish(&entry, JobState::Failed { detail: failed.detail });
        }
        Ok(())
    }

    /// Returns true if the job has reached the maximum number of attempts.
    pub fn is_hopeless(left: &UnfinishedJob) -> bool {
        left.attempts >= MAX_ATTEMPTS
    }

    /// Returns the number of jobs by state, and the number of jobs that ended since the server
    /// started.
    pub fn census(&self) -> Census {
        self.table().census()
    }

    /// Creates a finished job for a scenario with a stored outcome.
    pub fn done(&self, scenario: &str) -> Job {
        self.table().add(scenario, JobState::Done).job()
    }

    /// Returns the active job for a scenario. Waits until the job is stored in the database.
    pub async fn active(&self, scenario: &str) -> Option<Job> {
        let entry = self.table().active(scenario).cloned()?;
        entry.is_noted().await.then(|| entry.job())
    }

    /// Returns a job in the current state.
    pub fn job(&self, id: &str) -> Option<Job> {
        self.table().get(id).map(Entry::job)
    }

    /// Returns a receiver for state changes of a job. The first value is the current state.
    pub fn subscribe(&self, id: &str) -> Option<watch::Receiver<Job>> {
        self.table().get(id).map(Entry::subscribe)
    }

    /// Cancels a job. A queued job stops immediately, a running job within a few milliseconds. A
    /// finished job does not change.
    pub async fn cancel(&self, id: &str) -> Result<Option<Job>, StoreError> {
        let Some(entry) = self.table().get(id).cloned() else { return Ok(None) };
        if !entry.job().state.is_final() {
            // Must come first, so that a later server does not continue the job.
            self.store.writer().delete_job(id).await?;
        }
        entry.cancel();
        Ok(Some(entry.job()))
    }

    /// Cancels the active job for a scenario, if it exists.
    pub fn cancel_scenario(&self, scenario: &str) {
        if let Some(entry) = self.table().active(scenario) {
            entry.cancel();
        }
    }

    /// Interrupts all jobs when the server stops. Unfinished jobs remain in the database.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        for entry in self.table().entries() {
            entry.interrupt();
        }
    }

    async fn run(self, scenario: ValidScenario, entry: Entry, claimant: Claimant) {
        let bytes = plan_bytes(scenario.scenario(), self.limits.search_threads.count());
        let turn = self.turns.take(&claimant, Demand::turn(bytes)).await;
        if entry.is_cancelled() {
            return self.end(&entry, JobState::Cancelled).await;
        }
        if let Err(error) = self.store.writer().begin_job(&entry.id()).await {
            // If this fails, the attempt is not counted, so the job gets an extra attempt.
            tracing::warn!(job = entry.id(), "the beginning of a job was not noted: {error}");
        }
        let planned = self.planned(Arc::new(scenario), &entry, &claimant, turn).await;
        let state = match planned {
            Ok(outcome) => match self.store.writer().store_outcome(&outcome, self.clock.now()).await {
                Ok(()) => JobState::Done,
                Err(error) => {
                    tracing::error!(job = entry.id(), "an outcome was not stored: {error}");
                    JobState::Failed { detail: "the outcome could not be stored; plan again".to_owned() }
                }
            },
            Err(RunError::Plan(PlanError::Cancelled(_))) if entry.is_cancelled() => JobState::Cancelled,
            Err(RunError::Plan(PlanError::Cancelled(_))) => {
                JobState::Failed { detail: too_long(self.limits.plan_time) }
            }
            Err(RunError::Plan(error @ PlanError::TooLarge(_))) => JobState::Failed { detail: error.to_string() },
            Err(RunError::Plan(PlanError::Outgrown { bytes })) => {
                JobState::Failed { detail: outgrown(bytes, self.limits.plan_memory) }
            }
            Err(RunError::Plan(error @ PlanError::Rejected { .. })) => {
                tracing::error!(job = entry.id(), "{error}");
                JobState::Failed { detail: error.to_string() }
            }
            Err(RunError::Stopped) => {
                tracing::error!(job = entry.id(), "a planner stopped unexpectedly");
                JobState::Failed {
                    detail: "a planner stopped unexpectedly; this is a fault of Planscope, please report the scenario"
                        .to_owned(),
                }
            }
        };
        self.end(&entry, state).await;
    }

    /// Plans a scenario within the memory limit of the turn. If the limit is exceeded, acquires a
    /// larger turn and plans again.
    async fn planned(
        &self,
        scenario: Arc<ValidScenario>,
        entry: &Entry,
        claimant: &Claimant,
        mut turn: Turn,
    ) -> Result<NewOutcome, RunError> {
        loop {
            let limit = self.time_limit();
            let (clock, threads, bytes) = (Arc::clone(&self.clock), self.limits.search_threads, turn.bytes());
            let mut progress = Progress::new(entry.clone(), clock, (limit, bytes), threads);
            let (engine, scenario) = (Arc::clone(&self.engine), Arc::clone(&scenario));
            let planned = run_blocking(move || {
                // The turn is released when the planning has freed the memory.
                let _turn = turn;
                let planning = catch_panic(|| engine(&scenario, &mut progress))?;
                let times = progress.into_times(&planning.outcome);
                Ok(NewOutcome::pack(planning, &times))
            })
            .await;
            let Err(RunError::Plan(PlanError::Outgrown { bytes: needed })) = &planned else { return planned };
            let Some(more) = more_memory(bytes, *needed, self.limits.plan_memory) else { return planned };
            turn = self.turns.take(claimant, Demand::turn(more)).await;
        }
    }

    /// Sets the final state and deletes the job from the database. A job interrupted by shutdown
    /// does not change.
    async fn end(&self, entry: &Entry, state: JobState) {
        if state == JobState::Cancelled && self.stopping.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.store.writer().delete_job(&entry.id()).await {
            // If this fails, a later server finds the outcome or plans again.
            tracing::warn!(job = entry.id(), "the end of a job was not noted: {error}");
        }
        self.table().finish(entry, state);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // A panic cannot leave the table inconsistent: each update is a single step.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the memory in bytes for a further attempt, or `None` if the limit does not permit it.
pub(crate) fn more_memory(had: u64, needed: u64, max_bytes: u64) -> Option<u64> {
    (needed <= max_bytes && had < max_bytes).then(|| needed.max(had.saturating_mul(2)).min(max_bytes))
}

/// Returns the error message for planning that exceeds the memory limit.
pub(crate) fn outgrown(bytes: u64, max_bytes: u64) -> String {
    format!(
        "planning takes {} MiB; the limit is {} MiB: ask for fewer iterations or planners, or start the server with a larger \
         --plan-memory",
        bytes.div_ceil(1 << 20),
        max_bytes >> 20
    )
}

/// Returns the error message for planning that exceeds the time limit.
pub(crate) fn too_long(limit: Duration) -> String {
    format!(
        "planning takes longer than {} s; ask for fewer iterations or planners, fix more degrees, or start the server with a larger \
         --plan-seconds",
        limit.as_secs()
    )
}
