//! How far predictions are from published measurements: what `cargo xtask accuracy` wrote to docs/accuracy.json.

use serde::{Deserialize, Serialize};

/// The unit of a set whose points have units of their own, named in their labels; it has no chart.
pub const MIXED_UNIT: &str = "mixed";

/// Predictions against published measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Accuracy {
    /// The engine that predicted.
    pub engine: String,
    /// One entry per published table.
    pub sets: Vec<AccuracySet>,
}

/// One published table and what the planner makes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracySet {
    /// Stable identifier.
    pub id: String,
    /// Shown name.
    pub title: String,
    /// Where the measurements were published.
    pub source: String,
    /// Unit of the points; "mixed" where each has its own, named in its label.
    pub unit: String,
    /// What is aimed for.
    pub goal: AccuracyGoal,
    /// The best other tool on the same rows, in words.
    pub peer: String,
    /// Errors of the rows that count.
    pub statistics: AccuracyErrors,
    /// Other readings of the same measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<AccuracyVariant>,
    /// What the publication does not say and is assumed.
    pub assumptions: Vec<String>,
    /// What the rows show beside their errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Analysis written by people; paragraphs are parted by empty lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remarks: String,
    /// Measured and predicted values of the rows that count.
    pub points: Vec<AccuracyPoint>,
}

/// What is aimed for, in per cent of the measured values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyGoal {
    /// Mean absolute error.
    pub mean: f64,
    /// Largest absolute error; absent where the mean alone counts.
    pub largest: Option<f64>,
}

impl AccuracyGoal {
    /// Whether errors are within it.
    pub fn is_met(self, errors: &AccuracyErrors) -> bool {
        errors.mean_abs_pct <= self.mean && self.largest.is_none_or(|largest| errors.max_abs_pct <= largest)
    }
}

/// Errors of the rows of a set, in per cent of the measured value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyErrors {
    /// Rows.
    pub count: u32,
    /// Mean of the absolute errors.
    pub mean_abs_pct: f64,
    /// Median of the absolute errors.
    pub median_abs_pct: f64,
    /// 90th percentile of the absolute errors.
    pub p90_abs_pct: f64,
    /// Largest absolute error.
    pub max_abs_pct: f64,
    /// Mean of the signed errors; positive where predictions are too slow or too large.
    pub bias_pct: f64,
    /// Rank correlation of predicted and measured values; absent where either does not vary.
    pub spearman: Option<f64>,
}

/// Another reading of the same measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyVariant {
    /// What is different.
    pub title: String,
    /// Its errors.
    pub statistics: AccuracyErrors,
}

/// One measurement and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyPoint {
    /// What was measured; empty in large sets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Measured value.
    pub measured: f64,
    /// Predicted value.
    pub predicted: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_by_its_mean_and_where_it_names_one_by_its_largest_error() {
        let errors = |mean_abs_pct, max_abs_pct| AccuracyErrors {
            count: 4,
            mean_abs_pct,
            median_abs_pct: 1.0,
            p90_abs_pct: 1.0,
            max_abs_pct,
            bias_pct: 0.0,
            spearman: None,
        };
        let mean_only = AccuracyGoal { mean: 5.0, largest: None };
        let both = AccuracyGoal { mean: 5.0, largest: Some(10.0) };
        assert!(mean_only.is_met(&errors(5.0, 80.0)) && !mean_only.is_met(&errors(5.1, 5.1)));
        assert!(both.is_met(&errors(4.0, 10.0)) && !both.is_met(&errors(4.0, 10.1)));
    }
}
