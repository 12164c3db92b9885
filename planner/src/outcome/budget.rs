//! Time, device hours and money of a training run with a budget of tokens.

use serde::{Deserialize, Serialize};

/// A budget of tokens and what a device hour costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens to train on, padding not counted.
    pub tokens: f64,
    /// Share of the wall time in which steps that count are computed, above 0 and at most 1.
    pub goodput: f64,
    /// Price of one device for one hour, in any currency.
    pub price_per_hour: f64,
}

/// What a run comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunCost {
    /// Wall time, in days.
    pub days: f64,
    /// Hours of all devices together.
    pub device_hours: f64,
    /// Money, in the currency of the price.
    pub money: f64,
}

impl Budget {
    /// The run on so many devices at so many tokens per second: wall time = tokens / (tokens per second x goodput). `None` where
    /// a figure is not a positive number.
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

    /// 10^12 tokens at 10^6 a second and 80 % goodput: 1.25 x 10^6 s = 347.2 h = 14.47 days; times 16 devices 5,555.6 hours; at 2.50
    /// an hour 13,888.9.
    #[test]
    fn a_run_costs_its_devices_for_its_time() {
        let budget = Budget { tokens: 1e12, goodput: 0.8, price_per_hour: 2.5 };
        let cost = budget.cost(1e6, 16).unwrap();
        assert!((cost.days - 1.25e6 / 86_400.0).abs() < 1e-9);
        assert!((cost.device_hours - 1.25e6 / 3600.0 * 16.0).abs() < 1e-6);
        assert!((cost.money - 13_888.888_888).abs() < 1e-3);
    }

    #[test]
    fn figures_that_are_no_budget_cost_nothing() {
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
        }
        assert_eq!(budget.cost(0.0, 16), None);
    }
}
