//! Carries what a planner says to whoever watches the job, and measures how long it takes.

use std::sync::Arc;
use std::time::Duration;

use api::job::{BatchPlanning, JobState, PlanningTime};
use planner::engine::Observer;
use planner::outcome::{Answer, Outcome};
use planner::ranking::Workers;
use planner::scenario::PlannerKind;

use super::Entry;
use crate::clock::Clock;
use crate::workers::Threads;

/// Shortest time between two reports of the same phase: faster than a page draws, slow enough for a network.
const PACE: Duration = Duration::from_millis(50);

/// Observer of one job.
#[derive(Debug)]
pub(super) struct Progress {
    entry: Entry,
    clock: Arc<dyn Clock>,
    started: Option<(PlannerKind, Duration)>,
    told: Option<(PlannerKind, &'static str, Duration)>,
    times: Vec<PlanningTime>,
    /// Since when a batch is planned.
    batch: Option<Duration>,
    /// What every batch of the planner at work took, in ms.
    batches: Vec<f64>,
    threads: Threads,
}

impl Progress {
    pub(super) fn new(entry: Entry, clock: Arc<dyn Clock>, threads: Threads) -> Self {
        Self { entry, clock, started: None, told: None, times: Vec::new(), batch: None, batches: Vec::new(), threads }
    }

    /// Wall time of every planner that finished, and of its batches beside the steps of the outcome.
    pub(super) fn into_times(mut self, outcome: &Outcome) -> Vec<PlanningTime> {
        for time in &mut self.times {
            let answer = outcome.results.iter().find(|result| result.planner == time.planner).map(|own| &own.answer);
            let Some(Answer::Planned(planned)) = answer else {
                time.batches.clear();
                continue;
            };
            let mut before = None;
            for (batch, iteration) in time.batches.iter_mut().zip(&planned.iterations) {
                *batch = BatchPlanning::beside(batch.ms, before.replace(iteration.iteration_s * 1e3));
            }
        }
        self.times
    }
}

impl Observer for Progress {
    fn started(&mut self, planner: PlannerKind) {
        self.started = Some((planner, self.clock.elapsed()));
        self.batch = None;
        self.batches.clear();
        self.progress(planner, "starting", 0, 1);
    }

    fn progress(&mut self, planner: PlannerKind, phase: &'static str, done: u32, total: u32) {
        let now = self.clock.elapsed();
        let quiet = self.told.is_some_and(|(last_planner, last_phase, at)| {
            last_planner == planner && last_phase == phase && now.saturating_sub(at) < PACE && done < total
        });
        if !quiet {
            self.told = Some((planner, phase, now));
            self.entry.set(JobState::Running { planner, phase: phase.to_owned(), done, total });
        }
    }

    fn batch(&mut self, _: PlannerKind, batch: Option<u32>) {
        let now = self.clock.elapsed();
        if let Some(since) = self.batch.take() {
            self.batches.push(now.saturating_sub(since).as_secs_f64() * 1e3);
        }
        if let Some(number) = batch {
            // Planning begins again where memory was found short.
            self.batches.truncate(number as usize);
            self.batch = Some(now);
        }
    }

    fn finished(&mut self, planner: PlannerKind) {
        if let Some((_, started)) = self.started.take_if(|(started, _)| *started == planner) {
            let ms = self.clock.elapsed().saturating_sub(started).as_secs_f64() * 1e3;
            let batches = self.batches.drain(..).map(|ms| BatchPlanning::beside(ms, None)).collect();
            self.times.push(PlanningTime { planner, ms, batches });
        }
    }

    fn cancelled(&self) -> bool {
        self.entry.is_cancelled()
    }

    fn workers(&self) -> &dyn Workers {
        &self.threads
    }
}
