//! Distributions of a whole number: token lengths, image counts.

use serde::{Deserialize, Serialize};

/// A distribution over whole numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Always the same.
    Constant {
        /// The value.
        value: u32,
    },
    /// Every whole number of the range with equal probability.
    Uniform {
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// ln(x) normal around ln(median), drawn again outside the range; long-tailed, as document and video
    /// lengths are.
    LogNormal {
        /// Median of the distribution before it is cut to the range.
        median: f64,
        /// Standard deviation of ln(x).
        sigma: f64,
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// Bins with counts; inside a bin values are uniform, and equal neighbouring edges are a point mass.
    Histogram {
        /// Edges of the bins, one more than counts, never falling.
        edges: Vec<f64>,
        /// Weight of each bin.
        counts: Vec<f64>,
    },
    /// Each listed value with equal probability.
    Values {
        /// The values.
        values: Vec<u32>,
    },
}
