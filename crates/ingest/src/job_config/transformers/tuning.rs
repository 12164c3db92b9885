//! Fine-tuning methods, frozen modules, optimizers and losses.

use super::trained_parts;
use crate::job_config::keys::Keys;
use crate::job_config::settings::{Loss, Settings};
use crate::job_config::{ConfigFormat, JobConfigError, optimizer};

/// Keys that are switches of methods that a scenario cannot represent, with the consequence.
const SWITCHES: [(&[&str], &str); 4] = [
    (&["quant_config.name"], "The quantized weights are read as bf16."),
    (
        &["use_galore", "use_apollo", "use_badam"],
        "The optimizer is read as Adam with the states of all parameters, so memory is an upper bound.",
    ),
    (
        &["freeze_trainable_layers", "unfrozen_parameters"],
        "Frozen parts of the language model are counted as if they were trained, so memory and time are upper bounds.",
    ),
    (&["rl", "rlhf"], REFERENCE),
];

/// Switches of a loss without stored logits.
const CHUNKED_LOSS: [&str; 5] = [
    "use_liger_kernel",
    "enable_liger_kernel",
    "liger_fused_linear_cross_entropy",
    "chunked_cross_entropy",
    "cut_cross_entropy",
];

/// Keys of modules that are trained in full beside the adapters.
pub(super) const SAVED: [&str; 5] =
    ["lora_modules_to_save", "modules_to_save", "peft_config.modules_to_save", "additional_target", "modules-to-save"];

/// Keys of adapters. Those of the rank and of the adapted layers are settings.
const LORA: [&str; 41] = [
    "lora_alpha",
    "lora_bias",
    "lora_ckpt",
    "lora_dim",
    "lora_dropout",
    "lora_dtype",
    "lora_embedding_kernel",
    "lora_enable",
    "lora_fan_in_fan_out",
    "lora_ga_batch_size",
    "lora_ga_direction",
    "lora_ga_iters",
    "lora_ga_max_length",
    "lora_ga_scale",
    "lora_ga_stable_gamma",
    "lora_learning_rate",
    "lora_lr_ratio",
    "lora_mlp_kernel",
    "lora_model_dir",
    "lora_module_name",
    "lora_modules",
    "lora_modules_to_save",
    "lora_namespan_exclude",
    "lora_o_kernel",
    "lora_on_cpu",
    "lora_path",
    "lora_qkv_kernel",
    "lora_r",
    "lora_rank",
    "lora_target",
    "lora_target_linear",
    "lora_target_modules",
    "lora_target_parameters",
    "lora_target_regex",
    "lora_task_type",
    "lora_type",
    "lora_weight_path",
    "lorap_emb_lr",
    "lorap_lr_ratio",
    "loraplus_lr_embedding",
    "loraplus_lr_ratio",
];

const REFERENCE: &str = "The reference, reward or value model is left out, so memory and time are lower bounds.";

pub(super) fn read(format: ConfigFormat, keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let kind = keys.text(&["finetuning_type", "adapter", "peft_method"], "fine-tuning");
    let kind = kind.unwrap_or_else(|| match format {
        ConfigFormat::Swift => {
            keys.assume("ms-swift's default fine-tunes adapters (LoRA).");
            "lora".to_owned()
        }
        _ => String::new(),
    });
    let peft = keys.flag(&["use_peft"], "fine-tuning").unwrap_or(false) || keys.has_section("peft_config.");
    let stated_bits = base_bits(keys, kind == "qlora");
    match kind.to_lowercase().as_str() {
        "" | "full" | "none" if !peft => {}
        "freeze" => keys.not_modelled("Frozen layers are read as trained layers, so memory and time are upper bounds."),
        _ => {
            let bits = stated_bits.or_else(|| bits_in_name(settings, keys));
            // LLaMA-Factory and ms-swift adapt all linear layers with rank 8; PEFT and TRL adapt queries and values.
            // The scripts of LLaVA, Qwen and InternVL adapt all linear layers of the language model.
            let is_script = ["lora_enable", "use_lora"].iter().any(|name| keys.has(name))
                || keys.file_name("lora_r").contains("use_llm_lora");
            let is_all = matches!(format, ConfigFormat::LlamaFactory | ConfigFormat::Swift | ConfigFormat::OpenRlhf)
                || is_script;
            let defaults = if is_all { (8, true) } else { (16, false) };
            optimizer::read_adapters(keys, settings, defaults, bits)?;
            report_saved(keys);
        }
    }
    keys.name(LORA.into_iter());
    keys.ignore(|key| {
        LORA.contains(&key)
            || SAVED.contains(&key)
            || ["peft_", "galore_", "apollo_", "badam_"].iter().any(|start| key.starts_with(start))
    });
    for (names, sentence) in SWITCHES {
        for name in names {
            if is_on(keys, name, "fine-tuning") {
                keys.not_modelled(sentence);
            }
        }
    }
    for name in CHUNKED_LOSS {
        if is_on(keys, name, "loss in chunks") {
            settings.loss = Loss::Chunked;
        }
    }
    // The plugin of axolotl for Liger-Kernel has a switch of its own for the loss.
    if keys.text(&["plugins"], "plugins").is_some_and(|list| list.contains("CrossEntropy")) {
        settings.loss = Loss::Chunked;
    }
    // "rl" is the name of axolotl.
    if let Some(stage) = keys.text(&["stage"], "fine-tuning").or_else(|| keys.peek("rl").map(str::to_owned)) {
        report_stage(&stage, keys);
    }
    let stated = keys.agreed(&["optim", "optimizer"], "optimizer")?;
    let deepspeed = keys.text(&["deepspeed.optimizer.type"], "optimizer");
    for name in stated.into_iter().chain(deepspeed) {
        optimizer::set(&name, keys, settings);
    }
    trained_parts::read(format, keys, settings);
    Ok(())
}

/// Reports modules that are trained in full beside the adapters.
pub(super) fn report_saved(keys: &mut Keys) {
    for name in SAVED {
        if is_on(keys, name, "modules trained in full") {
            let name = keys.file_name(name);
            keys.not_modelled(format!(
                "The modules in {name} are trained in full. Their gradients and optimizer state are left out, so memory is a lower \
                 bound."
            ));
        }
    }
}

/// True if the file states `name` with a value that is not off.
fn is_on(keys: &mut Keys, name: &str, setting: &'static str) -> bool {
    let value = keys.text(&[name], setting).unwrap_or_default();
    !matches!(value.to_lowercase().as_str(), "" | "false" | "0" | "none" | "[]")
}

/// Reports the models and sequences of a kind of training that a scenario does not have.
pub(super) fn report_stage(stage: &str, keys: &mut Keys) {
    if ["dpo", "ppo", "kto", "rm", "grpo", "rloo", "gkd", "online_dpo"].iter().any(|kind| stage.starts_with(kind)) {
        keys.not_modelled(REFERENCE);
    }
    if ["dpo", "rm", "reward", "cpo", "orpo", "simpo"].contains(&stage) {
        keys.not_modelled("A pair of answers is read as one sequence, so memory and time are lower bounds.");
    }
    if ["ppo", "grpo", "rloo", "online_dpo"].iter().any(|kind| stage.starts_with(kind)) {
        keys.not_modelled("Only the training step is read. The generation of answers is left out.");
    }
}

/// Words of the name of a model with quantized weights, with their bits.
const QUANTIZED: [(&str, u32); 10] = [
    ("awq", 4),
    ("4bit", 4),
    ("int4", 4),
    ("nf4", 4),
    ("w4a16", 4),
    ("int8", 8),
    ("8bit", 8),
    ("w8a16", 8),
    ("w8a8", 8),
    ("gptq", 4),
];

/// Returns the bits of base weights that the name of the model states, for example `Llama-3-8B-Instruct-AWQ`.
fn bits_in_name(settings: &Settings, keys: &mut Keys) -> Option<u32> {
    let name = settings.model_name.as_ref()?.1.to_lowercase();
    let name = name.trim_end_matches('/').rsplit('/').next()?;
    let has = |word: &str| name.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|part| part == word);
    let (word, bits) = QUANTIZED.into_iter().find(|(word, _)| has(word))?;
    keys.assume(format!("The name of the model has the word {word}: the base weights are read as {bits} bits."));
    Some(bits)
}

/// Returns the bits of quantized base weights, if they are quantized.
fn base_bits(keys: &mut Keys, is_qlora: bool) -> Option<u32> {
    let bits = keys.text(&["quantization_bit", "bits"], "quantized weights").and_then(|bits| bits.trim().parse().ok());
    let mut is_stated = |name| keys.flag(&[name], "quantized weights").unwrap_or(false);
    match (is_stated("load_in_4bit"), is_stated("load_in_8bit")) {
        (true, _) => Some(4),
        (false, true) => Some(8),
        (false, false) => bits.filter(|bits| [4, 8].contains(bits)).or(is_qlora.then_some(4)),
    }
}
