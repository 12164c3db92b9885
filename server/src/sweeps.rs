//! Sweeps at work: points are planned when nobody else asks, and stored as they come.
//!
//! A point takes a turn at the processor only where one is free and nobody waits for it, a batch of a few tens of milliseconds at
//! a time, and where there are several turns one is always left free. What is to be planned stands in the database, so a
//! server that starts goes on where the last one was ended.

pub(crate) mod datasets;
pub mod gathering;
mod picture;
mod throughput;

pub(crate) use picture::{Asked, front, labelled, named, picture};
pub(crate) use throughput::throughput;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::sweep::{SweepProgress, SweepState};
use planner::engine::Observer;
use planner::outcome::ENGINE;
use planner::scenario::PlannerKind;
use planner::scenario::validate::Datasets;
use planner::sweep::{PointRow, Sweep};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::clock::Clock;
use crate::store::{Store, StoreError};
use crate::sweep_command::STOPPED;

/// How long a batch of points may keep its turn, the last point of it not counted.
const TURN: Duration = Duration::from_millis(50);
/// How often it is looked for a free turn.
const LOOK: Duration = Duration::from_millis(20);

/// The sweeps at work.
#[derive(Clone)]
pub struct Sweeps {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Turns that planning jobs and people who wait take, too.
    turns: Arc<Semaphore>,
    /// Of the turns, those that sweeps may have at once; in the order of asking.
    lanes: Arc<Semaphore>,
    lane_count: usize,
    table: Arc<Mutex<BTreeMap<String, Work>>>,
}

/// A sweep at work.
struct Work {
    ended: Arc<AtomicBool>,
    progress: watch::Sender<SweepProgress>,
}

/// Everything that its lanes share.
struct Task {
    id: String,
    sweep: Sweep,
    datasets: Box<dyn Datasets + Send + Sync>,
    /// Points that nobody has taken.
    left: Mutex<VecDeque<u32>>,
    ended: Arc<AtomicBool>,
    progress: watch::Sender<SweepProgress>,
    began: Duration,
    before: u32,
}

impl fmt::Debug for Sweeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweeps").field("lanes", &self.lane_count).finish_non_exhaustive()
    }
}

impl Sweeps {
    /// None at work; of so many turns one is left to others.
    pub fn new(store: Store, clock: Arc<dyn Clock>, turns: Arc<Semaphore>, workers: usize) -> Self {
        let lane_count = workers.saturating_sub(1).max(1);
        let lanes = Arc::new(Semaphore::new(lane_count));
        Self { store, clock, turns, lanes, lane_count, table: Arc::default() }
    }

    /// Plans the points of a sweep that have no row of this engine. One at work goes on.
    pub async fn start(
        &self,
        sweep: Sweep,
        datasets: impl Datasets + Send + Sync + 'static,
    ) -> Result<SweepProgress, StoreError> {
        let id = sweep.id().to_string();
        let (done, without_plan) = self.store.reader().sweep_counts(&id, ENGINE).await?;
        let present = self.store.reader().sweep_present(&id, ENGINE).await?;
        let points = sweep.points();
        let left: VecDeque<u32> = (0..points).filter(|point| !present.contains(point)).collect();
        if left.is_empty() {
            self.store.writer().want_sweep(&id, None).await?;
            return Ok(SweepProgress { state: SweepState::Done, points, done, without_plan, points_per_s: None });
        }
        self.store.writer().want_sweep(&id, Some(self.clock.now())).await?;
        let progress = SweepProgress { state: SweepState::Running, points, done, without_plan, points_per_s: None };
        let task = {
            let mut table = self.table();
            let at_work = |work: &&Work| {
                !work.ended.load(Ordering::Relaxed) && work.progress.borrow().state == SweepState::Running
            };
            if let Some(work) = table.get(&id).filter(at_work) {
                return Ok(work.progress.borrow().clone());
            }
            let ended = Arc::new(AtomicBool::new(false));
            let sender = watch::Sender::new(progress.clone());
            table.insert(id.clone(), Work { ended: Arc::clone(&ended), progress: sender.clone() });
            let left = Mutex::new(left);
            let began = self.clock.elapsed();
            let datasets = Box::new(datasets);
            Arc::new(Task { id, sweep, datasets, left, ended, progress: sender, began, before: done })
        };
        tokio::spawn(self.clone().work(task));
        Ok(progress)
    }

    /// Ends the planning of a sweep; the points that are planned stay.
    pub async fn cancel(&self, id: &str) -> Result<(), StoreError> {
        self.store.writer().want_sweep(id, None).await?;
        self.stop(id);
        Ok(())
    }

    /// Ends the planning of a sweep without a word of it in the database.
    pub fn stop(&self, id: &str) {
        if let Some(work) = self.table().get(id) {
            work.ended.store(true, Ordering::Relaxed);
        }
    }

    /// Ends all planning, for the end of the server; the next one goes on with it.
    pub fn stop_all(&self) {
        for work in self.table().values() {
            work.ended.store(true, Ordering::Relaxed);
        }
    }

    /// How far a sweep at work is.
    pub fn progress(&self, id: &str) -> Option<SweepProgress> {
        self.table().get(id).map(|work| work.progress.borrow().clone()).filter(|known| known.state != SweepState::Done)
    }

    /// The progress of a sweep at work as it changes, the present state first.
    pub fn watch(&self, id: &str) -> Option<watch::Receiver<SweepProgress>> {
        self.table().get(id).map(|work| work.progress.subscribe())
    }

    async fn work(self, task: Arc<Task>) {
        let lanes: Vec<_> = (0..self.lane_count).map(|_| tokio::spawn(self.clone().lane(Arc::clone(&task)))).collect();
        let mut failure = None;
        for lane in lanes {
            match lane.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::error!(sweep = task.id, "rows of a sweep were not stored: {error}");
                    failure.get_or_insert("its rows could not be stored; start it again".to_owned());
                }
                Err(_) => {
                    failure.get_or_insert("it stopped unexpectedly; this is a fault of Planscope".to_owned());
                }
            }
        }
        let state = match failure {
            Some(detail) => SweepState::Failed { detail },
            None if task.ended.load(Ordering::Relaxed) => SweepState::Idle,
            None => SweepState::Done,
        };
        if state == SweepState::Done && self.store.writer().want_sweep(&task.id, None).await.is_err() {
            tracing::warn!(
                sweep = task.id,
                "that a sweep is done could not be written; it is looked at again at the next start"
            );
        }
        task.progress.send_modify(|progress| progress.state = state);
        self.table().retain(|id, work| *id != task.id || !Arc::ptr_eq(&work.ended, &task.ended));
    }

    /// Plans batches until none is left.
    async fn lane(self, task: Arc<Task>) -> Result<(), StoreError> {
        loop {
            // Sweeps wait for each other here, in their order, so that none takes all.
            let Ok(_lane) = Arc::clone(&self.lanes).acquire_owned().await else { return Ok(()) };
            if task.is_over() {
                return Ok(());
            }
            let Some(turn) = self.free_turn(&task).await else { return Ok(()) };
            let (shared, clock) = (Arc::clone(&task), Arc::clone(&self.clock));
            let rows = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                shared.batch(clock.as_ref())
            })
            .await
            .unwrap_or_default();
            if rows.is_empty() {
                continue;
            }
            let stored = self.store.writer().store_sweep_rows(&task.id, &rows).await;
            if let Err(error) = stored {
                // The other lanes end with this one.
                task.ended.store(true, Ordering::Relaxed);
                return Err(error);
            }
            let elapsed = self.clock.elapsed().saturating_sub(task.began).as_secs_f64();
            let barren =
                rows.iter().filter(|(row, _)| row.planners().iter().all(|planner| planner.figures().is_none()));
            let barren = barren.count() as u32;
            task.progress.send_modify(|progress| {
                progress.done += rows.len() as u32;
                progress.without_plan += barren;
                progress.points_per_s = Some(f64::from(progress.done - task.before) / elapsed.max(1e-3));
            });
        }
    }

    /// A turn that nobody waits for.
    async fn free_turn(&self, task: &Task) -> Option<OwnedSemaphorePermit> {
        loop {
            if task.is_over() {
                return None;
            }
            if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
                return Some(turn);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Work>> {
        // The table is changed in single steps, so it is whole even after a panic elsewhere.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.left().is_empty()
    }

    fn left(&self) -> MutexGuard<'_, VecDeque<u32>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans points for as long as a turn lasts, one at least.
    fn batch(&self, clock: &dyn Clock) -> Vec<(PointRow, String)> {
        let until = clock.elapsed() + TURN;
        let mut rows = Vec::new();
        loop {
            let Some(index) = self.left().pop_front() else { break };
            let Some(row) = self.plan(index) else {
                self.left().push_front(index);
                break;
            };
            let text = serde_json::to_string(&row).expect("a row has only text keys");
            rows.push((row, text));
            if clock.elapsed() >= until {
                break;
            }
        }
        rows
    }

    /// The row of a point, or nothing where the planning was ended.
    fn plan(&self, index: u32) -> Option<PointRow> {
        let point = self.sweep.point(index)?;
        let mut observer = Until(Arc::clone(&self.ended));
        let planned = std::panic::AssertUnwindSafe(|| point.plan(self.datasets.as_ref(), &mut observer));
        match std::panic::catch_unwind(planned) {
            Ok(row) => row.ok(),
            // The panic hook has written the place and the message.
            Err(_) => Some(PointRow::failed(&point, STOPPED)),
        }
    }
}

/// Watches only whether to end.
struct Until(Arc<AtomicBool>);

impl Observer for Until {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
