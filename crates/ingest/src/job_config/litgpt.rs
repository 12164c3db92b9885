//! litgpt job files (YAML) of pretraining and fine-tuning.

use planner::model::{Adapters, Model};
use planner::training::{AttentionKernel, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, NODE, Settings, Sharding};
use super::{JobConfigError, model_config, optimizer, unmodelled, without_effect};

/// Sections with the sizes of a model.
const MODELS: [&str; 2] = ["model_config.", "model."];

pub(super) fn is_job(keys: &Keys) -> bool {
    let is_batch = ["micro_batch_size", "global_batch_size"].iter().any(|name| keys.has(&format!("train.{name}")));
    let names = ["checkpoint_dir", "initial_checkpoint_dir", "model_name", "tokenizer_dir", "out_dir", "model.n_layer"];
    is_batch && names.iter().any(|name| keys.has(name))
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let mut settings = Settings { has_layout: true, ..Settings::default() };
    let is_tuned = keys.has("checkpoint_dir");
    let section = MODELS.into_iter().find(|section| keys.has(&format!("{section}n_layer")));
    if let Some(section) = section {
        settings.model = Some(model(keys, section)?);
    } else {
        let names: [&'static str; 5] =
            ["model_name", "model_config.name", "model.name", "checkpoint_dir", "initial_checkpoint_dir"];
        settings.model_name = names.into_iter().find_map(|name| Some((name, keys.text(&[name], "model")?)));
    }
    settings.nodes = Some(keys.count(&["num_nodes"], "nodes")?.unwrap_or(1));
    let devices = keys.peek("devices").is_some_and(|value| value.trim() != "auto");
    settings.devices_per_node = if devices { keys.count(&["devices"], "devices of a node")? } else { None };
    if settings.devices_per_node.is_none() {
        keys.ignore(|key| key == "devices");
        // Fine-tuning has one device by default, and pretraining all devices of the node.
        if is_tuned && !keys.has("devices") {
            keys.assume("litgpt's default of fine-tuning is 1 device.");
            settings.devices_per_node = Some(1);
        } else {
            keys.assume("litgpt uses all devices of a node. They are read as 8.");
            settings.devices_per_node = Some(NODE);
        }
    }
    settings.sequence = keys.count(&["train.max_seq_length"], "sequence length")?;
    let (global, microbatch) = if is_tuned { (16, 1) } else { (512, 4) };
    let mut stated = |name: &str, setting, default| {
        let count = keys.count(&[&format!("train.{name}")], setting)?;
        if count.is_none() {
            keys.assume(format!("litgpt's default of {name} is {default}."));
        }
        Ok::<_, JobConfigError>(count.unwrap_or(default))
    };
    settings.batch = Batch::Global(stated("global_batch_size", "global batch", global)?);
    settings.microbatch = Some(stated("micro_batch_size", "sequences of a microbatch", microbatch)?);
    settings.batch_key = Some("train.global_batch_size");
    precision(keys, &mut settings);
    memory(keys, &mut settings, is_tuned);
    adapters(keys, &mut settings)?;
    if let Some(name) = keys.text(&["optimizer.class_path", "optimizer"], "optimizer") {
        optimizer::set(&name, keys, &mut settings);
    }
    settings.attention = Some(AttentionKernel::Flash);
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(false);
    keys.ignore(is_without_effect);
    Ok(settings)
}

/// Reads a model whose sizes the file states. Its keys are those of `config.json`, except for some.
fn model(keys: &mut Keys, prefix: &str) -> Result<Model, JobConfigError> {
    let mut section = keys.section(prefix);
    let name = section.text(&["name"], "name").unwrap_or_else(|| "litgpt model".to_owned());
    let mlp = section.text(&["mlp_class_name"], "gated MLP").unwrap_or_default();
    section.text(&["norm_class_name"], "norms");
    section.rename(|key| match key {
        "n_query_groups" => Some("num_key_value_heads".to_owned()),
        "head_size" => Some("head_dim".to_owned()),
        "vocab_size" => Some("tokenizer_size".to_owned()),
        "n_expert" => Some("num_experts".to_owned()),
        "n_expert_per_token" => Some("num_experts_per_tok".to_owned()),
        "parallel_residual" => Some("use_parallel_residual".to_owned()),
        _ => None,
    });
    section.relabel(prefix);
    let kind = if mlp.contains("LLaMA") || mlp.contains("Gemma") { "llama" } else { "gpt_neox" };
    if mlp.is_empty() {
        section.assume("litgpt's default MLP has no gate.");
    }
    let module = model_config::language_model(&mut section, Some(kind), (None, false), &name)?;
    unmodelled::report(&mut section);
    section.ignore(|_| true);
    keys.replace_section(prefix, section);
    Ok(Model { name, modules: vec![module] })
}

fn precision(keys: &mut Keys, settings: &mut Settings) {
    let precision = keys.text(&["precision"], "precision").unwrap_or_else(|| {
        keys.assume("litgpt's default precision is bf16-mixed.");
        "bf16-mixed".to_owned()
    });
    settings.precision = Some(if precision.starts_with("32") { Precision::Fp32 } else { Precision::Bf16 });
    if precision.ends_with("-true") && !precision.starts_with("32") {
        settings.set_pure_bf16();
    }
    if precision.starts_with("16") {
        keys.assume("fp16 is read as bf16: both have the same size and speed.");
    }
}

/// Sets the sharding and the recomputation, which litgpt's programs fix.
fn memory(keys: &mut Keys, settings: &mut Settings, is_tuned: bool) {
    let is_single = settings.devices_per_node == Some(1) && settings.nodes == Some(1);
    settings.zero = Some(if is_single { 0 } else { 3 });
    let is_recomputed = is_tuned && !is_single;
    settings.recompute = Some(if is_recomputed { Recompute::Full } else { Recompute::None });
    settings.is_compiled = !is_tuned;
    match (is_single, is_tuned) {
        (true, _) => {}
        (false, true) => keys.assume("litgpt's fine-tuning shards all states (FSDP) and recomputes all layers."),
        (false, false) => keys.assume(
            "litgpt's pretraining shards all states (FSDP) within nodes, compiles the model and recomputes no layers.",
        ),
    }
    if !is_tuned && settings.nodes > Some(1) {
        settings.sharding = Some(Sharding::WithinNode);
    }
}

fn adapters(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let quantized = keys.text(&["quantize"], "quantized weights").unwrap_or_default();
    let bits = match quantized.as_str() {
        "" => None,
        kind if kind.contains("int8") => Some(8),
        _ => Some(4),
    };
    let rank = keys.count(&["lora_r"], "rank of the adapters")?;
    let mlp = keys.flag(&["lora_mlp"], "adapted layers").unwrap_or(false);
    if let Some(rank) = rank {
        settings.adapters = Some(Adapters { rank, mlp, base_bits: bits });
    }
    Ok(())
}

/// True for data, checkpoint, log and learning rate keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "train.",
        "eval.",
        "data",
        "out_dir",
        "logger",
        "log.",
        "seed",
        "resume",
        "tokenizer_dir",
        "optimizer.",
        "lora_",
        "access_token",
        "initial_checkpoint_dir",
        "checkpoint_dir",
        "io.",
        "precision",
    ];
    without_effect::is(key) || starts.iter().any(|start| key.starts_with(start))
}
