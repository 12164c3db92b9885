//! Why a configuration file is refused.

use super::{MAX_BYTES, MAX_KEYS};

/// Why a configuration file is refused, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobConfigError {
    /// No text.
    #[error("the file is empty")]
    Empty,
    /// More bytes than are read.
    #[error("the file has more than {MAX_BYTES} bytes; configuration files are smaller")]
    TooLarge,
    /// More keys than are read.
    #[error("the file has more than {MAX_KEYS} keys; configuration files have fewer")]
    TooManyKeys,
    /// Not UTF-8.
    #[error("the file is not UTF-8 text (byte {byte} is not)")]
    NotText {
        /// The first byte that is not part of a character.
        byte: usize,
    },
    /// JSON or TOML with a syntax error.
    #[error("the file is not valid {format}: {detail}")]
    Malformed {
        /// "JSON" or "TOML".
        format: &'static str,
        /// The parser's message.
        detail: String,
    },
    /// No known format.
    #[error(
        "the file is no configuration that Planscope reads; it reads scenario JSON files, config.json of Hugging Face \
         models, torchtitan job files (TOML) and Megatron-LM arguments"
    )]
    Unknown,
    /// A model that no scenario holds.
    #[error(
        "the file describes {model}, which is no causal language model; a scenario has causal language models and encoders in front of \
         them"
    )]
    OtherModel {
        /// The model.
        model: String,
    },
    /// A value that cannot be used.
    #[error("{key}: {detail}")]
    Value {
        /// Key of the file.
        key: String,
        /// What is wrong, and what would be right.
        detail: String,
    },
    /// A setting without which there is no model.
    #[error("the file does not state {setting} ({keys})")]
    Missing {
        /// The setting.
        setting: &'static str,
        /// Keys that could hold it.
        keys: String,
    },
}
