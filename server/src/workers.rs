//! Worker threads for searches.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicUsize;

use planner::host::{Workers, run_worker};

/// Thread count, including the calling thread. Threads are started per search round and run for
/// several milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threads(NonZeroUsize);

impl Threads {
    /// Creates a thread count of at least one.
    pub fn new(count: usize) -> Self {
        Self(NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN))
    }

    /// Creates a thread count equal to the number of cores.
    pub fn all_cores() -> Self {
        Self(std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Number of threads.
    pub const fn count(self) -> usize {
        self.0.get()
    }
}

impl Workers for Threads {
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let work = || run_worker(&next, jobs, job);
        std::thread::scope(|scope| {
            for _ in 1..self.count().min(jobs) {
                // If the system cannot create more threads, the existing threads do the work.
                if std::thread::Builder::new().name("search".to_owned()).spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
    }

    fn count(&self) -> usize {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use planner::engine::{Observer, plan};
    use planner::scenario::validate::NoDatasets;
    use planner::scenario::{PlannerKind, ValidScenario, parse};

    use super::*;

    #[test]
    fn every_job_runs_once_on_any_thread_count() {
        for (threads, jobs) in [(0, 5), (1, 5), (4, 0), (4, 1), (4, 3), (3, 100)] {
            let done = Mutex::new(vec![0; jobs]);
            Threads::new(threads).run(jobs, &|job| done.lock().unwrap()[job] += 1);
            assert_eq!(*done.lock().unwrap(), vec![1; jobs], "{threads} threads");
        }
        assert!(Threads::all_cores().count() >= 1);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn job_panic_reaches_the_caller() {
        let asking = std::thread::current().id();
        let others = std::sync::Barrier::new(2);
        Threads::new(2).run(2, &|_| {
            // Ensures that both threads have started a job.
            others.wait();
            assert_eq!(std::thread::current().id(), asking, "a bug of the test's making");
        });
    }

    struct On(Threads);

    impl Observer for On {
        fn started(&mut self, _: PlannerKind) {}
        fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
        fn finished(&mut self, _: PlannerKind) {}
        fn cancelled(&self) -> bool {
            false
        }
        fn workers(&self) -> &dyn Workers {
            &self.0
        }
        fn split(&self, planners: &[PlannerKind]) -> Option<Vec<Box<dyn Observer + Send>>> {
            let observer = |_: &PlannerKind| -> Box<dyn Observer + Send> { Box::new(On(self.0)) };
            (self.0.count() > 1).then(|| planners.iter().map(observer).collect())
        }
    }

    /// Runs planners in parallel, with parallel searches in each planner.
    #[test]
    fn outcome_does_not_depend_on_the_thread_count() {
        let mut scenario = parse(include_str!("../../examples/vlm-s-image-heavy.json")).unwrap();
        scenario.planners = vec![
            PlannerKind::OneFOneB,
            PlannerKind::PipeWeaverRanking,
            PlannerKind::Interleaved,
            PlannerKind::WaitFreeCyclic,
        ];
        scenario.workload.global_batch = 12;
        scenario.layout.microbatch = Some(1);
        scenario.iterations = 2;
        let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let bytes = |threads| {
            let planning = plan(&scenario, &mut On(Threads::new(threads))).unwrap();
            let timelines = planning.timelines.iter().map(|planned| serde_json::to_vec(&planned.timeline).unwrap());
            (serde_json::to_vec(&planning.outcome).unwrap(), timelines.collect::<Vec<_>>())
        };
        let single = bytes(1);
        assert!(String::from_utf8_lossy(&single.0).contains("\"planned\""));
        assert_eq!(single, bytes(4));
    }
}
