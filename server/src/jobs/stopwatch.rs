//! Measures planning time per planner and per batch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::job::{BatchPlanning, PlanningTime};
use planner::host::BatchClock;
use planner::outcome::{Outcome, PlanOutcome};
use planner::scenario::PlannerKind;

use crate::clock::Clock;

/// Stopwatch for an observer.
#[derive(Debug)]
pub(super) struct Stopwatch {
    clock: Arc<dyn Clock>,
    started: Option<(PlannerKind, Duration)>,
    times: Vec<PlanningTime>,
    /// Planning time in ms of each batch for the current planner. Later measurements replace
    /// earlier ones.
    batches: Mutex<Vec<f64>>,
}

impl BatchClock for Stopwatch {
    fn measure(&self, batch: u32, plan: &mut dyn FnMut()) {
        let started = self.clock.elapsed();
        plan();
        let ms = self.clock.elapsed().saturating_sub(started).as_secs_f64() * 1e3;
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let index = batch as usize;
        let known = batches.len().max(index + 1);
        batches.resize(known, 0.0);
        batches[index] = ms;
    }
}

impl Stopwatch {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, started: None, times: Vec::new(), batches: Mutex::default() }
    }

    pub(super) fn started(&mut self, planner: PlannerKind) {
        self.started = Some((planner, self.clock.elapsed()));
        self.batches_mut().clear();
    }

    fn batches_mut(&mut self) -> &mut Vec<f64> {
        self.batches.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn finished(&mut self, planner: PlannerKind) {
        if let Some((_, started)) = self.started.take_if(|(started, _)| *started == planner) {
            let ms = self.clock.elapsed().saturating_sub(started).as_secs_f64() * 1e3;
            let batches = self.batches_mut().drain(..).map(|ms| BatchPlanning::during_step(ms, None)).collect();
            self.times.push(PlanningTime { planner, ms, batches });
        }
    }

    /// Returns the times of planners that finished since the last call.
    pub(super) fn take_times(&mut self) -> Vec<PlanningTime> {
        std::mem::take(&mut self.times)
    }

    /// Returns wall time per finished planner and per batch, with the iteration times from the
    /// outcome.
    pub(super) fn into_times(self, outcome: &Outcome) -> Vec<PlanningTime> {
        Self::with_iteration_times(self.times, outcome)
    }

    /// Adds the iteration times from the outcome to the planning times per batch.
    pub(super) fn with_iteration_times(mut times: Vec<PlanningTime>, outcome: &Outcome) -> Vec<PlanningTime> {
        for time in &mut times {
            let planner_result =
                outcome.results.iter().find(|result| result.planner == time.planner).map(|found| &found.answer);
            let Some(PlanOutcome::Planned(planned)) = planner_result else {
                time.batches.clear();
                continue;
            };
            let mut before = None;
            for (batch, iteration) in time.batches.iter_mut().zip(&planned.iterations) {
                *batch = BatchPlanning::during_step(batch.ms, before.replace(iteration.iteration_s * 1e3));
            }
        }
        times
    }
}
