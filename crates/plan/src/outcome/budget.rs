//! Time, device hours and cost for a training run with a token budget.

use serde::{Deserialize, Serialize};

/// Token budget and device price.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Training tokens, without padding.
    pub tokens: f64,
    /// Goodput: fraction of wall time spent on useful steps, above 0 and at most 1.
    pub goodput: f64,
    /// Price per device hour, in any currency.
    pub price_per_hour: f64,
}

/// Cost of a training run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunCost {
    /// Wall time in days.
    pub days: f64,
    /// Device hours, summed across all devices.
    pub device_hours: f64,
    /// Cost in the price's currency.
    pub money: f64,
}

impl Budget {
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
        }
        assert_eq!(budget.cost(0.0, 16), None);
    }
}
