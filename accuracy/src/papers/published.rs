//! What a paper published, and which of our plans is held against it.

use std::path::Path;

use api::papers::PublishedValue;
use planner::scenario::PlannerKind;
use serde::Deserialize;

use super::Error;
use super::quantity::Quantity;
use super::studies::Chart;

/// One paper's figures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPaper {
    /// Stable identifier.
    pub id: String,
    /// Shown name.
    pub title: String,
    /// Who wrote it, and when.
    pub source: String,
    /// Its tables and figures.
    pub sets: Vec<PublishedSet>,
}

/// One table or figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSet {
    /// Stable identifier within the paper.
    pub id: String,
    /// Where it stands in the paper.
    pub place: String,
    /// What it shows.
    pub title: String,
    /// Whether batches are drawn from distributions of ours.
    #[serde(default, rename = "synthetic")]
    pub is_synthetic: bool,
    /// What the paper leaves open and is assumed.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// What curves of ours are kept.
    #[serde(default)]
    pub chart: Option<Chart>,
    /// The figures.
    pub figures: Vec<PublishedFigure>,
}

/// One published value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// What it is a value of.
    pub label: String,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// The value; absent where the paper only draws it, or does not compare these.
    #[serde(default)]
    pub published: Option<Published>,
    /// What of ours is held against it.
    pub quantity: Quantity,
}

/// A number, or the smallest and the largest of several.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Published {
    /// One number.
    One(f64),
    /// A range.
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

/// One planner's plan of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanOf {
    /// Path of the scenario below `examples`, without ending.
    pub scenario: String,
    /// The planner.
    pub planner: PlannerKind,
}

impl PublishedPaper {
    /// Reads a file of published figures.
    ///
    /// # Errors
    /// A file that cannot be read or holds something else, named with its path.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::File { path: path.to_owned(), error })?;
        serde_json::from_str(&text).map_err(|error| Error::Published { path: path.to_owned(), error })
    }
}
