//! Errors for configuration files.

use super::{MAX_BYTES, MAX_KEYS};

/// Error that rejects a configuration file. The message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobConfigError {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file exceeds the size limit.
    #[error("the file has more than {MAX_BYTES} bytes; configuration files are smaller")]
    TooLarge,
    /// The file exceeds the key limit.
    #[error("the file has more than {MAX_KEYS} keys; configuration files have fewer")]
    TooManyKeys,
    #[error("the file is not UTF-8 text (byte {byte} is not)")]
    NotText {
        /// Offset of the first invalid byte.
        byte: usize,
    },
    /// JSON or TOML syntax error.
    #[error("the file is not valid {format}: {detail}")]
    Malformed {
        format: &'static str,
        /// Parser message.
        detail: String,
    },
    /// Unknown format.
    #[error(
        "the file is no configuration that Planscope reads; it reads scenario JSON files, config.json of Hugging Face \
         models, torchtitan job files (TOML), Megatron-LM arguments and YAML, DeepSpeed JSON, files or command lines of \
         transformers, TRL, accelerate, LLaMA-Factory, axolotl, ms-swift and OpenRLHF, and files of GPT-NeoX, nanotron, \
         llm-foundry, OLMo, NeMo, Megatron-Bridge, MaxText, Primus, verl, litgpt, torchtune, Levanter, OLMo-core and MLPerf"
    )]
    Unknown,
    /// A framework whose files are not read.
    #[error("the file is one of {framework}, which Planscope does not read; {remedy}")]
    Unsupported {
        framework: &'static str,
        /// What to give instead.
        remedy: &'static str,
    },
    /// The file states neither a model nor its sizes.
    #[error("the {format} {} no model; add config.json of the model, or a job file that names it", states(format))]
    NoModel {
        /// Format of the file.
        format: &'static str,
    },
    /// The files belong to different frameworks.
    #[error("the files have different formats, {first} and {second}; give the files of one framework")]
    TwoFrameworks {
        /// Format of the first file.
        first: &'static str,
        /// Format of a later file.
        second: &'static str,
    },
    /// A command has arguments of different frameworks.
    #[error(
        "the command has arguments of {} ({}) and of {} ({}); give the command of one framework",
        first.0, first.1, second.0, second.1
    )]
    MixedCommand {
        /// Framework and argument.
        first: (&'static str, String),
        /// Another framework and its argument.
        second: (&'static str, String),
    },
    /// One of several files cannot be read.
    #[error("{file}: {error}")]
    InFile {
        /// Name of the file.
        file: String,
        error: Box<Self>,
    },
    /// The model is not supported in a scenario.
    #[error(
        "the file describes {model}, which is no causal language model; a scenario has causal language models and encoders in front of \
         them"
    )]
    OtherModel { model: String },
    /// Invalid value.
    #[error("{key}: {detail}")]
    Value {
        key: String,
        /// The problem and the expected value.
        detail: String,
    },
    /// A required model setting is missing.
    #[error("the file does not state {setting} ({keys})")]
    Missing {
        setting: &'static str,
        /// Keys that may contain the setting.
        keys: String,
    },
}

/// Returns the verb after the name of a format.
pub(super) fn states(format: &str) -> &'static str {
    let is_plural = ["arguments", "Arguments", "overrides"].iter().any(|end| format.ends_with(end));
    if is_plural { "state" } else { "states" }
}

/// Returns why a model of this name is not read.
pub(super) fn unknown_model(name: &str) -> String {
    match name.split_whitespace().next().filter(|word| word.contains('$')) {
        Some(word) => {
            let word: String = word.chars().take(60).collect();
            format!(
                "the value {word} has a variable that the file does not set; replace it by the name of the model, or add its \
                 config.json"
            )
        }
        None => "the sizes of this model are not known; add its config.json".to_owned(),
    }
}
