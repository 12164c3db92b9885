//! Table of queued, running and recently finished jobs.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::job::{Job, JobState};
use tokio::sync::watch;

/// Number of finished jobs in the table.
const REMEMBERED: usize = 256;

/// A job: observable state, storage state and cancellation flag.
#[derive(Debug, Clone)]
pub struct Entry {
    state: Arc<watch::Sender<Job>>,
    noted: Arc<watch::Sender<StorageState>>,
    cancelled: Arc<AtomicBool>,
}

/// Storage state of a job in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StorageState {
    NotYet,
    Yes,
    /// Storing failed, and the job has ended.
    Never,
}

impl Entry {
    fn new(job: Job) -> Self {
        let noted = Arc::new(watch::Sender::new(StorageState::NotYet));
        Self { state: Arc::new(watch::Sender::new(job)), noted, cancelled: Arc::default() }
    }

    /// Records whether storing succeeded.
    pub(super) fn note(&self, is_stored: bool) {
        self.noted.send_replace(if is_stored { StorageState::Yes } else { StorageState::Never });
    }

    /// Waits until the job is stored. Returns false if storing failed.
    pub(super) async fn is_noted(&self) -> bool {
        let mut noted = self.noted.subscribe();
        // `self` owns the sender, so the channel remains open.
        noted.wait_for(|noted| *noted != StorageState::NotYet).await.is_ok_and(|noted| *noted == StorageState::Yes)
    }

    /// Returns the job in the current state.
    pub fn job(&self) -> Job {
        self.state.borrow().clone()
    }

    /// Returns the identifier.
    pub fn id(&self) -> String {
        self.state.borrow().id.clone()
    }

    /// Returns true if the job was cancelled or interrupted.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Job> {
        self.state.subscribe()
    }

    /// Cancels the job. A queued job stops immediately; a running job checks the flag.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.state.send_if_modified(|job| {
            let waiting = job.state == JobState::Queued;
            if waiting {
                job.state = JobState::Cancelled;
            }
            waiting
        });
    }

    /// Sets the flag only and sends no update. A running job checks the flag; a queued job never
    /// starts.
    pub(super) fn interrupt(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Sets the state and notifies subscribers. A final state never changes.
    pub(super) fn set(&self, state: JobState) {
        self.state.send_if_modified(|job| {
            let open = !job.state.is_final();
            if open {
                job.state = state;
            }
            open
        });
    }

    fn is_active(&self) -> bool {
        !self.state.borrow().state.is_final()
    }
}

/// Number of jobs by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Queued jobs.
    pub queued: u64,
    /// Jobs being planned.
    pub running: u64,
    /// Jobs with an outcome, since the server started.
    pub done: u64,
    /// Failed jobs, since the server started.
    pub failed: u64,
    /// Cancelled jobs, since the server started.
    pub cancelled: u64,
}

#[derive(Debug)]
pub(super) struct Table {
    entries: HashMap<String, Entry>,
    /// Identifiers in creation order, for eviction.
    order: VecDeque<String>,
    /// Latest job per scenario.
    by_scenario: HashMap<String, String>,
    epoch: i64,
    created: u64,
    ended: Census,
}

impl Table {
    pub(super) fn new(epoch: i64) -> Self {
        Self {
            entries: HashMap::new(),
            order: VecDeque::new(),
            by_scenario: HashMap::new(),
            epoch,
            created: 0,
            ended: Census::default(),
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&Entry> {
        self.entries.get(id)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Returns the active job for a scenario. A cancelled job that still runs is not returned, so
    /// that a new request creates a new job.
    pub(super) fn active(&self, scenario: &str) -> Option<&Entry> {
        let entry = self.entries.get(self.by_scenario.get(scenario)?)?;
        (entry.is_active() && !entry.is_cancelled()).then_some(entry)
    }

    pub(super) fn waiting(&self) -> usize {
        self.entries.values().filter(|entry| entry.state.borrow().state == JobState::Queued).count()
    }

    pub(super) fn add(&mut self, scenario: &str, state: JobState) -> Entry {
        self.created += 1;
        let id = format!("{:x}-{}", self.epoch, self.created);
        self.put(&id, scenario, state)
    }

    /// Adds a job with the given identifier.
    pub(super) fn put(&mut self, id: &str, scenario: &str, state: JobState) -> Entry {
        let id = id.to_owned();
        let entry = Entry::new(Job { id: id.clone(), scenario: scenario.to_owned(), state });
        if entry.is_active() {
            self.by_scenario.insert(scenario.to_owned(), id.clone());
        }
        self.entries.insert(id.clone(), entry.clone());
        self.order.push_back(id);
        self.forget();
        entry
    }

    pub(super) fn finish(&mut self, entry: &Entry, state: JobState) {
        entry.set(state);
        let job = entry.job();
        match job.state {
            JobState::Done => self.ended.done += 1,
            JobState::Failed { .. } => self.ended.failed += 1,
            JobState::Cancelled => self.ended.cancelled += 1,
            JobState::Queued | JobState::Running { .. } => {}
        }
        if self.by_scenario.get(&job.scenario) == Some(&job.id) {
            self.by_scenario.remove(&job.scenario);
        }
    }

    pub(super) fn census(&self) -> Census {
        let mut census = self.ended;
        for entry in self.entries.values() {
            match entry.state.borrow().state {
                JobState::Queued => census.queued += 1,
                JobState::Running { .. } => census.running += 1,
                JobState::Done | JobState::Failed { .. } | JobState::Cancelled => {}
            }
        }
        census
    }

    /// Evicts the oldest finished jobs beyond [`REMEMBERED`].
    fn forget(&mut self) {
        let mut excess = self.order.len().saturating_sub(REMEMBERED);
        let entries = &mut self.entries;
        self.order.retain(|id| {
            let finished = entries.get(id).is_none_or(|entry| !entry.is_active());
            let forget = excess > 0 && finished;
            if forget {
                excess -= 1;
                entries.remove(id);
            }
            !forget
        });
        self.by_scenario.retain(|_, id| entries.contains_key(id));
    }
}
