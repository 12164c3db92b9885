//! Fields of a scenario as settings of configuration files. Every format has a table.

mod gpt_neox;
mod levanter;
mod litgpt;
mod llm_foundry;
mod maxtext;
mod megatron;
mod megatron_yaml;
mod nanotron;
mod nemo;
mod olmo;
mod olmo_core;
mod open_rlhf;
mod primus;
mod swift;
mod torchtitan;
mod torchtune;
mod transformers;
mod verl;

use api::job_config::ConfigFormat;
use planner::scenario::Scenario;
use serde_json::Value;

use super::edits::Job;
use super::expected::{SCHEDULE, Target};

/// A setting of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// Keys with this meaning: dotted paths, or names of arguments. All keys that the files state change.
    pub(super) keys: Vec<String>,
    /// New value. Null and, for arguments, false take the setting away.
    pub(super) value: Value,
    /// True if the first possible key is added when the files state none.
    pub(super) is_added: bool,
}

impl Setting {
    /// A setting that is added if no file states it.
    fn set(keys: &[&str], value: impl Into<Value>) -> Self {
        Self { is_added: true, ..Self::if_stated(keys, value) }
    }

    /// A setting that changes only if a file states it.
    fn if_stated(keys: &[&str], value: impl Into<Value>) -> Self {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        Self { keys, value: value.into(), is_added: false }
    }
}

/// Returns the settings that give a field of the scenario its value; `None` if the format has none. A field is a JSON
/// pointer, or [`super::expected::REPLICAS`].
pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    if field == SCHEDULE {
        return schedule(job.format);
    }
    // The settings of offloaded parameters include the optimizer.
    if field == "/training/optimizer_offload" && target.scenario.training.offloads_parameters() {
        return Some(Vec::new());
    }
    match job.format {
        ConfigFormat::Megatron => megatron::settings(job, target, field),
        ConfigFormat::MegatronYaml => megatron_yaml::settings(target, field),
        ConfigFormat::Torchtitan => torchtitan::settings(job, target, field),
        ConfigFormat::Deepspeed
        | ConfigFormat::TrainingArguments
        | ConfigFormat::Accelerate
        | ConfigFormat::LlamaFactory
        | ConfigFormat::Axolotl
        | ConfigFormat::Trl => transformers::settings(job, target, field),
        ConfigFormat::Swift => swift::settings(job, target, field),
        ConfigFormat::OpenRlhf => open_rlhf::settings(job, target, field),
        ConfigFormat::GptNeox => gpt_neox::settings(target, field),
        ConfigFormat::Nanotron => nanotron::settings(target, field),
        ConfigFormat::LlmFoundry => llm_foundry::settings(target, field),
        ConfigFormat::Olmo => olmo::settings(target, field),
        ConfigFormat::Nemo => nemo::settings(job, target, field),
        ConfigFormat::MegatronBridge => nemo::bridge_settings(target, field),
        ConfigFormat::Maxtext => maxtext::settings(job, target, field),
        ConfigFormat::Primus => primus::settings(job, target, field),
        ConfigFormat::Verl => verl::settings(job, target, field),
        ConfigFormat::Litgpt => litgpt::settings(target, field),
        ConfigFormat::Torchtune => torchtune::settings(target, field),
        ConfigFormat::Levanter => levanter::settings(target, field),
        ConfigFormat::OlmoCore => olmo_core::settings(target, field),
        ConfigFormat::HuggingFaceModel | ConfigFormat::Mlperf => None,
    }
}

/// Returns the setting of interleaved 1F1B. Megatron-LM interleaves if there are chunks.
fn schedule(format: ConfigFormat) -> Option<Vec<Setting>> {
    match format {
        ConfigFormat::Torchtitan => {
            let key = "parallelism.pipeline_parallel_schedule";
            let of_2024 = "experimental.pipeline_parallel_schedule";
            Some(vec![Setting::set(&[key, of_2024], "Interleaved1F1B")])
        }
        ConfigFormat::Megatron
        | ConfigFormat::MegatronYaml
        | ConfigFormat::Nemo
        | ConfigFormat::MegatronBridge
        | ConfigFormat::Primus
        | ConfigFormat::Verl
        | ConfigFormat::Swift => Some(Vec::new()),
        _ => None,
    }
}

/// Returns true if a job can have settings for changes: its format has a table, and its files state a layout.
pub(super) fn has_settings(format: ConfigFormat, scenario: &Scenario) -> bool {
    !matches!(format, ConfigFormat::HuggingFaceModel | ConfigFormat::Mlperf) && scenario.layout.tensor.is_some()
}

/// Returns a value as a word without quotes.
pub(super) fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the sharding strategy of FSDP for a ZeRO stage.
fn fsdp_strategy(stage: u32) -> Option<&'static str> {
    match stage {
        0 => Some("NO_SHARD"),
        2 => Some("SHARD_GRAD_OP"),
        3 => Some("FULL_SHARD"),
        _ => None,
    }
}
