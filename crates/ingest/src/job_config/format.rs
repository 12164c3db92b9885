//! Formats of configuration files and their detection.

use planner::training::Framework;
use serde::{Deserialize, Serialize};

use super::keys::Keys;
use super::{
    JobConfigError, arguments, bridge_performance, bridge_python, document, flagscale, gpt_neox, interpolation,
    levanter, litgpt, llm_foundry, maxtext, megatron, megatron_yaml, mixed, mlperf, model_config, nanotron, nemo, olmo,
    olmo_core, primus, programs, torchtitan, torchtune, transformers, unsupported, verl, wrapper, yaml,
};

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigFormat {
    /// Hugging Face `config.json`, which contains only the architecture.
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
    pub const fn name(self) -> &'static str {
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

    /// Identifier, as in serialised reports.
    pub const fn id(self) -> &'static str {
        match self {
            Self::HuggingFaceModel => "hugging_face_model",
            Self::Megatron => "megatron",
            Self::MegatronYaml => "megatron_yaml",
            Self::Torchtitan => "torchtitan",
            Self::Deepspeed => "deepspeed",
            Self::TrainingArguments => "training_arguments",
            Self::Accelerate => "accelerate",
            Self::LlamaFactory => "llama_factory",
            Self::Axolotl => "axolotl",
            Self::Trl => "trl",
            Self::Swift => "swift",
            Self::OpenRlhf => "open_rlhf",
            Self::GptNeox => "gpt_neox",
            Self::Nanotron => "nanotron",
            Self::LlmFoundry => "llm_foundry",
            Self::Olmo => "olmo",
            Self::Nemo => "nemo",
            Self::MegatronBridge => "megatron_bridge",
            Self::Maxtext => "maxtext",
            Self::Primus => "primus",
            Self::Verl => "verl",
            Self::Litgpt => "litgpt",
            Self::Torchtune => "torchtune",
            Self::Levanter => "levanter",
            Self::OlmoCore => "olmo_core",
            Self::Mlperf => "mlperf",
        }
    }

    /// Name of the framework in texts.
    pub(super) const fn framework_name(self) -> &'static str {
        match self {
            Self::HuggingFaceModel | Self::Deepspeed | Self::TrainingArguments | Self::Accelerate => "Hugging Face",
            Self::Megatron | Self::MegatronYaml => "Megatron-LM",
            Self::Torchtitan => "torchtitan",
            Self::LlamaFactory => "LLaMA-Factory",
            Self::Axolotl => "axolotl",
            Self::Trl => "TRL",
            Self::Swift => "ms-swift",
            Self::OpenRlhf => "OpenRLHF",
            Self::GptNeox => "GPT-NeoX",
            Self::Nanotron => "nanotron",
            Self::LlmFoundry => "llm-foundry",
            Self::Olmo => "OLMo",
            Self::Nemo => "NeMo",
            Self::MegatronBridge => "Megatron-Bridge",
            Self::Maxtext => "MaxText",
            Self::Primus => "Primus",
            Self::Verl => "verl",
            Self::Litgpt => "litgpt",
            Self::Torchtune => "torchtune",
            Self::Levanter => "Levanter",
            Self::OlmoCore => "OLMo-core",
            Self::Mlperf => "MLPerf",
        }
    }

    /// Framework that runs jobs of the format.
    pub(super) const fn framework(self) -> Framework {
        match self {
            Self::HuggingFaceModel
            | Self::Megatron
            | Self::MegatronYaml
            | Self::Nemo
            | Self::MegatronBridge
            | Self::Maxtext
            | Self::Primus
            | Self::Mlperf => Framework::Megatron,
            Self::Torchtitan => Framework::Torchtitan,
            Self::Deepspeed
            | Self::TrainingArguments
            | Self::Accelerate
            | Self::LlamaFactory
            | Self::Axolotl
            | Self::Trl
            | Self::Swift
            | Self::OpenRlhf
            | Self::Verl => Framework::HuggingFace,
            Self::GptNeox => Framework::MegatronDeepspeed,
            Self::Nanotron => Framework::Nanotron,
            Self::LlmFoundry | Self::Olmo | Self::Litgpt | Self::Torchtune | Self::Levanter | Self::OlmoCore => {
                Framework::Fsdp
            }
        }
    }

    /// True for formats that configure the trainer of Hugging Face transformers.
    pub(super) const fn is_transformers(self) -> bool {
        matches!(
            self,
            Self::Deepspeed
                | Self::TrainingArguments
                | Self::Accelerate
                | Self::LlamaFactory
                | Self::Axolotl
                | Self::Trl
                | Self::Swift
                | Self::OpenRlhf
        )
    }

    /// True if one job may have files of both formats.
    pub(super) fn is_compatible(self, other: Self) -> bool {
        let is_part = |format| matches!(format, Self::Deepspeed | Self::Accelerate);
        self == other
            || self == Self::HuggingFaceModel
            || other == Self::HuggingFaceModel
            || (self.is_transformers() && other.is_transformers() && (is_part(self) || is_part(other)))
            // A command and the job file that it names.
            || matches!((self, other), (Self::Swift | Self::Trl, Self::TrainingArguments))
            || matches!((self, other), (Self::TrainingArguments, Self::Swift | Self::Trl))
            // Megatron-DeepSpeed.
            || matches!((self, other), (Self::Megatron, Self::Deepspeed) | (Self::Deepspeed, Self::Megatron))
    }
}

/// Returns whether keys are those of a format.
type Test = fn(&Keys) -> bool;

/// Tests of formats with dotted keys. The first that matches is the format. Job files may contain keys of
/// `config.json`, so they precede it.
const TESTS: [(ConfigFormat, Test); 22] = [
    (ConfigFormat::MegatronYaml, megatron_yaml::is_job),
    (ConfigFormat::Primus, primus::is_job),
    (ConfigFormat::GptNeox, gpt_neox::is_job),
    (ConfigFormat::GptNeox, gpt_neox::is_part),
    (ConfigFormat::Torchtune, torchtune::is_job),
    (ConfigFormat::Litgpt, litgpt::is_job),
    (ConfigFormat::Levanter, levanter::is_job),
    (ConfigFormat::OlmoCore, olmo_core::is_job),
    (ConfigFormat::Verl, verl::is_job),
    (ConfigFormat::Axolotl, transformers::is_axolotl),
    (ConfigFormat::LlamaFactory, transformers::is_llama_factory),
    (ConfigFormat::TrainingArguments, transformers::is_arguments),
    (ConfigFormat::Accelerate, transformers::is_accelerate),
    (ConfigFormat::Deepspeed, transformers::is_deepspeed),
    (ConfigFormat::Nanotron, nanotron::is_job),
    (ConfigFormat::LlmFoundry, llm_foundry::is_job),
    (ConfigFormat::Olmo, olmo::is_job),
    (ConfigFormat::Nemo, nemo::is_nemo),
    (ConfigFormat::MegatronBridge, nemo::is_bridge),
    (ConfigFormat::Maxtext, maxtext::is_configuration),
    (ConfigFormat::HuggingFaceModel, model_config::is_model),
    // The file of FSDP, which has few keys.
    (ConfigFormat::Accelerate, transformers::is_fsdp),
];

fn of_keys(keys: &Keys) -> Option<ConfigFormat> {
    TESTS.into_iter().find(|(_, is)| is(keys)).map(|(format, _)| format)
}

/// Detects the format and parses the keys. A file of a scheduler is read as the command that it contains.
pub(super) fn recognise(text: &str) -> Result<(ConfigFormat, Keys), JobConfigError> {
    if let Some(script) = wrapper::script(text.trim_start())
        && let Ok((format, mut keys)) = of_text(&script.text)
    {
        script.name_directives(&mut keys);
        return Ok((format, keys));
    }
    of_text(text).map_err(|error| match (&error, unsupported::find(text)) {
        (JobConfigError::Unknown | JobConfigError::Malformed { .. }, Some(found)) => found,
        _ => error,
    })
}

fn of_text(text: &str) -> Result<(ConfigFormat, Keys), JobConfigError> {
    let trimmed = text.trim_start();
    if trimmed.is_empty() {
        return Err(JobConfigError::Empty);
    }
    // Files of GPT-NeoX begin with comments.
    let braces = yaml::without_first_comments(trimmed);
    if braces.starts_with('{') {
        let trimmed = braces;
        let keys = match document::json(trimmed) {
            // YAML in braces. Files of GPT-NeoX have keys in quotes; others are JSON with an error.
            Err(error) => match yaml::keys(trimmed) {
                Ok(keys) if gpt_neox::is_job(&keys) || gpt_neox::is_part(&keys) => keys,
                Ok(mut keys) if yaml::has_plain_key(trimmed) && of_keys(&keys).is_some() => {
                    interpolation::resolve(&mut keys);
                    keys
                }
                _ => return Err(error),
            },
            Ok(keys) => keys,
        };
        return of_keys(&keys).map(|format| (format, keys)).ok_or(JobConfigError::Unknown);
    }
    if let Some(keys) = bridge_python::recognise(text)? {
        return Ok((ConfigFormat::MegatronBridge, keys));
    }
    // Arguments are tried first: a script with a line `a = "b"` is not TOML, and a job file has no
    // `--num-layers`.
    let mut keys = arguments::read(text)?;
    if transformers::is_megatron_command(text) {
        return transformers::read_command(ConfigFormat::Swift, keys, text).map(|keys| (ConfigFormat::Swift, keys));
    }
    if let Some(keys) = bridge_performance::recognise_row(text) {
        return Ok((ConfigFormat::MegatronBridge, keys));
    }
    if let Some(keys) = bridge_performance::recognise(&keys, text)? {
        return Ok((ConfigFormat::MegatronBridge, keys));
    }
    mixed::check(&mut keys, text)?;
    if megatron::is_megatron(&keys) {
        if let Some(model) = megatron::other_model(text) {
            return Err(JobConfigError::OtherModel { model: model.to_owned() });
        }
        return Ok((ConfigFormat::Megatron, keys));
    }
    if mlperf::is_job(&keys) {
        return Ok((ConfigFormat::Mlperf, keys));
    }
    if torchtitan::is_command(&keys, text) {
        return Ok((ConfigFormat::Torchtitan, torchtitan::read_command(keys, text)?));
    }
    if let Some(found) = programs::recognise(&keys, text)? {
        return Ok(found);
    }
    let command = transformers::recognise_command(&keys, text);
    if yaml::is_yaml(trimmed) {
        let document = yaml::keys(trimmed).map(|mut keys| {
            interpolation::resolve(&mut keys);
            if flagscale::is_job(&keys) {
                flagscale::flatten(&mut keys);
                return Some((ConfigFormat::Megatron, keys));
            }
            of_keys(&keys).map(|format| (format, keys))
        });
        // The YAML of a scheduler contains the command.
        match (document, command) {
            (Ok(Some(found)), _) => return Ok(found),
            (_, Some(_)) => keys.assume("Only the command in the YAML is read."),
            (document, None) => return document?.ok_or(JobConfigError::Unknown),
        }
    }
    if verl::is_command(text) {
        verl::add_overrides(&mut keys, text)?;
        if verl::is_job(&keys) {
            return Ok((ConfigFormat::Verl, keys));
        }
    }
    if let Some(format) = command {
        return transformers::read_command(format, keys, text).map(|keys| (format, keys));
    }
    let keys = document::toml(text)?;
    if torchtitan::is_job(&keys) { Ok((ConfigFormat::Torchtitan, keys)) } else { Err(JobConfigError::Unknown) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_those_of_reports() {
        let commands = [ConfigFormat::Trl, ConfigFormat::Swift, ConfigFormat::OpenRlhf];
        let others =
            [ConfigFormat::Megatron, ConfigFormat::Torchtitan, ConfigFormat::Mlperf].into_iter().chain(commands);
        for format in TESTS.map(|(format, _)| format).into_iter().chain(others) {
            assert_eq!(serde_json::to_value(format).unwrap(), format.id());
            assert!(!format.name().is_empty());
        }
    }
}
