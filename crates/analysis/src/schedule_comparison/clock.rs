//! Integer times of a request.

use super::question::ScheduleRequest;
use planscope_core::units::Nanos;

/// Nanoseconds per time unit. Timelines therefore show a unit as a millisecond.
pub const UNIT_NS: u64 = 1_000_000;
/// Maximum steps per forward-backward pair if pairs overlap. The gain is an integer in ppm; within
/// this limit the pair's duration rounds to the exact step.
const OVERLAPPED_STEPS: f64 = 1e6;

/// Integer time steps for the simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    /// Steps per time unit.
    per_unit: f64,
    /// Nanoseconds per step.
    pub step_ns: u64,
}

impl Clock {
    /// Uses a millionth of the unit as step, or a coarser step if pairs overlap.
    pub fn from_request(request: &ScheduleRequest) -> Self {
        let times = &request.times;
        let pair = times.forward.max_value() + times.input_grad.max_value() + times.weight_grad.max_value();
        let mut clock = Self { per_unit: UNIT_NS as f64, step_ns: 1 };
        while times.overlapped.is_some() && pair * clock.per_unit > OVERLAPPED_STEPS {
            clock.per_unit /= 10.0;
            clock.step_ns *= 10;
        }
        clock
    }

    /// Rounds time units to steps.
    pub fn steps(self, units: f64) -> Nanos {
        Nanos::new((units * self.per_unit).round() as u64)
    }

    /// Returns steps in time units.
    pub fn units(self, steps: Nanos) -> f64 {
        steps.get() as f64 / self.per_unit
    }
}
