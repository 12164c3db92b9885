//! nanotron job files (YAML).

use planner::model::Model;
use planner::scenario::PlannerKind;
use planner::training::{AttentionKernel, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, Settings};
use super::{JobConfigError, model_config, optimizer, unmodelled, without_effect};

const MODEL: &str = "model.model_config.";

pub(super) fn is_job(keys: &Keys) -> bool {
    keys.has("parallelism.dp") || (keys.has_section(MODEL) && keys.has_section("tokens."))
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let attention = keys.text(&["model.model_config._attn_implementation"], "attention kernel");
    let mut settings = Settings::from_model(model(keys)?);
    settings.has_layout = true;
    settings.attention = attention.map(|name| match name.as_str() {
        "eager" => AttentionKernel::Unfused,
        "flash_attention_3" => AttentionKernel::Flash3,
        _ => AttentionKernel::Flash,
    });
    settings.sequence = keys.count(&["tokens.sequence_length"], "sequence length")?;
    settings.tensor = keys.count(&["parallelism.tp"], "tensor parallelism")?;
    settings.pipeline = keys.count(&["parallelism.pp"], "pipeline parallelism")?;
    // AFAB: all forwards, all backwards.
    if keys.text(&["parallelism.pp_engine"], "pipeline schedule").is_some_and(|name| name.eq_ignore_ascii_case("afab"))
    {
        settings.schedule = Some(PlannerKind::Gpipe);
    }
    settings.context = keys.count(&["parallelism.context_parallel_size", "parallelism.cp"], "context parallelism")?;
    settings.expert = keys.count(&["parallelism.expert_parallel_size"], "expert parallelism")?;
    settings.replicas = Some(keys.count(&["parallelism.dp"], "data-parallel replicas")?.unwrap_or(1));
    let mode = keys.text(&["parallelism.tp_mode"], "sequence parallelism").unwrap_or_default();
    settings.sequence_parallel = Some(mode.eq_ignore_ascii_case("reduce_scatter"));
    if keys.flag(&["parallelism.tp_linear_async_communication"], "overlap").unwrap_or(false) {
        keys.not_modelled("Asynchronous tensor parallelism is not applied.");
    }
    let is_recomputed = keys.flag(&["parallelism.recompute_layer"], "recomputation").unwrap_or_else(|| {
        keys.assume("nanotron's default recomputes no layers.");
        false
    });
    settings.recompute = Some(if is_recomputed { Recompute::Full } else { Recompute::None });
    settings.microbatch = keys.count(&["tokens.micro_batch_size"], "sequences of a microbatch")?;
    let accumulation = keys.count(&["tokens.batch_accumulation_per_replica"], "accumulation steps")?;
    settings.batch = settings
        .microbatch
        .map_or(Batch::Unknown, |microbatch| Batch::Replica(microbatch.saturating_mul(accumulation.unwrap_or(1))));
    settings.zero = keys.integer(&["optimizer.zero_stage"], "ZeRO stage")?;
    if settings.zero.is_none() {
        keys.assume("nanotron's default ZeRO stage is 0.");
        settings.zero = Some(0);
    }
    let is_long = keys.flag(&["optimizer.accumulate_grad_in_fp32"], "format of gradients").unwrap_or(true);
    // Only the accumulation in fp32 has fp32 weights.
    if !is_long {
        settings.set_pure_bf16();
    }
    settings.precision = Some(match keys.text(&["model.dtype"], "precision").as_deref() {
        Some("float32" | "fp32") => Precision::Fp32,
        _ => Precision::Bf16,
    });
    settings.overlapped_gradients = Some(false);
    settings.fused_weight_gradients = Some(false);
    if let Some(name) = keys.text(&["optimizer.optimizer_factory.name"], "optimizer") {
        optimizer::set(&name, keys, &mut settings);
    }
    keys.ignore(is_without_effect);
    Ok(settings)
}

/// Reads the model. Its keys are those of `config.json`.
fn model(keys: &mut Keys) -> Result<Model, JobConfigError> {
    let mut section = keys.section(MODEL);
    let mut kind = None;
    for (flag, model_type) in [
        ("is_llama_config", "llama"),
        ("is_llamoe_config", "mixtral"),
        ("is_qwen2_config", "qwen2"),
        ("is_starcoder2_config", "starcoder2"),
    ] {
        if section.flag(&[flag], "architecture").unwrap_or(false) {
            kind = Some(model_type);
        }
    }
    if section.flag(&["is_mamba_config"], "architecture").unwrap_or(false) {
        let detail = "a model of Mamba layers without attention cannot be represented".to_owned();
        return Err(JobConfigError::Value { key: "model.model_config.is_mamba_config".to_owned(), detail });
    }
    if section.flag(&["moe_config.enable_shared_expert"], "shared experts").unwrap_or(false) {
        section.not_modelled("The shared experts are left out.");
    }
    section.rename(|key| match key {
        "moe_config.num_experts" => Some("num_experts".to_owned()),
        "moe_config.top_k" => Some("num_experts_per_tok".to_owned()),
        "moe_config.moe_intermediate_size" => Some("moe_intermediate_size".to_owned()),
        "sliding_window_size" => Some("sliding_window".to_owned()),
        _ => None,
    });
    section.relabel(MODEL);
    let module = model_config::language_model(&mut section, kind, (None, false), "nanotron model")?;
    unmodelled::report(&mut section);
    section.ignore(|key| {
        let starts = ["is_", "moe_", "_", "flex_", "no_rope", "z_loss"];
        without_effect::is(key) || starts.iter().any(|start| key.starts_with(start))
    });
    keys.replace_section(MODEL, section);
    Ok(Model { name: "nanotron model".to_owned(), modules: vec![module] })
}

/// True for data, checkpoint, log and learning rate keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "checkpoints.",
        "data",
        "doremi",
        "general.",
        "logging.",
        "lighteval",
        "metrics_logging",
        "model.",
        "optimizer.",
        "profiler",
        "s3_upload",
        "tokenizer.",
        "tokens.",
        "parallelism.tp_recompute",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
