//! What the caller lends: threads, a clock, and measuring what batches take. None of it changes what is found.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs independent jobs, on as many threads as the caller has.
pub trait Workers: Sync {
    /// Calls `job` once for every number below `jobs`, in any order, and returns when all are done.
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync));
    /// Jobs that run at the same time, at least 1.
    fn count(&self) -> usize;
}

/// What one thread of several does: takes the next job of all that share `next`, until there are none left.
pub fn take_turns(next: &AtomicUsize, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= jobs {
            break;
        }
        job(number);
    }
}

/// The answers of independent jobs, in the order of their numbers.
pub(crate) fn side_by_side<T: Send>(workers: &dyn Workers, jobs: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let places: Vec<Mutex<Option<T>>> = std::iter::repeat_with(|| Mutex::new(None)).take(jobs).collect();
    workers.run(jobs, &|number| {
        let answer = job(number);
        *places[number].lock().expect("every job has one worker") = Some(answer);
    });
    let answer =
        |place: Mutex<Option<T>>| place.into_inner().expect("every job has one worker").expect("workers do every job");
    places.into_iter().map(answer).collect()
}

/// Jobs of a round, between which it is asked whether to stop: some for each worker, as they take unequally long, and few.
pub(crate) fn round_of(workers: &dyn Workers) -> usize {
    2 * workers.count().max(1)
}

/// One job after the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Workers for Alone {
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..jobs).for_each(job);
    }

    fn count(&self) -> usize {
        1
    }
}

/// The caller's clock.
pub trait Watch: Sync {
    /// Whether to stop; asked between rounds of some milliseconds.
    fn is_over(&self) -> bool;
    /// Seconds since the search began.
    fn seconds(&self) -> f64;
}

/// No clock: the search ends with its rollouts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn is_over(&self) -> bool {
        false
    }

    fn seconds(&self) -> f64 {
        0.0
    }
}

/// Measures how long batches take that are planned anew.
pub trait BatchClock: Sync {
    /// Calls `plan` once, which plans the judged batch of that number. Batches may be planned side by side, and all of them again where
    /// memory was found short: the last time of each counts.
    fn measure(&self, batch: u32, plan: &mut dyn FnMut());
}

/// Nobody wants to know.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unmeasured;

impl BatchClock for Unmeasured {
    fn measure(&self, _: u32, plan: &mut dyn FnMut()) {
        plan();
    }
}

/// What `plan` answers for a batch, measured.
pub(crate) fn measured<T>(clock: &dyn BatchClock, batch: u32, plan: impl FnOnce() -> T) -> T {
    let (mut plan, mut answer) = (Some(plan), None);
    clock.measure(batch, &mut || answer = plan.take().map(|plan| plan()));
    answer.expect("a clock calls what it measures")
}
