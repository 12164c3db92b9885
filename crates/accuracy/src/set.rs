//! A published table: rows, assumptions, prediction errors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistics::Statistics;
use crate::step::Step;

/// A published table with predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// Stable identifier. Equals the file name if the table has a separate file.
    pub id: &'static str,
    /// Display name.
    pub title: &'static str,
    /// Publication.
    pub source: &'static str,
    /// Unit of the measured values.
    pub unit: &'static str,
    /// Error goal.
    pub goal: Goal,
    /// Best other tool for the same rows.
    pub peer: &'static str,
    /// Assumptions about unpublished details.
    pub assumptions: Vec<&'static str>,
    /// Rows in file order.
    pub rows: Vec<Row>,
    /// Alternative interpretations of the measurements.
    pub variants: Vec<Variant>,
    /// Findings beyond the errors, as sentences.
    pub findings: Vec<String>,
    /// Level of detail in the report.
    pub listing: Listing,
}

/// Unit of a set with different units per row. Such a set has no plot.
pub const MIXED: &str = "mixed";

/// Error goal in percent of the measured values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Mean absolute error.
    pub mean: f64,
    /// Maximum absolute error. `None` if only the mean has a goal.
    pub largest: Option<f64>,
}

impl Goal {
    /// True if the errors meet the goal.
    pub fn is_met(self, statistics: &Statistics) -> bool {
        statistics.mean_abs_pct <= self.mean && self.largest.is_none_or(|max_error| statistics.max_abs_pct <= max_error)
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mean {} %", self.mean)?;
        self.largest.map_or(Ok(()), |max_error| write!(f, ", largest {max_error} %"))
    }
}

/// Level of detail in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// All rows.
    Rows,
    /// Only groups of rows.
    Groups,
}

/// A measurement and its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Description of the measurement.
    pub label: String,
    /// Measured value.
    pub measured: f64,
    /// Predicted value.
    pub predicted: f64,
    /// Chosen layout or other information.
    pub note: String,
    /// Properties for grouping residuals.
    pub facets: Vec<Facet>,
    /// The configuration, for the dashboard. Empty: the facets state it.
    pub setup: Vec<Facet>,
    /// Reason for exclusion from the statistics. `None` if the row counts.
    pub left_out: Option<&'static str>,
    /// The predicted step, for the model of errors. `None` for other quantities.
    pub step: Option<Step>,
}

/// Property of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facet {
    /// Property name, for example "TP".
    pub name: &'static str,
    /// Property value.
    pub value: String,
}

impl Facet {
    /// Creates a property with a value.
    pub fn new(name: &'static str, value: impl std::fmt::Display) -> Self {
        Self { name, value: value.to_string() }
    }
}

/// Alternative interpretation of the measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Description of the difference.
    pub title: String,
    /// Error statistics.
    pub statistics: Statistics,
}

/// Rows with the same property value.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Property value.
    pub value: String,
    /// Error statistics of the rows.
    pub statistics: Statistics,
}

impl Row {
    /// Returns predicted / measured - 1.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// Returns measured and predicted value.
    pub fn pair(&self) -> (f64, f64) {
        (self.measured, self.predicted)
    }
}

impl Set {
    /// Returns the error statistics over the counted rows.
    pub fn statistics(&self) -> Statistics {
        let pairs: Vec<_> = self.counted().map(Row::pair).collect();
        Statistics::from_pairs(&pairs)
    }

    /// Returns the rows included in the statistics.
    pub fn counted(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.left_out.is_none())
    }

    /// Groups the counted rows by each property with more than one value. Numeric values are sorted
    /// numerically.
    pub fn groups(&self) -> Vec<(&'static str, Vec<Group>)> {
        let mut names: Vec<&'static str> = Vec::new();
        for facet in self.rows.iter().flat_map(|row| &row.facets) {
            if !names.contains(&facet.name) {
                names.push(facet.name);
            }
        }
        names.into_iter().map(|name| (name, self.grouped_by(name))).filter(|(_, groups)| groups.len() > 1).collect()
    }

    fn grouped_by(&self, name: &str) -> Vec<Group> {
        let mut pairs: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for row in self.counted() {
            for facet in row.facets.iter().filter(|facet| facet.name == name) {
                pairs.entry(&facet.value).or_default().push(row.pair());
            }
        }
        let mut groups: Vec<Group> = pairs
            .into_iter()
            .map(|(value, pairs)| Group { value: value.to_owned(), statistics: Statistics::from_pairs(&pairs) })
            .collect();
        let number = |group: &Group| group.value.parse::<f64>().unwrap_or(f64::INFINITY);
        groups.sort_by(|a, b| number(a).total_cmp(&number(b)));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tensor: u32, predicted: f64, left_out: Option<&'static str>) -> Row {
        let facets = vec![Facet::new("TP", tensor), Facet::new("GPU", "A100")];
        Row {
            label: String::new(),
            measured: 1.0,
            predicted,
            note: String::new(),
            facets,
            setup: vec![],
            left_out,
            step: None,
        }
    }

    #[test]
    fn groups_are_sorted_numerically_without_uncounted_rows() {
        let set = Set {
            id: "",
            title: "",
            source: "",
            unit: "s",
            goal: Goal { mean: 1.0, largest: None },
            peer: "",
            assumptions: vec![],
            rows: vec![row(16, 1.1, None), row(2, 0.9, None), row(2, 1.1, None), row(4, 9.0, Some("used in a fit"))],
            variants: vec![],
            findings: vec![],
            listing: Listing::Rows,
        };
        let groups = set.groups();
        assert_eq!(groups.len(), 1, "a property with one value is no group");
        let values: Vec<_> = groups[0].1.iter().map(|group| (group.value.as_str(), group.statistics.count)).collect();
        assert_eq!(values, [("2", 2), ("16", 1)]);
        assert_eq!(set.statistics().count, 3);
    }
}
