//! Caller-provided interfaces: worker threads, clock, planning-time measurement. They do not change
//! the results.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Executor for independent jobs.
pub trait Workers: Sync {
    /// Calls `job` once per index below `jobs`, in any order. Returns after all calls finish.
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync));
    /// Returns the parallelism, at least 1.
    fn count(&self) -> usize;
}

/// Worker loop: claims jobs from the shared counter `next` while jobs remain.
pub fn run_worker(next: &AtomicUsize, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= jobs {
            break;
        }
        job(number);
    }
}

/// Runs independent jobs and returns their results by job index.
pub fn side_by_side<T: Send>(workers: &dyn Workers, jobs: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let places: Vec<Mutex<Option<T>>> = std::iter::repeat_with(|| Mutex::new(None)).take(jobs).collect();
    workers.run(jobs, &|number| {
        let result = job(number);
        *places[number].lock().expect("every job has one worker") = Some(result);
    });
    let take_result =
        |slot: Mutex<Option<T>>| slot.into_inner().expect("every job has one worker").expect("workers do every job");
    places.into_iter().map(take_result).collect()
}

/// Jobs per round; a cancellation check follows each round. Two jobs per worker balance varying
/// durations while checks remain frequent.
pub fn jobs_per_round(workers: &dyn Workers) -> usize {
    2 * workers.count().max(1)
}

/// Sequential executor.
#[derive(Debug, Clone, Copy, Default)]
pub struct SequentialWorkers;

impl Workers for SequentialWorkers {
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..jobs).for_each(job);
    }

    fn count(&self) -> usize {
        1
    }
}

/// Cancellation check and clock.
pub trait Cancellation: Sync {
    /// Returns whether to stop. Searches call it after each round, every few milliseconds.
    fn is_over(&self) -> bool;
    /// Seconds since the search started.
    fn seconds(&self) -> f64;
    /// Seconds until [`Self::is_over`] returns true; infinite without a time limit.
    fn remaining(&self) -> f64 {
        f64::INFINITY
    }
}

/// No time limit: the search uses all its rollouts.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverCancelled;

impl Cancellation for NeverCancelled {
    fn is_over(&self) -> bool {
        false
    }

    fn seconds(&self) -> f64 {
        0.0
    }
}

/// Measures planning time per batch.
pub trait BatchClock: Sync {
    /// Calls `plan` exactly once to plan evaluation batch `batch`. Batches can be planned in
    /// parallel, and again if memory is insufficient: then the most recent measurement is valid.
    fn measure(&self, batch: u32, plan: &mut dyn FnMut());
}

/// Performs no measurement.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBatchClock;

impl BatchClock for NoBatchClock {
    fn measure(&self, _: u32, plan: &mut dyn FnMut()) {
        plan();
    }
}

/// Returns the result from `plan` and measures the call.
pub fn measured<T>(clock: &dyn BatchClock, batch: u32, plan: impl FnOnce() -> T) -> T {
    let (mut plan, mut result) = (Some(plan), None);
    clock.measure(batch, &mut || result = plan.take().map(|plan| plan()));
    result.expect("a clock calls what it measures")
}
