//! Configuration files of training jobs, read into scenarios.

use crate::planner::scenario::Scenario;
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
    /// YAML file of Megatron-LM.
    MegatronYaml,
    /// Job file of torchtitan.
    Torchtitan,
    /// JSON configuration of DeepSpeed, which contains no model.
    Deepspeed,
    /// Hugging Face `TrainingArguments`, as JSON or YAML.
    TrainingArguments,
    /// Configuration of Hugging Face accelerate, which contains no model.
    Accelerate,
    /// Job file of LLaMA-Factory.
    LlamaFactory,
    /// Job file of axolotl.
    Axolotl,
    /// Command line of TRL.
    Trl,
    /// Command line of ms-swift, also with Megatron-LM.
    Swift,
    /// Command line of OpenRLHF.
    OpenRlhf,
    /// Job file of GPT-NeoX.
    GptNeox,
    /// Job file of nanotron.
    Nanotron,
    /// Job file of llm-foundry.
    LlmFoundry,
    /// Job file of OLMo.
    Olmo,
    /// Job file of NeMo 1 or of its launcher.
    Nemo,
    /// Overrides of a Megatron-Bridge recipe.
    MegatronBridge,
    /// Job or model file of MaxText.
    Maxtext,
    /// Experiment file of Primus.
    Primus,
    /// Overrides or YAML of verl.
    Verl,
    /// Job file of litgpt.
    Litgpt,
    /// Job file of torchtune.
    Torchtune,
    /// Job file of Levanter.
    Levanter,
    /// Saved configuration of OLMo-core.
    OlmoCore,
    /// Variables of an MLPerf Training submission.
    Mlperf,
}

impl ConfigFormat {
    /// Display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::HuggingFaceModel => "Hugging Face config.json",
            Self::Megatron => "Megatron-LM arguments",
            Self::MegatronYaml => "Megatron-LM YAML file",
            Self::Torchtitan => "torchtitan job file",
            Self::Deepspeed => "DeepSpeed configuration",
            Self::TrainingArguments => "Hugging Face TrainingArguments",
            Self::Accelerate => "accelerate configuration",
            Self::LlamaFactory => "LLaMA-Factory job file",
            Self::Axolotl => "axolotl job file",
            Self::Trl => "TRL command line",
            Self::Swift => "ms-swift command line",
            Self::OpenRlhf => "OpenRLHF command line",
            Self::GptNeox => "GPT-NeoX job file",
            Self::Nanotron => "nanotron job file",
            Self::LlmFoundry => "llm-foundry job file",
            Self::Olmo => "OLMo job file",
            Self::Nemo => "NeMo job file",
            Self::MegatronBridge => "Megatron-Bridge overrides",
            Self::Maxtext => "MaxText configuration",
            Self::Primus => "Primus experiment file",
            Self::Verl => "verl configuration",
            Self::Litgpt => "litgpt job file",
            Self::Torchtune => "torchtune job file",
            Self::Levanter => "Levanter job file",
            Self::OlmoCore => "OLMo-core configuration",
            Self::Mlperf => "MLPerf variable file",
        }
    }

    /// Name of the framework that runs the job. `None`: the file describes only a model.
    pub const fn framework(self) -> Option<&'static str> {
        match self {
            Self::HuggingFaceModel => None,
            Self::Megatron | Self::MegatronYaml => Some("Megatron-LM"),
            Self::Torchtitan => Some("torchtitan"),
            Self::Deepspeed => Some("DeepSpeed"),
            Self::TrainingArguments => Some("Hugging Face Trainer"),
            Self::Accelerate => Some("accelerate"),
            Self::LlamaFactory => Some("LLaMA-Factory"),
            Self::Axolotl => Some("axolotl"),
            Self::Trl => Some("TRL"),
            Self::Swift => Some("ms-swift"),
            Self::OpenRlhf => Some("OpenRLHF"),
            Self::GptNeox => Some("GPT-NeoX"),
            Self::Nanotron => Some("nanotron"),
            Self::LlmFoundry => Some("llm-foundry"),
            Self::Olmo => Some("OLMo"),
            Self::Nemo => Some("NeMo"),
            Self::MegatronBridge => Some("Megatron-Bridge"),
            Self::Maxtext => Some("MaxText"),
            Self::Primus => Some("Primus"),
            Self::Verl => Some("verl"),
            Self::Litgpt => Some("litgpt"),
            Self::Torchtune => Some("torchtune"),
            Self::Levanter => Some("Levanter"),
            Self::OlmoCore => Some("OLMo-core"),
            Self::Mlperf => Some("MLPerf"),
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
    /// Why the framework does not start the job, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Unrecognized keys. Their values are not returned.
    pub unknown: Vec<String>,
}
