//! OLMo job files (YAML).

use planner::model::Model;
use planner::training::{AttentionKernel, GradientFormat, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, Settings, within_node};
use super::{JobConfigError, model_config, optimizer, without_effect};

const MODEL: &str = "model.";

pub(super) fn is_job(keys: &Keys) -> bool {
    let is_batch = keys.has("global_train_batch_size") || keys.has("device_train_microbatch_size");
    is_batch && keys.has("model.d_model") && !keys.has("model.name")
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let sequence = keys.count(&["model.max_sequence_length"], "sequence length")?;
    let is_flash = keys.flag(&["model.flash_attention"], "attention kernel");
    let model = model(keys)?;
    let layers = model.layers();
    let mut settings = Settings { sequence, has_layout: true, ..Settings::from_model(model) };
    settings.attention =
        is_flash.map(|is_flash| if is_flash { AttentionKernel::Flash } else { AttentionKernel::Unfused });
    let global = keys.count(&["global_train_batch_size"], "global batch")?;
    settings.microbatch = keys.count(&["device_train_microbatch_size"], "sequences of a microbatch")?;
    settings.batch = global.map_or(Batch::Unknown, Batch::Global);
    settings.batch_key = Some("global_train_batch_size");
    settings.precision = Some(match keys.text(&["precision"], "precision").as_deref() {
        Some("fp32") => Precision::Fp32,
        _ => Precision::Bf16,
    });
    sharding(keys, &mut settings);
    recompute(keys, &mut settings, layers);
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(false);
    if let Some(name) = keys.text(&["optimizer.name"], "optimizer") {
        optimizer::set(&name, keys, &mut settings);
    }
    if keys.flag(&["fused_loss"], "loss").unwrap_or(false) {
        keys.not_modelled("A fused loss without stored logits is not applied.");
    }
    keys.ignore(is_without_effect);
    Ok(settings)
}

/// Reads the model. Its sizes are those of `config.json` under other names.
fn model(keys: &mut Keys) -> Result<Model, JobConfigError> {
    let mut section = keys.section(MODEL);
    section.relabel(MODEL);
    let activation = section.text(&["activation_type"], "gated MLP");
    let is_gated = activation.is_none_or(|name| name.contains("glu"));
    let hidden = section.count(&["d_model"], "width")?.unwrap_or(0);
    let stated = section.count(&["mlp_hidden_size"], "width of the MLP")?;
    let ratio = section.count(&["mlp_ratio"], "width of the MLP")?.unwrap_or(4);
    // The width counts gate and up together.
    let width = stated.unwrap_or_else(|| hidden.saturating_mul(ratio)) / if is_gated { 2 } else { 1 };
    section.derive("intermediate_size", &width.to_string(), "");
    if section.has("embedding_size") {
        section.rename(|key| (key == "vocab_size").then(|| "tokenizer_size".to_owned()));
    }
    section.rename(|key| match key {
        "embedding_size" => Some("vocab_size".to_owned()),
        "weight_tying" => Some("tie_word_embeddings".to_owned()),
        "include_bias" => Some("use_bias".to_owned()),
        "multi_query_attention" => Some("multi_query".to_owned()),
        _ => None,
    });
    let mut module = model_config::language_model(&mut section, Some("olmo2"), (None, false), "OLMo model")?;
    module.gated = is_gated;
    section.ignore(|key| {
        let starts = [
            "tokenizer_size",
            "block_",
            "bias_for",
            "attention_layer",
            "norm_after",
            "clip_qkv",
            "init_",
            "flash",
            "max_seq",
        ];
        without_effect::is(key) || starts.iter().any(|start| key.starts_with(start))
    });
    keys.replace_section(MODEL, section);
    Ok(Model { name: "OLMo model".to_owned(), modules: vec![module] })
}

fn sharding(keys: &mut Keys, settings: &mut Settings) {
    let strategy = keys.text(&["distributed_strategy"], "sharding").unwrap_or_default();
    let kind = keys.text(&["fsdp.sharding_strategy"], "sharding").unwrap_or_default();
    let is_replicated = strategy == "ddp" || (keys.has_section("ddp.") && !keys.has_section("fsdp."));
    settings.zero = Some(match kind.as_str() {
        _ if is_replicated => 0,
        "NO_SHARD" => 0,
        "SHARD_GRAD_OP" => 2,
        _ => {
            keys.assume("The default of FSDP shards weights, gradients and optimizer state (ZeRO stage 3).");
            3
        }
    });
    if kind.contains("HYBRID") {
        settings.sharding = Some(within_node(keys));
    }
    let format = keys.text(&["fsdp.precision"], "format of gradients");
    settings.gradients = (format.as_deref() == Some("pure")).then_some(GradientFormat::Bf16);
}

fn recompute(keys: &mut Keys, settings: &mut Settings, layers: u32) {
    let kind = keys.text(&["activation_checkpointing"], "recomputation").unwrap_or_else(|| {
        keys.assume("OLMo's default recomputes no layers.");
        "none".to_owned()
    });
    let part = match kind.as_str() {
        "one_in_two" => Some(layers / 2),
        "one_in_three" => Some(layers / 3),
        "one_in_four" => Some(layers / 4),
        "one_in_eight" => Some(layers / 8),
        "two_in_three" => Some(layers - layers / 3),
        "three_in_four" => Some(layers - layers / 4),
        _ => None,
    };
    settings.recompute_layers = part.map(|layers| layers.max(1));
    settings.recompute = Some(match (part, kind.as_str()) {
        (Some(_), _) | (None, "whole_layer") => Recompute::Full,
        (None, "fine_grained") => Recompute::Selective,
        (None, _) => Recompute::None,
    });
}

/// True for data, checkpoint, log and learning rate keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "run_name",
        "seed",
        "dry_run",
        "softmax_",
        "auxiliary_",
        "compile",
        "optimizer.",
        "scheduler.",
        "tokenizer.",
        "save_",
        "sharded_",
        "load_",
        "restore_",
        "max_duration",
        "fsdp.",
        "ddp.",
        "max_grad",
        "speed_monitor",
        "gen1_",
        "eval",
        "data.",
        "device_eval",
        "wandb",
        "remote_save",
        "no_pre",
        "reset_",
        "epoch",
        "console",
        "stop_",
        "try_",
        "canceled",
        "time_limit",
        "extra_steps",
        "python_prof",
        "torch_prof",
        "early_",
        "hf_",
        "force_save",
        "find_unused",
        "module_outputs",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
