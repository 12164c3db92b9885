//! Configuration files of training jobs, read into scenarios.

use planner::scenario::Scenario;
use serde::{Deserialize, Serialize};

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfigFormat {
    /// `config.json` of a Hugging Face model.
    HuggingFaceModel,
    /// Command-line arguments of Megatron-LM or Megatron-DeepSpeed.
    Megatron,
    /// Job file of torchtitan.
    Torchtitan,
}

impl ConfigFormat {
    /// Display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::HuggingFaceModel => "Hugging Face config.json",
            Self::Megatron => "Megatron-LM arguments",
            Self::Torchtitan => "torchtitan job file",
        }
    }
}

/// A setting that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReadSetting {
    /// Key in the file: a path with dots, or an argument.
    pub key: String,
    /// Value in the file.
    pub value: String,
    /// Meaning of the setting, for example "tensor parallelism".
    pub setting: String,
}

/// A configuration file as a scenario, with a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JobConfig {
    /// Format of the file.
    pub format: ConfigFormat,
    /// The scenario. It is neither validated nor stored.
    pub scenario: Scenario,
    /// Settings that were read, in the order of the file.
    pub read: Vec<ReadSetting>,
    /// Values that the file does not state, one sentence each.
    pub assumed: Vec<String>,
    /// Stated properties of the model or job that a scenario cannot represent, one sentence each.
    pub not_modelled: Vec<String>,
    /// Unrecognized keys. Their values are not returned.
    pub unknown: Vec<String>,
}
