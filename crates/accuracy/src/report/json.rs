//! Results as JSON, for the dashboard and for comparison with later measurements.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Accuracy;
use crate::certainty::Evaluation;
use crate::choice::{Choice, of_set};
use crate::set::{Facet, Goal, Listing, Row, Set, Variant};
use crate::statistics::Statistics;

/// Content of docs/accuracy.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// Engine version.
    pub engine: String,
    /// One entry per published table.
    pub sets: Vec<DocumentSet>,
    /// Intervals on sets that are left out of the fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Evaluation>,
}

/// A published table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentSet {
    /// Stable identifier.
    pub id: String,
    /// Display name.
    pub title: String,
    /// Publication.
    pub source: String,
    /// Unit of the points. "mixed" if each point has a separate unit in its label.
    pub unit: String,
    /// Error goal.
    pub goal: Goal,
    /// Best other tool for the same rows.
    pub peer: String,
    /// Error statistics of the counted rows.
    pub statistics: Statistics,
    /// Alternative interpretations of the measurements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Assumptions about unpublished details.
    pub assumptions: Vec<String>,
    /// Findings beyond the errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Handwritten analysis from docs/accuracy.md.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remarks: String,
    /// Names of the properties of a point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
    /// Order of the layouts of one model on one cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<DocumentChoice>,
    /// Measured and predicted values of the counted rows.
    pub points: Vec<Point>,
}

/// Layouts of one model on one cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentChoice {
    /// Number of devices.
    pub devices: u32,
    /// Layers of the model.
    pub layers: u32,
    /// Hidden size of the model.
    pub hidden: u32,
    /// Number of layouts.
    pub layouts: u32,
    /// Rank correlation of predicted and measured times; omitted if all times are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spearman: Option<f64>,
    /// Measured time of the layout with the shortest prediction, over the shortest measured time, in percent.
    pub regret_pct: f64,
}

/// A measurement and its prediction, rounded to four significant digits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Description of the measurement. Empty in large sets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Measured value.
    pub measured: f64,
    /// Predicted value.
    pub predicted: f64,
    /// Values of the properties of the set, in their order; empty if the row has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<String>,
}

impl Document {
    /// Builds the document from the results and the remarks by set.
    pub fn from_accuracy(
        accuracy: &Accuracy,
        intervals: Option<Evaluation>,
        remarks: &BTreeMap<String, String>,
    ) -> Self {
        let sets = accuracy.sets.iter().map(|set| DocumentSet::from_set(set, remarks.get(set.id))).collect();
        Self { engine: planner::outcome::ENGINE.to_owned(), sets, intervals }
    }

    /// Serializes with a line per set, so that a diff shows the changed set.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let lines = self.sets.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let engine = serde_json::to_string(&self.engine)?;
        let intervals = match &self.intervals {
            Some(intervals) => format!(",\"intervals\":{}", serde_json::to_string(intervals)?),
            None => String::new(),
        };
        Ok(format!("{{\"engine\":{engine},\"sets\":[\n{}\n]{intervals}}}\n", lines.join(",\n")))
    }
}

impl DocumentSet {
    fn from_set(set: &Set, remarks: Option<&String>) -> Self {
        let properties = properties(set);
        let value = |row: &Row, name: &String| {
            let stated = setup(row).iter().find(|facet| facet.name == *name);
            stated.map(|facet| facet.value.clone()).unwrap_or_default()
        };
        let choice = |choice: Choice| DocumentChoice {
            devices: choice.devices,
            layers: choice.model.0,
            hidden: choice.model.1,
            layouts: choice.layouts as u32,
            spearman: choice.spearman.map(rounded),
            regret_pct: rounded(100.0 * choice.regret),
        };
        let point = |row: &Row| Point {
            properties: properties.iter().map(|name| value(row, name)).collect(),
            label: if set.listing == Listing::Rows { row.label.clone() } else { String::new() },
            measured: rounded(row.measured),
            predicted: rounded(row.predicted),
        };
        let variant =
            |variant: &Variant| Variant { title: variant.title.clone(), statistics: short(variant.statistics) };
        Self {
            id: set.id.to_owned(),
            title: set.title.to_owned(),
            source: set.source.to_owned(),
            unit: set.unit.to_owned(),
            goal: set.goal,
            peer: set.peer.to_owned(),
            statistics: short(set.statistics()),
            variants: set.variants.iter().map(variant).collect(),
            assumptions: set.assumptions.iter().map(ToString::to_string).collect(),
            findings: set.findings.clone(),
            remarks: remarks.cloned().unwrap_or_default(),
            points: set.counted().map(point).collect(),
            choices: if matches!(set.unit, "s" | "ms") {
                of_set(set).into_iter().map(choice).collect()
            } else {
                vec![]
            },
            properties,
        }
    }
}

/// Returns the configuration of a row.
fn setup(row: &Row) -> &[Facet] {
    if row.setup.is_empty() { &row.facets } else { &row.setup }
}

/// Returns the names of the properties that differ between the rows of a set.
fn properties(set: &Set) -> Vec<String> {
    let mut values: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    for facet in set.counted().flat_map(setup) {
        match values.iter_mut().find(|(name, _)| *name == facet.name) {
            Some((_, known)) => drop(known.insert(&facet.value)),
            None => values.push((facet.name, BTreeSet::from([facet.value.as_str()]))),
        }
    }
    values.into_iter().filter(|(_, known)| known.len() > 1).map(|(name, _)| name.to_owned()).collect()
}

fn short(statistics: Statistics) -> Statistics {
    Statistics {
        count: statistics.count,
        mean_abs_pct: rounded(statistics.mean_abs_pct),
        median_abs_pct: rounded(statistics.median_abs_pct),
        p90_abs_pct: rounded(statistics.p90_abs_pct),
        max_abs_pct: rounded(statistics.max_abs_pct),
        bias_pct: rounded(statistics.bias_pct),
        spearman: statistics.spearman.map(rounded),
    }
}

/// Rounds to four significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns sets with only a mean error.
    pub(in crate::report) fn document(means: &[(&str, f64)]) -> Document {
        let set = |(id, mean): &(&str, f64)| DocumentSet {
            id: (*id).to_owned(),
            title: String::new(),
            source: String::new(),
            unit: "s".to_owned(),
            goal: Goal { mean: 5.0, largest: None },
            peer: String::new(),
            statistics: Statistics { mean_abs_pct: *mean, ..Statistics::default() },
            variants: vec![],
            assumptions: vec![],
            findings: vec![],
            remarks: String::new(),
            properties: vec![],
            choices: vec![],
            points: vec![Point { label: String::new(), measured: 1.0, predicted: 2.0, properties: vec![] }],
        };
        Document { engine: "planscope".to_owned(), sets: means.iter().map(set).collect(), intervals: None }
    }

    #[test]
    fn rounds_to_four_significant_digits() {
        let text = [123_456.0, 0.012_345_6, -1.0, 0.0].map(|value| rounded(value).to_string());
        assert_eq!(text, ["123500", "0.01235", "-1", "0"]);
    }

    #[test]
    fn json_round_trip() {
        let document = document(&[("a", 1.5), ("b", 2.5)]);
        let text = document.to_json().unwrap();
        assert_eq!(text.lines().count(), 4);
        assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document);
    }
}
