//! How long planners take, and every batch that is planned anew.

use std::sync::Arc;
use std::time::Duration;

use api::job::{BatchPlanning, PlanningTime};
use planner::outcome::{Answer, Outcome};
use planner::scenario::PlannerKind;

use crate::clock::Clock;

/// Measures what an observer is told of.
#[derive(Debug)]
pub(super) struct Stopwatch {
    clock: Arc<dyn Clock>,
    started: Option<(PlannerKind, Duration)>,
    times: Vec<PlanningTime>,
    /// Since when a batch is planned.
    batch: Option<Duration>,
    /// What every batch of the planner at work took, in ms.
    batches: Vec<f64>,
}

impl Stopwatch {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, started: None, times: Vec::new(), batch: None, batches: Vec::new() }
    }

    /// A planner starts.
    pub(super) fn started(&mut self, planner: PlannerKind) {
        self.started = Some((planner, self.clock.elapsed()));
        self.batch = None;
        self.batches.clear();
    }

    /// A batch is planned from now on, or no batch any more.
    pub(super) fn batch(&mut self, batch: Option<u32>) {
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

    /// A planner is done.
    pub(super) fn finished(&mut self, planner: PlannerKind) {
        if let Some((_, started)) = self.started.take_if(|(started, _)| *started == planner) {
            let ms = self.clock.elapsed().saturating_sub(started).as_secs_f64() * 1e3;
            let batches = self.batches.drain(..).map(|ms| BatchPlanning::beside(ms, None)).collect();
            self.times.push(PlanningTime { planner, ms, batches });
        }
    }

    /// Times of the planners that finished since the last call.
    pub(super) fn take_times(&mut self) -> Vec<PlanningTime> {
        std::mem::take(&mut self.times)
    }

    /// Wall time of every planner that finished, and of its batches beside the steps of the outcome.
    pub(super) fn into_times(self, outcome: &Outcome) -> Vec<PlanningTime> {
        Self::beside_steps(self.times, outcome)
    }

    /// Wall time of planners and of their batches, beside the steps of the outcome.
    pub(super) fn beside_steps(mut times: Vec<PlanningTime>, outcome: &Outcome) -> Vec<PlanningTime> {
        for time in &mut times {
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
        times
    }
}
