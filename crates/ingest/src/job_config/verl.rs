//! verl: overrides `section.key=value` of a command line, or YAML. The training step of the actor, or of supervised
//! fine-tuning, is read.

use planner::model::{Adapters, ModuleRole};
use planner::training::{AttentionKernel, ContextExchange, Framework, Precision, Recompute, RecomputedModule};

use super::keys::Keys;
use super::settings::{Batch, Loss, Settings, Sharding};
use super::{JobConfigError, arguments, megatron, megatron_ignored, megatron_stages, optimizer};

const ACTOR: &str = "actor_rollout_ref.actor.";

/// Sections of the actor with arguments of Megatron-LM.
const OVERRIDES: [&str; 2] = ["megatron.override_transformer_config.", "optim.override_optimizer_config."];

/// Returns the argument of Megatron-LM for a field of Megatron-Core.
fn argument(field: &str) -> String {
    match field {
        "num_layers_in_first_pipeline_stage" => "decoder-first-pipeline-num-layers".to_owned(),
        "num_layers_in_last_pipeline_stage" => "decoder-last-pipeline-num-layers".to_owned(),
        other => other.replace('_', "-"),
    }
}

/// Starts of keys for generation, data, losses, checkpoints and logs.
const WITHOUT_EFFECT: [&str; 67] = [
    "no-wait",
    // Arguments of `ray start` and `ray job submit`.
    "head",
    "address",
    "runtime-env",
    "working-dir",
    "actor_rollout_ref.rollout.",
    "actor_rollout_ref.ref.",
    "actor_rollout_ref.hybrid_engine",
    "actor_rollout_ref.nccl_timeout",
    "actor_rollout_ref.actor.checkpoint.",
    "actor_rollout_ref.actor.optim.",
    "actor_rollout_ref.actor.profiler.",
    "actor_rollout_ref.actor.policy_loss.",
    "actor_rollout_ref.actor.clip",
    "actor_rollout_ref.actor.grad_clip",
    "actor_rollout_ref.actor.tis_imp",
    "actor_rollout_ref.actor.entropy",
    "actor_rollout_ref.actor.kl_",
    "actor_rollout_ref.actor.use_kl",
    "actor_rollout_ref.actor.loss_",
    "actor_rollout_ref.actor.ppo_epochs",
    "actor_rollout_ref.actor.shuffle",
    "actor_rollout_ref.actor.data_loader_seed",
    "actor_rollout_ref.actor.calculate",
    "actor_rollout_ref.actor.load_weight",
    "actor_rollout_ref.actor.use_dynamic_bsz",
    "actor_rollout_ref.actor.recompute_old",
    "actor_rollout_ref.actor.router_replay",
    "actor_rollout_ref.actor.fsdp_config.wrap_policy",
    "actor_rollout_ref.actor.fsdp_config.forward_prefetch",
    "actor_rollout_ref.actor.fsdp_config.entropy",
    "actor_rollout_ref.actor.fsdp_config.use_orig",
    "actor_rollout_ref.actor.fsdp_config.seed",
    "actor_rollout_ref.actor.megatron.use_dist_checkpointing",
    "actor_rollout_ref.actor.megatron.dist_checkpointing",
    "actor_rollout_ref.actor.megatron.use_mbridge",
    "actor_rollout_ref.actor.megatron.vanilla_mbridge",
    "actor_rollout_ref.actor.megatron.seed",
    "actor_rollout_ref.actor.megatron.extra",
    "actor_rollout_ref.actor.megatron.load_weight",
    "actor_rollout_ref.model.external_lib",
    "actor_rollout_ref.model.trust_remote",
    "actor_rollout_ref.model.custom_chat",
    "actor_rollout_ref.model.tokenizer",
    "actor_rollout_ref.model.hf_config_path",
    "actor_rollout_ref.model.use_shm",
    "actor_rollout_ref.model.lora_",
    "actor_rollout_ref.model.lora.",
    "actor_rollout_ref.model.use_remove_padding",
    "actor_rollout_ref.model.fused_kernel",
    "actor_rollout_ref.model.use_fused",
    "actor_rollout_ref.model.mtp.",
    "algorithm.",
    "config-",
    "critic.",
    "data.",
    "global_profiler.",
    "hydra.",
    "model.",
    "optim.",
    "ray_",
    "reward_",
    "standalone",
    "trainer.",
    "use_",
    "custom_",
    "$",
];

pub(super) fn is_job(keys: &Keys) -> bool {
    keys.has_section("actor_rollout_ref.") || (keys.has("model.partial_pretrain") && keys.has_section("data."))
}

/// True if a script runs verl.
pub(super) fn is_command(text: &str) -> bool {
    text.contains("actor_rollout_ref.") || text.contains("verl.trainer")
}

/// Adds the overrides of a command line to its arguments.
pub(super) fn add_overrides(keys: &mut Keys, text: &str) -> Result<(), JobConfigError> {
    for word in arguments::expanded_words(text, keys) {
        let word = word.trim_matches(['"', '\'', '\\']).trim_start_matches('+');
        let Some((key, value)) = word.split_once('=') else { continue };
        // A variable of the script. In a list of arguments, this setting of fine-tuning looks like one.
        if key != "ulysses_sequence_parallel_size" && keys.has(&format!("${key}")) {
            continue;
        }
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        let is_path = key.contains('.') || key.contains("_size") || key.starts_with("use_");
        if is_path && key.chars().all(is_key) && value != "null" {
            keys.push(key.to_owned(), value.trim_matches(['"', '\'']).to_owned())?;
        }
    }
    Ok(())
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let mut settings = Settings { has_layout: true, ..Settings::default() };
    let names: [&'static str; 2] = ["actor_rollout_ref.model.path", "model.partial_pretrain"];
    settings.model_name = names.into_iter().find_map(|name| Some((name, keys.text(&[name], "model")?)));
    let is_actor = keys.has_section("actor_rollout_ref.");
    if is_actor {
        keys.not_modelled(
            "Only the training step of the actor is read. Generation, the reference, the reward model and the critic are \
             left out.",
        );
    }
    sequence(keys, &mut settings, is_actor)?;
    degrees(keys, &mut settings)?;
    batch(keys, &mut settings, is_actor)?;
    memory(keys, &mut settings)?;
    adapters(keys, &mut settings)?;
    let names = [
        "actor_rollout_ref.actor.fsdp_config.mixed_precision.param_dtype",
        "actor_rollout_ref.actor.fsdp_config.dtype",
        "model.fsdp_config.mixed_precision.param_dtype",
    ];
    settings.precision = Some(match keys.text(&names, "precision").as_deref() {
        Some("fp32" | "float32") => Precision::Fp32,
        Some(_) => Precision::Bf16,
        None => {
            keys.assume("verl's default precision is bf16.");
            Precision::Bf16
        }
    });
    if megatron::fp8(keys, &mut settings)? {
        settings.precision = Some(Precision::Fp8);
    }
    details(keys, &mut settings);
    settings.overlapped_gradients = Some(true);
    settings.fused_weight_gradients = Some(false);
    settings.sequence_parallel = Some(true);
    keys.ignore(|key| WITHOUT_EFFECT.iter().any(|start| key.starts_with(start)));
    keys.ignore(|key| !key.contains('.') && megatron_ignored::is_without_effect(key));
    Ok(settings)
}

/// Reads the adapters and whether the vision encoder is frozen. Adapters freeze all weights of the base model.
fn adapters(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    // The second name is that of adapters of Megatron-LM.
    let mut rank = None;
    for name in ["actor_rollout_ref.model.lora_rank", "actor_rollout_ref.model.lora.rank", "model.lora_rank"] {
        rank = rank.or(keys.count(&[name], "fine-tuning")?);
    }
    let names = [
        "actor_rollout_ref.model.target_modules",
        "actor_rollout_ref.model.lora.target_modules",
        "model.target_modules",
    ];
    let targets = keys.text(&names, "fine-tuning").filter(|_| rank.is_some());
    let excluded = keys.text(&["actor_rollout_ref.model.exclude_modules"], "fine-tuning").unwrap_or_default();
    if let Some(rank) = rank {
        if targets.is_none() {
            keys.assume("verl's default adapts all linear layers.");
        }
        let targets = targets.unwrap_or_else(|| "all-linear".to_owned());
        let mlp = ["all-linear", "up_proj", "gate_proj", "down_proj", "fc"].iter().any(|name| targets.contains(name));
        settings.adapters = Some(Adapters { rank, mlp, base_bits: None });
        let is_text_only = ["visual", "vision"].iter().any(|word| excluded.contains(word))
            || targets.contains("language_model")
            || keys.has_section("actor_rollout_ref.actor.megatron.");
        settings.vision.has_adapters = !is_text_only;
    }
    let is_frozen = keys.flag(&["actor_rollout_ref.actor.freeze_vision_tower"], "frozen vision encoder");
    if rank.is_some() || is_frozen == Some(true) {
        settings.frozen.push(ModuleRole::VisionEncoder);
        settings.vision.has_frozen_projector = true;
    }
    Ok(())
}

/// Reads the remaining settings of the actor, and reports those that are not applied.
fn details(keys: &mut Keys, settings: &mut Settings) {
    let models = ["actor_rollout_ref.model.", "model."];
    let name = "override_config.attn_implementation";
    let kernels = models.map(|section| format!("{section}{name}"));
    settings.attention = keys
        .text(&kernels.each_ref().map(String::as_str), "attention kernel")
        .map(|kernel| if kernel == "eager" { AttentionKernel::Unfused } else { AttentionKernel::Flash });
    let optimizers = ["actor_rollout_ref.actor.optim.optimizer", "optim.optimizer"];
    if let Some(name) = keys.text(&optimizers, "optimizer") {
        optimizer::set(&name, keys, settings);
    }
    let liger = models.map(|section| format!("{section}use_liger"));
    settings.is_compiled = keys.flag(&liger.each_ref().map(String::as_str), "fused kernels").unwrap_or(false);
    let fused = models.map(|section| format!("{section}use_fused_kernels"));
    let is_fused = keys.flag(&fused.each_ref().map(String::as_str), "fused kernels").unwrap_or(false);
    if settings.is_compiled || is_fused {
        settings.loss = Loss::Chunked;
    } else if keys.flag(&["actor_rollout_ref.model.use_remove_padding"], "loss").unwrap_or(false) {
        // With an entropy term, the logits are read again after the loss.
        let entropy = keys.text(&["actor_rollout_ref.actor.entropy_coeff"], "loss");
        if entropy.is_none_or(|factor| factor.trim().parse() == Ok(0.0)) {
            settings.loss = Loss::InPlace;
        } else {
            keys.assume("The entropy term of the loss stores the logits and their softmax, 16 bytes per logit.");
        }
    }
    let shards = keys.text(&["actor_rollout_ref.actor.fsdp_config.fsdp_size"], "sharding");
    settings.sharding = shards.and_then(|size| size.trim().parse().ok()).map(Sharding::Shards);
    if keys.flag(&["actor_rollout_ref.actor.fsdp_config.offload_policy"], "offload").unwrap_or(false) {
        settings.offload_states();
    }
    if keys.flag(&["actor_rollout_ref.model.enable_activation_offload"], "offload").unwrap_or(false) {
        settings.activation_offload = 1.0;
    }
    let names = ["actor_rollout_ref.actor.fsdp_config.model_dtype", "model.fsdp_config.model_dtype"];
    if keys.text(&names, "format of weights").is_some_and(|name| name.contains("bf16") || name.contains("bfloat16")) {
        settings.set_pure_bf16();
    }
    let compiles = ["use_torch_compile", "fsdp_config.use_torch_compile"];
    for name in compiles {
        // verl compiles the loss only.
        keys.ignore(|key| key.strip_prefix(ACTOR) == Some(name));
    }
}

fn sequence(keys: &mut Keys, settings: &mut Settings, is_actor: bool) -> Result<(), JobConfigError> {
    if !is_actor {
        settings.sequence = keys.count(&["data.max_length"], "sequence length")?;
        if settings.sequence.is_none() {
            keys.assume("verl's default sequence length of fine-tuning is 1024 tokens.");
            settings.sequence = Some(1024);
        }
        return Ok(());
    }
    let mut length = |name, setting| {
        let stated = keys.count(&[name], setting)?;
        if stated.is_none() {
            keys.assume(format!("verl's default of {name} is 512 tokens."));
        }
        Ok::<_, JobConfigError>(stated.unwrap_or(512))
    };
    let prompt = length("data.max_prompt_length", "tokens of a prompt")?;
    let response = length("data.max_response_length", "tokens of a response")?;
    settings.sequence = Some(prompt.saturating_add(response));
    Ok(())
}

fn degrees(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    keys.rename(|key| {
        let name = key.strip_prefix(ACTOR)?;
        OVERRIDES.iter().find_map(|section| name.strip_prefix(section)).map(argument)
    });
    megatron_stages::read(keys, settings, None)?;
    settings.dispatch_by_node = keys.flag(&["moe-enable-deepep"], "exchange between experts");
    optimizer::read_offload(keys, settings)?;
    let mut degree = |name: &str, setting| keys.count(&[&format!("{ACTOR}megatron.{name}")], setting);
    settings.tensor = degree("tensor_model_parallel_size", "tensor parallelism")?;
    settings.pipeline = degree("pipeline_model_parallel_size", "pipeline parallelism")?;
    settings.chunks = degree("virtual_pipeline_model_parallel_size", "model chunks of a rank")?;
    settings.context = degree("context_parallel_size", "context parallelism")?;
    settings.expert = degree("expert_model_parallel_size", "expert parallelism")?;
    let expert_tensor = degree("expert_tensor_parallel_size", "tensor parallelism of experts")?;
    let is_sharded =
        settings.expert.is_some_and(|degree| degree > 1) && settings.tensor.is_some_and(|degree| degree > 1);
    settings.expert_tensor = (is_sharded && expert_tensor == Some(1)).then_some(1);
    let names = [
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
        "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size",
        "ulysses_sequence_parallel_size",
    ];
    let ulysses = keys.agreed_count(&names, "context parallelism (Ulysses)")?.filter(|&degree| degree > 1);
    if ulysses.is_some() {
        settings.context_exchange = ContextExchange::AllToAll;
    }
    settings.context = ulysses.or(settings.context);
    settings.nodes = keys.launch_count(&["trainer.nnodes", "nnodes"], "nodes")?;
    settings.devices_per_node =
        keys.launch_count(&["trainer.n_gpus_per_node", "nproc-per-node"], "devices of a node")?;
    Ok(())
}

fn batch(keys: &mut Keys, settings: &mut Settings, is_actor: bool) -> Result<(), JobConfigError> {
    let names = [
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
        "data.micro_batch_size_per_gpu",
        "data.micro_batch_size",
    ];
    settings.microbatch = keys.launch_count(&names, "sequences of a microbatch")?;
    let is_dynamic = keys.flag(&["actor_rollout_ref.actor.use_dynamic_bsz"], "microbatches").unwrap_or(false);
    let budget = keys.count(&["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"], "tokens of a microbatch")?;
    let (name, setting) = if is_actor {
        ("actor_rollout_ref.actor.ppo_mini_batch_size", "prompts of a step")
    } else {
        ("data.train_batch_size", "global batch")
    };
    settings.batch_key = Some(name);
    let prompts = keys.launch_count(&[name], setting)?.unwrap_or_else(|| {
        keys.assume(format!("verl's default of {name} is 256."));
        256
    });
    let samples = keys.launch_count(&["actor_rollout_ref.rollout.n"], "responses of a prompt")?.unwrap_or(1);
    let sequences = prompts.saturating_mul(if is_actor { samples } else { 1 });
    settings.batch = Batch::Global(sequences);
    if is_dynamic {
        dynamic_microbatch(keys, settings, sequences, budget);
    }
    Ok(())
}

/// Sets the number of sequences of a microbatch with a limit of tokens: as many as fit with the full length, and divide
/// the batch. The members of a Ulysses group share the tokens.
fn dynamic_microbatch(keys: &mut Keys, settings: &mut Settings, sequences: u32, budget: Option<u32>) {
    if budget.is_none() {
        keys.assume("verl's default of ppo_max_token_len_per_gpu is 16384 tokens.");
    }
    let budget = budget.unwrap_or(16_384);
    let (Some(length), context) = (settings.sequence, settings.context.unwrap_or(1)) else { return };
    let most = (budget.saturating_mul(context) / length.max(1)).max(1);
    let devices = settings.stated_devices().unwrap_or(1);
    let replicas = (devices / settings.devices_per_replica().max(1)).max(1);
    let divides = |count: &u32| sequences.is_multiple_of(count.saturating_mul(replicas));
    let count = (1..=most.min(sequences.max(1))).rev().find(divides).unwrap_or(1);
    settings.microbatch = Some(count);
    keys.assume(format!(
        "A microbatch has at most {budget} tokens per device (use_dynamic_bsz): {count} sequences of {length} tokens."
    ));
}

fn memory(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let is_megatron = keys.has_section("actor_rollout_ref.actor.megatron.");
    let strategy = keys.text(&["actor_rollout_ref.actor.strategy"], "sharding").unwrap_or_default();
    let names =
        ["actor_rollout_ref.actor.fsdp_config.reshard_after_forward", "model.fsdp_config.reshard_after_forward"];
    let is_resharded = keys.flag(&names, "ZeRO stage").unwrap_or(true);
    settings.zero = Some(match (is_megatron || strategy == "megatron", is_resharded) {
        (true, _) => {
            settings.framework = Some(Framework::Megatron);
            keys.assume("verl's default with Megatron-LM shards the optimizer state (ZeRO stage 1).");
            1
        }
        (false, true) => 3,
        (false, false) => 2,
    });
    let names = ["actor_rollout_ref.model.enable_gradient_checkpointing", "model.enable_gradient_checkpointing"];
    let trainer = keys.flag(&names, "recomputation");
    let granularity = keys.text(&["recompute-granularity"], "recomputation");
    let method = keys.text(&["recompute-method"], "recomputation");
    let layers = keys.count(&["recompute-num-layers"], "layers with recomputation")?;
    if method.as_deref() == Some("block") {
        settings.recompute_layers = layers;
    }
    settings.recompute = Some(match (granularity.as_deref(), is_megatron, trainer) {
        (Some("full"), ..) | (_, false, Some(true)) => Recompute::Full,
        (Some("selective"), ..) => Recompute::Selective,
        (_, false, None) => {
            keys.assume("verl's default gradient checkpointing is on: all layers are recomputed.");
            Recompute::Full
        }
        _ => Recompute::None,
    });
    if settings.recompute == Some(Recompute::Selective) && is_megatron {
        settings.recompute_modules.push(RecomputedModule::CoreAttn);
    }
    let offload = [
        "fsdp_config.param_offload",
        "fsdp_config.optimizer_offload",
        "megatron.param_offload",
        "megatron.grad_offload",
        "megatron.optimizer_offload",
    ];
    let mut is_offloaded = false;
    for name in offload {
        is_offloaded |= keys.flag(&[&format!("{ACTOR}{name}")], "offload").unwrap_or(false);
    }
    if is_offloaded {
        keys.assume(
            "verl offloads parameters and the optimizer between its phases. They are on the device in a training step.",
        );
    }
    Ok(())
}
