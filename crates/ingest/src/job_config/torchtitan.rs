//! torchtitan job files. Model dimensions are defined by flavor in torchtitan's code;
//! `flavors.json` contains the published flavors. Command lines have the same settings as arguments.

mod command;
mod configurations;
mod model;
mod stages;

pub(super) use command::{argument, is_command, join, read as read_command};

use planner::cost::partition::layers_with_ends;
use planner::model::Model;
use planner::scenario::PlannerKind;
use planner::training::{AttentionKernel, Fp8Recipe, Precision, Recompute};

use super::keys::Keys;
use super::settings::{Batch, Settings, Sharding};
use super::{JobConfigError, launcher, optimizer, unmodelled};

pub(super) fn is_job(keys: &Keys) -> bool {
    let has_model = keys.has("model.name") && (keys.has("model.flavor") || keys.has_section("training."));
    has_model || (keys.has_section("parallelism.") && keys.has_section("training."))
}

/// Reads a job file. The model of `config.json` (`stated`) replaces a flavor that is missing or not known.
pub(super) fn read(keys: &mut Keys, stated: &mut Option<(Model, Option<u32>)>) -> Result<Settings, JobConfigError> {
    let (model, max_positions) = model::of_job(keys, stated)?;
    Ok(Settings { max_positions, ..read_job(keys, model)? })
}

/// Reads the settings of a job with a model.
pub(super) fn read_job(keys: &mut Keys, model: Model) -> Result<Settings, JobConfigError> {
    let layers = model.layers();
    let mut settings = Settings::from_model(model);
    settings.has_layout = true;
    settings.sequence = keys.count(&["training.seq_len", "training.max_context_length"], "sequence length")?;
    if settings.sequence.is_none() {
        keys.assume("torchtitan's default sequence length is 2048 tokens.");
        settings.sequence = Some(2048);
    }
    degrees(keys, &mut settings, layers)?;
    devices(keys, &mut settings)?;
    batch(keys, &mut settings)?;
    recompute(keys, &mut settings, layers)?;
    precision(keys, &mut settings);
    settings.is_compiled = is_compiled(keys);
    if settings.chunked_collectives == Some(true) && !settings.is_compiled {
        settings.chunked_collectives = None;
        keys.not_modelled(
            "Asynchronous tensor parallelism is not applied, because torchtitan refuses it without compile.enable.",
        );
    }
    settings.attention = Some(AttentionKernel::Flash);
    settings.sequence_parallel = Some(true);
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    keys.ignore(is_without_effect);
    Ok(settings)
}

/// Returns whether torch.compile applies to the layers. The default components are the model and the loss.
fn is_compiled(keys: &mut Keys) -> bool {
    let is_on = keys.flag(&["compile.enable", "training.compile"], "torch.compile").unwrap_or(false);
    let components = keys.text(&["compile.components"], "compiled parts");
    let has_model = components.is_none_or(|list| list.contains("model"));
    if is_on && !has_model {
        keys.assume("compile.components does not name the model. Its layers are not compiled.");
    }
    is_on && has_model
}

/// Reads the devices of the launcher. Job files state none.
fn devices(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    launcher::devices(keys, settings)?;
    if settings.nodes.is_none() && settings.replicas.is_none() && settings.devices_per_node.is_some() {
        keys.assume(launcher::ONE_NODE);
        settings.nodes = Some(1);
    }
    Ok(())
}

/// Reads parallel degrees. Until 2025 their keys were under `training` and `experimental`.
fn degrees(keys: &mut Keys, settings: &mut Settings, model_layers: u32) -> Result<(), JobConfigError> {
    let mut degree = |name: &str, setting| {
        let names = ["parallelism", "training", "experimental"].map(|section| format!("{section}.{name}"));
        keys.count(&names.each_ref().map(String::as_str), setting)
    };
    settings.tensor = degree("tensor_parallel_degree", "tensor parallelism")?;
    settings.pipeline = degree("pipeline_parallel_degree", "pipeline parallelism")?;
    settings.context = degree("context_parallel_degree", "context parallelism")?;
    settings.expert = degree("expert_parallel_degree", "expert parallelism")?;
    let expert_tensor = degree("expert_tensor_parallel_degree", "tensor parallelism of experts")?;
    // The default is 1.
    let is_sharded =
        settings.expert.is_some_and(|degree| degree > 1) && settings.tensor.is_some_and(|degree| degree > 1);
    let has_experts =
        settings.model.as_ref().is_some_and(|model| model.modules.iter().any(|module| module.moe.is_some()));
    settings.expert_tensor = (has_experts && is_sharded && expert_tensor.unwrap_or(1) == 1).then_some(1);
    let sharded = degree("data_parallel_shard_degree", "sharded data parallelism")?;
    // The name of 2024.
    let sharded = sharded.or(degree("data_parallel_degree", "sharded data parallelism")?);
    let replicated = degree("data_parallel_replicate_degree", "replicated data parallelism")?;
    let is_pipeline = settings.pipeline.unwrap_or(1) > 1;
    settings.replicas = sharded.map(|sharded| sharded.saturating_mul(replicated.unwrap_or(1)));
    let names = ["parallelism.fsdp_reshard_after_forward", "training.fsdp_reshard_after_forward"];
    let reshards = keys.text(&names, "ZeRO stage");
    settings.zero = Some(match (sharded, reshards.as_deref()) {
        // FSDP also shards over the devices of a context-parallel group.
        (Some(1), _) if settings.context.unwrap_or(1) <= 1 => 0,
        (_, Some("always")) => 3,
        // In a pipeline, FSDP2 keeps gathered weights and unreduced gradients between microbatches.
        _ if is_pipeline => 1,
        (_, Some("never")) => 2,
        _ => 3,
    });
    settings.sharding = replicated.map(Sharding::Copies);
    schedule(keys, settings, model_layers)?;
    let names = ["parallelism.expert_parallel_comm_backend", "parallelism.moe_comm_backend"];
    // DeepEP and HybridEP send a token to a node once.
    settings.dispatch_by_node = keys.text(&names, "exchange between experts").map(|kind| kind.trim() != "standard");
    if keys.flag(&["optimizer.early_step_in_backward"], "optimizer step").unwrap_or(false) {
        keys.not_modelled(unmodelled::OPTIMIZER_IN_BACKWARD);
    }
    let names = ["parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"];
    settings.chunked_collectives = keys.flag(&names, "overlap");
    Ok(())
}

const PER_STAGE: &str = "parallelism.pipeline_parallel_layers_per_stage";

/// Names of schedules in torch, in lower case, with their planners.
const SCHEDULES: [(&str, PlannerKind); 7] = [
    ("1f1b", PlannerKind::OneFOneB),
    ("gpipe", PlannerKind::Gpipe),
    ("interleaved1f1b", PlannerKind::Interleaved),
    ("loopedbfs", PlannerKind::LoopedBfs),
    ("interleavedzerobubble", PlannerKind::InterleavedZeroBubble),
    ("zbvzerobubble", PlannerKind::Zbv),
    ("dualpipev", PlannerKind::Zbv),
];

/// Reads the schedule of a pipeline and its model chunks. The default schedule is 1F1B.
fn schedule(keys: &mut Keys, settings: &mut Settings, model_layers: u32) -> Result<(), JobConfigError> {
    let names = ["parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"];
    let name = keys.text(&names, "pipeline schedule").map(|name| name.trim().to_lowercase());
    let tables = ["parallelism.pipeline_parallel_schedule_csv", "experimental.pipeline_parallel_schedule_csv"];
    let has_table = keys.text(&tables, "pipeline schedule").is_some_and(|path| !path.trim().is_empty());
    let per_stage = keys.count(&[PER_STAGE], "layers of a model chunk")?;
    let mut less_layers = |end: &str| {
        let name = format!("parallelism.pipeline_parallel_{end}_stage_less_layers");
        keys.integer(&[&name], "layers of the stages").map(|count| count.unwrap_or(1))
    };
    let ends = (less_layers("first")?, less_layers("last")?);
    let stated = stages::read(keys)?;
    let stages = settings.pipeline.unwrap_or(1).max(1);
    if stages == 1 {
        return Ok(());
    }
    if has_table {
        keys.not_modelled("The schedule of the CSV file is not read. The named schedule is simulated.");
    }
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "1f1b".to_owned());
    let planner = match SCHEDULES.into_iter().find(|(known, _)| *known == name) {
        Some((_, planner)) => planner,
        None if has_table => PlannerKind::OneFOneB,
        None => {
            let detail = "torch's schedules are 1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, \
                          ZBVZeroBubble and DualPipeV";
            return Err(JobConfigError::Value { key: names[0].to_owned(), detail: detail.to_owned() });
        }
    };
    if name == "dualpipev" {
        keys.not_modelled("DualPipeV is not simulated. ZBVZeroBubble is simulated, with the same stages.");
    }
    settings.schedule = Some(planner);
    // Schedules in a V have two chunks.
    let is_single = matches!(planner, PlannerKind::OneFOneB | PlannerKind::Gpipe);
    let default = if is_single { 1 } else { 2 };
    let virtual_stages = match (&stated, per_stage) {
        (Some((_, stated)), _) => Some(stated.stages()),
        // The embedding and the output head count as layers.
        (None, Some(layers)) => Some(model_layers.saturating_add(ends.0).saturating_add(ends.1).div_ceil(layers)),
        (None, None) => None,
    };
    let chunks = match virtual_stages {
        None => default,
        Some(virtual_stages) if virtual_stages.is_multiple_of(stages) => (virtual_stages / stages).max(1),
        Some(virtual_stages) => {
            let key = stated.as_ref().map_or(PER_STAGE, |(key, _)| key);
            let detail = format!("{virtual_stages} stages are no multiple of {stages} pipeline ranks");
            return Err(JobConfigError::Value { key: key.to_owned(), detail });
        }
    };
    if !is_single && planner != PlannerKind::Zbv {
        settings.chunks = Some(chunks);
    }
    let layers = match &stated {
        Some((_, stated)) => stated.layers(model_layers),
        None => layers_with_ends(model_layers, stages.saturating_mul(chunks), ends),
    };
    let Some(layers) = layers else {
        settings.has_uneven_stages = true;
        keys.not_modelled(
            "The stages do not have all layers of the model once, or one has neither a layer nor the embedding or the output \
             head. The layers of each stage are those with the most equal times.",
        );
        return Ok(());
    };
    let usual = layers_with_ends(model_layers, stages.saturating_mul(chunks), (1, 1));
    if usual.as_ref() == Some(&layers) && !layers.contains(&0) {
        keys.assume("torchtitan counts the embedding and the output head as a layer each.");
    } else {
        settings.layers_per_stage = layers;
    }
    Ok(())
}

/// Reads the local batch of versions that count it in tokens.
fn packed(keys: &mut Keys, settings: &Settings) -> Result<Option<u32>, JobConfigError> {
    let name = "training.num_tokens_per_microbatch_per_dp_rank";
    let Some(tokens) = keys.count(&[name], "tokens of a replica")? else { return Ok(None) };
    let length = settings.sequence.unwrap_or(1).max(1);
    if !tokens.is_multiple_of(length) {
        let detail = format!("{tokens} tokens are no multiple of {length} tokens of a sequence");
        return Err(JobConfigError::Value { key: name.to_owned(), detail });
    }
    Ok(Some(tokens / length))
}

fn batch(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let names = ["training.local_batch_size", "training.batch_size"];
    let local = keys.count(&names, "sequences of a replica")?.or(packed(keys, settings)?).unwrap_or_else(|| {
        keys.assume("torchtitan's default local batch is 8 sequences.");
        8
    });
    let global = keys.count(&["training.global_batch_size"], "global batch")?;
    let names = ["parallelism.pipeline_parallel_microbatch_size", "experimental.pipeline_parallel_microbatch_size"];
    let microbatch = keys.count(&names, "sequences of a microbatch")?.or(of_count(keys, settings, local)?);
    // A pipeline divides the local batch into microbatches. Without a pipeline the local batch is
    // the microbatch.
    let is_pipeline = settings.pipeline.unwrap_or(1) > 1;
    settings.microbatch = Some(if is_pipeline { microbatch.unwrap_or(1) } else { local });
    // Each step of gradient accumulation runs the whole schedule with one local batch.
    if let Some(microbatch) = microbatch.filter(|&microbatch| is_pipeline && !local.is_multiple_of(microbatch)) {
        keys.refuse(format!(
            "torchtitan refuses a local batch ({local}) that is no multiple of pipeline_parallel_microbatch_size \
             ({microbatch}). Change one of them."
        ));
    }
    settings.microbatches_per_flush = is_pipeline.then(|| local.div_ceil(microbatch.unwrap_or(1).max(1)));
    settings.batch_key = Some("training.global_batch_size");
    settings.batch = global.map_or(Batch::Replica(local), Batch::Global);
    Ok(())
}

/// Returns the microbatch of versions until April 2025, which state the number of microbatches of a local batch. The
/// default is the number of pipeline ranks.
fn of_count(keys: &mut Keys, settings: &Settings, local: u32) -> Result<Option<u32>, JobConfigError> {
    let sections = ["parallelism", "experimental"];
    let names = sections.map(|section| format!("{section}.pipeline_parallel_microbatches"));
    let stated = keys.count(&names.each_ref().map(String::as_str), "microbatches of a replica")?;
    let pipeline = settings.pipeline.unwrap_or(1);
    // The section of the degree in 2024.
    let is_early = keys.has("experimental.pipeline_parallel_degree");
    let has_size = sections.iter().any(|section| keys.has(&format!("{section}.pipeline_parallel_microbatch_size")));
    if pipeline <= 1 || has_size || (stated.is_none() && !is_early) {
        return Ok(None);
    }
    let count = stated.unwrap_or_else(|| {
        keys.assume(format!(
            "Versions of torchtitan with experimental.pipeline_parallel_degree divide the local batch into as many \
             microbatches as pipeline ranks, {pipeline}."
        ));
        pipeline
    });
    Ok(Some((local / count.max(1)).max(1)))
}

fn recompute(keys: &mut Keys, settings: &mut Settings, layers: u32) -> Result<(), JobConfigError> {
    let mode = keys.text(&["activation_checkpoint.mode"], "recomputation").unwrap_or_else(|| {
        keys.assume("torchtitan's default activation checkpointing is selective.");
        "selective".to_owned()
    });
    let mut option = keys.text(&["activation_checkpoint.selective_ac_option"], "recomputation");
    if mode == "selective" && option.is_none() {
        // Job files have this default. Configurations in code state their option.
        keys.assume("torchtitan's default selective_ac_option is 2: every second layer is recomputed.");
        option = Some("2".to_owned());
    }
    let every = option.as_deref().and_then(|option| option.parse::<u32>().ok()).filter(|&every| every > 0);
    settings.recompute = Some(match (mode.as_str(), every) {
        ("none", _) => Recompute::None,
        ("full", _) => Recompute::Full,
        ("selective", Some(every)) => {
            settings.recompute_layers = Some(recomputed_layers(keys, settings, layers, every));
            Recompute::Full
        }
        ("selective", None) => Recompute::Operators,
        ("memory_budget", _) => {
            keys.not_modelled("Recomputation within a memory budget is read as recomputation by operator.");
            Recompute::Operators
        }
        _ => {
            let detail = "the value is not none, selective, full or memory_budget".to_owned();
            return Err(JobConfigError::Value { key: "activation_checkpoint.mode".to_owned(), detail });
        }
    });
    Ok(())
}

/// Returns the recomputed layers of a stage: torchtitan counts the layers of each stage and recomputes every `every`-th one.
fn recomputed_layers(keys: &mut Keys, settings: &Settings, layers: u32, every: u32) -> u32 {
    let pipeline = settings.pipeline.unwrap_or(1).max(1);
    // Schedules in a V have two chunks.
    let default = if pipeline > 1 && settings.schedule == Some(PlannerKind::Zbv) { 2 } else { 1 };
    let stages = pipeline.saturating_mul(settings.chunks.unwrap_or(default));
    let counts = match settings.layers_per_stage.as_slice() {
        [] if stages > 1 => layers_with_ends(layers, stages, (1, 1)).unwrap_or_else(|| vec![layers / stages]),
        [] => vec![layers],
        stated => stated.to_vec(),
    };
    let recomputed: Vec<u32> = counts.iter().filter(|&&count| count > 0).map(|count| (count / every).max(1)).collect();
    let frequency = |count: u32| recomputed.iter().filter(|other| **other == count).count();
    let usual = recomputed.iter().copied().max_by_key(|&count| (frequency(count), count)).unwrap_or(1);
    if recomputed.iter().any(|&count| count != usual) {
        keys.not_modelled(format!(
            "Stages with fewer or more layers recompute another number of them. All stages are read with {usual}, the number of \
             most stages."
        ));
    }
    usual
}

/// Reads the optimizer and the precision. The torchtitan default is bf16 with fp32 reduction. fp8 requires a
/// converter, or a flag in older versions.
fn precision(keys: &mut Keys, settings: &mut Settings) {
    if let Some(name) = keys.text(&["optimizer.name"], "optimizer") {
        optimizer::set(&name, keys, settings);
    }
    if keys.text(&["training.dtype"], "precision").is_some_and(|name| name == "bfloat16") {
        settings.set_pure_bf16();
    }
    if keys.flag(&["training.enable_cpu_offload"], "offload").unwrap_or(false) {
        settings.offload_states();
    }
    let parameters = keys.text(&["training.mixed_precision_param"], "precision");
    let converters = keys.text(&["model.converters"], "precision").unwrap_or_default();
    let is_enabled = ["float8.enable_float8_linear", "float8.enable", "training.enable_float8_linear"]
        .into_iter()
        .fold(false, |is_on, name| keys.flag(&[name], "precision").unwrap_or(is_on));
    if !is_enabled && converters.trim_matches(['[', ']', ' ']).is_empty() {
        let sections = ["quantize.", "float8.", "mx."];
        if let Some(key) = sections.into_iter().find_map(|section| keys.first_set_below(section)) {
            keys.assume(format!(
                "{key} has no effect: model.converters names no quantization. Products are read as bf16."
            ));
        }
    }
    // Converters of grouped products change routed experts only.
    let is_of_layers = |name: &&str| !name.contains("grouped_mm");
    let linear: Vec<&str> = converters.split(',').filter(is_of_layers).collect();
    if linear.len() < converters.split(',').count() {
        keys.not_modelled("Grouped products of experts in fp8 are read as the linear layers.");
    }
    let has = |word: &str| linear.iter().any(|name| name.contains(word));
    let is_mx = has("mx") && !has("float8");
    let names = ["quantize.linear.float8.recipe_name", "float8.recipe_name"];
    let recipe = names.into_iter().find_map(|name| keys.text(&[name], "recipe of fp8"));
    let known = recipe.as_deref().and_then(Fp8Recipe::named);
    if let Some(name) = recipe.filter(|_| known.is_none()) {
        keys.not_modelled(format!("The fp8 recipe {name:?} is unknown. It is read as tensorwise."));
    }
    settings.fp8.recipe = if is_mx { Some(Fp8Recipe::Mxfp8) } else { known };
    let names = ["quantize.linear.float8.enable_fsdp_float8_all_gather", "float8.enable_fsdp_float8_all_gather"];
    let is_gathered = keys.flag(&names, "fp8 weights").unwrap_or(false);
    // torchao gathers in fp8 only with a scale per tensor.
    settings.fp8.has_weights = is_gathered && settings.fp8.recipe.is_none_or(|recipe| recipe == Fp8Recipe::Tensorwise);
    if is_gathered && !settings.fp8.has_weights {
        keys.assume("The all-gather in fp8 has no effect: it needs scales per tensor.");
    }
    settings.precision = Some(if is_enabled || has("float8") || has("mx") {
        Precision::Fp8
    } else if parameters.as_deref() == Some("float32") {
        Precision::Fp32
    } else {
        Precision::Bf16
    });
}

/// True for data, checkpoint, log, learning rate and numerics keys.
fn is_without_effect(key: &str) -> bool {
    const PREFIXES: [&str; 36] = [
        "$",
        "#SBATCH",
        "job.",
        "profiling.",
        "metrics.",
        "optimizer.lr",
        "optimizer.beta",
        "optimizer.eps",
        "optimizer.weight_decay",
        "optimizer.implementation",
        "optimizer.fused",
        "lr_scheduler.",
        "checkpoint.",
        "validation.",
        "comm.",
        "compile.",
        "float8.",
        "quantize.",
        "mx.",
        "activation_checkpoint.early_stop",
        "activation_checkpoint.per_op",
        "fault_tolerance.",
        "memory_estimation.",
        "debug.",
        "model.tokenizer",
        "model.hf_assets",
        "model.norm_type",
        "model.print_after_conversion",
        "training.steps",
        "training.max_norm",
        "training.dataset",
        "training.warmup",
        "training.seed",
        "training.gc_freq",
        "training.deterministic",
        "training.mixed_precision_reduce",
    ];
    PREFIXES.iter().any(|prefix| key.starts_with(prefix)) || key.ends_with("enable_compiled_autograd")
}
