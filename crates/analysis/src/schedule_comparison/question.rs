//! Request for the schedule bench: sizes, times, memory and schedules.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use planscope_pipeline::schedule::ScheduleKind;

/// Request schema name.
pub const SCHEMA: &str = "schedule/1";

/// Schedules to compare, including costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ScheduleRequest {
    /// Schema name, "schedule/1".
    pub schema: String,
    /// Pipeline ranks, p.
    pub ranks: u32,
    /// Microbatches, m.
    pub microbatches: u32,
    /// Model chunks per rank, v, for schedules that do not fix them. Default: depends on the
    /// schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u32>,
    /// Microbatches that run through a chunk before the next chunk starts, g, in interleaved
    /// schedules. Default: the number of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Action durations.
    pub times: ActionTimes,
    /// Activation memory per action.
    #[serde(default)]
    pub activations: Activations,
    /// Activation limit per rank, in the same unit as `activations`. The generators for ZB-H1,
    /// ZB-H2 and the dynamic schedule respect it. For other schedules the report states a violation
    /// if they exceed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_cap: Option<f64>,
    /// Schedule kinds to generate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<ScheduleKind>,
    /// Tables to simulate in addition to `kinds`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imported: Vec<ImportedTable>,
}

/// Action durations, in an arbitrary unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ActionTimes {
    /// Value scope: stage or rank.
    #[serde(default)]
    pub per: Per,
    /// Forward per microbatch, F.
    pub forward: PerStage,
    /// Input gradient, I. A full backward has duration I + W.
    pub input_grad: PerStage,
    /// Weight gradient, W.
    pub weight_grad: PerStage,
    /// Send between two ranks.
    #[serde(default)]
    pub communication: f64,
    /// Duration for an overlapped forward and full backward. Default: the sum. If times differ, the
    /// value applies to the mean pair, and other pairs scale in proportion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlapped: Option<f64>,
}

/// Value scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Values per stage, as in the formulas. The full value applies to a chunk.
    #[default]
    Stage,
    /// Values per rank, for the same model under all schedules. Chunks on a rank divide the value
    /// equally.
    Rank,
}

/// Values per microbatch and stage (or rank).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum PerStage {
    /// The same value for all stages and microbatches.
    Equal(f64),
    /// A value per stage, or a single value for all stages.
    Stages(Vec<f64>),
    /// A list per microbatch, indexed by stage.
    Microbatches(Vec<Vec<f64>>),
}

/// Activation memory per action, in an arbitrary unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Activations {
    /// Allocated from the start of a forward to the end of its backward.
    pub forward: PerStage,
    /// Part that a split backward retains between I and W. Default: `forward`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_grad: Option<PerStage>,
}

impl Default for Activations {
    fn default() -> Self {
        Self { forward: PerStage::Equal(1.0), weight_grad: None }
    }
}

/// A schedule table in PyTorch's action format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ImportedTable {
    /// Display name.
    pub name: String,
    /// Row per rank, cell per action: `0F0,0F1,0B0`.
    pub csv: String,
}

/// Implemented by hand, so that error messages name the invalid value and the expected values.
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
    /// Iterates through all values. JSON pointers are relative to this field.
    pub(crate) fn values(&self) -> Box<dyn Iterator<Item = (String, f64)> + '_> {
        match self {
            Self::Equal(value) => Box::new(std::iter::once((String::new(), *value))),
            Self::Stages(list) => Box::new(list.iter().enumerate().map(|(index, value)| (format!("/{index}"), *value))),
            Self::Microbatches(lists) => Box::new(lists.iter().enumerate().flat_map(|(microbatch, list)| {
                list.iter().enumerate().map(move |(index, value)| (format!("/{microbatch}/{index}"), *value))
            })),
        }
    }

    /// Mean value, 0 if empty.
    pub fn mean(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (_, value) in self.values() {
            sum += value;
            count += 1.0;
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// Largest value, at least 0.
    pub(crate) fn max_value(&self) -> f64 {
        self.values().map(|(_, value)| value).fold(0.0, f64::max)
    }
}
