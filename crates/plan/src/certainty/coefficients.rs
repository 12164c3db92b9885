//! Fitted coefficients of the model of errors.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Feature, Features};
use crate::memory_risk::MemoryErrors;

/// Coefficients of the model of errors. Errors are ln(measured / predicted). `cargo xtask accuracy`
/// writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coefficients {
    /// 10 % and 90 % quantiles of the error of a step time.
    pub step_time: Bounds,
    /// Constants of the bounds for steps without data: 5 % and 95 % quantiles of the error over all
    /// sets.
    pub widest: (f64, f64),
    /// Quantiles of the error of a peak memory.
    pub peak_memory: MemoryErrors,
    /// Spread of the difference between the errors of two plans.
    pub order: OrderErrors,
}

/// Two quantiles that depend on properties of the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// 10 % quantile.
    pub lower: Linear,
    /// 90 % quantile.
    pub upper: Linear,
}

/// A constant plus a sum of slopes x properties.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// Value if all properties are 0.
    pub constant: f64,
    /// Slope by property.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slopes: BTreeMap<Feature, f64>,
}

/// Spread of the difference between the errors of two plans: scale x (1 + distance)^exponent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderErrors {
    /// Scale of the logistic distribution for plans with equal layouts.
    pub scale: f64,
    /// Growth with the distance of the layouts.
    pub exponent: f64,
}

impl Coefficients {
    /// Returns the committed coefficients.
    pub fn committed() -> &'static Self {
        static COMMITTED: LazyLock<Coefficients> = LazyLock::new(|| {
            serde_json::from_str(include_str!("errors.json")).expect("errors.json is part of the source and tested")
        });
        &COMMITTED
    }
}

impl Linear {
    /// Returns the value for a step.
    pub fn at(&self, features: &Features) -> f64 {
        self.constant + self.slopes.iter().map(|(feature, slope)| slope * features.get(*feature)).sum::<f64>()
    }
}

impl OrderErrors {
    /// Returns the probability that the first of two plans is faster, where `advantage` is
    /// ln(predicted time of the second / predicted time of the first).
    pub fn probability_faster(&self, advantage: f64, distance: f64) -> f64 {
        1.0 / (1.0 + libm::exp(-advantage / self.scale_at(distance)))
    }

    /// Returns the scale of the logistic distribution at a distance.
    pub fn scale_at(&self, distance: f64) -> f64 {
        self.scale * libm::pow(1.0 + distance, self.exponent)
    }
}
