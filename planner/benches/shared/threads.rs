//! Threads of benchmarks.

use std::sync::atomic::{AtomicUsize, Ordering};

use planner::ranking::Workers;

/// So many threads that take jobs until there are none left; made anew for every round, as the server does.
pub(crate) struct Threads(pub(crate) usize);

impl Workers for Threads {
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= jobs {
                    break;
                }
                job(number);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.0 {
                scope.spawn(work);
            }
            work();
        });
    }
}
