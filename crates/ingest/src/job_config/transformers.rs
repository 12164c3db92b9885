//! Files and command lines for the trainer of Hugging Face transformers, alone or together: `TrainingArguments`,
//! LLaMA-Factory, axolotl, TRL, ms-swift or OpenRLHF, with files of DeepSpeed and accelerate.
//!
//! The keys of DeepSpeed have the prefix `deepspeed.` and those of accelerate `accelerate.`; reports leave it out. A
//! setting that several files state has one value.

mod batch;
mod command;
mod fsdp_file;
mod model;
mod precision;
mod programs;
mod sharding;
mod trained_parts;
mod tuning;
mod without_effect;

pub(super) use command::{
    argument, is_megatron as is_megatron_command, read as read_command, recognise as recognise_command,
};
pub(super) use fsdp_file::is_file as is_fsdp;
pub(super) use model::complete as complete_model;
pub(super) use trained_parts::complete as complete_parts;

use planner::training::{AttentionKernel, ContextExchange, Framework, Recompute};

use super::keys::Keys;
use super::settings::{Settings, Sharding};
use super::{ConfigFormat, JobConfigError, optimizer};

const DEEPSPEED: &str = "deepspeed.";
const ACCELERATE: &str = "accelerate.";
/// Key of a command line; its value is the kind of training, for example `dpo`. Reports leave it out.
const COMMAND: &str = "#command";

pub(super) fn is_axolotl(keys: &Keys) -> bool {
    keys.has("base_model") && (keys.has("sequence_len") || keys.has("micro_batch_size") || keys.has("datasets"))
}

pub(super) fn is_llama_factory(keys: &Keys) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| keys.has(name));
    (has(&["model_name_or_path"]) && has(&["finetuning_type", "cutoff_len", "template", "stage"]))
        || (has(&["model"]) && has(&["cutoff_len", "dist_config.name", "train_dataset"]))
}

pub(super) fn is_arguments(keys: &Keys) -> bool {
    let names = [
        "per_device_train_batch_size",
        "gradient_checkpointing",
        "output_dir",
        "num_train_epochs",
        "lr_scheduler_type",
        "optim",
        "fsdp",
    ];
    keys.has("per_device_train_batch_size") || names.iter().filter(|name| keys.has(name)).count() >= 2
}

pub(super) fn is_accelerate(keys: &Keys) -> bool {
    keys.has("distributed_type")
        || keys.has("compute_environment")
        || (keys.has("num_processes") && keys.has("num_machines"))
}

pub(super) fn is_deepspeed(keys: &Keys) -> bool {
    let names = ["train_batch_size", "gradient_accumulation_steps", "gradient_clipping", "steps_per_print"];
    let sections = ["bf16.", "fp16.", "optimizer.params."];
    let count = names.iter().filter(|name| keys.has(name)).count()
        + sections.iter().filter(|section| keys.has_section(section)).count();
    keys.has_section("zero_optimization.") || keys.has("train_micro_batch_size_per_gpu") || count >= 2
}

/// Joins the files of a job. The format of the result is that of the most specific file. `names` are the names of all
/// files.
pub(super) fn join(files: Vec<(ConfigFormat, Keys)>, names: &[&str]) -> Result<(ConfigFormat, Keys), JobConfigError> {
    let mut joined = Keys::default();
    let mut main = ConfigFormat::Deepspeed;
    let (mut commands, mut has_job_file) = (Vec::new(), false);
    for (format, keys) in files {
        let is_command = keys.has(COMMAND);
        let prefix = match format {
            ConfigFormat::Deepspeed => DEEPSPEED,
            ConfigFormat::Accelerate if !is_command && is_accelerate(&keys) => ACCELERATE,
            ConfigFormat::Accelerate if !is_command => fsdp_file::SECTION,
            _ => "",
        };
        let is_general = matches!(format, ConfigFormat::TrainingArguments | ConfigFormat::Accelerate);
        let is_open = matches!(main, ConfigFormat::Deepspeed | ConfigFormat::Accelerate);
        if is_open || (prefix.is_empty() && !is_general) {
            main = format;
        }
        if is_command {
            commands.push(keys);
        } else {
            has_job_file |= prefix.is_empty();
            joined.adopt_file(prefix, keys)?;
        }
    }
    command::apply(&mut joined, commands, (has_job_file, names))?;
    fsdp_file::expand(&mut joined)?;
    Ok((main, joined))
}

/// Reads the settings of a job.
pub(super) fn read(format: ConfigFormat, keys: &mut Keys) -> Result<Settings, JobConfigError> {
    if keys.has(programs::MEGATRON) {
        return programs::read_megatron(keys);
    }
    programs::rename(format, keys);
    let mut settings = Settings { has_layout: true, ..Settings::default() };
    let names: [&'static str; 4] = ["base_model", "model_name_or_path", "model", "llm_path"];
    let name = names.into_iter().find_map(|name| Some((name, keys.text(&[name], "model")?)));
    // ms-swift has a name for answers about itself.
    let own = (format == ConfigFormat::TrainingArguments).then(|| keys.text(&["model_name"], "model")).flatten();
    let name = name.or_else(|| own.map(|own| ("model_name", own)));
    settings.model_name = name;
    settings.sequence = sequence(format, keys)?;
    settings.image_pixels = image_pixels(format, keys)?;
    degrees(format, keys, &mut settings)?;
    // The adapter of LLaMA-Factory for Megatron-LM has its degrees.
    if format == ConfigFormat::LlamaFactory
        && ["tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size"]
            .iter()
            .any(|name| keys.has(name))
    {
        settings.framework = Some(Framework::Megatron);
        let starts =
            ["moe_", "bias_", "apply_rope", "overlap_param", "cross_entropy", "masked_softmax", "transformer_impl"];
        keys.ignore(|key| starts.iter().any(|start| key.starts_with(start)));
    }
    fsdp_file::report(keys);
    let is_fsdp = sharding::read(keys, &mut settings)?;
    batch::read(format, keys, &mut settings)?;
    if is_fsdp {
        sharding::accumulation(keys, &mut settings);
    }
    settings.precision = precision::read(format, keys)?;
    precision::fp8(keys, &mut settings);
    precision::gradients(keys, &mut settings);
    settings.recompute = Some(recompute(format, keys, &mut settings));
    settings.attention = attention(keys);
    let fusing = [
        "torch_compile",
        "use_liger_kernel",
        "enable_liger_kernel",
        "liger_rope",
        "liger_rms_norm",
        "liger_glu_activation",
        "liger_layer_norm",
    ];
    settings.is_compiled = is_any(keys, &fusing, "fused kernels");
    tuning::read(format, keys, &mut settings)?;
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(keys.flag(&["sequence_parallel"], "sequence parallelism").unwrap_or(false));
    optimizer::read_offload(keys, &mut settings)?;
    precision::states(format, keys, &mut settings);
    if format == ConfigFormat::Swift {
        programs::report_swift(keys, &settings);
    }
    programs::report(format, keys);
    keys.ignore(without_effect::is);
    Ok(settings)
}

/// True if one of the switches is on. All of them are read.
fn is_any(keys: &mut Keys, names: &[&str], setting: &'static str) -> bool {
    let switches: Vec<bool> = names.iter().filter_map(|name| keys.flag(&[name], setting)).collect();
    switches.contains(&true)
}

/// Reads the most pixels of an image, with the default of LLaMA-Factory.
fn image_pixels(format: ConfigFormat, keys: &mut Keys) -> Result<Option<(String, u32)>, JobConfigError> {
    const NAMES: [&str; 3] = ["image_max_pixels", "max_pixels", "$MAX_PIXELS"];
    let name = NAMES.into_iter().find(|name| keys.has(name)).map(|name| keys.file_name(name));
    let stated = keys.count(&NAMES, "size of images")?;
    Ok(match (name.zip(stated), format) {
        (None, ConfigFormat::LlamaFactory) => Some(("image_max_pixels (default)".to_owned(), 768 * 768)),
        (stated, _) => stated,
    })
}

fn sequence(format: ConfigFormat, keys: &mut Keys) -> Result<Option<u32>, JobConfigError> {
    if let Some(length) = programs::generated(format, keys)? {
        return Ok(Some(length));
    }
    let names =
        ["sequence_len", "cutoff_len", "max_seq_length", "max_seq_len", "max_length", "block_size", "model_max_length"];
    let stated = keys.agreed_count(&names, "sequence length")?;
    let default = match format {
        ConfigFormat::LlamaFactory => Some(("LLaMA-Factory", 2048)),
        ConfigFormat::Axolotl => Some(("axolotl", 512)),
        ConfigFormat::Trl => Some(("TRL", 1024)),
        ConfigFormat::OpenRlhf => Some(("OpenRLHF", 2048)),
        _ => None,
    };
    if let (None, Some((name, length))) = (stated, default) {
        keys.assume(format!("{name}'s default sequence length is {length} tokens."));
        return Ok(Some(length));
    }
    Ok(stated)
}

/// Reads parallel degrees and devices.
fn degrees(format: ConfigFormat, keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let names = [
        "accelerate.parallelism_config.parallelism_config_tp_size",
        "tensor_parallel_size",
        "tensor_model_parallel_size",
        "deepspeed.tensor_parallel.autotp_size",
        "tp_size",
    ];
    settings.tensor = keys.agreed_count(&names, "tensor parallelism")?;
    settings.pipeline = keys.agreed_count(
        &["pipeline_model_parallel_size", "pipeline_parallel_size", "deepspeed.pipeline.stages"],
        "pipeline parallelism",
    )?;
    settings.chunks = keys.agreed_count(&["virtual_pipeline_model_parallel_size"], "model chunks of a rank")?;
    let ulysses = [
        "accelerate.parallelism_config.parallelism_config_sp_size",
        "deepspeed.sequence_parallel_size",
        "sequence_parallel_size",
    ];
    let ulysses = keys.agreed_count(&ulysses, "context parallelism (Ulysses)")?.filter(|&degree| degree > 1);
    let names = [
        "accelerate.parallelism_config.parallelism_config_cp_size",
        "context_parallel_size",
        "sequence_parallel_degree",
        "cp_size",
    ];
    settings.context = keys.agreed_count(&names, "context parallelism")?;
    let mode = keys.text(&["cp_mode"], "context parallelism").is_some_and(|mode| mode == "ulysses");
    if mode || ulysses.is_some() {
        settings.context_exchange = ContextExchange::AllToAll;
    }
    settings.context = ulysses.or(settings.context);
    let names = ["expert_parallel_size", "expert_model_parallel_size", "ep_size"];
    settings.expert = keys.agreed_count(&names, "expert parallelism")?;
    let sharded = keys.agreed_count(
        &["accelerate.parallelism_config.parallelism_config_dp_shard_size", "dp_shard_size"],
        "sharded data parallelism",
    )?;
    let replicated = keys.agreed_count(
        &["accelerate.parallelism_config.parallelism_config_dp_replicate_size", "dp_replicate_size"],
        "replicated data parallelism",
    )?;
    settings.sharding = replicated.map(Sharding::Copies).or(settings.sharding);
    // axolotl divides the experts over devices that the sharding degree does not count.
    let expert = settings.expert.filter(|_| format == ConfigFormat::Axolotl).unwrap_or(1);
    let replicas = sharded
        .or(replicated)
        .map(|_| sharded.unwrap_or(1).saturating_mul(replicated.unwrap_or(1)).saturating_mul(expert));
    programs::devices(keys, settings)?;
    let processes = keys.agreed_count(&["accelerate.num_processes"], "devices")?;
    let machines = keys.agreed_count(&["accelerate.num_machines"], "nodes")?;
    if let (Some(processes), Some(scheduled)) = (processes, settings.scheduled_devices())
        && processes != scheduled
    {
        keys.assume(format!(
            "{} states {processes} devices, and the script {scheduled} (nodes times devices of a node). The number of \
             processes counts.",
            keys.file_name("accelerate.num_processes")
        ));
    }
    settings.set_processes(("num_processes", processes), machines)?;
    if let (Some(replicas), Some(processes)) = (replicas, processes)
        && replicas.saturating_mul(settings.devices_per_replica()) != processes
    {
        let degrees = settings.devices_per_replica();
        let detail =
            format!("{processes} is not {replicas} x {degrees} (data-parallel replicas, devices of a replica)");
        return Err(JobConfigError::Value { key: "num_processes".to_owned(), detail });
    }
    settings.replicas = replicas;
    Ok(())
}

fn recompute(format: ConfigFormat, keys: &mut Keys, settings: &mut Settings) -> Recompute {
    // The last name is that of InternVL.
    let names = ["gradient_checkpointing", "enable_gradient_checkpointing", "grad_checkpoint"];
    let trainer = keys.text(&names, "recomputation");
    // axolotl: "offload" and "unsloth" recompute and offload the inputs of layers.
    if matches!(trainer.as_deref(), Some("offload" | "unsloth")) {
        settings.activation_offload = 1.0;
    }
    let trainer = trainer.map(|value| !value.trim().eq_ignore_ascii_case("false"));
    let fsdp = [
        "accelerate.fsdp_config.fsdp_activation_checkpointing",
        "fsdp_config.fsdp_activation_checkpointing",
        "fsdp_config.activation_checkpointing",
        "fsdp_activation_checkpointing",
    ];
    let fsdp = is_any(keys, &fsdp, "recomputation");
    let is_off = keys.flag(&["disable_gradient_checkpointing"], "recomputation").unwrap_or(false);
    let granularity = keys.text(&["recompute_granularity"], "recomputation");
    if keys.flag(&["activation_offloading"], "offload").unwrap_or(false) {
        settings.activation_offload = 1.0;
    }
    let deepspeed: Vec<bool> = ["partition_activations", "cpu_checkpointing", "contiguous_memory_optimization"]
        .iter()
        .filter_map(|name| keys.flag(&[&format!("deepspeed.activation_checkpointing.{name}")], "recomputation"))
        .collect();
    if deepspeed.get(1) == Some(&true) {
        settings.activation_offload = 1.0;
    }
    let is_megatron = keys.has("use_distributed_optimizer") || keys.has("tensor_model_parallel_size");
    match granularity.as_deref() {
        Some("full") => return Recompute::Full,
        Some("selective") => return Recompute::Selective,
        _ => {}
    }
    if fsdp || trainer == Some(true) {
        return Recompute::Full;
    }
    if deepspeed.contains(&true) {
        keys.assume(
            "activation_checkpointing of DeepSpeed is read as recomputation of all layers. The model decides it.",
        );
        return Recompute::Full;
    }
    let default = match format {
        ConfigFormat::LlamaFactory if !is_megatron => Some("LLaMA-Factory"),
        ConfigFormat::Trl => Some("TRL"),
        ConfigFormat::Swift => Some("ms-swift"),
        _ => None,
    };
    if let (None, Some(name), false) = (trainer, default, is_off) {
        keys.assume(format!("{name}'s default gradient checkpointing is on: all layers are recomputed."));
        return Recompute::Full;
    }
    if trainer.is_none() && !is_off {
        keys.assume("Gradient checkpointing is not stated. It is read as off, the default.");
    }
    Recompute::None
}

fn attention(keys: &mut Keys) -> Option<AttentionKernel> {
    let kernel =
        keys.text(&["attn_implementation", "flash_attn", "_attn_implementation", "attn_impl"], "attention kernel");
    let flags = ["flash_attention", "sdp_attention", "xformers_attention", "use_flash_attention_2", "use_flash_attn"];
    let is_fused = is_any(keys, &flags, "attention kernel");
    let is_eager = keys.flag(&["eager_attention"], "attention kernel").unwrap_or(false);
    if kernel.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("false")) {
        keys.assume("flash_attn is off: the attention of PyTorch (sdpa), the default of transformers, is read as fused attention.");
        return Some(AttentionKernel::Flash);
    }
    match kernel.as_deref() {
        Some("auto") | None if is_eager => Some(AttentionKernel::Unfused),
        Some("auto") | None => is_fused.then_some(AttentionKernel::Flash),
        Some(name) => Some(self::kernel(name)),
    }
}

/// Returns the attention kernel of a name.
fn kernel(name: &str) -> AttentionKernel {
    match name {
        "eager" | "disabled" => AttentionKernel::Unfused,
        "flash_attention_3" | "fa3" => AttentionKernel::Flash3,
        // Kernels of the hub, for example kernels-community/flash-attn3.
        name if name.contains("flash-attn3") => AttentionKernel::Flash3,
        _ => AttentionKernel::Flash,
    }
}
