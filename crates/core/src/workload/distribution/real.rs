//! Real distributions for video seconds and text tokens per image.

use serde::{Deserialize, Serialize};

use super::histogram_position;
use crate::random::Random;

/// A distribution on non-negative real numbers. Variants correspond to `Distribution`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum RealDistribution {
    /// A constant.
    Constant {
        /// Value.
        value: f64,
    },
    /// Uniform distribution on the range.
    Uniform {
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
    },
    /// Log-normal: ln(x) is normal around ln(median), redrawn outside the range. Long-tailed like
    /// document and video lengths.
    LogNormal {
        /// Median before truncation to the range.
        median: f64,
        /// Standard deviation of ln(x).
        sigma: f64,
        /// Minimum.
        min: f64,
        /// Maximum.
        max: f64,
    },
    /// Histogram. Values are uniform inside a bin; equal neighbouring edges define a point mass.
    Histogram {
        /// Bin edges in non-decreasing order; length is `counts.len() + 1`.
        edges: Vec<f64>,
        /// Weight per bin.
        counts: Vec<f64>,
    },
    /// Uniform distribution on the listed values.
    Values {
        /// Values.
        values: Vec<f64>,
    },
}

impl RealDistribution {
    /// Returns whether all values are zero.
    pub fn is_zero(&self) -> bool {
        self.max_value() <= 0.0
    }

    /// Returns the maximum value.
    pub fn max_value(&self) -> f64 {
        match self {
            Self::Constant { value } => *value,
            Self::Uniform { max, .. } | Self::LogNormal { max, .. } => *max,
            Self::Histogram { edges, .. } => edges.last().copied().unwrap_or(0.0),
            Self::Values { values } => values.iter().copied().fold(0.0, f64::max),
        }
    }

    /// Draws a value.
    pub fn draw(&self, random: &mut Random) -> f64 {
        match self {
            Self::Constant { value } => *value,
            Self::Uniform { min, max } => min + random.unit() * (max - min),
            Self::LogNormal { median, sigma, min, max } => draw_log_normal(random, *median, *sigma, *min, *max),
            Self::Histogram { edges, counts } => histogram_position(random, edges, counts),
            Self::Values { values } => values[random.below(values.len() as u64) as usize],
        }
    }
}

/// Redraws outside the range, and clamps after 64 rejected draws.
fn draw_log_normal(random: &mut Random, median: f64, sigma: f64, min: f64, max: f64) -> f64 {
    let mut value = median;
    for _ in 0..64 {
        value = median * libm::exp(sigma * random.normal());
        if value >= min && value <= max {
            break;
        }
    }
    value.clamp(min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(distribution: &RealDistribution) -> Vec<f64> {
        let mut random = Random::new(5, 0);
        (0..4001).map(|_| distribution.draw(&mut random)).collect()
    }

    #[test]
    fn fractions_are_drawn_inside_their_range() {
        for (distribution, min, max, mean) in [
            (RealDistribution::Constant { value: 2.5 }, 2.5, 2.5, 2.5),
            (RealDistribution::Uniform { min: 0.5, max: 16.0 }, 0.5, 16.0, 8.25),
            (RealDistribution::Histogram { edges: vec![1.0, 3.0, 3.0], counts: vec![1.0, 1.0] }, 1.0, 3.0, 2.5),
            (RealDistribution::Values { values: vec![0.4, 1.2] }, 0.4, 1.2, 0.8),
        ] {
            let values = drawn(&distribution);
            assert!(values.iter().all(|value| (min..=max).contains(value)), "{distribution:?}");
            let found = values.iter().sum::<f64>() / values.len() as f64;
            assert!((found - mean).abs() < 0.03 * max, "{distribution:?}: {found}");
        }
        assert!(drawn(&RealDistribution::Uniform { min: 0.0, max: 1.0 }).iter().any(|value| value.fract() > 0.0));
    }

    #[test]
    fn a_log_normal_draw_keeps_its_median_and_its_range() {
        let mut values = drawn(&RealDistribution::LogNormal { median: 0.4, sigma: 1.0, min: 0.01, max: 100.0 });
        values.sort_by(f64::total_cmp);
        assert!((0.37..0.43).contains(&values[2000]), "median {}", values[2000]);
        let far = drawn(&RealDistribution::LogNormal { median: 1.0, sigma: 0.1, min: 500.0, max: 600.0 });
        assert!(far.iter().all(|&value| (value - 500.0).abs() < 1e-9));
    }
}
