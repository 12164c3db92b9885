//! Converts configuration files of training jobs to scenarios.
//!
//! | format | detected by |
//! |---|---|
//! | Hugging Face `config.json` | a JSON object with `model_type`, `architectures` or model dimensions |
//! | torchtitan job file | TOML with a `[model]` section that names a model, or arguments such as `--training.steps` |
//! | Megatron-LM arguments | `--num-layers`, `--tensor-model-parallel-size` or a related option in a script, an argument list or a test's YAML |
//! | Megatron-LM YAML (`--yaml-cfg`) | sections `language_model` and `model_parallel` |
//! | DeepSpeed JSON | `zero_optimization` or keys of the batch such as `train_micro_batch_size_per_gpu` |
//! | `TrainingArguments` (JSON, YAML) | `per_device_train_batch_size` or two related keys |
//! | accelerate (YAML, JSON) | `distributed_type`, `compute_environment` or `num_processes` with `num_machines` |
//! | LLaMA-Factory (YAML, JSON) | `model_name_or_path` or `model` with `finetuning_type`, `cutoff_len`, `template` or `dist_config` |
//! | axolotl (YAML) | `base_model` with `sequence_len`, `micro_batch_size` or `datasets` |
//! | GPT-NeoX (YAML) | `pipe_parallel_size` or `model_parallel_size` with `num_layers` or a related key |
//! | nanotron (YAML) | `parallelism.dp`, or `model.model_config` with `tokens` |
//! | llm-foundry (YAML) | `model.name` with `global_train_batch_size` or `device_train_microbatch_size` |
//! | OLMo (YAML) | the same without `model.name`, and `model.d_model` |
//! | `NeMo` (YAML) | `model.micro_batch_size`, or `trainer.devices` with `model` |
//! | Megatron-Bridge (YAML) | `train.micro_batch_size`, `train.global_batch_size` or `train.train_iters` |
//! | `MaxText` (YAML) | `base_emb_dim`, or `model_name` with `per_device_batch_size` or a related key |
//! | Primus (YAML) | `modules.pre_trainer.framework` or `modules.post_trainer.framework` |
//! | TRL, ms-swift, OpenRLHF, LLaMA-Factory, `TrainingArguments` (command lines) | the program, or `--per_device_train_batch_size` |
//! | litgpt (YAML) | `train.micro_batch_size` or `train.global_batch_size` with `checkpoint_dir`, `model_name` or `devices` |
//! | torchtune (YAML) | `model._component_` |
//! | Levanter (YAML) | `trainer.train_batch_size` with `model.type` or `trainer.mp` |
//! | `FlagScale` (YAML), as Megatron-LM arguments | sections `system` and `model` with `num_layers` |
//! | OLMo-core (JSON) | `model.d_model` with `train_module.rank_microbatch_size` or `data_loader.global_batch_size` |
//! | torchtune, litgpt, `MaxText`, Megatron-Bridge, `NeMo`, llm-foundry, Levanter, nanotron (command lines) | the program |
//! | SkyPilot tasks, Kubernetes workloads (YAML) | `run` with `resources` or `num_nodes`; `apiVersion` with `kind`; they contain a command |
//! | verl (overrides in a script, YAML) | `actor_rollout_ref`, or `model.partial_pretrain` with `data` |
//! | `MLPerf` variables | `DGXNNODES` with `MINIBS` or a tensor-parallel degree |
//!
//! A file defines only part of a scenario. [`JobConfig`] lists the settings that were read with
//! their keys, assumed values, model or job features that a scenario cannot represent, and unknown
//! keys. Values of unknown keys are never returned because launch scripts contain secrets.
//! [`read_files`] reads the files of one job together, for example `config.json` and DeepSpeed JSON.

mod adapted_layers;
mod arguments;
mod bridge_performance;
mod bridge_python;
mod bridge_recipes;
mod document;
mod error;
mod family;
mod file_name;
mod flagscale;
mod format;
mod gpt_neox;
mod interpolation;
mod keys;
mod launcher;
mod layer_kinds;
mod levanter;
mod litgpt;
mod llm_foundry;
mod maxtext;
mod megatron;
mod megatron_attention;
mod megatron_ignored;
mod megatron_layers;
mod megatron_parts;
mod megatron_refusals;
mod megatron_stages;
mod megatron_vision;
mod megatron_yaml;
mod mixed;
mod mlperf;
mod model_config;
mod model_names;
mod nanotron;
mod nemo;
mod nemo_ignored;
mod olmo;
mod olmo_core;
mod optimizer;
mod places;
mod predicted_tokens;
mod primus;
mod programs;
mod python_value;
mod remarks;
mod scenario;
mod settings;
mod similar;
mod slime;
mod tokenizers;
mod torchtitan;
mod torchtune;
mod transformers;
mod unmodelled;
mod unsupported;
mod verl;
mod vision_names;
mod without_effect;
mod wrapper;
mod yaml;

pub use error::JobConfigError;
pub use format::ConfigFormat;
pub use keys::ReadSetting;
pub use places::{Notation, Place, Places, places};
pub use remarks::{refusals, remarks};

use planner::model::Model;
use planner::scenario::Scenario;

use keys::Keys;
use settings::Settings;

/// Maximum file size in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum number of keys in a file.
pub const MAX_KEYS: usize = 5_000;

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
    /// Why the framework does not start the job, one sentence each.
    pub refusals: Vec<String>,
    /// Unknown keys.
    pub unknown: Vec<String>,
}

/// Returns the device preset that the name of a product states, for example `a100` or `NVIDIA-H100-80GB-HBM3`.
pub fn device_preset(name: &str) -> Option<&'static str> {
    launcher::preset(name)
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
    build(&[name], vec![recognise(bytes)?], hardware)
}

/// Reads the files of one job together, for example `config.json`, DeepSpeed JSON and `TrainingArguments`. The name of
/// the first file becomes part of the scenario title, and the format is that of the job file.
///
/// # Errors
/// As for [`read`]; or the files belong to different frameworks, or contradict each other.
pub fn read_files(files: &[(&str, &[u8])], hardware: Hardware) -> Result<JobConfig, JobConfigError> {
    let recognised = files.iter().map(|(name, bytes)| {
        recognise(bytes).map_err(|error| match files {
            [_] => error,
            _ => JobConfigError::InFile { file: (*name).to_owned(), error: Box::new(error) },
        })
    });
    let documents = recognised.collect::<Result<Vec<_>, _>>()?;
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    build(&names, documents, hardware)
}

/// Returns the format of a file.
///
/// # Errors
/// As for [`read`], except for values, which are not read.
pub fn format(bytes: &[u8]) -> Result<ConfigFormat, JobConfigError> {
    recognise(bytes).map(|(format, _)| format)
}

fn recognise(bytes: &[u8]) -> Result<(ConfigFormat, Keys), JobConfigError> {
    if bytes.len() > MAX_BYTES {
        return Err(JobConfigError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| JobConfigError::NotText { byte: error.valid_up_to() })?;
    format::recognise(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Builds the scenario of the files of one job.
fn build(
    names: &[&str],
    documents: Vec<(ConfigFormat, Keys)>,
    hardware: Hardware,
) -> Result<JobConfig, JobConfigError> {
    let name = names.first().ok_or(JobConfigError::Empty)?;
    for (index, (first, _)) in documents.iter().enumerate() {
        if let Some((second, _)) = documents[index + 1..].iter().find(|(second, _)| !first.is_compatible(*second)) {
            return Err(JobConfigError::TwoFrameworks { first: first.name(), second: second.name() });
        }
    }
    let (models, jobs): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|(format, _)| *format == ConfigFormat::HuggingFaceModel);
    let mut model_keys = None;
    for (_, keys) in models {
        if model_keys.replace(keys).is_some() {
            let detail = "two files state a model; give one of them".to_owned();
            return Err(JobConfigError::Value { key: "config.json".to_owned(), detail });
        }
    }
    let mut stated = model_keys.as_mut().map(model_config::read).transpose()?;
    let (format, mut keys) = join(jobs, names)?;
    if format == ConfigFormat::Torchtune {
        torchtune::name_recipe(names, &mut keys);
    }
    let mut settings =
        read_settings(format, &mut keys, &mut stated).map_err(|error| in_words_of_file(format, &keys, error))?;
    if (keys.has(programs::COMMAND) && !format.is_transformers()) || format == ConfigFormat::Verl {
        launcher::complete(&mut keys, &mut settings)?;
        keys.ignore(|key| key.starts_with(['$', '#']));
    }
    let mut model = model(format, &mut settings, stated, &mut keys)?;
    if let Some(layers) = settings.layers {
        model.set_layers(layers);
    }
    predicted_tokens::complete(format, &mut model, &mut keys, &settings);
    if format.is_transformers() || format == ConfigFormat::Verl {
        transformers::complete_parts(&mut model, &mut keys, &settings);
    }
    if format.is_transformers() || format == ConfigFormat::HuggingFaceModel {
        transformers::complete_model(&model, model_keys.as_mut(), &mut keys, &mut settings);
    }
    if let Some(model_keys) = model_keys {
        keys.absorb_file(model_keys);
    }
    if let Some((name, pixels)) = &settings.image_pixels {
        model_config::limit_images(&mut model, (name, *pixels), &mut keys);
    }
    file_name::read(names, hardware, &mut settings, &mut keys);
    settings.device = hardware.preset.or(settings.device);
    // Accumulation is explicit in the files of a trainer, so the devices of the caller must fit it.
    let is_checked = hardware.devices.is_none() || settings.accumulation.is_some();
    if hardware.devices.is_some() {
        (settings.devices, settings.nodes) = (hardware.devices, None);
        settings.devices_per_node = None;
    }
    match settings.check_batch().map_err(|error| in_words_of_file(format, &keys, error)) {
        Err(error) if is_checked => return Err(error),
        Err(error) => keys.refuse(format!("{error}.")),
        Ok(()) => {}
    }
    let scenario = scenario::build(name, model, (format, &settings), &mut keys);
    let is_fp16 = keys.assumed().iter().any(|sentence| sentence.starts_with("fp16 is read as bf16"));
    for remark in remarks(&scenario).into_iter().filter(|remark| !(is_fp16 && remark.contains(" has no bf16."))) {
        keys.assume(remark);
    }
    for refusal in refusals(&scenario) {
        keys.refuse(refusal);
    }
    Ok(keys.finish(format, scenario))
}

/// Replaces the name of a key in an error by that in the file.
fn in_words_of_file(format: ConfigFormat, keys: &Keys, error: JobConfigError) -> JobConfigError {
    match error {
        JobConfigError::Value { key, detail } => JobConfigError::Value { key: keys.file_name(&key), detail },
        JobConfigError::Missing { setting, keys: names } => {
            let of = |name: &str| match format {
                ConfigFormat::Nemo | ConfigFormat::MegatronBridge => {
                    format!("model.{}", name.trim_start_matches("--").replace('-', "_"))
                }
                ConfigFormat::MegatronYaml | ConfigFormat::Primus => name.trim_start_matches("--").replace('-', "_"),
                _ => name.to_owned(),
            };
            let names: Vec<String> = names.split(", ").map(of).collect();
            JobConfigError::Missing { setting, keys: names.join(", ") }
        }
        other => other,
    }
}

/// Joins the files of a job. Without files, the format is that of the model.
fn join(jobs: Vec<(ConfigFormat, Keys)>, names: &[&str]) -> Result<(ConfigFormat, Keys), JobConfigError> {
    if !jobs.is_empty() && jobs.iter().all(|(format, _)| *format == ConfigFormat::Torchtitan) {
        let keys = torchtitan::join(jobs.into_iter().map(|(_, keys)| keys).collect(), names)?;
        return Ok((ConfigFormat::Torchtitan, keys));
    }
    if !jobs.is_empty() && jobs.iter().all(|(format, _)| format.is_transformers()) {
        return transformers::join(jobs, names);
    }
    let (commands, mut jobs): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|(_, keys)| keys.has(programs::COMMAND));
    if let Some(format) = commands.first().map(|(format, _)| *format) {
        let has_file = !jobs.is_empty();
        let mut keys = Keys::default();
        for (_, file) in jobs {
            keys.adopt_file("", file)?;
        }
        let commands = commands.into_iter().map(|(_, keys)| keys).collect();
        programs::apply(format, &mut keys, commands, (has_file, names))?;
        return Ok((format, keys));
    }
    // The main file precedes the DeepSpeed file of Megatron-DeepSpeed.
    jobs.sort_by_key(|(format, _)| *format == ConfigFormat::Deepspeed);
    let mut jobs = jobs.into_iter();
    let Some((format, mut keys)) = jobs.next() else { return Ok((ConfigFormat::HuggingFaceModel, Keys::default())) };
    for (other, other_keys) in jobs {
        keys.adopt_file(if other == ConfigFormat::Deepspeed { "deepspeed." } else { "" }, other_keys)?;
    }
    Ok((format, keys))
}

/// Reads the settings of a job. `stated` is the model of `config.json` with its longest sequence. A job that uses it for a
/// size that is not known by name takes it.
fn read_settings(
    format: ConfigFormat,
    keys: &mut Keys,
    stated: &mut Option<(Model, Option<u32>)>,
) -> Result<Settings, JobConfigError> {
    match format {
        ConfigFormat::HuggingFaceModel => Ok(Settings::default()),
        ConfigFormat::Megatron => {
            let settings = megatron::read(keys)?;
            megatron_refusals::report(keys, &settings);
            Ok(settings)
        }
        ConfigFormat::MegatronYaml => megatron_yaml::read(keys),
        ConfigFormat::Torchtitan => torchtitan::read(keys, stated),
        ConfigFormat::Deepspeed
        | ConfigFormat::TrainingArguments
        | ConfigFormat::Accelerate
        | ConfigFormat::LlamaFactory
        | ConfigFormat::Axolotl
        | ConfigFormat::Trl
        | ConfigFormat::Swift
        | ConfigFormat::OpenRlhf => transformers::read(format, keys),
        ConfigFormat::GptNeox => gpt_neox::read(keys),
        ConfigFormat::Nanotron => nanotron::read(keys),
        ConfigFormat::LlmFoundry => llm_foundry::read(keys),
        ConfigFormat::Olmo => olmo::read(keys),
        ConfigFormat::Nemo => nemo::read_nemo(keys),
        ConfigFormat::MegatronBridge => nemo::read_bridge(keys),
        ConfigFormat::Maxtext => maxtext::read(keys),
        ConfigFormat::Primus => primus::read(keys),
        ConfigFormat::Verl => verl::read(keys),
        ConfigFormat::Litgpt => litgpt::read(keys),
        ConfigFormat::Torchtune => torchtune::read(keys),
        ConfigFormat::Levanter => levanter::read(keys),
        ConfigFormat::OlmoCore => olmo_core::read(keys),
        ConfigFormat::Mlperf => mlperf::read(keys),
    }
}

/// Returns the model of the job: its own, that of `config.json` (`stated`), or one known by name.
fn model(
    format: ConfigFormat,
    settings: &mut Settings,
    stated: Option<(Model, Option<u32>)>,
    keys: &mut Keys,
) -> Result<Model, JobConfigError> {
    if let Some((model, max_positions)) = stated {
        if settings.model.is_some() {
            let verb = error::states(format.name());
            let detail = format!("the {} {verb} the sizes of its model; leave out config.json", format.name());
            return Err(JobConfigError::Value { key: "config.json".to_owned(), detail });
        }
        settings.max_positions = max_positions;
        return Ok(model);
    }
    if let Some(model) = settings.model.take() {
        return Ok(model);
    }
    let Some((key, name)) = &settings.model_name else { return Err(JobConfigError::NoModel { format: format.name() }) };
    let key = keys.file_name(key);
    let model = model_names::find(name, keys)?
        .ok_or_else(|| JobConfigError::Value { key: key.clone(), detail: error::unknown_model(name) })?;
    keys.assume(format!("The sizes of the model are those of {}, known by its name ({key}).", model.name));
    Ok(model)
}

/// Returns a published model by its name on the Hugging Face hub, for example `meta-llama/Llama-3.1-8B`. `None` if its
/// sizes are not known.
pub(crate) fn published_model(name: &str) -> Option<Model> {
    model_names::find(name, &mut Keys::default()).ok().flatten()
}

#[cfg(test)]
mod tests;
