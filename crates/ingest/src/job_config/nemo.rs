//! `NeMo` 1 job files and Megatron-Bridge overrides, read as Megatron-LM arguments.
//!
//! A key `model.NAME` (in Megatron-Bridge also `train.`, `ddp.`, `dist.`, `optimizer.`) is the argument `--NAME`, except
//! for [`NAMES`] and for switches that the two state with opposite or other words ([`switches`]).

use planner::model::{Adapters, ModuleRole};
use planner::training::Fp8Recipe;

use super::keys::Keys;
use super::settings::Settings;
use super::{JobConfigError, bridge_recipes, megatron, nemo_ignored, unmodelled, vision_names};

/// Keys with another name in Megatron-LM.
const NAMES: [(&str, &str); 14] = [
    ("encoder-seq-length", "seq-length"),
    ("data.seq-length", "decoder-seq-length"),
    ("num-moe-experts", "num-experts"),
    ("virtual-pipeline-model-parallel-size", "num-virtual-stages-per-pipeline-rank"),
    ("activations-checkpoint-granularity", "recompute-granularity"),
    ("activations-checkpoint-method", "recompute-method"),
    ("activations-checkpoint-num-layers", "recompute-num-layers"),
    ("use-flash-attention", "use-flash-attn"),
    ("ub-tp-comm-overlap", "tp-comm-overlap"),
    ("override-vocab-size", "vocab-size"),
    ("optim.overlap-grad-sync", "overlap-grad-reduce"),
    ("optim.overlap-param-sync", "overlap-param-gather"),
    ("num-nodes", "nnodes"),
    ("devices", "nproc-per-node"),
];

/// Keys of Megatron-Bridge's section `optimizer` that are arguments of Megatron-LM.
const OPTIMIZER: [&str; 7] = [
    "exp_avg_dtype",
    "exp_avg_sq_dtype",
    "main_grads_dtype",
    "main_params_dtype",
    "optimizer_cpu_offload",
    "optimizer_offload_fraction",
    "use_precision_aware_optimizer",
];

pub(super) fn is_nemo(keys: &Keys) -> bool {
    keys.has("model.micro_batch_size") || (keys.has("trainer.devices") && keys.has_section("model."))
}

pub(super) fn is_bridge(keys: &Keys) -> bool {
    let names = ["train.micro_batch_size", "train.global_batch_size", "train.train_iters"];
    names.iter().any(|name| keys.has(name)) && !is_veomni(keys)
}

/// `VeOmni` has a section `train` too, with a batch of the same names.
fn is_veomni(keys: &Keys) -> bool {
    let names = ["data_parallel_mode", "ulysses_parallel_size", "enable_gradient_checkpointing", "enable_full_shard"];
    names.iter().any(|name| keys.has(&format!("train.{name}"))) || keys.has_section("train.accelerator.")
}

/// Reads a `NeMo` job file.
pub(super) fn read_nemo(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    rename(keys, &["model.", "trainer."]);
    if !keys.has("recompute-granularity") {
        // NeMo ignores the method without a granularity.
        keys.rename(|key| (key == "recompute-method").then(|| "unused-recompute-method".to_owned()));
    }
    switches(keys);
    // Layers without Transformer Engine are the local ones of Megatron-Core.
    if keys.peek("transformer-engine").is_some_and(|value| value.eq_ignore_ascii_case("false")) {
        keys.derive("transformer-impl", "local", "transformer-engine");
    }
    let mut settings = megatron::read(keys)?;
    adapters(keys, &mut settings)?;
    vision(keys, &mut settings);
    ignore(keys);
    Ok(settings)
}

/// Reads the vision encoder of `NeMo` (NeVA), and the frozen parts.
fn vision(keys: &mut Keys, settings: &mut Settings) {
    if !keys.has_section("mm-cfg.") {
        return;
    }
    let mut is_frozen = |name: &str, default| keys.flag(&[name], "trained parts").unwrap_or(default);
    if is_frozen("mm-cfg.llm.freeze", false) {
        settings.frozen.push(ModuleRole::Backbone);
    }
    if is_frozen("mm-cfg.vision-encoder.freeze", true) || settings.adapters.is_some() {
        settings.frozen.push(ModuleRole::VisionEncoder);
    }
    let name = keys.text(&["mm-cfg.vision-encoder.from-pretrained"], "vision encoder").unwrap_or_default();
    let kind = keys.text(&["mm-cfg.mm-mlp-adapter-type"], "projector").unwrap_or_default();
    match (vision_names::find(&name), settings.model.as_mut()) {
        (Some(encoder), Some(model)) if model.modules.len() == 1 => {
            let width = model.modules[0].hidden;
            let inner_width = kind.starts_with("mlp").then_some(width);
            model.modules.insert(0, encoder.module((width, inner_width), 1));
            keys.assume("The sizes of the vision encoder are those of its name (vision_encoder.from_pretrained).");
        }
        _ => keys.not_modelled(
            "The vision encoder and the projector are left out: the file does not state their sizes. Time and memory are lower bounds.",
        ),
    }
    keys.ignore(|key| key.starts_with("mm-cfg."));
}

/// Reads the adapters of `NeMo`: LoRA. Other kinds are reported.
fn adapters(keys: &mut Keys, settings: &mut Settings) -> Result<(), JobConfigError> {
    let scheme = keys.text(&["peft.peft-scheme"], "fine-tuning").unwrap_or_default();
    if scheme == "lora" || scheme == "qlora" {
        let rank = keys.count(&["peft.lora-tuning.adapter-dim"], "rank of the adapters")?;
        if rank.is_none() {
            keys.assume("NeMo's default rank of the adapters is 32.");
        }
        let targets = keys.text(&["peft.lora-tuning.target-modules"], "adapted layers").unwrap_or_default();
        let mlp = ["all", "mlp"].iter().any(|word| targets.contains(word));
        let base_bits = (scheme == "qlora").then_some(4);
        settings.adapters = Some(Adapters { rank: rank.unwrap_or(32), mlp, base_bits });
    } else if !matches!(scheme.as_str(), "" | "none" | "null") {
        keys.not_modelled(unmodelled::LORA);
    }
    keys.ignore(|key| key.starts_with("peft."));
    Ok(())
}

/// Reads the overrides of a Megatron-Bridge recipe. The recipe itself is Python code.
pub(super) fn read_bridge(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    keys.rename(|key| {
        matches!(key, "dataset.seq_length" | "dataset.sequence_length").then(|| "decoder-seq-length".to_owned())
    });
    // Settings of the optimizer with an effect.
    keys.rename(|key| {
        let name = key.strip_prefix("optimizer.")?;
        OPTIMIZER.contains(&name).then(|| name.replace('_', "-"))
    });
    rename(keys, &["model.", "train.", "ddp.", "dist."]);
    // These sections replace settings of others.
    for (key, name) in [
        ("mixed_precision.bf16", "bf16"),
        ("mixed_precision.fp16", "fp16"),
        ("mixed_precision.fp8", "fp8-format"),
        ("mixed_precision.fp8_recipe", "fp8-recipe"),
        ("mixed_precision.fp8_param_gather", "fp8-param-gather"),
        ("mixed_precision.fp8_param", "fp8-param-gather"),
        ("mixed_precision.grad_reduce_in_fp32", "grad-reduce-in-fp32"),
        ("comm_overlap.tp_comm_overlap", "tp-comm-overlap"),
        ("comm_overlap.overlap_grad_reduce", "overlap-grad-reduce"),
        ("comm_overlap.overlap_param_gather", "overlap-param-gather"),
        ("comm_overlap.overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm"),
    ] {
        if let Some(value) = keys.peek(key).map(str::to_owned) {
            keys.derive(name, &value, key);
        }
    }
    // The configuration class of Megatron-Bridge has scales per tensor.
    if keys.has("mixed_precision.fp8") && !keys.has("fp8-recipe") {
        keys.derive("fp8-recipe", Fp8Recipe::Tensorwise.id(), "mixed_precision.fp8");
        keys.assume("The fp8 recipe of Megatron-Bridge is tensorwise unless the file states another.");
    }
    keys.ignore(|key| key.starts_with("mixed_precision.") || key.starts_with("comm_overlap."));
    let recipe = keys.peek("mixed_precision").unwrap_or_default().to_lowercase();
    if recipe.contains("fp8") || recipe.contains("fp4") {
        keys.derive("fp8-format", "hybrid", "mixed_precision");
        let named = Fp8Recipe::named(&recipe);
        if let Some(named) = named.filter(|_| !keys.has("fp8-recipe")) {
            keys.derive("fp8-recipe", named.id(), "mixed_precision");
        }
        // These recipes store and gather weights in fp8.
        let has_weights = matches!(named, Some(Fp8Recipe::Delayed | Fp8Recipe::Tensorwise | Fp8Recipe::Mxfp8));
        if has_weights && !keys.has("fp8-param-gather") {
            keys.derive("fp8-param-gather", "true", "mixed_precision");
        }
        if named == Some(Fp8Recipe::Tensorwise) {
            keys.not_modelled("The first and the last layer, which the recipe leaves in bf16, are read as fp8.");
        }
        if recipe.contains("fp4") {
            keys.not_modelled("Products in fp4 are read as fp8.");
        }
    }
    if recipe.starts_with("fp16") {
        keys.derive("fp16", "true", "mixed_precision");
    } else if !["bf16", "fp16"].iter().any(|name| keys.has(name)) {
        if !recipe.starts_with("bf16") {
            keys.assume("The precision of a Megatron-Bridge recipe is bf16 unless the file states another.");
        }
        keys.derive("bf16", "true", "mixed_precision");
    }
    keys.assume("The recipe of Megatron-Bridge is Python code. Settings that only the recipe states are not read.");
    for (name, sentence) in [
        ("use-distributed-optimizer", "distribute the optimizer (ZeRO stage 1)"),
        ("overlap-grad-reduce", "overlap gradient communication"),
        ("overlap-param-gather", "overlap the gathering of weights"),
    ] {
        let section = format!("optimizer.{}", name.replace('-', "_"));
        if !keys.has(name) && !keys.has(&section) {
            keys.derive(name, "true", "");
            keys.assume(format!("The recipes of Megatron-Bridge {sentence}."));
        }
    }
    bridge_recipes::add(keys);
    let recipe = keys.text(&["recipe"], "model");
    let class = keys.text(&["-target-"], "model");
    let pretrained = keys.text(&["pretrained"], "model");
    switches(keys);
    let has_model = keys.has("num-layers") && keys.has("hidden-size");
    let mut settings = if has_model { megatron::read(keys)? } else { megatron::read_job(keys)? };
    if settings.model.is_none() {
        settings.layers = keys.count(&["num-layers"], "layers")?;
        let of_recipe = recipe.and_then(|recipe| Some(("recipe", bridge_recipes::model_of_recipe(&recipe)?)));
        let of_class = || Some(("-target-", bridge_recipes::model_of_class(&class?)?));
        let of_hub = pretrained.map(|name| ("pretrained", name));
        settings.model_name = of_hub.or(of_recipe).or_else(of_class);
    }
    if let Some(rank) = keys.count(&["peft.dim"], "rank of the adapters")? {
        let targets = keys.text(&["peft.target_modules"], "adapted layers");
        let mlp = targets.is_none_or(|targets| targets.contains("fc") || targets.contains("all"));
        settings.adapters = Some(Adapters { rank, mlp, base_bits: None });
    } else if keys.has_section("peft.") {
        keys.not_modelled(unmodelled::LORA);
    }
    keys.ignore(|key| key.starts_with("peft."));
    ignore(keys);
    Ok(settings)
}

/// Renames the keys of sections to arguments.
pub(super) fn rename(keys: &mut Keys, sections: &[&str]) {
    keys.rename(|key| {
        let name = sections.iter().find_map(|section| key.strip_prefix(section))?.replace('_', "-");
        let argument = NAMES.into_iter().find(|(from, _)| *from == name).map(|(_, to)| to.to_owned());
        Some(argument.unwrap_or(name))
    });
}

/// Adds arguments for switches that have other words in these files.
pub(super) fn switches(keys: &mut Keys) {
    let is =
        |keys: &Keys, name: &str, word: &str| keys.peek(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    for (name, word, argument, value) in [
        ("bias", "false", "disable-bias-linear", "true"),
        ("add-bias-linear", "false", "disable-bias-linear", "true"),
        ("qkv-bias", "true", "add-qkv-bias", "true"),
        ("activation", "swiglu", "swiglu", "true"),
        ("activation", "fast-swiglu", "swiglu", "true"),
        ("activation", "geglu", "swiglu", "true"),
        ("activation", "fast-geglu", "swiglu", "true"),
        ("gated-linear-unit", "true", "swiglu", "true"),
        ("activation-func", "swiglu", "swiglu", "true"),
        ("share-embeddings-and-output-weights", "false", "untie-embeddings-and-output-weights", "true"),
        ("optim.name", "distributed_fused_adam", "use-distributed-optimizer", "true"),
        ("optim.name", "mcore_distributed_optim", "use-distributed-optimizer", "true"),
        ("optim.grad-sync-dtype", "bf16", "grad-reduce-in-bf16", "true"),
        ("grad-reduce-in-fp32", "false", "grad-reduce-in-bf16", "true"),
        ("fp8", "true", "fp8-format", "hybrid"),
        ("fsdp", "true", "use-torch-fsdp2", "true"),
    ] {
        if is(keys, name, word) {
            keys.derive(argument, value, name);
        }
    }
    // The reader of Megatron-LM would read other options of fp8 as the switch.
    let is_read = |key: &str| matches!(key, "fp8-format" | "fp8-recipe" | "fp8-param-gather");
    if !keys.has("fp8-param-gather") && is(keys, "fp8-params", "true") {
        keys.derive("fp8-param-gather", "true", "fp8-params");
    }
    keys.rename(|key| (key.starts_with("fp8") && !is_read(key)).then(|| format!("unused-{key}")));
    if keys.has("num-query-groups") {
        keys.derive("group-query-attention", "true", "num-query-groups");
    }
    let precision = keys.text(&["precision"], "precision").unwrap_or_default();
    for (start, argument) in [("bf16", "bf16"), ("16", "fp16"), ("fp16", "fp16")] {
        if precision.starts_with(start) && !keys.has(argument) {
            keys.derive(argument, "true", "precision");
        }
    }
    keys.ignore(|key| {
        matches!(key, "bias" | "activation" | "activation-func" | "share-embeddings-and-output-weights" | "optim.name")
    });
}

/// Ignores keys for data, checkpoints, logs, learning rates and numerics. Their names can be meant by misspelt ones.
pub(super) fn ignore(keys: &mut Keys) {
    keys.ignore(nemo_ignored::is);
    keys.name(nemo_ignored::names());
}
