//! Levanter job files (YAML).

use planner::model::Model;
use planner::training::{AttentionKernel, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, Settings, Sharding};
use super::{ConfigFormat, JobConfigError, model_config, optimizer, tokenizers, unmodelled};

const MODEL: &str = "model.";

/// Sizes of the architectures that the file may leave out: width, width of the MLP, layers, heads, length.
const LLAMA: [(&str, u32); 4] =
    [("hidden_size", 4096), ("intermediate_size", 11_008), ("num_layers", 32), ("num_heads", 32)];
const GPT2: [(&str, u32); 3] = [("hidden_size", 768), ("num_layers", 12), ("num_heads", 12)];

pub(super) fn is_job(keys: &Keys) -> bool {
    keys.has("trainer.train_batch_size") && (keys.has("model.type") || keys.has("trainer.mp"))
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let mut settings = Settings { has_layout: true, ..Settings::default() };
    settings.sequence = keys.count(&["train_seq_len", "model.seq_len", "model.max_seq_len"], "sequence length")?;
    // A model of the hub has its own length.
    let is_of_hub = keys.peek("use_hf_model_config").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if settings.sequence.is_none() && !is_of_hub {
        let length = if keys.peek("model.type") == Some("gpt2") { 512 } else { 2048 };
        keys.assume(format!("The default sequence length of the model is {length} tokens."));
        settings.sequence = Some(length);
    }
    if keys.flag(&["use_hf_model_config"], "model").unwrap_or(false) {
        let name = keys.text(&["initialize_from_hf"], "model");
        settings.model_name = name.map(|name| ("initialize_from_hf", name));
        keys.ignore(|key| key.starts_with(MODEL));
    } else if keys.has_section(MODEL) {
        settings.model = Some(model(keys)?);
    } else {
        return Err(JobConfigError::NoModel { format: ConfigFormat::Levanter.name() });
    }
    memory(keys, &mut settings);
    mesh(keys, &mut settings)?;
    let global = keys.count(&["trainer.train_batch_size"], "global batch")?.unwrap_or(512);
    settings.batch_key = Some("trainer.train_batch_size");
    settings.microbatch = keys.count(&["trainer.per_device_parallelism"], "sequences of a microbatch")?;
    settings.batch = if settings.microbatch.is_some() {
        Batch::Global(global)
    } else {
        keys.assume("Levanter's default computes the batch of a replica at once, without accumulation.");
        Batch::Whole(global)
    };
    settings.nodes = keys.count(&["trainer.num_nodes"], "nodes")?;
    if let Some(name) = keys.text(&["optimizer.type"], "optimizer") {
        optimizer::set(&name, keys, &mut settings);
    }
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(false);
    // XLA compiles the step.
    settings.is_compiled = true;
    keys.ignore(is_without_effect);
    Ok(settings)
}

/// Reads the axes of the mesh. An axis of -1 takes the rest of the devices.
fn mesh(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let axis = |keys: &mut Keys, name: &str, setting| {
        let names = ["axes", "dcn_axes"].map(|kind| format!("trainer.mesh.{kind}.{name}"));
        let (mut product, mut is_stated) = (1_u32, false);
        for name in &names {
            if let Some(size) = keys.count(&[name], setting)? {
                (product, is_stated) = (product.saturating_mul(size), true);
            }
        }
        Ok::<_, JobConfigError>(is_stated.then_some(product))
    };
    let tensor = keys.count(&["trainer.model_axis_size"], "tensor parallelism")?;
    settings.tensor = tensor.or(axis(keys, "model", "tensor parallelism")?);
    settings.context = axis(keys, "context", "context parallelism")?;
    settings.expert = axis(keys, "expert", "expert parallelism")?;
    let sharded = axis(keys, "data", "sharded data parallelism")?;
    let mut replicated = axis(keys, "replica", "replicated data parallelism")?;
    for name in [
        "trainer.mesh.axes.replica_dcn",
        "trainer.mesh.dcn_axes.replica_dcn",
        "trainer.replica_ici_axis_size",
        "trainer.replica_dcn_axis_size",
    ] {
        if let Some(size) = keys.count(&[name], "replicated data parallelism")? {
            replicated = Some(replicated.unwrap_or(1).saturating_mul(size));
        }
    }
    settings.sharding = replicated.map(Sharding::Copies);
    // The expert axis has devices of its own, which are data-parallel elsewhere.
    let expert = settings.expert.unwrap_or(1);
    settings.replicas = sharded.map(|sharded| sharded.saturating_mul(replicated.unwrap_or(1)).saturating_mul(expert));
    Ok(())
}

/// Reads the model. Its keys are those of `config.json` under other names. The tokenizer determines the vocabulary.
fn model(keys: &mut Keys) -> Result<Model, JobConfigError> {
    let kind = keys.text(&["model.type"], "architecture").unwrap_or_else(|| "gpt2".to_owned());
    let attention = keys.flag(&["model.use_flash_attention"], "attention kernel");
    keys.flag(&["model.gradient_checkpointing"], "recomputation");
    let mut section = keys.section(MODEL);
    section.rename(|key| match key {
        "hidden_dim" => Some("hidden_size".to_owned()),
        "intermediate_dim" => Some("intermediate_size".to_owned()),
        "num_kv_heads" => Some("num_key_value_heads".to_owned()),
        "seq_len" => Some("max_position_embeddings".to_owned()),
        "n_routed_experts" => Some("num_experts".to_owned()),
        "mlp_scale" => Some("mlp_ratio".to_owned()),
        _ => None,
    });
    section.relabel(MODEL);
    let defaults: &[(&str, u32)] = if kind == "gpt2" { &GPT2 } else { &LLAMA };
    for (name, default) in defaults {
        if !section.has(name) {
            section.derive(name, &default.to_string(), "");
            section.assume(format!("{name} of the model is not stated. It is the default of Levanter, {default}."));
        }
    }
    let tokenizer = keys.text(&["data.tokenizer", "tokenizer"], "vocabulary").unwrap_or_default().to_lowercase();
    let known = tokenizers::find(&tokenizer);
    let vocab = known.map_or(50_257, |(_, size)| size);
    section.assume(match known {
        Some((name, _)) => format!("The vocabulary is that of the tokenizer {name}, {vocab} tokens."),
        None => format!("The vocabulary of the tokenizer is not known. It is read as {vocab} tokens."),
    });
    section.derive("vocab_size", &vocab.to_string(), "");
    let family = match kind.as_str() {
        "gpt2" => "gpt2",
        "mistral" => "mistral",
        "mixtral" => "mixtral",
        "qwen" | "qwen2" => "qwen2",
        "qwen3" => "qwen3",
        "gemma" => "gemma",
        "olmo2" | "olmo" => "olmo2",
        other => other,
    };
    let name = format!("Levanter {kind}");
    let module = model_config::language_model(&mut section, Some(family), (None, false), &name)?;
    if attention == Some(false) {
        section.not_modelled("Attention without a fused kernel is read as the kernel of the device.");
    }
    unmodelled::report(&mut section);
    section.ignore(|_| true);
    keys.replace_section(MODEL, section);
    Ok(Model { name, modules: vec![module] })
}

fn memory(keys: &mut Keys, settings: &mut Settings) {
    settings.attention = Some(AttentionKernel::Flash);
    let policy = keys.text(&["trainer.mp"], "precision").unwrap_or_else(|| {
        keys.assume("Levanter's default precision is fp32.");
        "f32".to_owned()
    });
    let of = |part: &str| policy.split(',').find_map(|term| term.trim().strip_prefix(part)).map(str::to_owned);
    let is_long = |name: &str| matches!(name.trim(), "f32" | "float32" | "fp32" | "full");
    let compute = of("c=").or_else(|| of("compute=")).unwrap_or_else(|| policy.clone());
    let parameters = of("p=").or_else(|| of("params=")).unwrap_or_else(|| policy.clone());
    settings.precision = Some(if is_long(&compute) { Precision::Fp32 } else { Precision::Bf16 });
    if !is_long(&compute) && !is_long(&parameters) {
        settings.set_pure_bf16();
    }
    let recomputed = keys.text(&["model.gradient_checkpointing"], "recomputation");
    let is_off = recomputed.as_deref().is_some_and(|value| value.eq_ignore_ascii_case("false"));
    if recomputed.is_none() {
        keys.assume("Levanter's default recomputes all layers.");
    }
    settings.recompute = Some(if is_off { Recompute::None } else { Recompute::Full });
    // The default axis is "embed".
    keys.text(&["trainer.fsdp_axis"], "sharding");
    settings.zero = Some(3);
}

/// True for data, checkpoint, log, sharding axes and learning rate keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "data.",
        "data",
        "trainer.tracker",
        "trainer.wandb",
        "trainer.num_train_steps",
        "trainer.steps_per",
        "trainer.max_eval",
        "trainer.checkpointer",
        "trainer.tensor_parallel_axes",
        "trainer.batch_axis",
        "trainer.log_",
        "trainer.ray",
        "trainer.seed",
        "trainer.id",
        "trainer.load_",
        "trainer.initialize_from",
        "trainer.require_accel",
        "trainer.axis_resources",
        "trainer.parameter_axis",
        "trainer.per_device_eval",
        "trainer.distributed",
        "trainer.profiler",
        "trainer.mesh.compute_mapping",
        "trainer.mesh.param_mapping",
        "trainer.mesh.shared_mapping",
        "trainer.mesh.batch_axis",
        "trainer.run_",
        "optimizer.",
        "epoch",
        "hf_",
        "initialize_from_hf",
        "z_loss",
        "eval_",
        "log_",
        "tokenizer",
        "supervised_data",
        "merge_",
        "out_dir",
        "train_seq_len",
        "pad_",
        "chat_",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
