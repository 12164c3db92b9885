//! Uncertainty of predictions: intervals of step times, probability of exceeding the memory, and
//! probability that one plan is faster than another.
//!
//! The distribution of errors is fitted to published measurements by `cargo xtask accuracy`
//! (docs/models.md, section 18; docs/accuracy.md). The simulator is not fitted to them.

mod coefficients;
mod distance;
mod features;

pub use coefficients::{Bounds, Coefficients, Linear, OrderErrors};
pub use distance::layout_distance;
pub use features::{Feature, Features};

pub use crate::memory_risk::{MemoryErrors, largest_peak};

use planscope_core::cluster::{Cluster, MatMulCurve};
use planscope_core::model::{Model, Module};
use serde::{Deserialize, Serialize};

use crate::outcome::Planned;
use crate::scenario::Scenario;

/// An 80 % interval: one measurement in ten is expected below it, one in ten above it. Absolute
/// values in the unit of the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Interval {
    /// 10 % quantile.
    pub low: f64,
    /// 90 % quantile.
    pub high: f64,
}

/// Uncertainty of a peak memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemoryCertainty {
    /// 80 % interval of the memory that the framework reserves on the device with the highest peak,
    /// in GiB.
    pub interval_gib: Interval,
    /// Probability that the reserved memory exceeds the device memory, 0 to 1.
    pub probability_out_of_memory: f64,
}

impl Interval {
    /// Returns predicted x exp(error) for two quantiles of the error.
    fn around(predicted: f64, (lower, upper): (f64, f64)) -> Self {
        Self { low: predicted * libm::exp(lower), high: predicted * libm::exp(upper) }
    }
}

/// Returns the 80 % interval of the mean iteration time of a plan, in seconds.
pub fn step_time(scenario: &Scenario, planned: &Planned) -> Interval {
    let features = Features::of_plan(scenario, planned);
    step_time_interval(planned.metrics.iteration_s, &features, reason(scenario).is_some())
}

/// Returns the 80 % interval of a predicted step time, in the unit of the prediction. With
/// `has_no_data`, the interval is the widest one.
pub fn step_time_interval(predicted: f64, features: &Features, has_no_data: bool) -> Interval {
    let Coefficients { step_time, widest, .. } = Coefficients::committed();
    let (mut lower, mut upper) = (step_time.lower.at(features), step_time.upper.at(features));
    if has_no_data {
        lower += widest.0 - step_time.lower.constant;
        upper += widest.1 - step_time.upper.constant;
    }
    Interval::around(predicted, (lower, upper))
}

/// Returns the reason for the widest interval of step times, or `None` if published step times
/// include similar runs.
pub fn reason(scenario: &Scenario) -> Option<String> {
    reason_for(&scenario.model, &scenario.cluster)
}

/// Like [`reason`], for a model and a cluster.
pub fn reason_for(model: &Model, cluster: &Cluster) -> Option<String> {
    if model.modules.len() > 1 {
        return Some("No published step times of models with several modules.".to_owned());
    }
    if model.modules.iter().any(|module| module.moe.is_some()) {
        return Some("Too few published step times of mixtures of experts.".to_owned());
    }
    let is_linear = |module: &Module| module.linear.is_some();
    if model.modules.iter().any(is_linear) {
        return Some("No published step times of linear attention or state space models.".to_owned());
    }
    let is_adapted = |module: &Module| module.adapters.is_some();
    if model.modules.iter().any(is_adapted) {
        return Some("No published step times of adapters.".to_owned());
    }
    // Devices without timings have the curves of a measured device of the same generation, for which
    // step times are published, or those of a typical device.
    let is_typical = cluster.device.curves.as_ref().is_none_or(|curves| curves.matmul == MatMulCurve::GENERIC);
    if is_typical {
        return Some(format!("The rates of {} are assumed, not measured.", cluster.name));
    }
    let residual = cluster.device.curves.as_ref().map_or(0.0, |curves| curves.calibration.residual);
    (residual > MAX_RESIDUAL).then(|| {
        format!(
            "The curves of {} differ from its measured operators by {:.0} % on average.",
            cluster.name,
            100.0 * residual
        )
    })
}

/// Largest mean residual of a fit with the interval of measured devices. The fits of the presets are below it.
const MAX_RESIDUAL: f64 = 0.2;

/// Probability of running out of memory above which a plan is at risk. The 80 % interval then contains the device memory.
pub const RISK: f64 = 0.1;

/// Returns the uncertainty of the peak memory of a plan.
pub fn peak_memory(scenario: &Scenario, planned: &Planned) -> MemoryCertainty {
    memory_certainty(planned.metrics.peak_memory_gib, scenario.cluster.device.memory_gib)
}

/// Returns the uncertainty of a predicted peak memory on a device with `available` GiB.
pub fn memory_certainty(predicted: f64, available: f64) -> MemoryCertainty {
    let errors = Coefficients::committed().peak_memory;
    let error = libm::log(available.max(f64::MIN_POSITIVE) / predicted.max(f64::MIN_POSITIVE));
    MemoryCertainty {
        interval_gib: Interval::around(predicted, (errors.lower, errors.upper)),
        probability_out_of_memory: errors.probability_above(error),
    }
}

/// Returns the probability that plan `a` is faster than plan `b` of the same scenario. The error
/// that both plans share cancels. The spread of the remaining error grows with the distance of the
/// layouts. 0.5 for equal times.
pub fn probability_faster(a: &Planned, b: &Planned) -> f64 {
    let advantage = libm::log(b.metrics.iteration_s / a.metrics.iteration_s);
    Coefficients::committed().order.probability_faster(advantage, distance::plan_distance(a, b))
}

#[cfg(test)]
mod tests;
