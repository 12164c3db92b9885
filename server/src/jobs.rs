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
pub(crate) use at_once::shown_iteration;
pub use table::{Census, Entry};
pub(crate) use time_limit::{Asker, TimeLimit};

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
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
use crate::store::{LeftJob, NewOutcome, Store, StoreError};
use crate::turns::{Claimant, Demand, Turn, Turns};
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
    /// How long one planning may take from its turn on: a job, or a point of a sweep.
    pub plan_time: Duration,
    /// The same of an answer that somebody waits for.
    pub what_if_time: Duration,
    /// Bytes of all computations that run at the same time.
    pub plan_memory: u64,
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
            what_if_time: Duration::from_mins(1),
            plan_memory: 1 << 30,
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
    turns: Turns,
    limits: Limits,
    table: Arc<Mutex<Table>>,
    /// Who waits for an answer without a job, and for how many.
    asking: Arc<Mutex<HashMap<Claimant, usize>>>,
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
    /// It takes more memory than there is for planning.
    #[error(transparent)]
    TooLarge(FieldError),
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

    /// Turns and memory, for whoever else computes.
    pub fn turns(&self) -> Turns {
        self.turns.clone()
    }

    /// Plans a scenario, unless that is being done already. What is answered is planned, even if this server ends.
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
                    tokio::spawn(jobs.run(scenario, entry, claimant));
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
        tokio::spawn(self.clone().run(scenario, entry, Claimant::server()));
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

    /// Why planning a scenario takes more memory than there is for planning, if it does.
    pub(crate) fn memory_error(&self, scenario: &ValidScenario) -> Option<FieldError> {
        memory_error(scenario.scenario(), self.limits.search_threads.count(), self.limits.plan_memory)
    }

    /// How long one planning may take.
    pub(crate) fn plan_time(&self) -> Duration {
        self.limits.plan_time
    }

    /// Ends a job that a server before left. Why it failed stays in the database.
    pub async fn give_up(&self, left: &LeftJob, state: JobState) -> Result<(), StoreError> {
        let entry = self.table().put(&left.id, &left.scenario, JobState::Queued);
        self.table().finish(&entry, state.clone());
        match state {
            JobState::Failed { detail } => self.store.writer().fail_job(&left.id, &detail).await,
            _ => self.store.writer().strike_job(&left.id).await,
        }
    }

    /// Shows the jobs that a server before gave up, with their reasons.
    pub async fn show_given_up(&self) -> Result<(), StoreError> {
        for failed in self.store.reader().failed_jobs().await? {
            let mut table = self.table();
            let entry = table.put(&failed.id, &failed.scenario, JobState::Queued);
            table.finish(&entry, JobState::Failed { detail: failed.detail });
        }
        Ok(())
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

    async fn run(self, scenario: ValidScenario, entry: Entry, claimant: Claimant) {
        let bytes = plan_bytes(scenario.scenario(), self.limits.search_threads.count());
        let turn = self.turns.take(&claimant, Demand::turn(bytes)).await;
        if entry.is_cancelled() {
            return self.end(&entry, JobState::Cancelled).await;
        }
        if let Err(error) = self.store.writer().begin_job(&entry.id()).await {
            // Then only one more server may try.
            tracing::warn!(job = entry.id(), "the beginning of a job was not noted: {error}");
        }
        let planned = self.planned(Arc::new(scenario), &entry, &claimant, turn).await;
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
            Ok(Ok(Err(PlanError::Outgrown { bytes }))) => {
                JobState::Failed { detail: outgrown(bytes, self.limits.plan_memory) }
            }
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

    /// Plans within the memory of a turn, and again with more where the plans turn out to take more.
    async fn planned(
        &self,
        scenario: Arc<ValidScenario>,
        entry: &Entry,
        claimant: &Claimant,
        mut turn: Turn,
    ) -> Result<std::thread::Result<Result<NewOutcome, PlanError>>, tokio::task::JoinError> {
        loop {
            let limit = self.time_limit();
            let (clock, threads, bytes) = (Arc::clone(&self.clock), self.limits.search_threads, turn.bytes());
            let mut progress = Progress::new(entry.clone(), clock, (limit, bytes), threads);
            let (engine, scenario) = (Arc::clone(&self.engine), Arc::clone(&scenario));
            let planned = tokio::task::spawn_blocking(move || {
                // The turn ends when the planning has let go of its memory.
                let _turn = turn;
                let planned = std::panic::catch_unwind(AssertUnwindSafe(|| engine(&scenario, &mut progress)));
                planned.map(|planned| {
                    planned.map(|planning| {
                        let times = progress.into_times(&planning.outcome);
                        NewOutcome::pack(planning, &times)
                    })
                })
            })
            .await;
            let Ok(Ok(Err(PlanError::Outgrown { bytes: needed }))) = &planned else { return planned };
            let Some(more) = more_memory(bytes, *needed, self.limits.plan_memory) else { return planned };
            turn = self.turns.take(claimant, Demand::turn(more)).await;
        }
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

/// Bytes for another attempt of what took more than it had, where there are any.
pub(crate) fn more_memory(had: u64, needed: u64, most: u64) -> Option<u64> {
    (needed <= most && had < most).then(|| needed.max(had.saturating_mul(2)).min(most))
}

/// Why planning was ended that takes too much memory.
pub(crate) fn outgrown(bytes: u64, most: u64) -> String {
    format!(
        "planning takes {} MiB; the limit is {} MiB: ask for fewer iterations or planners, or start the server with a larger \
         --plan-memory",
        bytes.div_ceil(1 << 20),
        most >> 20
    )
}

/// Why planning was ended that took too long.
pub(crate) fn too_long(limit: Duration) -> String {
    format!(
        "planning takes longer than {} s; ask for fewer iterations or planners, fix more degrees, or start the server with a larger \
         --plan-seconds",
        limit.as_secs()
    )
}
