//! Converts configuration files of training jobs to scenarios.
//!
//! | format | detected by |
//! |---|---|
//! | Hugging Face `config.json` | a JSON object with `model_type`, `architectures` or model dimensions |
//! | torchtitan job file | TOML with a `[model]` section that names a model |
//! | Megatron-LM arguments | `--num-layers`, `--tensor-model-parallel-size` or a related option in a script, an argument list or a test's YAML |
//!
//! A file defines only part of a scenario. [`JobConfig`] lists the settings that were read with
//! their keys, assumed values, model or job features that a scenario cannot represent, and unknown
//! keys. Values of unknown keys are never returned because launch scripts contain secrets.

mod arguments;
mod document;
mod error;
mod family;
mod keys;
mod megatron;
mod model_config;
mod scenario;
mod settings;
mod torchtitan;
mod unmodelled;
mod without_effect;

pub use error::JobConfigError;
pub use keys::ReadSetting;

use planner::scenario::Scenario;
use serde::{Deserialize, Serialize};

use keys::Keys;
use settings::Settings;

/// Maximum file size in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum number of keys in a file.
pub const MAX_KEYS: usize = 5_000;

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigFormat {
    /// Hugging Face `config.json`, which contains only the architecture.
    HuggingFaceModel,
    /// Command-line arguments of Megatron-LM or Megatron-DeepSpeed.
    Megatron,
    /// Job file of torchtitan.
    Torchtitan,
}

/// A scenario read from a configuration file, with a report.
#[derive(Debug, Clone, PartialEq)]
pub struct JobConfig {
    /// Detected format.
    pub format: ConfigFormat,
    /// The scenario. It is not validated: a file may contain contradictory degrees.
    pub scenario: Scenario,
    /// Settings that were read, in file order.
    pub read: Vec<ReadSetting>,
    /// Values assumed because the file does not contain them, one sentence each.
    pub assumed: Vec<String>,
    /// Model or job features that a scenario cannot represent, one sentence each.
    pub not_modelled: Vec<String>,
    /// Unknown keys.
    pub unknown: Vec<String>,
}

/// Reads a configuration file. `name` becomes part of the scenario title.
///
/// # Errors
/// The file is too large, is not text, has an unknown format, or contains an invalid value.
pub fn read(name: &str, bytes: &[u8]) -> Result<JobConfig, JobConfigError> {
    read_on(name, bytes, Hardware::default())
}

/// Devices of a job that replace those of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hardware {
    /// Identifier of a cluster preset, for example `h100`.
    pub preset: Option<&'static str>,
    /// Total number of devices.
    pub devices: Option<u32>,
}

/// Same as [`read`], on the given devices.
///
/// # Errors
/// As for [`read`].
pub fn read_on(name: &str, bytes: &[u8], hardware: Hardware) -> Result<JobConfig, JobConfigError> {
    if bytes.len() > MAX_BYTES {
        return Err(JobConfigError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| JobConfigError::NotText { byte: error.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (format, mut keys) = recognise(text)?;
    let mut settings = match format {
        ConfigFormat::HuggingFaceModel => {
            let (model, max_positions) = model_config::read(&mut keys)?;
            Settings { max_positions, ..Settings::from_model(model) }
        }
        ConfigFormat::Megatron => megatron::read(&mut keys)?,
        ConfigFormat::Torchtitan => torchtitan::read(&mut keys)?,
    };
    settings.device = hardware.preset.or(settings.device);
    if hardware.devices.is_some() {
        (settings.devices, settings.nodes) = (hardware.devices, None);
        settings.devices_per_node = None;
    }
    let scenario = scenario::build(name, settings, &mut keys);
    Ok(keys.finish(format, scenario))
}

/// Detects the format and parses the keys.
fn recognise(text: &str) -> Result<(ConfigFormat, Keys), JobConfigError> {
    let trimmed = text.trim_start();
    if trimmed.is_empty() {
        return Err(JobConfigError::Empty);
    }
    if trimmed.starts_with('{') {
        let keys = document::json(trimmed)?;
        return if model_config::is_model(&keys) {
            Ok((ConfigFormat::HuggingFaceModel, keys))
        } else {
            Err(JobConfigError::Unknown)
        };
    }
    // Arguments are tried first: a script with a line `a = "b"` is not TOML, and a job file has no
    // `--num-layers`.
    let keys = arguments::read(text)?;
    if megatron::is_megatron(&keys) {
        if let Some(model) = megatron::other_model(text) {
            return Err(JobConfigError::OtherModel { model: model.to_owned() });
        }
        return Ok((ConfigFormat::Megatron, keys));
    }
    let keys = document::toml(text)?;
    if torchtitan::is_job(&keys) { Ok((ConfigFormat::Torchtitan, keys)) } else { Err(JobConfigError::Unknown) }
}

#[cfg(test)]
mod tests;
