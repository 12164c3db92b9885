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
    /// Names of the properties of a point that differ between the rows, for example "TP".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
    /// Order of the layouts of one model on one cluster, and the time that the choice by prediction loses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<AccuracyChoice>,
    /// Measured and predicted values of the evaluated rows.
    pub points: Vec<AccuracyPoint>,
}

/// Layouts of one model on one cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccuracyChoice {
    /// Number of devices.
    pub devices: u32,
    /// Layers of the model.
    pub layers: u32,
    /// Hidden size of the model.
    pub hidden: u32,
    /// Number of layouts.
    pub layouts: u32,
    /// Rank correlation of predicted and measured times. Omitted if all times are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spearman: Option<f64>,
    /// Measured time of the layout with the shortest prediction, over the shortest measured time, in percent.
    pub regret_pct: f64,
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
    /// Values of [`AccuracySet::properties`], in their order. An empty text if the row does not state the property.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
}

impl AccuracyPoint {
    /// Returns predicted / measured - 1.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

impl AccuracyErrors {
    /// Returns the errors of some points, without their rank correlation. `None` if there are none.
    pub fn of(points: &[AccuracyPoint]) -> Option<Self> {
        let mut errors: Vec<f64> = points.iter().map(|point| 100.0 * point.error()).collect();
        let count = u32::try_from(errors.len()).ok().filter(|&count| count > 0)?;
        let mean = |errors: &[f64]| errors.iter().sum::<f64>() / f64::from(count);
        let bias_pct = mean(&errors);
        for error in &mut errors {
            *error = error.abs();
        }
        errors.sort_by(f64::total_cmp);
        let last = errors.len() - 1;
        let quantile = |share: f64| {
            let position = share * last as f64;
            let (below, above) = (errors[position.floor() as usize], errors[position.ceil() as usize]);
            below + (above - below) * position.fract()
        };
        Some(Self {
            count,
            mean_abs_pct: mean(&errors),
            median_abs_pct: quantile(0.5),
            p90_abs_pct: quantile(0.9),
            max_abs_pct: errors[last],
            bias_pct,
            spearman: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_points() {
        let point = |predicted| AccuracyPoint { label: String::new(), measured: 10.0, predicted, properties: vec![] };
        let errors = AccuracyErrors::of(&[point(11.0), point(8.0), point(10.0)]).unwrap();
        let rounded = [errors.mean_abs_pct, errors.median_abs_pct, errors.max_abs_pct, errors.bias_pct].map(f64::round);
        assert_eq!((errors.count, rounded), (3, [10.0, 10.0, 20.0, -3.0]));
        assert_eq!(AccuracyErrors::of(&[]), None);
    }

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
