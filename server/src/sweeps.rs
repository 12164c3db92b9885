//! Background planning of sweeps. Points are planned while the server is idle, and rows are stored
//! immediately.
//!
//! A sweep acquires a CPU turn only if a turn is free and the queue is empty. Each turn plans a
//! batch for some tens of milliseconds. With several turns, sweeps always leave a turn free.
//! Requested sweeps are stored in the database and continue after a restart.

mod claims;
pub(crate) mod datasets;
pub mod gathering;
mod picture;
mod throughput;

pub(crate) use picture::{ChartRequest, PictureError, front, labelled, named, picture, risk};
pub(crate) use throughput::throughput;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::sweep::{SweepProgress, SweepState};
use planner::engine::Observer;
use planner::outcome::ENGINE;
use planner::scenario::budget::memory_error;
use planner::scenario::validate::Datasets;
use planner::scenario::{FieldError, PlannerKind};
use planner::sweep::{Point, PointRow, Sweep, Unplanned, plan_point};
use tokio::sync::{Semaphore, watch};

use crate::clock::Clock;
use crate::jobs::{Limits, TimeLimit, more_memory, outgrown, too_long};
use crate::store::{Store, StoreError};
use crate::turns::{Claimant, Demand, Turn, Turns};
use claims::{Claim, MAX_AT_ONCE, PointQueue};

/// Error message in a row if the planner panicked.
pub(crate) const STOPPED: &str =
    "a planner stopped unexpectedly; this is a fault of Planscope, please report the scenario";

/// Time limit for a batch, excluding the final point.
const TURN: Duration = Duration::from_millis(50);
/// Initial memory per turn in bytes. It grows when a point exceeds it.
const USUAL_BYTES: u64 = 64 << 20;
/// A sweep fails when the server process has exited repeatedly while planning this number of
/// points.
const MAX_GIVEN_UP: u32 = 3;
/// Interval between attempts to acquire a free turn.
const LOOK: Duration = Duration::from_millis(20);

/// Active sweeps.
#[derive(Clone)]
pub struct Sweeps {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Turns shared with planning jobs and what-if requests.
    turns: Turns,
    /// Turns that sweeps may use concurrently, in FIFO order.
    lanes: Arc<Semaphore>,
    lane_count: usize,
    limits: Limits,
    table: Arc<Mutex<BTreeMap<String, Work>>>,
}

/// An active sweep.
struct Work {
    ended: Arc<AtomicBool>,
    progress: watch::Sender<SweepProgress>,
}

/// Sweep state shared by all lanes.
struct Task {
    id: String,
    sweep: Sweep,
    datasets: Box<dyn Datasets + Send + Sync>,
    /// Points not yet claimed.
    left: Mutex<PointQueue>,
    /// Time limit per point.
    plan_time: Duration,
    /// Memory limit for planning in bytes, and the present memory per turn.
    max_bytes: u64,
    bytes: AtomicU64,
    ended: Arc<AtomicBool>,
    progress: watch::Sender<SweepProgress>,
    began: Duration,
    /// Points with a plan at the start.
    plans_before: u32,
}

impl fmt::Debug for Sweeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweeps").field("lanes", &self.lane_count).finish_non_exhaustive()
    }
}

impl Sweeps {
    /// Creates the scheduler. Sweeps use at least one turn, but leave a turn free for jobs if the
    /// limit is higher.
    pub fn new(store: Store, clock: Arc<dyn Clock>, turns: Turns, limits: Limits) -> Self {
        let lane_count = limits.workers.saturating_sub(1).max(1);
        let lanes = Arc::new(Semaphore::new(lane_count));
        Self { store, clock, turns, lanes, lane_count, limits, table: Arc::default() }
    }

    /// Starts planning all points that lack a row from this engine. An active sweep continues.
    pub async fn start(
        &self,
        sweep: Sweep,
        datasets: impl Datasets + Send + Sync + 'static,
    ) -> Result<SweepProgress, StoreError> {
        let id = sweep.id().to_string();
        let (done, without_plan) = self.store.reader().sweep_counts(&id, ENGINE).await?;
        let present = self.store.reader().sweep_present(&id, ENGINE).await?;
        let points = sweep.points();
        let attempts = self.store.reader().sweep_attempts(&id, ENGINE).await?;
        let left = PointQueue::new((0..points).filter(|point| !present.contains(point)), &attempts);
        if left.is_empty() {
            self.store.writer().mark_for_planning(&id, None).await?;
            return Ok(SweepProgress { state: SweepState::Done, points, done, without_plan, points_per_s: None });
        }
        self.store.writer().mark_for_planning(&id, Some(self.clock.now())).await?;
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
            Arc::new(Task {
                id,
                sweep,
                datasets: Box::new(datasets),
                left: Mutex::new(left),
                plan_time: self.limits.plan_time,
                max_bytes: self.turns.max_bytes(),
                bytes: AtomicU64::new(USUAL_BYTES.min(self.turns.max_bytes())),
                ended,
                progress: sender,
                began: self.clock.elapsed(),
                plans_before: done.saturating_sub(without_plan),
            })
        };
        tokio::spawn(self.clone().work(task));
        Ok(progress)
    }

    /// Stops planning a sweep. Stored rows remain.
    pub async fn cancel(&self, id: &str) -> Result<(), StoreError> {
        self.store.writer().mark_for_planning(id, None).await?;
        self.stop(id);
        Ok(())
    }

    /// Stops planning a sweep; the database is unchanged.
    pub fn stop(&self, id: &str) {
        if let Some(work) = self.table().get(id) {
            work.ended.store(true, Ordering::Relaxed);
        }
    }

    /// Stops all planning when the server stops. The sweeps continue after a restart.
    pub fn stop_all(&self) {
        for work in self.table().values() {
            work.ended.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the progress of an active sweep.
    pub fn progress(&self, id: &str) -> Option<SweepProgress> {
        self.table().get(id).map(|work| work.progress.borrow().clone()).filter(|known| known.state != SweepState::Done)
    }

    /// Returns a receiver for progress updates. The initial value is the current progress.
    pub fn subscribe(&self, id: &str) -> Option<watch::Receiver<SweepProgress>> {
        self.table().get(id).map(|work| work.progress.subscribe())
    }

    async fn work(self, task: Arc<Task>) {
        let given_up = self.give_up(&task).await;
        let lanes: Vec<_> = (0..self.lane_count).map(|_| tokio::spawn(self.clone().lane(Arc::clone(&task)))).collect();
        let mut message = given_up.unwrap_or_else(|error| {
            tracing::error!(sweep = task.id, "points of a sweep were not given up: {error}");
            Some("its rows could not be stored; start it again".to_owned())
        });
        for lane in lanes {
            match lane.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::error!(sweep = task.id, "rows of a sweep were not stored: {error}");
                    message.get_or_insert("its rows could not be stored; start it again".to_owned());
                }
                Err(_) => {
                    message.get_or_insert("it stopped unexpectedly; this is a fault of Planscope".to_owned());
                }
            }
        }
        let state = match message {
            Some(detail) => SweepState::Failed { detail },
            None if task.ended.load(Ordering::Relaxed) => SweepState::Idle,
            None => SweepState::Done,
        };
        if state == SweepState::Done && self.store.writer().mark_for_planning(&task.id, None).await.is_err() {
            tracing::warn!(
                sweep = task.id,
                "that a sweep is done could not be written; it is looked at again at the next start"
            );
        }
        task.progress.send_modify(|progress| progress.state = state);
        self.table().retain(|id, work| *id != task.id || !Arc::ptr_eq(&work.ended, &task.ended));
    }

    /// Stores error rows for points that have reached the attempt limit. Returns the error message
    /// if the complete sweep fails.
    async fn give_up(&self, task: &Arc<Task>) -> Result<Option<String>, StoreError> {
        let shared = Arc::clone(task);
        let rows = tokio::task::spawn_blocking(move || shared.given_up()).await.unwrap_or_default();
        if rows.is_empty() {
            return Ok(None);
        }
        tracing::error!(
            sweep = task.id,
            points = rows.len(),
            "points are given up: every server that planned them ended"
        );
        self.store(task, &rows).await?;
        let points = self.store.writer().count_given_up(&task.id, point_count(rows.len())).await?;
        if points < MAX_GIVEN_UP || task.left().is_empty() {
            return Ok(None);
        }
        let detail = format!(
            "given up: the server ended while it planned {points} of its points, perhaps for want of memory; sweep fewer planners or \
             iterations, or start it again for the other points"
        );
        self.store.writer().fail_sweep(&task.id, &detail).await?;
        task.ended.store(true, Ordering::Relaxed);
        tracing::error!(sweep = task.id, "{detail}");
        Ok(Some(detail))
    }

    /// Plans batches while points remain.
    async fn lane(self, task: Arc<Task>) -> Result<(), StoreError> {
        let mut batch_limit = 1;
        loop {
            // Sweeps queue here in FIFO order, to share the turns.
            let Some(claim) = self.claim(&task, batch_limit).await else { return Ok(()) };
            let Some(turn) = self.free_turn(&task).await else {
                task.left().put_back(&claim);
                return Ok(());
            };
            // Must come before planning, because a point may crash the server.
            if let Err(error) = self.store.writer().begin_points(&task.id, ENGINE, &claim.points).await {
                task.ended.store(true, Ordering::Relaxed);
                return Err(error);
            }
            let (shared, clock, points) = (Arc::clone(&task), Arc::clone(&self.clock), claim.points.clone());
            let rows = tokio::task::spawn_blocking(move || {
                let rows = shared.batch(&points, &clock, turn.bytes());
                drop(turn);
                rows
            })
            .await
            .unwrap_or_default();
            batch_limit =
                if rows.len() == claim.points.len() { (2 * batch_limit).min(MAX_AT_ONCE) } else { rows.len().max(1) };
            let stored = self.end_batch(&task, claim, &rows).await;
            if stored.is_err() {
                // The other lanes stop too.
                task.ended.store(true, Ordering::Relaxed);
                return stored;
            }
        }
    }

    /// Claims points to plan, with the required permits. Returns `None` if the queue is empty.
    async fn claim(&self, task: &Task, batch_limit: usize) -> Option<Claim> {
        loop {
            let lane = Arc::clone(&self.lanes).acquire_owned().await.ok()?;
            if task.is_over() {
                return None;
            }
            let points = task.left().take(batch_limit);
            if !points.is_empty() {
                return Some(Claim { points, is_exclusive: false, _lanes: lane });
            }
            drop(lane);
            // A point with an earlier attempt but no row may crash the server again, so it is
            // planned exclusively.
            let all = u32::try_from(self.lane_count).unwrap_or(u32::MAX);
            let lanes = Arc::clone(&self.lanes).acquire_many_owned(all).await.ok()?;
            if task.is_over() {
                return None;
            }
            if let Some(point) = task.left().take_suspect() {
                return Some(Claim { points: vec![point], is_exclusive: true, _lanes: lanes });
            }
        }
    }

    /// Stores the rows and returns unplanned points to the queue.
    async fn end_batch(&self, task: &Task, claim: Claim, rows: &[(PointRow, String)]) -> Result<(), StoreError> {
        let stored = if rows.is_empty() { Ok(()) } else { self.store(task, rows).await };
        let rest = claim.without(rows.len());
        if !rest.points.is_empty() {
            task.left().put_back(&rest);
            self.store.writer().release_points(&task.id, ENGINE, &rest.points).await?;
        }
        stored
    }

    async fn store(&self, task: &Task, rows: &[(PointRow, String)]) -> Result<(), StoreError> {
        self.store.writer().store_sweep_rows(&task.id, rows).await?;
        let elapsed = self.clock.elapsed().saturating_sub(task.began).as_secs_f64();
        let barren = rows.iter().filter(|(row, _)| row.planners().iter().all(|planner| planner.metrics().is_none()));
        let (count, barren) = (point_count(rows.len()), point_count(barren.count()));
        task.progress.send_modify(|progress| {
            progress.done += count;
            progress.without_plan += barren;
            // Refused points take no time: they say nothing about the rate of the others.
            let plans = (progress.done - progress.without_plan).saturating_sub(task.plans_before);
            progress.points_per_s = (plans > 0).then(|| f64::from(plans) / elapsed.max(1e-3));
        });
        Ok(())
    }

    /// Acquires a turn when one is free and the queue is empty.
    async fn free_turn(&self, task: &Task) -> Option<Turn> {
        loop {
            if task.ended.load(Ordering::Relaxed) {
                return None;
            }
            let demand = Demand::turn(task.bytes.load(Ordering::Relaxed));
            if let Some(turn) = self.turns.take_free(&Claimant::server(), demand) {
                return Some(turn);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Work>> {
        // A panic cannot leave the table inconsistent: each update is a single step.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.left().is_empty()
    }

    fn left(&self) -> MutexGuard<'_, PointQueue> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans points in order within the time limit per turn, with a minimum of one point.
    fn batch(&self, points: &[u32], clock: &Arc<dyn Clock>, bytes: u64) -> Vec<(PointRow, String)> {
        let until = clock.elapsed() + TURN;
        let mut rows = Vec::new();
        for &index in points {
            let Some(row) = self.plan(index, clock, bytes) else { break };
            rows.push(written(row));
            if clock.elapsed() >= until {
                break;
            }
        }
        rows
    }

    /// Returns error rows for the points that have reached the attempt limit.
    fn given_up(&self) -> Vec<(PointRow, String)> {
        let points = self.left().take_hopeless();
        let row = |(index, attempts): (u32, u32)| {
            let detail = format!(
                "the server ended {attempts} times while it planned this point, perhaps for want of memory; plan it by itself, with fewer \
                 planners or iterations"
            );
            Some(written(PointRow::failed(&self.sweep.point(index)?, &detail)))
        };
        points.into_iter().filter_map(row).collect()
    }

    /// Returns the row for a point that exceeds the memory limit.
    fn too_large(&self, point: &Point, needed: u64) -> PointRow {
        let error = point
            .valid(self.datasets.as_ref())
            .ok()
            .and_then(|valid| memory_error(valid.scenario(), 1, self.max_bytes));
        let error = error.unwrap_or_else(|| FieldError::new("/iterations", outgrown(needed, self.max_bytes)));
        PointRow::invalid(point, vec![error])
    }

    /// Plans a point and returns the row. Returns `None` if planning was stopped or exceeded the
    /// turn's memory; later turns then have more memory.
    fn plan(&self, index: u32, clock: &Arc<dyn Clock>, bytes: u64) -> Option<PointRow> {
        let point = self.sweep.point(index)?;
        let limit = TimeLimit::start(Arc::clone(clock), self.plan_time);
        let mut observer = Until { ended: Arc::clone(&self.ended), limit, bytes };
        let planned = std::panic::AssertUnwindSafe(|| plan_point(&point, self.datasets.as_ref(), &mut observer));
        match std::panic::catch_unwind(planned) {
            Ok(Ok(row)) => Some(row),
            Ok(Err(Unplanned::Outgrown { bytes: needed })) => {
                let Some(more) = more_memory(bytes, needed, self.max_bytes) else {
                    return Some(self.too_large(&point, needed));
                };
                self.bytes.fetch_max(more, Ordering::Relaxed);
                None
            }
            Ok(Err(_)) if self.ended.load(Ordering::Relaxed) => None,
            Ok(Err(_)) => Some(PointRow::failed(&point, &too_long(self.plan_time))),
            // The panic hook has already logged location and message.
            Err(_) => Some(PointRow::failed(&point, STOPPED)),
        }
    }
}

fn written(row: PointRow) -> (PointRow, String) {
    let text = serde_json::to_string(&row).expect("a row has only text keys");
    (row, text)
}

/// Converts a point count; the limit per sweep is 100,000.
fn point_count(points: usize) -> u32 {
    u32::try_from(points).unwrap_or(u32::MAX)
}

/// Observer that checks for cancellation and for the time limit.
struct Until {
    ended: Arc<AtomicBool>,
    limit: TimeLimit,
    bytes: u64,
}

impl Observer for Until {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.limit.is_over()
    }
    fn max_bytes(&self) -> u64 {
        self.bytes
    }
    // Rows of a sweep have figures only.
    fn draws_timelines(&self) -> bool {
        false
    }
}
