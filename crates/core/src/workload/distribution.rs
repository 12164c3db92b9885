//! Integer distributions, used for token lengths or images per sample.

mod real;

pub use real::RealDistribution;

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// An integer distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// A constant.
    Constant {
        /// Value.
        value: u32,
    },
    /// Uniform distribution on the integers in the range.
    Uniform {
        /// Minimum.
        min: u32,
        /// Maximum.
        max: u32,
    },
    /// Log-normal: ln(x) is normal around ln(median), redrawn outside the range. Long-tailed like
    /// document and video lengths.
    LogNormal {
        /// Median before truncation to the range.
        median: f64,
        /// Standard deviation of ln(x).
        sigma: f64,
        /// Minimum.
        min: u32,
        /// Maximum.
        max: u32,
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
        values: Vec<u32>,
    },
}

impl Distribution {
    /// Returns the constant 0.
    pub const fn none() -> Self {
        Self::Constant { value: 0 }
    }

    /// Returns whether all values are zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Constant { value } => *value == 0,
            Self::Uniform { max, .. } | Self::LogNormal { max, .. } => *max == 0,
            Self::Histogram { edges, .. } => edges.last().is_none_or(|&edge| edge < 0.5),
            Self::Values { values } => values.iter().all(|&value| value == 0),
        }
    }

    /// Draws a value.
    pub fn draw(&self, random: &mut Random) -> u32 {
        match self {
            Self::Constant { value } => *value,
            Self::Uniform { min, max } => min + random.below(u64::from(max - min) + 1) as u32,
            Self::LogNormal { median, sigma, min, max } => draw_log_normal(random, *median, *sigma, *min, *max),
            Self::Histogram { edges, counts } => draw_histogram(random, edges, counts),
            Self::Values { values } => values[random.below(values.len() as u64) as usize],
        }
    }
}

/// Redraws outside the range, and clamps after 64 rejected draws, so that a range far from the
/// median cannot cause an endless loop.
fn draw_log_normal(random: &mut Random, median: f64, sigma: f64, min: u32, max: u32) -> u32 {
    let mut value = median;
    for _ in 0..64 {
        value = median * libm::exp(sigma * random.normal());
        if value + 0.5 >= f64::from(min) && value < f64::from(max) + 0.5 {
            break;
        }
    }
    (value + 0.5).clamp(f64::from(min), f64::from(max)) as u32
}

/// Draws a bin by weight, then a position inside it, rounded to an integer.
pub fn draw_histogram(random: &mut Random, edges: &[f64], counts: &[f64]) -> u32 {
    (histogram_position(random, edges, counts) + 0.5) as u32
}

/// Draws a bin by weight, then a position inside it.
fn histogram_position(random: &mut Random, edges: &[f64], counts: &[f64]) -> f64 {
    let total: f64 = counts.iter().sum();
    let mut left = random.unit() * total;
    let fraction = random.unit();
    let mut bin = 0;
    for (index, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
        bin = index;
        if left < count {
            break;
        }
        left -= count;
    }
    edges[bin] + fraction * (edges[bin + 1] - edges[bin])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(distribution: &Distribution, count: usize) -> Vec<u32> {
        let mut random = Random::new(11, 0);
        (0..count).map(|_| distribution.draw(&mut random)).collect()
    }

    #[test]
    fn a_uniform_draw_reaches_both_ends_and_nothing_else() {
        let values = drawn(&Distribution::Uniform { min: 3, max: 6 }, 400);
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&3), Some(&6)));
    }

    #[test]
    fn bins_are_drawn_by_weight_and_equal_edges_are_a_single_value() {
        let histogram = Distribution::Histogram { edges: vec![5.0, 5.0, 10.0, 20.0], counts: vec![3.0, 0.0, 1.0] };
        let values = drawn(&histogram, 4000);
        let fives = values.iter().filter(|&&value| value == 5).count();
        assert!((2850..3150).contains(&fives), "three of four: {fives}");
        assert!(values.iter().all(|&value| value == 5 || (10..=20).contains(&value)));
    }

    #[test]
    fn a_log_normal_draw_keeps_its_median_and_its_range() {
        let mut values = drawn(&Distribution::LogNormal { median: 900.0, sigma: 1.0, min: 16, max: 100_000 }, 4001);
        values.sort_unstable();
        assert!((830..970).contains(&values[2000]), "median {}", values[2000]);
        let far = drawn(&Distribution::LogNormal { median: 1.0, sigma: 0.1, min: 500, max: 600 }, 3);
        assert_eq!(far, [500, 500, 500]);
    }
}
