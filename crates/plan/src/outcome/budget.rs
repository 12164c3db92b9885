//! Time, device hours and cost for a training run with a token budget.

use serde::{Deserialize, Serialize};

use super::Metrics;

/// Token budget and device price.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Training tokens, without padding.
    pub tokens: f64,
    /// Goodput: fraction of wall time spent on useful steps, above 0 and at most 1.
    #[serde(default = "all")]
    pub goodput: f64,
    /// Price per device hour, in any currency.
    #[serde(default)]
    pub price_per_hour: f64,
}

const fn all() -> f64 {
    1.0
}

/// Cost of a training run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunCost {
    /// Wall time in days.
    pub days: f64,
    /// Device hours, summed across all devices.
    pub device_hours: f64,
    /// Cost in the price's currency.
    pub money: f64,
}

/// Predicted cost of a training run with its 80 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunForecast {
    /// The budget.
    pub budget: Budget,
    /// Number of steps.
    pub steps: f64,
    /// Predicted cost.
    pub expected: RunCost,
    /// Cost at the low end of the interval of the step time.
    pub low: RunCost,
    /// Cost at the high end of the interval of the step time.
    pub high: RunCost,
}

impl Budget {
    /// Returns the first field that is out of range, and its rule.
    pub fn out_of_range(self) -> Option<(&'static str, &'static str)> {
        let Self { tokens, goodput, price_per_hour } = self;
        if !(tokens.is_finite() && tokens > 0.0) {
            Some(("tokens", "it must be greater than 0"))
        } else if !(goodput > 0.0 && goodput <= 1.0) {
            Some(("goodput", "it must be greater than 0 and at most 1"))
        } else if !(price_per_hour.is_finite() && price_per_hour >= 0.0) {
            Some(("price_per_hour", "it must not be negative"))
        } else {
            None
        }
    }

    /// Predicts the cost of a run with a plan. `interval_s` is the 80 % interval of its step time. `None` as for
    /// [`Budget::cost`].
    pub fn forecast(self, metrics: &Metrics, interval_s: (f64, f64), devices: u32) -> Option<RunForecast> {
        let tokens_per_step = metrics.tokens_per_s * metrics.iteration_s;
        let cost = |step_s: f64| self.cost(tokens_per_step / step_s, devices);
        Some(RunForecast {
            budget: self,
            steps: (self.tokens / tokens_per_step).ceil(),
            expected: cost(metrics.iteration_s)?,
            low: cost(interval_s.0)?,
            high: cost(interval_s.1)?,
        })
    }

    /// Computes the cost: wall time = tokens / (tokens/s x goodput). `None` if a figure is not a
    /// positive number.
    pub fn cost(self, tokens_per_s: f64, devices: u32) -> Option<RunCost> {
        let Self { tokens, goodput, price_per_hour } = self;
        let is_valid = tokens > 0.0 && goodput > 0.0 && goodput <= 1.0 && price_per_hour >= 0.0 && tokens_per_s > 0.0;
        let hours = tokens / (tokens_per_s * goodput) / 3600.0;
        let device_hours = hours * f64::from(devices);
        let cost = RunCost { days: hours / 24.0, device_hours, money: device_hours * price_per_hour };
        (is_valid && cost.money.is_finite() && device_hours.is_finite()).then_some(cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10^12 tokens at 10^6 per second and 80 % goodput take 1.25 x 10^6 s = 347.2 h = 14.47 days.
    /// On 16 devices, that is 5,555.6 device hours; at 2.50 per hour, they cost 13,888.9.
    #[test]
    fn a_run_costs_its_devices_for_its_time() {
        let budget = Budget { tokens: 1e12, goodput: 0.8, price_per_hour: 2.5 };
        let cost = budget.cost(1e6, 16).unwrap();
        assert!((cost.days - 1.25e6 / 86_400.0).abs() < 1e-9);
        assert!((cost.device_hours - 1.25e6 / 3600.0 * 16.0).abs() < 1e-6);
        assert!((cost.money - 13_888.888_888).abs() < 1e-3);
    }

    /// 10^12 tokens in steps of 4 x 10^6 tokens are 250,000 steps. The interval of 3 to 8 s per step contains the
    /// predicted 4 s.
    #[test]
    fn a_forecast_has_the_interval_of_the_step_time() {
        let metrics: Metrics = serde_json::from_value(serde_json::json!({
            "iteration_s": 4.0, "tokens_per_s": 1e6, "tflops_per_device": 0.0, "mfu": 0.0, "bubble": 0.0,
            "exposed_communication": 0.0, "peak_memory_gib": 0.0, "memory_limit_gib": 0.0, "lower_bound_s": 4.0, "gap": 0.0
        }))
        .unwrap();
        let budget = Budget { tokens: 1e12, goodput: 0.8, price_per_hour: 2.5 };
        let forecast = budget.forecast(&metrics, (3.0, 8.0), 16).unwrap();
        assert!((forecast.steps - 250_000.0).abs() < f64::EPSILON);
        assert_eq!(forecast.expected, budget.cost(1e6, 16).unwrap());
        assert!((forecast.high.days / forecast.expected.days - 2.0).abs() < 1e-12);
        assert!((forecast.low.money / forecast.expected.money - 0.75).abs() < 1e-12);
    }

    #[test]
    fn malformed_values_cost_nothing() {
        let budget = Budget { tokens: 1e12, goodput: 0.8, price_per_hour: 2.5 };
        for wrong in [
            Budget { tokens: 0.0, ..budget },
            Budget { goodput: 0.0, ..budget },
            Budget { goodput: 1.1, ..budget },
            Budget { price_per_hour: -1.0, ..budget },
            Budget { tokens: f64::NAN, ..budget },
            Budget { tokens: f64::INFINITY, ..budget },
        ] {
            assert_eq!(wrong.cost(1e6, 16), None, "{wrong:?}");
            assert!(wrong.out_of_range().is_some(), "{wrong:?}");
        }
        assert_eq!(budget.cost(0.0, 16), None);
        assert_eq!(budget.out_of_range(), None);
    }
}
