//! Risk that a scenario runs out of memory.

use super::FitResult;
use planscope_plan::certainty::{RISK, memory_certainty};
use planscope_plan::scenario::Scenario;

/// Memory of a device, and whether the plan of the scenario itself is at risk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Risk {
    device_gib: f64,
    is_present: bool,
}

impl Risk {
    /// `base` is the result of the scenario itself.
    pub(super) fn new(scenario: &Scenario, base: &FitResult) -> Self {
        let open = Self { device_gib: scenario.cluster.device.memory_gib, is_present: false };
        Self { is_present: base.iteration_s.is_some() && open.of(base) > RISK, ..open }
    }

    /// Returns the probability that a result runs out of memory.
    pub(super) fn of(self, result: &FitResult) -> f64 {
        result.peak_gib.map_or(0.0, |peak| memory_certainty(peak, self.device_gib).probability_out_of_memory)
    }

    /// True if the scenario has a plan at risk.
    pub(super) fn is_present(self) -> bool {
        self.is_present
    }

    /// True if the scenario has a plan at risk, and the result is a plan that is not.
    pub(super) fn is_removed_by(self, result: &FitResult) -> bool {
        self.is_present() && result.iteration_s.is_some() && self.of(result) <= RISK
    }
}
