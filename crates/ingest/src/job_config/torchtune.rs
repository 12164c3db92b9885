//! torchtune job files (YAML).

use planner::model::{Adapters, Model};
use planner::training::{AttentionKernel, Fp8Recipe, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, Loss, Settings, Sharding};
use super::{JobConfigError, adapted_layers, model_config, optimizer, programs, unmodelled};

const COMPONENT: &str = "model._component_";
const MODEL: &str = "model.";
/// Part of the names of recipes and files for a single device.
const SINGLE: &str = "single_device";

pub(super) fn is_job(keys: &Keys) -> bool {
    keys.peek(COMPONENT).is_some_and(|name| name.contains("models."))
}

/// Adds the recipe that the name of a file states, for example `8B_full_single_device.yaml`, if no command names it.
pub(super) fn name_recipe(names: &[&str], keys: &mut Keys) {
    let named = names.iter().find(|name| name.contains(SINGLE));
    if let Some(name) = named.filter(|_| !keys.has(programs::COMMAND) && !keys.has(programs::JOB_FILE)) {
        keys.derive(programs::JOB_FILE, name, programs::JOB_FILE);
    }
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let mut settings = Settings { has_layout: true, ..Settings::default() };
    if ["prompt", "prompt.user", "tasks", "quantizer._component_"].iter().any(|key| keys.has(key))
        && !keys.has_section("optimizer.")
    {
        return Err(JobConfigError::Unsupported {
            framework: "torchtune for generation, evaluation or quantization",
            remedy: "give the file of a training recipe",
        });
    }
    let component = keys.text(&[COMPONENT], "model").unwrap_or_default();
    let name = component.rsplit('.').next().unwrap_or_default().to_owned();
    if keys.has("model.num_layers") {
        settings.model = Some(model(keys, &name)?);
    } else {
        let plain = ["qlora_", "lora_"].into_iter().find_map(|start| name.strip_prefix(start)).unwrap_or(&name);
        settings.model_name = Some((COMPONENT, plain.to_owned()));
    }
    settings.sequence = keys.count(&["tokenizer.max_seq_len"], "sequence length")?;
    settings.tensor = keys.count(&["tensor_parallel_dim"], "tensor parallelism")?;
    settings.context = keys.count(&["context_parallel_dim"], "context parallelism")?;
    let sharded = keys.count(&["data_parallel_shard_dim"], "sharded data parallelism")?;
    let replicated = keys.count(&["data_parallel_replicate_dim"], "replicated data parallelism")?;
    settings.replicas = sharded.map(|sharded| sharded.saturating_mul(replicated.unwrap_or(1)));
    settings.sharding = replicated.map(Sharding::Copies);
    batch(keys, &mut settings)?;
    let recipe = [programs::COMMAND, programs::JOB_FILE].map(|key| keys.peek(key).unwrap_or_default().to_owned());
    let is_single = recipe.iter().any(|name| name.contains(SINGLE));
    memory(keys, &mut settings, is_single);
    if is_single {
        keys.assume("The recipe runs on a single device.");
        (settings.nodes, settings.devices_per_node, settings.replicas) = (Some(1), Some(1), None);
    }
    adapters(keys, &mut settings, &name)?;
    if let Some(name) = keys.text(&["optimizer._component_"], "optimizer") {
        optimizer::set(&name, keys, &mut settings);
    }
    settings.attention = Some(AttentionKernel::Flash);
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(true);
    keys.ignore(|key| key == programs::JOB_FILE || is_without_effect(key));
    Ok(settings)
}

/// Reads a model whose sizes the file states.
fn model(keys: &mut Keys, name: &str) -> Result<Model, JobConfigError> {
    let mut section = keys.section(MODEL);
    section.rename(|key| match key {
        "embed_dim" => Some("hidden_size".to_owned()),
        "intermediate_dim" => Some("intermediate_size".to_owned()),
        "max_seq_len" => Some("max_position_embeddings".to_owned()),
        _ => None,
    });
    section.relabel(MODEL);
    let kind = if name.contains("qwen2") { "qwen2" } else { "llama" };
    let module = model_config::language_model(&mut section, Some(kind), (None, false), name)?;
    section.ignore(|_| true);
    keys.replace_section(MODEL, section);
    Ok(Model { name: name.to_owned(), modules: vec![module] })
}

fn batch(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    settings.microbatch = keys.count(&["batch_size"], "sequences of a microbatch")?;
    if settings.microbatch.is_none() {
        keys.assume("The microbatch is read as 1 sequence.");
        settings.microbatch = Some(1);
    }
    let accumulation = keys.count(&["gradient_accumulation_steps"], "accumulation steps")?.unwrap_or(1);
    settings.accumulation = Some(accumulation);
    settings.batch_key = Some("gradient_accumulation_steps");
    settings.batch = Batch::Replica(settings.microbatch.unwrap_or(1).saturating_mul(accumulation));
    Ok(())
}

fn memory(keys: &mut Keys, settings: &mut Settings, is_single: bool) {
    let dtype = keys.text(&["dtype"], "precision").unwrap_or_default();
    settings.precision = Some(if matches!(dtype.as_str(), "fp32" | "float32") {
        Precision::Fp32
    } else {
        if keys.has("dtype") {
            settings.set_pure_bf16();
        } else {
            keys.assume("The precision is not stated. It is read as bf16.");
        }
        Precision::Bf16
    });
    fp8(keys, settings);
    let is_recomputed = keys.flag(&["enable_activation_checkpointing"], "recomputation").unwrap_or(false);
    settings.recompute = Some(if is_recomputed { Recompute::Full } else { Recompute::None });
    let is_resharded = keys.flag(&["fsdp_reshard_after_forward"], "ZeRO stage").unwrap_or(true);
    settings.zero = Some(match (is_single, is_resharded) {
        (true, _) => 0,
        (false, true) => 3,
        (false, false) => 2,
    });
    if !is_single {
        keys.assume(
            "The file is read as one of a distributed recipe, which shards all states (FSDP). The name of a file or command \
             with single_device states a single-device recipe.",
        );
    }
    settings.is_compiled = keys.flag(&["compile", "compile.model"], "torch.compile").unwrap_or(false);
    if keys.flag(&["fsdp_cpu_offload"], "offload").unwrap_or(false) {
        settings.offload_states();
    }
    if keys.flag(&["optimizer_in_bwd"], "optimizer step").unwrap_or(false) {
        keys.not_modelled(unmodelled::OPTIMIZER_IN_BACKWARD);
    }
    if keys.flag(&["enable_activation_offloading"], "offload").unwrap_or(false) {
        settings.activation_offload = 1.0;
    }
    let loss = keys.text(&["loss._component_"], "loss").unwrap_or_default();
    if loss.contains("Chunked") || loss.contains("LinearCrossEntropy") {
        settings.loss = Loss::Chunked;
        if loss.contains("ChunkedOutput") {
            keys.not_modelled(
                "The loss stores the logits of all chunks in bf16, which are not counted: the memory is a lower bound.",
            );
        }
    }
    let recipes = [("dpo", "A pair of answers is read as one sequence."), ("kd", "The teacher model is left out.")];
    for (word, sentence) in recipes {
        if loss.to_lowercase().contains(word) || (word == "kd" && keys.has_section("teacher_model.")) {
            keys.not_modelled(sentence);
        }
    }
    if keys.has("ref_checkpointer._component_") || loss.to_lowercase().contains("dpo") {
        keys.not_modelled("The reference, reward or value model is left out, so memory and time are lower bounds.");
    }
}

/// Reads fp8 of torchao. Only without a named recipe, FSDP gathers weights in fp8.
fn fp8(keys: &mut Keys, settings: &mut Settings) {
    let is_on = keys.flag(&["enable_fp8_training"], "precision").unwrap_or(false);
    let name = keys.text(&["fp8_recipe_name"], "recipe of fp8");
    if !is_on {
        if name.is_some() {
            keys.assume("fp8_recipe_name has no effect: enable_fp8_training is off.");
        }
        return;
    }
    settings.precision = Some(Precision::Fp8);
    settings.fp8.has_weights = name.is_none();
    settings.fp8.recipe = name.as_deref().and_then(Fp8Recipe::named);
}

fn adapters(keys: &mut Keys, settings: &mut Settings, name: &str) -> Result<(), JobConfigError> {
    let rank = keys.count(&["model.lora_rank"], "rank of the adapters")?;
    let mlp = keys.flag(&["model.apply_lora_to_mlp"], "adapted layers").unwrap_or(false);
    let is_quantized = keys.flag(&["model.quantize_base"], "quantized weights").unwrap_or(name.starts_with("qlora_"));
    if name.starts_with("lora_") || name.starts_with("qlora_") {
        if rank.is_none() {
            keys.assume("torchtune's default rank of the adapters is 8.");
        }
        settings.adapters = Some(Adapters { rank: rank.unwrap_or(8), mlp, base_bits: is_quantized.then_some(4) });
        let key = "model.lora_attn_modules";
        if let Some(targets) = keys.text(&[key], "adapted layers") {
            // A switch of its own adapts the MLP.
            adapted_layers::report_partial(keys, (key, &targets), false);
        }
    }
    Ok(())
}

/// True for data, checkpoint, log, optimizer and learning rate keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "output_dir",
        "tokenizer.",
        "checkpointer.",
        "ref_checkpointer.",
        "dataset",
        "seed",
        "shuffle",
        "epochs",
        "optimizer.",
        "lr_scheduler.",
        "loss.",
        "max_steps",
        "clip_grad",
        "metric_logger.",
        "log_",
        "device",
        "resume",
        "save_",
        "profiler.",
        "model.lora_",
        "model.apply_lora",
        "model.use_dora",
        "custom_sharded",
        "compile.",
        "run_val",
        "batch_size_val",
        "val_",
        "teacher_",
        "kd_ratio",
        "collate",
        "cudnn",
        "packed",
        "tensor_parallel_plan",
        "enable_async",
        "num_warmup",
        "base_model_path",
        "checkpoint_dir",
        "models",
        "epochs",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
