//! Reports planner progress to subscribers of a job and measures planning time.

use std::sync::Arc;
use std::time::Duration;

use api::job::{JobState, PlanningTime};
use planner::engine::Observer;
use planner::host::{BatchClock, Workers};
use planner::observer::BestSoFar;
use planner::outcome::Outcome;
use planner::scenario::PlannerKind;

use super::stopwatch::Stopwatch;
use super::{Entry, TimeLimit};
use crate::clock::Clock;
use crate::workers::Threads;

/// Minimum interval between two reports for the same phase. It exceeds the refresh rate of a page
/// and is low enough for the network.
const PACE: Duration = Duration::from_millis(50);

/// Observer for one job.
#[derive(Debug)]
pub(super) struct Progress {
    entry: Entry,
    clock: Arc<dyn Clock>,
    limit: TimeLimit,
    max_bytes: u64,
    stopwatch: Stopwatch,
    last_report: Option<(PlannerKind, &'static str, Duration)>,
    best: Option<BestSoFar>,
    threads: Threads,
}

impl Progress {
    pub(super) fn new(
        entry: Entry,
        clock: Arc<dyn Clock>,
        (limit, max_bytes): (TimeLimit, u64),
        threads: Threads,
    ) -> Self {
        Self {
            entry,
            stopwatch: Stopwatch::new(Arc::clone(&clock)),
            clock,
            limit,
            max_bytes,
            last_report: None,
            best: None,
            threads,
        }
    }

    /// Returns wall time per finished planner and per batch, with the iteration times from the
    /// outcome.
    pub(super) fn into_times(self, outcome: &Outcome) -> Vec<PlanningTime> {
        self.stopwatch.into_times(outcome)
    }
}

impl Observer for Progress {
    fn started(&mut self, planner: PlannerKind) {
        self.stopwatch.started(planner);
        self.progress(planner, "starting", 0, 1);
    }

    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32) {
        let now = self.clock.elapsed();
        let quiet = self.last_report.is_some_and(|(last_planner, last_phase, at)| {
            last_planner == planner && last_phase == phase && now.saturating_sub(at) < PACE && done < total
        });
        if !quiet {
            self.last_report = Some((planner, phase, now));
            self.entry.set(JobState::Running { planner, phase: phase.to_owned(), done, total, best: self.best });
        }
    }

    fn improved(&mut self, best: BestSoFar) {
        self.best = Some(best);
        if let JobState::Running { planner, phase, done, total, .. } = self.entry.job().state {
            self.entry.set(JobState::Running { planner, phase, done, total, best: self.best });
        }
    }

    fn finished(&mut self, planner: PlannerKind) {
        self.stopwatch.finished(planner);
    }

    fn cancelled(&self) -> bool {
        self.entry.is_cancelled() || self.limit.is_over()
    }

    fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    fn workers(&self) -> &dyn Workers {
        &self.threads
    }

    fn batch_clock(&self) -> &dyn BatchClock {
        &self.stopwatch
    }
}
