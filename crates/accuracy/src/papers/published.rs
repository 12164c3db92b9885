//! Published values, and the plans to compare them with.

use std::path::Path;

use api::papers::PublishedValue;
use planner::scenario::PlannerKind;
use serde::Deserialize;

use super::Error;
use super::quantity::Quantity;
use super::studies::Chart;

/// Published figures from a single paper.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPaper {
    /// Stable identifier.
    pub id: String,
    /// Display name.
    pub title: String,
    /// Authors and year.
    pub source: String,
    /// Tables and figures.
    pub sets: Vec<PublishedSet>,
}

/// A table or figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSet {
    /// Stable identifier within the paper.
    pub id: String,
    /// Table or figure number in the paper.
    pub place: String,
    /// Description.
    pub title: String,
    /// True if batches come from synthetic distributions.
    #[serde(default, rename = "synthetic")]
    pub is_synthetic: bool,
    /// True if the scenarios take too long to plan for several seeds.
    #[serde(default)]
    pub one_seed: bool,
    /// Assumptions about details that the paper does not publish.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// Computed curves to store.
    #[serde(default)]
    pub chart: Option<Chart>,
    /// Published values.
    pub figures: Vec<PublishedFigure>,
    /// Published choices.
    #[serde(default)]
    pub choices: Vec<PublishedChoice>,
}

/// A published value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Description of the value.
    pub label: String,
    /// Unit.
    #[serde(default)]
    pub unit: String,
    /// The value. `None` if the paper only plots it or does not compare these cases.
    #[serde(default)]
    pub published: Option<Published>,
    /// Computed quantity to compare with.
    pub quantity: Quantity,
}

/// A published choice of a planner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedChoice {
    /// Description of the choice.
    pub label: String,
    /// The choice in the notation of Planscope. `None` if the paper does not give it.
    #[serde(default)]
    pub published: Option<String>,
    /// Plan with the computed choice: the strategy or the groups of the first iteration, or the layout.
    pub plan: PlanReference,
}

/// A number, or minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// A single number.
    One(f64),
    /// Minimum and maximum.
    Range([f64; 2]),
}

impl From<Published> for PublishedValue {
    fn from(published: Published) -> Self {
        match published {
            Published::One(value) => Self { from: value, to: value },
            Published::Range([from, to]) => Self { from, to },
        }
    }
}

/// A plan from one planner for a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanReference {
    /// Scenario path in `examples`, without file extension.
    pub scenario: String,
    /// Planner.
    pub planner: PlannerKind,
}

impl PublishedPaper {
    /// Parses a file with published figures.
    ///
    /// # Errors
    /// Returns an error with the path for an unreadable or invalid file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::File { path: path.to_owned(), error })?;
        serde_json::from_str(&text).map_err(|error| Error::Published { path: path.to_owned(), error })
    }
}
