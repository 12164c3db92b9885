//! Times of planning.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use planner::host::BatchClock;
use planner::observer::Observer;
use planner::scenario::PlannerKind;

/// Returns the processor time of this thread in seconds, so that other programs on the machine do not count. Without
/// `/proc`, returns the wall time since `began`.
fn thread_seconds(began: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |nanoseconds| nanoseconds as f64 * 1e-9)
}

/// Measures the planning time of each batch that a planner plans online.
#[derive(Debug, Default)]
pub(super) struct PlanningClock {
    current: Option<PlannerKind>,
    /// Seconds by planner and batch.
    seconds: Mutex<BTreeMap<(PlannerKind, u32), f64>>,
}

impl PlanningClock {
    /// Returns the mean planning time of a batch in seconds, or `None` for a planner that plans no batches online.
    pub(super) fn mean(&self, planner: PlannerKind) -> Option<f64> {
        let seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let own: Vec<f64> = seconds.iter().filter(|((of, _), _)| *of == planner).map(|(_, &seconds)| seconds).collect();
        (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
    }
}

impl Observer for PlanningClock {
    fn started(&mut self, planner: PlannerKind) {
        self.current = Some(planner);
    }

    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}

    fn finished(&mut self, _: PlannerKind) {
        self.current = None;
    }

    fn cancelled(&self) -> bool {
        false
    }

    fn batch_clock(&self) -> &dyn BatchClock {
        self
    }
}

impl BatchClock for PlanningClock {
    fn measure(&self, batch: u32, plan: &mut dyn FnMut()) {
        let began = Instant::now();
        let first = thread_seconds(began);
        plan();
        if let Some(planner) = self.current {
            let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
            seconds.insert((planner, batch), thread_seconds(began) - first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_belong_to_the_planner_that_runs() {
        let mut clock = PlanningClock::default();
        clock.measure(0, &mut || ());
        clock.started(PlannerKind::Dhp);
        let mut calls = 0;
        for batch in 0..3 {
            clock.measure(batch, &mut || calls += 1);
        }
        clock.finished(PlannerKind::Dhp);
        assert_eq!(calls, 3);
        assert!(clock.mean(PlannerKind::Dhp).is_some_and(|seconds| seconds >= 0.0));
        assert_eq!(clock.mean(PlannerKind::Hydraulis), None);
    }
}
