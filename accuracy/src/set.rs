//! One published table: its rows, what was assumed, and how far the predictions are off.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistics::Statistics;

/// One published table and what the planner makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// Stable identifier, the name of the file where it has one of its own.
    pub id: &'static str,
    /// Shown name.
    pub title: &'static str,
    /// Where the measurements were published.
    pub source: &'static str,
    /// Unit of the measured values.
    pub unit: &'static str,
    /// What is aimed for.
    pub goal: Goal,
    /// The best other tool on the same rows, in words.
    pub peer: &'static str,
    /// What the publication does not say and is assumed here.
    pub assumptions: Vec<&'static str>,
    /// Rows, in the file's order.
    pub rows: Vec<Row>,
    /// Other readings of the same measurements.
    pub variants: Vec<Variant>,
    /// What the rows show beside their errors, one sentence each.
    pub findings: Vec<String>,
    /// Whether the report lists every row.
    pub listing: Listing,
}

/// The unit of a set whose rows have units of their own; it has no plot.
pub const MIXED: &str = "mixed";

/// What is aimed for, in per cent of the measured values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Mean absolute error.
    pub mean: f64,
    /// Largest absolute error; absent where the mean alone counts.
    pub largest: Option<f64>,
}

impl Goal {
    /// Whether errors are within it.
    pub fn is_met(self, statistics: &Statistics) -> bool {
        statistics.mean_abs_pct <= self.mean && self.largest.is_none_or(|largest| statistics.max_abs_pct <= largest)
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mean {} %", self.mean)?;
        self.largest.map_or(Ok(()), |largest| write!(f, ", largest {largest} %"))
    }
}

/// How much of a set the report lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Every row.
    Rows,
    /// Groups of rows only.
    Groups,
}

/// One measurement and its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What was measured.
    pub label: String,
    /// Measured value.
    pub measured: f64,
    /// Predicted value.
    pub predicted: f64,
    /// Layout chosen, or what else to know.
    pub note: String,
    /// Properties by which residuals are grouped.
    pub facets: Vec<Facet>,
    /// Why it does not count in the set's statistics; absent when it does.
    pub left_out: Option<&'static str>,
}

/// A property of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Facet {
    /// The property, for example "TP".
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl Facet {
    /// A property and its value.
    pub fn new(name: &'static str, value: impl std::fmt::Display) -> Self {
        Self { name, value: value.to_string() }
    }
}

/// Another reading of the same measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// What is different.
    pub title: String,
    /// Its errors.
    pub statistics: Statistics,
}

/// Rows that share a property.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The property's value.
    pub value: String,
    /// Errors of the rows.
    pub statistics: Statistics,
}

impl Row {
    /// Predicted over measured, less one.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// Measured and predicted value.
    pub fn pair(&self) -> (f64, f64) {
        (self.measured, self.predicted)
    }
}

impl Set {
    /// Errors of the rows that count.
    pub fn statistics(&self) -> Statistics {
        let pairs: Vec<_> = self.counted().map(Row::pair).collect();
        Statistics::of(&pairs)
    }

    /// The rows that count in the statistics.
    pub fn counted(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.left_out.is_none())
    }

    /// Rows that count, grouped by each property that takes more than one value; numbers in their own order.
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
            .map(|(value, pairs)| Group { value: value.to_owned(), statistics: Statistics::of(&pairs) })
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
        Row { label: String::new(), measured: 1.0, predicted, note: String::new(), facets, left_out }
    }

    #[test]
    fn groups_are_in_the_order_of_numbers_and_leave_out_what_does_not_count() {
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
