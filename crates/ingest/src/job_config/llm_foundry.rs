//! llm-foundry job files (YAML) with MPT or Hugging Face models.

use planner::model::{Adapters, Model};
use planner::training::{AttentionKernel, Fp8Recipe, GradientFormat, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, Settings, within_node};
use super::{JobConfigError, model_config, optimizer, unmodelled, without_effect};

const MODEL: &str = "model.";

pub(super) fn is_job(keys: &Keys) -> bool {
    let is_batch = keys.has("global_train_batch_size") || keys.has("device_train_microbatch_size");
    is_batch && keys.has("model.name")
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let kind = keys.text(&["model.name"], "architecture").unwrap_or_default();
    let attention = keys.text(&["model.attn_config.attn_impl"], "attention kernel");
    let mut settings = Settings { has_layout: true, ..Settings::default() };
    settings.attention = match attention.as_deref() {
        Some("torch") => Some(AttentionKernel::Unfused),
        Some("triton") => Some(AttentionKernel::Flash1),
        Some(_) => Some(AttentionKernel::Flash),
        None => keys
            .flag(&["model.use_flash_attention_2"], "attention kernel")
            .and_then(|is_on| is_on.then_some(AttentionKernel::Flash)),
    };
    if kind.contains("mpt") {
        settings.model = Some(mpt(keys)?);
    } else {
        let name = keys.text(&["model.pretrained_model_name_or_path"], "model");
        settings.model_name = name.map(|name| ("model.pretrained_model_name_or_path", name));
    }
    settings.sequence = keys.count(&["max_seq_len"], "sequence length")?;
    let global = keys.count(&["global_train_batch_size"], "global batch")?;
    settings.microbatch = keys.agreed_count(&["device_train_microbatch_size"], "sequences of a microbatch")?;
    settings.batch = global.map_or(Batch::Unknown, Batch::Global);
    settings.batch_key = Some("global_train_batch_size");
    let precision = keys.text(&["precision"], "precision").unwrap_or_default();
    // Composer calls Transformer Engine, whose default recipe is delayed scaling.
    settings.fp8.recipe = Some(Fp8Recipe::Delayed);
    settings.precision = Some(match precision.as_str() {
        "amp_fp8" => Precision::Fp8,
        "fp32" => Precision::Fp32,
        _ => Precision::Bf16,
    });
    sharding(keys, &mut settings);
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(false);
    if let Some(rank) = keys.count(&["model.peft_config.r"], "rank of the adapters")? {
        let targets = keys.text(&["model.peft_config.target_modules"], "adapted layers").unwrap_or_default();
        settings.adapters = Some(Adapters { rank, mlp: optimizer::adapts_mlp(&targets), base_bits: None });
    }
    keys.ignore(|key| key.starts_with("model.peft_config."));
    if let Some(name) = keys.text(&["optimizer.name"], "optimizer") {
        optimizer::set(&name, keys, &mut settings);
    }
    keys.ignore(is_without_effect);
    Ok(settings)
}

fn sharding(keys: &mut Keys, settings: &mut Settings) {
    let strategy = keys.text(&["fsdp_config.sharding_strategy"], "sharding");
    settings.zero = Some(match strategy.as_deref() {
        _ if !keys.has_section("fsdp_config.") => {
            keys.assume("FSDP is not configured. Every device holds all weights and optimizer state.");
            0
        }
        Some("SHARD_GRAD_OP") => 2,
        Some("NO_SHARD") => 0,
        None => {
            keys.assume("The default of FSDP shards weights, gradients and optimizer state (ZeRO stage 3).");
            3
        }
        Some(_) => 3,
    });
    if strategy.as_deref().is_some_and(|strategy| strategy.contains("HYBRID")) {
        settings.sharding = Some(within_node(keys));
    }
    if keys.text(&["fsdp_config.mixed_precision"], "format of gradients").is_some_and(|name| name == "PURE") {
        settings.gradients = Some(GradientFormat::Bf16);
    }
    let is_recomputed = keys.flag(&["fsdp_config.activation_checkpointing"], "recomputation").unwrap_or(false);
    settings.recompute = Some(if is_recomputed { Recompute::Full } else { Recompute::None });
    if keys.flag(&["fsdp_config.activation_cpu_offload"], "offload").unwrap_or(false) {
        settings.activation_offload = 1.0;
    }
}

/// Reads an MPT model. Its keys are those of `config.json`, with the defaults of llm-foundry.
fn mpt(keys: &mut Keys) -> Result<Model, JobConfigError> {
    let mut section = keys.section(MODEL);
    for (name, default) in [("attn_config.alibi", "false"), ("no_bias", "false")] {
        if !section.has(name) {
            section.assume(format!("llm-foundry's default of {name} is {default}."));
            section.derive(name, default, name);
        }
    }
    section.rename(|key| match key {
        "ffn_config.moe_num_experts" => Some("num_experts".to_owned()),
        "ffn_config.moe_top_k" => Some("num_experts_per_tok".to_owned()),
        "ffn_config.ffn_hidden_size" => Some("intermediate_size".to_owned()),
        "attn_config.sliding_window_size" => Some("sliding_window".to_owned()),
        _ => None,
    });
    section.relabel(MODEL);
    let is_gated = section.text(&["ffn_config.ffn_type"], "gated MLP").is_some_and(|kind| kind.contains("glu"));
    let mut module = model_config::language_model(&mut section, Some("mpt"), (None, false), "MPT model")?;
    module.gated |= is_gated;
    unmodelled::report(&mut section);
    section.ignore(|key| {
        without_effect::is(key)
            || ["ffn_config.", "attn_config.", "init_", "loss_fn", "fc_type"].iter().any(|start| key.starts_with(start))
    });
    keys.replace_section(MODEL, section);
    Ok(Model { name: "MPT model".to_owned(), modules: vec![module] })
}

/// True for data, checkpoint, log and learning rate keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "variables.",
        "run_name",
        "save_",
        "load_",
        "tokenizer.",
        "train_loader.",
        "eval_",
        "scheduler.",
        "optimizer.",
        "algorithms.",
        "max_duration",
        "seed",
        "device_eval",
        "progress_bar",
        "log",
        "console",
        "callbacks.",
        "python_log",
        "dist_timeout",
        "expandable",
        "fsdp_config.",
        "model.init_device",
        "model.pretrained",
        "model.use_auth",
        "icl_",
        "autoresume",
        "loggers.",
        "model.config_overrides",
        "auto_packing",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
