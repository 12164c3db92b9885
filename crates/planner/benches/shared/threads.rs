//! Worker threads for benchmarks.

use std::sync::atomic::AtomicUsize;

use planner::host::{Workers, run_worker};

/// Runs jobs on at most this number of threads, never more threads than jobs. Each round starts new
/// threads, as in the server.
pub(crate) struct Threads(pub(crate) usize);

impl Workers for Threads {
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 1..self.0.min(jobs) {
                scope.spawn(|| run_worker(&next, jobs, job));
            }
            run_worker(&next, jobs, job);
        });
    }

    fn count(&self) -> usize {
        self.0
    }
}
