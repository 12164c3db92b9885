//! The question: sizes, times, memory, and which schedules.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::schedule::ScheduleKind;

/// Name of the question's format.
pub const SCHEMA: &str = "schedule/1";

/// Which schedules to make and compare, and what their actions cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScheduleQuestion {
    /// Format, "schedule/1".
    pub schema: String,
    /// Pipeline ranks, p.
    pub ranks: u32,
    /// Microbatches, m.
    pub microbatches: u32,
    /// Model chunks of a rank, v, in the schedules that leave it open; each has its own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u32>,
    /// Microbatches that run through one chunk before the next, g, in the interleaved schedules; default: the ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// How long actions take.
    pub times: ActionTimes,
    /// What actions hold.
    #[serde(default)]
    pub activations: Activations,
    /// Activations that a rank may hold at once, in the unit of `activations`. ZB-H1, ZB-H2 and the dynamic schedule are
    /// made to stay within it; the others say whether they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_cap: Option<f64>,
    /// Schedules to make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<ScheduleKind>,
    /// Tables to run beside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imported: Vec<ImportedTable>,
}

/// How long actions take, in any one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ActionTimes {
    /// What the values are those of.
    #[serde(default)]
    pub per: Per,
    /// Forward of one microbatch, F.
    pub forward: PerStage,
    /// Gradient of the input, I. A full backward takes I and W.
    pub input_grad: PerStage,
    /// Gradient of the weights, W.
    pub weight_grad: PerStage,
    /// Send between two ranks.
    #[serde(default)]
    pub communication: f64,
    /// A forward and a full backward that run overlapped, in place of the sum of both. With unequal times: those of mean
    /// length; others take the same share of their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlapped: Option<f64>,
}

/// What values are those of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// One stage, as formulas count: the chunks of a rank take that long each.
    #[default]
    Stage,
    /// One rank, the same model under every schedule: the chunks of a rank share it equally.
    Rank,
}

/// A value for every microbatch and stage (or rank).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum PerStage {
    /// The same everywhere.
    Equal(f64),
    /// One for each stage, or one for all.
    Stages(Vec<f64>),
    /// One such list for each microbatch.
    Microbatches(Vec<Vec<f64>>),
}

/// What actions hold, in any one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Activations {
    /// Kept from the start of a forward to the end of its backward.
    pub forward: PerStage,
    /// The part of it that a split backward keeps between I and W; all of it where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_grad: Option<PerStage>,
}

impl Default for Activations {
    fn default() -> Self {
        Self { forward: PerStage::Equal(1.0), weight_grad: None }
    }
}

/// A table in the torch action grammar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ImportedTable {
    /// Name shown to people.
    pub name: String,
    /// One row per rank, one cell per action: `0F0,0F1,0B0`.
    pub csv: String,
}

/// By hand, to say which value is wrong and what would be right.
impl<'de> Deserialize<'de> for PerStage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn number(value: &Value) -> Option<f64> {
            value.as_f64()
        }
        let value = Value::deserialize(deserializer)?;
        let wrong =
            || D::Error::custom("must be a number, a list of numbers by stage, or a list of such by microbatch");
        match &value {
            Value::Number(_) => number(&value).map(Self::Equal).ok_or_else(wrong),
            Value::Array(list) if list.iter().all(Value::is_number) => {
                list.iter().map(number).collect::<Option<_>>().map(Self::Stages).ok_or_else(wrong)
            }
            Value::Array(list) => {
                let row = |row: &Value| row.as_array()?.iter().map(number).collect::<Option<Vec<f64>>>();
                list.iter().map(row).collect::<Option<_>>().map(Self::Microbatches).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

impl PerStage {
    /// All values, with the pointer to each below that of the whole.
    pub(super) fn values(&self) -> Box<dyn Iterator<Item = (String, f64)> + '_> {
        match self {
            Self::Equal(value) => Box::new(std::iter::once((String::new(), *value))),
            Self::Stages(list) => Box::new(list.iter().enumerate().map(|(index, value)| (format!("/{index}"), *value))),
            Self::Microbatches(lists) => Box::new(lists.iter().enumerate().flat_map(|(microbatch, list)| {
                list.iter().enumerate().map(move |(index, value)| (format!("/{microbatch}/{index}"), *value))
            })),
        }
    }

    /// Mean of all values, 0 of none.
    pub(super) fn mean(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (_, value) in self.values() {
            sum += value;
            count += 1.0;
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// The largest value.
    pub(super) fn largest(&self) -> f64 {
        self.values().map(|(_, value)| value).fold(0.0, f64::max)
    }
}
