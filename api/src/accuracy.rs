//! Errors of predictions compared with published measurements. `cargo xtask accuracy` writes
//! docs/accuracy.json.

use serde::{Deserialize, Serialize};

/// Unit for sets whose points have different units, given in their labels. Such sets have no chart.
pub const MIXED_UNIT: &str = "mixed";

/// Predictions compared with published measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Accuracy {
    /// Engine version of the predictions.
    pub engine: String,
    /// One entry per published table.
    pub sets: Vec<AccuracySet>,
}

/// A published table with predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracySet {
    /// Stable identifier.
    pub id: String,
    /// Display name.
    pub title: String,
    /// Publication of the measurements.
    pub source: String,
    /// Unit of the points; "mixed" if each point states its own unit in its label.
    pub unit: String,
    /// Target error.
    pub goal: AccuracyGoal,
    /// The best other tool on the same rows, as text.
    pub peer: String,
    /// Errors of the evaluated rows.
    pub statistics: AccuracyErrors,
    /// Alternative interpretations of the same measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<AccuracyVariant>,
    /// Assumptions for values that the publication does not state.
    pub assumptions: Vec<String>,
    /// Further findings about the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Written analysis. Empty lines separate paragraphs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remarks: String,
    /// Measured and predicted values of the evaluated rows.
    pub points: Vec<AccuracyPoint>,
}

/// Target error, in percent of the measured values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyGoal {
    /// Mean absolute error.
    pub mean: f64,
    /// Largest absolute error. Omitted if only the mean has a target.
    pub largest: Option<f64>,
}

impl AccuracyGoal {
    /// Returns whether errors are within the target.
    pub fn is_met(self, errors: &AccuracyErrors) -> bool {
        errors.mean_abs_pct <= self.mean && self.largest.is_none_or(|max_error| errors.max_abs_pct <= max_error)
    }
}

/// Errors of the rows in a set, in percent of the measured value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyErrors {
    /// Number of rows.
    pub count: u32,
    /// Mean of the absolute errors.
    pub mean_abs_pct: f64,
    /// Median of the absolute errors.
    pub median_abs_pct: f64,
    /// 90th percentile of the absolute errors.
    pub p90_abs_pct: f64,
    /// Largest absolute error.
    pub max_abs_pct: f64,
    /// Mean signed error. Positive if predictions are too slow or too large.
    pub bias_pct: f64,
    /// Rank correlation of predicted and measured values. Omitted if either is constant.
    pub spearman: Option<f64>,
}

/// An alternative interpretation of the same measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyVariant {
    /// Description of the difference.
    pub title: String,
    /// Errors under this interpretation.
    pub statistics: AccuracyErrors,
}

/// A measurement and its prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyPoint {
    /// Label of the measurement. Empty in large sets.
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
    fn goal_checks_mean_and_optional_maximum_error() {
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
