//! Names and defaults of ms-swift, OpenRLHF and TRL that differ from those of the trainer.

use planner::model::ModuleRole;
use planner::training::{Framework, Recompute};

use super::COMMAND;
use super::sharding::stage_in_name;
use super::trained_parts;
use super::tuning::{report_saved, report_stage};
use crate::job_config::keys::Keys;
use crate::job_config::settings::Settings;
use crate::job_config::{ConfigFormat, JobConfigError, launcher, megatron, optimizer};

/// Key of a command that runs Megatron-LM through ms-swift.
pub(super) const MEGATRON: &str = "#megatron";

/// Keys of ms-swift with another name in LLaMA-Factory or in the trainer.
const SWIFT: [(&str, &str); 13] = [
    ("train_type", "finetuning_type"),
    ("sft_type", "finetuning_type"),
    ("tuner_type", "finetuning_type"),
    ("target_modules", "lora_target"),
    ("quant_bits", "quantization_bit"),
    ("quantization_bit", "quantization_bit"),
    ("use_liger", "use_liger_kernel"),
    ("freeze_vit", "freeze_vision_tower"),
    ("freeze_llm", "freeze_language_model"),
    ("rlhf_type", "stage"),
    ("model_id_or_path", "model"),
    ("batch_size", "per_device_train_batch_size"),
    ("max_pixels", "image_max_pixels"),
];

/// Arguments of OpenRLHF with another name in the trainer or in DeepSpeed.
const OPEN_RLHF: [(&str, &str); 18] = [
    ("pretrain", "model_name_or_path"),
    ("micro_train_batch_size", "per_device_train_batch_size"),
    ("train_batch_size", "global_batch_size"),
    ("max_len", "max_length"),
    ("zero_stage", "deepspeed.zero_optimization.stage"),
    ("overlap_comm", "deepspeed.zero_optimization.overlap_comm"),
    ("zpg", "deepspeed.zero_optimization.zero_hpz_partition_size"),
    ("grad_accum_dtype", "deepspeed.data_types.grad_accum_dtype"),
    ("ds_tensor_parallel_size", "deepspeed.tensor_parallel.autotp_size"),
    ("ring_attn_size", "context_parallel_size"),
    ("target_modules", "lora_target"),
    ("flash_attn", "flash_attention"),
    ("prompt_max_len", "max_prompt_length"),
    ("generate_max_len", "max_completion_length"),
    ("max_new_tokens", "max_completion_length"),
    ("actor_num_nodes", "nnodes"),
    ("actor_num_gpus_per_node", "nproc-per-node"),
    ("gradient_checkpointing_use_reentrant", "gradient_checkpointing_kwargs"),
];

/// Starts of arguments of OpenRLHF for data, losses, generation, checkpoints and logs.
const OPEN_RLHF_IGNORED: [&str; 52] = [
    "address",
    "runtime_env",
    "enforce_eager",
    "deepspeed_enable",
    "critic_",
    "ref_",
    "reward_",
    "remote_rm",
    "vllm_",
    "colocate_",
    "rollout_",
    "micro_rollout",
    "n_samples",
    "actor_learning",
    "actor_init",
    "advantage_",
    "apply_chat",
    "aux_loss",
    "async_",
    "beta",
    "chosen_",
    "rejected_",
    "ckpt_",
    "disable_",
    "dynamic_filtering",
    "eps_clip",
    "gamma",
    "generate_",
    "head_prefix",
    "init_kl",
    "input_",
    "kl_",
    "l2",
    "lambd",
    "max_ckpt",
    "max_epochs",
    "max_norm",
    "max_samples",
    "module",
    "multiturn",
    "normalize_reward",
    "num_episodes",
    "output_key",
    "pretrain_mode",
    "prompt_",
    "ring_head_stride",
    "temperature",
    "top_p",
    "use_kl",
    "use_tensorboard",
    "use_wandb",
    "use_ms",
];

/// Sentence for jobs with videos.
pub(super) const VIDEOS: &str = "Videos are not read: a sample has one image. With several frames, the time and memory of the encoder are lower bounds.";

/// Variables of ms-swift that state the frames of videos.
pub(super) const VIDEO: [&str; 6] =
    ["$VIDEO_MAX_PIXELS", "$VIDEO_MIN_PIXELS", "$FPS", "$FPS_MAX_FRAMES", "$FPS_MIN_FRAMES", "$NFRAMES"];

/// Starts of arguments of ms-swift for data, generation, checkpoints and logs.
const SWIFT_IGNORED: [&str; 31] = [
    "acc_strategy",
    "aligner_",
    "beta",
    "check_model",
    "columns",
    "create_checkpoint",
    "custom_",
    "ddp_",
    "deepspeed",
    "external_plugins",
    "interleave_",
    "load_from_cache",
    "log_completions",
    "model_author",
    "model_name",
    "norm_bbox",
    "num_generations",
    "padding_",
    "response_",
    "reward_",
    "rescale_image",
    "split_dataset",
    "stopping_",
    "streaming",
    "system",
    "temperature",
    "truncation_",
    "use_hf",
    "use_vllm",
    "vit_",
    "vllm_",
];

/// Starts of arguments of TRL for data, losses, generation and logs.
const TRL_IGNORED: [&str; 21] = [
    "assistant_only",
    "beta",
    "completion_only",
    "dataset_",
    "eos_token",
    "epsilon",
    "log_completions",
    "max_prompt",
    "model_init",
    "model_revision",
    "num_completions",
    "num_generations",
    "precompute_ref",
    "reference_",
    "reward_",
    "scale_rewards",
    "temperature",
    "top_",
    "truncation_",
    "use_vllm",
    "vllm_",
];

/// Renames the keys of ms-swift and OpenRLHF for the reader of the trainer. Reports keep their names.
pub(super) fn rename(format: ConfigFormat, keys: &mut Keys) {
    let table: &[(&str, &str)] = match format {
        ConfigFormat::Swift => &SWIFT,
        ConfigFormat::OpenRlhf => &OPEN_RLHF,
        _ => &[],
    };
    keys.rename(|key| table.iter().find(|(from, _)| *from == key).map(|(_, to)| (*to).to_owned()));
    match format {
        ConfigFormat::Trl => launcher_name(keys),
        ConfigFormat::TrainingArguments if keys.has(COMMAND) => script(keys),
        ConfigFormat::Swift => swift(keys),
        ConfigFormat::OpenRlhf => open_rlhf(keys),
        _ => {}
    }
}

/// Reads the built-in configurations of TRL for accelerate: `zero1` to `zero3`, `fsdp1`, `fsdp2`.
fn launcher_name(keys: &mut Keys) {
    let Some(name) = keys.peek("accelerate_config").map(str::to_owned) else { return };
    sharding_of(&name, "accelerate_config", keys);
    keys.ignore(|key| key == "accelerate_config");
}

/// Adds the sharding that the name of a configuration of accelerate states. False if it states none.
pub(super) fn sharding_of(name: &str, source: &str, keys: &mut Keys) -> bool {
    let lower = name.to_lowercase();
    let is_deepspeed = ["zero", "deepspeed", "ds_"].iter().any(|word| lower.contains(word));
    let kind = match (is_deepspeed, lower.contains("fsdp")) {
        (true, _) => "DEEPSPEED",
        (false, true) => "FSDP",
        (false, false) => return false,
    };
    keys.derive("accelerate.distributed_type", kind, source);
    if is_deepspeed && let Some(stage) = stage_in_name(name) {
        keys.derive("accelerate.deepspeed_config.zero_stage", &stage.to_string(), source);
    } else if lower.contains("fsdp2") || lower.contains("fsdp_v2") {
        keys.derive("accelerate.fsdp_config.fsdp_version", "2", source);
    }
    true
}

/// Rank of the adapters in scripts that do not state it, as in those of Qwen and LLaVA.
const SCRIPT_RANK: &str = "64";

/// Reads arguments of scripts with the trainer: the stage of DeepSpeed-Chat, and adapters without a switch of PEFT.
fn script(keys: &mut Keys) {
    keys.rename(|key| (key == "zero_stage").then(|| "deepspeed.zero_optimization.stage".to_owned()));
    let is_set =
        |keys: &Keys, name: &str| keys.peek(name).is_some_and(|value| !matches!(value, "false" | "False" | "0"));
    let switches = ["lora_enable", "use_lora", "use_llm_lora", "q_lora", "low_rank_training"];
    let is_quantized = is_set(keys, "q_lora");
    let switch = switches.into_iter().find(|name| keys.has(name));
    let rank = ["lora_r", "lora_rank", "use_llm_lora"].into_iter().find(|name| is_set(keys, name));
    let is_on = switch.is_none_or(|_| switches.iter().any(|name| is_set(keys, name)) || switch == Some("q_lora"));
    keys.ignore(|key| switches.contains(&key));
    if !is_on || keys.has("use_peft") || (rank.is_none() && switch.is_none()) {
        return;
    }
    keys.derive("finetuning_type", if is_quantized { "qlora" } else { "lora" }, "");
    if let Some(rank) = rank {
        let name = keys.file_name(rank);
        // InternVL states the rank as the switch.
        if rank == "use_llm_lora" {
            keys.rename(|key| (key == "use_llm_lora").then(|| "lora_r".to_owned()));
        }
        keys.assume(format!("{name} is stated. The script is read as fine-tuning of adapters (LoRA)."));
    } else {
        keys.derive("lora_r", SCRIPT_RANK, "");
        keys.assume(format!(
            "The rank of the adapters is a default of the script. It is read as {SCRIPT_RANK}; state --lora_r."
        ));
    }
}

fn swift(keys: &mut Keys) {
    if keys.peek("quantization_bit") == Some("0") {
        keys.ignore(|key| key == "quantization_bit");
    }
    match keys.peek("torch_dtype") {
        Some("bfloat16") if !keys.has("bf16") => keys.derive("bf16", "true", "torch_dtype"),
        Some("float16") if !keys.has("fp16") => keys.derive("fp16", "true", "torch_dtype"),
        Some("float32") if !keys.has("bf16") => keys.derive("bf16", "false", "torch_dtype"),
        _ => {}
    }
}

/// Adds the switches of OpenRLHF as keys of DeepSpeed, and its defaults.
fn open_rlhf(keys: &mut Keys) {
    let is_on = |keys: &Keys, name: &str| keys.peek(name).is_some_and(|value| value != "false");
    if is_on(keys, "adam_offload") {
        keys.derive("deepspeed.zero_optimization.offload_optimizer.device", "cpu", "adam_offload");
    }
    // Packed sequences need FlashAttention.
    if is_on(keys, "packing_samples") && !keys.has("attn_implementation") {
        keys.derive("flash_attention", "true", "packing_samples");
    }
    if let Some(format) = keys.peek("param_dtype").map(str::to_owned) {
        for (name, key) in [("bf16", "bf16"), ("fp16", "fp16")] {
            if format == name {
                keys.derive(key, "true", "param_dtype");
            }
        }
    }
    let rank = keys.peek("lora_rank").and_then(|rank| rank.parse::<u32>().ok()).unwrap_or(0);
    if rank > 0 {
        keys.derive("finetuning_type", "lora", "lora_rank");
        // The rank itself is read as a setting too.
        keys.derive("lora_r", &rank.to_string(), "lora_rank");
    }
    for (name, value, setting) in [
        ("deepspeed.zero_optimization.stage", "2", "ZeRO stage"),
        ("per_device_train_batch_size", if is_generated(keys) { "4" } else { "8" }, "microbatch"),
        ("global_batch_size", "128", "global batch"),
    ] {
        if !keys.has(name) {
            keys.derive(name, value, "");
            keys.assume(format!("OpenRLHF's default {setting} is {value}."));
        }
    }
    if !keys.has("deepspeed.zero_optimization.overlap_comm") {
        keys.derive("deepspeed.zero_optimization.overlap_comm", "false", "");
        keys.assume("OpenRLHF's default does not overlap gradient communication.");
    }
    if !keys.has("gradient_checkpointing") {
        keys.derive("gradient_checkpointing", "false", "");
        keys.assume("OpenRLHF's default stores all activations (no gradient checkpointing).");
    }
}

/// True for training with generated answers.
fn is_generated(keys: &Keys) -> bool {
    let kinds = ["ppo", "grpo", "rloo", "online_dpo"];
    let is_kind = |key: &str| keys.peek(key).is_some_and(|value| kinds.iter().any(|kind| value.starts_with(kind)));
    // Arguments of the programs of OpenRLHF, and of job files of TRL.
    is_kind(COMMAND) || is_kind("stage") || keys.has("rollout_batch_size") || has_completions(keys)
}

/// True for job files of TRL with generated answers.
fn has_completions(keys: &Keys) -> bool {
    keys.has("max_completion_length") && (keys.has("num_generations") || keys.has("max_prompt_length"))
}

/// Returns the kind of training that the arguments of a script with the trainer imply; empty if it is not known.
fn implied_kind(keys: &Keys) -> &'static str {
    match (has_completions(keys), keys.has("max_prompt_length"), keys.has("dpo_beta") || keys.has("dpo_loss_type")) {
        (true, ..) => "grpo",
        (false, _, true) => "dpo",
        // Pairs of answers, as of DPO, ORPO and CPO.
        (false, true, _) => "orpo",
        _ => "",
    }
}

/// Returns the tokens of prompt and answer, for training with generated answers.
pub(super) fn generated(format: ConfigFormat, keys: &mut Keys) -> Result<Option<u32>, JobConfigError> {
    let (prompt, answer) = match format {
        _ if !is_generated(keys) => return Ok(None),
        ConfigFormat::Trl | ConfigFormat::TrainingArguments => (512, 256),
        ConfigFormat::Swift => (512, 512),
        ConfigFormat::OpenRlhf => (1024, 1024),
        _ => return Ok(None),
    };
    let is_trl = matches!(format, ConfigFormat::Trl | ConfigFormat::TrainingArguments);
    let total = if is_trl { None } else { keys.count(&["max_length"], "tokens of a prompt")? };
    let stated = total.or(keys.count(&["max_prompt_length"], "tokens of a prompt")?);
    let answers = keys.count(&["max_completion_length"], "tokens of an answer")?;
    if stated.is_none() {
        keys.assume(format!("The longest prompt is not stated. It is read as {prompt} tokens."));
    }
    if answers.is_none() {
        keys.assume(format!("The longest answer is not stated. It is read as {answer} tokens."));
    }
    Ok(Some(stated.unwrap_or(prompt).saturating_add(answers.unwrap_or(answer))))
}

/// Reports settings of ms-swift for the encoder, batches and videos that a scenario does not have.
pub(super) fn report_swift(keys: &mut Keys, settings: &Settings) {
    let is_full = settings.recompute == Some(Recompute::Full);
    let recomputes_encoder = keys.flag(&["vit_gradient_checkpointing"], "recomputation of the encoder");
    // A frozen encoder has no backward pass.
    let is_trained = !settings.frozen.contains(&ModuleRole::VisionEncoder);
    match recomputes_encoder.filter(|_| is_trained) {
        Some(true) if !is_full => keys.not_modelled(
            "Recomputation of the vision encoder alone (vit_gradient_checkpointing) is not applied: its memory is an upper bound, \
             and its time a lower one.",
        ),
        Some(false) if is_full => keys.not_modelled(
            "The vision encoder is read as recomputed, although vit_gradient_checkpointing is off: its memory is a lower bound, \
             and its time an upper one.",
        ),
        _ => {}
    }
    if keys.flag(&["padding_free"], "batches").unwrap_or(false) {
        keys.not_modelled("Batches without padding are read as batches of samples with the stated length.");
    }
    if VIDEO.iter().any(|name| keys.has(name)) {
        keys.not_modelled(VIDEOS);
    }
}

/// Reads the devices of the launcher of a command line.
pub(super) fn devices(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    if !keys.has(COMMAND) {
        return Ok(());
    }
    launcher::devices(keys, settings)?;
    one_node(keys, settings)
}

/// Counts the visible devices, and sets the default number of nodes of a launcher.
fn one_node(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let visible = keys.count(&["include", "$CUDA_VISIBLE_DEVICES"], "devices of a node")?;
    if settings.devices.is_some() || keys.has("accelerate.num_processes") {
        return Ok(());
    }
    settings.devices_per_node = settings.devices_per_node.or(visible);
    if settings.devices_per_node.is_some() && settings.nodes.is_none() {
        keys.assume(launcher::ONE_NODE);
        settings.nodes = Some(1);
    }
    Ok(())
}

/// Reports properties of the programs that a scenario does not have, and ignores their other keys.
pub(super) fn report(format: ConfigFormat, keys: &mut Keys) {
    if let Some(kind) = keys.peek(COMMAND).map(|kind| kind.trim_end_matches("_ray").to_owned()) {
        let is_generated = kind.is_empty() && format == ConfigFormat::OpenRlhf && is_generated(keys);
        report_stage(if is_generated { "ppo" } else { &kind }, keys);
        let has_others =
            ["critic_num", "ref_num", "reward_num", "vllm_num"].iter().any(|start| keys.has_section(start));
        if format == ConfigFormat::OpenRlhf && has_others {
            keys.not_modelled(
                "Only the devices of the actor are read. Those of the critic, the reference, the reward model and vLLM are left out.",
            );
        }
    }
    let implied = if format == ConfigFormat::TrainingArguments { implied_kind(keys) } else { "" };
    if keys.peek(COMMAND).is_none_or(str::is_empty) {
        report_stage(implied, keys);
    }
    let ignored: &[&str] = match format {
        ConfigFormat::Trl => &TRL_IGNORED,
        ConfigFormat::TrainingArguments if !implied.is_empty() => &TRL_IGNORED,
        ConfigFormat::Swift => &SWIFT_IGNORED,
        ConfigFormat::OpenRlhf => &OPEN_RLHF_IGNORED,
        _ => &[],
    };
    keys.ignore(|key| key.starts_with(['$', '#']) || ignored.iter().any(|start| key.starts_with(start)));
    if keys.has(COMMAND) {
        keys.ignore(|key| {
            ["nnodes", "nproc-per-node", "num-gpus", "num-nodes", "include"].contains(&key)
                || [
                    "master_",
                    "node_rank",
                    "rdzv_",
                    "standalone",
                    "hostfile",
                    "module",
                    "tee",
                    "local_rank",
                    "jobid",
                    "ntasks",
                    "cpus_per",
                    "export",
                    "kill_on",
                    "wait",
                    "no_wait",
                    "max_restarts",
                    "role",
                    "local_ranks",
                    "use_fast",
                    "lazy_",
                    "image_folder",
                    "reduce_loss",
                    "version",
                    "tf32",
                ]
                .iter()
                .any(|start| key.starts_with(start))
        });
    }
}

/// Starts of arguments of ms-swift with Megatron-LM for data, checkpoints and logs.
const MEGATRON_IGNORED: [&str; 32] = [
    "#",
    "$",
    "model",
    "packing",
    "dataset",
    "split-dataset",
    "load-safetensors",
    "save-safetensors",
    "max-epochs",
    "merge-lora",
    "lora-alpha",
    "lora-bias",
    "lora-dropout",
    "lora-dtype",
    "modules-to-save",
    "no-initialization",
    "exit-on",
    "vit-",
    "aligner-",
    "use-hf",
    "system",
    "attn-impl",
    "cached-dataset",
    "num-train-epochs",
    "streaming",
    "beta",
    "loss-type",
    "rpo-",
    "torch-dtype",
    "load-from-cache",
    "cross-entropy",
    "ddp-",
];

/// Reads the Megatron-LM of ms-swift.
pub(super) fn read_megatron(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    keys.rename(|key| match key {
        "max-length" => Some("seq-length".to_owned()),
        "train-type" | "tuner-type" => Some("finetuning_type".to_owned()),
        "lora-rank" => Some("lora_rank".to_owned()),
        "target-modules" => Some("lora_target".to_owned()),
        _ => None,
    });
    keys.rename(|key| match key {
        "freeze-vit" => Some("freeze_vision_tower".to_owned()),
        "freeze-llm" => Some("freeze_language_model".to_owned()),
        "freeze-aligner" => Some("freeze_aligner".to_owned()),
        "vit-gradient-checkpointing" | "padding-free" | "freeze-parameters" | "freeze-parameters-ratio" => {
            Some(key.replace('-', "_"))
        }
        _ => None,
    });
    let names: [&'static str; 2] = ["model", "load"];
    let name = names.into_iter().find_map(|name| Some((name, keys.text(&[name], "model")?)));
    // The checkpoint of a model in the format of Megatron-LM has the name of the model.
    let name = name.map(|(key, name)| (key, name.trim_end_matches('/').trim_end_matches("-mcore").to_owned()));
    for (key, value, sentence) in [
        ("micro-batch-size", "1", "microbatch is 1 sequence"),
        ("global-batch-size", "16", "global batch is 16 sequences"),
        ("recompute-granularity", "selective", "recomputation is selective"),
        ("use-distributed-optimizer", "true", "optimizer is distributed (ZeRO stage 1)"),
        ("attention-backend", "flash", "attention kernel is FlashAttention"),
        ("expert-tensor-parallel-size", "1", "tensor parallelism of experts is 1"),
    ] {
        if !keys.has(key) {
            keys.derive(key, value, "");
            keys.assume(format!("ms-swift's default {sentence}."));
        }
    }
    match keys.peek("torch-dtype") {
        Some("float16") => keys.derive("fp16", "true", "torch-dtype"),
        Some("float32") => keys.ignore(|key| key == "torch-dtype"),
        Some(_) => keys.derive("bf16", "true", "torch-dtype"),
        None if keys.has("bf16") || keys.has("fp16") => {}
        None => {
            keys.derive("bf16", "true", "");
            keys.assume("ms-swift's default precision is bf16.");
        }
    }
    let pixels = keys.count(&["max-pixels", "$MAX_PIXELS"], "size of images")?;
    let has_whole_experts = keys.peek("expert-tensor-parallel-size").is_some_and(|degree| degree == "1");
    let mut settings = megatron::read_job(keys)?;
    if has_whole_experts && settings.expert.is_some_and(|degree| degree > 1) {
        settings.expert_tensor = Some(1);
    }
    settings.model_name = name;
    settings.image_pixels = pixels.map(|pixels| ("MAX_PIXELS".to_owned(), pixels));
    settings.framework = Some(Framework::Megatron);
    one_node(keys, &mut settings)?;
    if keys.text(&["finetuning_type"], "fine-tuning").is_some_and(|kind| kind == "lora") {
        optimizer::read_adapters(keys, &mut settings, (8, true), None)?;
        report_saved(keys);
    }
    trained_parts::read(ConfigFormat::Swift, keys, &mut settings);
    report_swift(keys, &settings);
    if let Some(kind) = keys.text(&["rlhf-type"], "fine-tuning").or_else(|| keys.peek(COMMAND).map(str::to_owned)) {
        report_stage(&kind, keys);
    }
    keys.ignore(|key| MEGATRON_IGNORED.iter().any(|start| key.starts_with(start)));
    Ok(settings)
}
