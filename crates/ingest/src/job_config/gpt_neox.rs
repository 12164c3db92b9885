//! GPT-NeoX job files (YAML), read as arguments of Megatron-DeepSpeed. Names have underscores or hyphens.

use planner::training::GradientFormat;

use super::keys::Keys;
use super::settings::{Batch, Settings};
use super::{JobConfigError, megatron};

/// Keys with another name in Megatron-LM.
const NAMES: [(&str, &str); 8] = [
    ("pipe-parallel-size", "pipeline-model-parallel-size"),
    ("model-parallel-size", "tensor-model-parallel-size"),
    ("num-kv-heads", "num-key-value-heads"),
    ("train-micro-batch-size-per-gpu", "micro-batch-size"),
    ("train-batch-size", "global-batch-size"),
    ("zero-optimization.stage", "zero-stage"),
    ("optimizer.type", "optimizer"),
    ("moe-num-experts", "num-experts"),
];

/// Returns the value of a key whose name has underscores or hyphens.
fn peek<'a>(keys: &'a Keys, name: &str) -> Option<&'a str> {
    keys.peek(name).or_else(|| keys.peek(&name.replace('_', "-")))
}

pub(super) fn is_job(keys: &Keys) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| peek(keys, name).is_some());
    has(&["pipe_parallel_size", "model_parallel_size"])
        && has(&["num_layers", "train_micro_batch_size_per_gpu", "train_batch_size"])
}

/// True for one of the files of a job, which has keys that only GPT-NeoX has.
pub(super) fn is_part(keys: &Keys) -> bool {
    const NAMES: [&str; 7] = [
        "attention_config",
        "checkpoint_activations",
        "data_impl",
        "mlp_type",
        "partition_activations",
        "pos_emb",
        "synchronize_each_layer",
    ];
    NAMES.iter().any(|name| peek(keys, name).is_some())
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    keys.rename(|key| {
        let name = key.replace('_', "-");
        let argument = NAMES.into_iter().find(|(from, _)| *from == name).map(|(_, to)| to.to_owned());
        Some(argument.unwrap_or(name))
    });
    model(keys)?;
    precision(keys);
    // A degree of 0 is no pipeline.
    if keys.peek("pipeline-model-parallel-size").is_some_and(|value| value.trim() == "0") {
        keys.derive("pipeline-model-parallel-size", "1", "pipeline-model-parallel-size");
    }
    let kernels = keys.text(&["attention-config"], "attention kernel").unwrap_or_default();
    if kernels.contains("flash") {
        keys.derive("use-flash-attn", "true", "");
    } else if ["sparse", "local", "mamba", "rwkv"].iter().any(|kind| kernels.contains(kind)) {
        keys.not_modelled("Layers with sparse attention or without attention are read as layers with full attention.");
    } else if keys.flag(&["te-mha"], "attention kernel").unwrap_or(false) {
        keys.assume("te_mha is on: the attention is that of Transformer Engine, read as FlashAttention.");
        keys.derive("use-flash-attn", "true", "");
    } else {
        keys.assume("GPT-NeoX's default attention has no fused kernel.");
        keys.derive("attention-backend", "unfused", "");
    }
    let accumulation = keys.count(&["gradient-accumulation-steps"], "accumulation steps")?;
    if !keys.has("zero-stage") {
        keys.derive("zero-stage", "0", "");
        keys.assume("The ZeRO stage is not stated. It is 0, the default.");
    }
    transformer_engine(keys);
    if keys.peek("data-types.grad-accum-dtype").is_some_and(|format| matches!(format, "fp32" | "float32")) {
        keys.derive("accumulate-allreduce-grads-in-fp32", "true", "data-types.grad-accum-dtype");
    }
    let mut settings = megatron::read(keys)?;
    if keys.retract(megatron::SHORT_GRADIENTS) {
        keys.assume("Gradients of fp16 training are in 16 bits unless data_types.grad_accum_dtype is fp32.");
    }
    let is_short = settings.gradients == Some(GradientFormat::Bf16);
    if keys.flag(&["fp32-allreduce"], "format of reduced gradients").unwrap_or(false) && is_short {
        keys.not_modelled(
            "fp32_allreduce sends gradients in fp32. They are read as sent in 16 bits, so the time of their reduction is a lower \
             bound.",
        );
    }
    if keys.flag(&["fp16-lm-cross-entropy"], "loss").unwrap_or(false) {
        keys.not_modelled("The loss in fp16 is read as one in fp32, so its memory is an upper bound.");
    }
    settings.accumulation = accumulation;
    if let (Batch::Replica(microbatch), Some(steps)) = (settings.batch, accumulation) {
        settings.batch = Batch::Replica(microbatch.saturating_mul(steps));
    }
    keys.ignore(is_without_effect);
    Ok(settings)
}

/// Reports fp8 products in the layers of Transformer Engine.
fn transformer_engine(keys: &mut Keys) {
    let layers = ["te-mha", "te-layernorm-mlp", "te-columnparallel", "te-rowparallel"];
    let switches = layers.map(|name| keys.flag(&[name], "Transformer Engine"));
    let has_layers = switches.contains(&Some(true));
    let format = keys.text(&["te-fp8-format"], "precision");
    if has_layers && format.is_some() {
        keys.not_modelled(
            "te_fp8_format states fp8 products in the layers of Transformer Engine. They are read as products in 16 bits, so the time \
             is an upper bound.",
        );
    }
    keys.ignore(|key| key.starts_with("te-"));
}

/// Activations with a gate.
const GATED: [&str; 5] = ["swiglu", "geglu", "reglu", "bilinear", "glu"];

/// Rounds the width of an MLP up to a multiple.
pub(super) fn rounded(width: u32, multiple: u32) -> u32 {
    width.div_ceil(multiple.max(1)).saturating_mul(multiple.max(1))
}

/// Adds the width of the MLP. A gated MLP has two thirds of the stated width for both halves of its first product.
/// `mlp_type` llama has 8 h / 3, in multiples of 256.
fn width(keys: &mut Keys, is_gated: bool, is_llama: bool) -> Result<(), JobConfigError> {
    let hidden = keys.peek("hidden-size").and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    let stated = keys.count(&["intermediate-size"], "width of the MLP")?;
    let factor = keys.number(&["expansion-factor"], "width of the MLP")?;
    let multiple = keys.count(&["mlp-multiple-of"], "width of the MLP")?;
    let source = ["intermediate-size", "expansion-factor", "mlp-multiple-of"].into_iter().find(|name| keys.has(name));
    if is_llama {
        let width = rounded((u64::from(hidden) * 8 / 3) as u32, multiple.unwrap_or(256));
        keys.derive("ffn-hidden-size", &width.to_string(), source.unwrap_or("mlp-type"));
        return Ok(());
    }
    if !is_gated && source.is_none() {
        return Ok(());
    }
    let whole = stated.unwrap_or_else(|| (factor.unwrap_or(4.0) * f64::from(hidden)) as u32);
    let width = if is_gated { (u64::from(whole) * 2 / 3 / 2) as u32 } else { whole };
    let width = rounded(width, multiple.unwrap_or(1));
    keys.derive("ffn-hidden-size", &width.to_string(), source.unwrap_or("activation"));
    if is_gated {
        keys.assume(format!(
            "GPT-NeoX divides the MLP width {whole} of a gated activation by 3, so that the parameters are equal: {width}."
        ));
    }
    Ok(())
}

/// Adds arguments for keys of the model with other words.
fn model(keys: &mut Keys) -> Result<(), JobConfigError> {
    let is = |keys: &Keys, name: &str, words: &[&str]| {
        keys.peek(name).is_some_and(|value| words.iter().any(|word| value.eq_ignore_ascii_case(word)))
    };
    let is_llama = is(keys, "mlp-type", &["llama", "gated"]);
    let is_gated = is_llama || is(keys, "activation", &GATED);
    width(keys, is_gated, is_llama)?;
    if is_gated {
        keys.derive("swiglu", "true", if is_llama { "mlp-type" } else { "activation" });
    }
    let has_no_bias = is(keys, "use-bias-in-attn-linear", &["false"]) && is(keys, "use-bias-in-mlp", &["false"]);
    if is_llama || has_no_bias {
        keys.derive("disable-bias-linear", "true", if has_no_bias { "use-bias-in-mlp" } else { "mlp-type" });
    }
    match keys.peek("norm").map(str::to_lowercase).as_deref() {
        Some("rmsnorm" | "te_rmsnorm") => keys.derive("normalization", "RMSNorm", "norm"),
        _ => keys.ignore(|key| key == "norm"),
    }
    match keys.peek("pos-emb") {
        Some("learned") | None => {}
        Some(_) => keys.derive("position-embedding-type", "rope", "pos-emb"),
    }
    if is(keys, "no-weight-tying", &["true"]) {
        keys.derive("untie-embeddings-and-output-weights", "true", "no-weight-tying");
    }
    if is(keys, "gpt-j-residual", &["true"]) {
        keys.not_modelled("Attention and MLP in parallel are read as one after the other.");
    }
    if !keys.has("hidden-dropout") {
        keys.derive("hidden-dropout", "0", "");
    }
    for name in ["checkpoint-activations", "partition-activations"] {
        if is(keys, name, &["false"]) {
            keys.rename(|key| (key == name).then(|| format!("unused-{key}")));
        }
    }
    Ok(())
}

/// Adds the switch of the precision: of a section of DeepSpeed, or a name.
fn precision(keys: &mut Keys) {
    for name in ["bf16", "fp16"] {
        let section = format!("{name}.enabled");
        if keys.peek(&section).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            keys.derive(name, "true", &section);
        }
    }
    match keys.peek("precision").map(str::to_lowercase).as_deref() {
        Some("bfloat16" | "bf16") => keys.derive("bf16", "true", "precision"),
        Some("fp16" | "half") => keys.derive("fp16", "true", "precision"),
        _ => {}
    }
    if !keys.has("bf16") && !keys.has("fp16") {
        keys.derive("fp16", "true", "");
        keys.assume("GPT-NeoX's default precision is fp16.");
    }
}

/// True for data, checkpoint, log, learning rate and numerics keys.
fn is_without_effect(key: &str) -> bool {
    let starts = [
        "unused-",
        "zero-optimization.",
        "optimizer.",
        "bf16.",
        "fp16.",
        "fp32",
        "activation",
        "checkpoint",
        "partition-",
        "synchronize-",
        "gradient-clipping",
        "data-",
        "dataset",
        "num-workers",
        "keep-last",
        "steps-per",
        "wall-clock",
        "output-layer",
        "init-method",
        "scaled-",
        "bias-",
        "pos-emb",
        "mlp-type",
        "no-weight",
        "gpt-j",
        "rms-norm",
        "layernorm",
        "use-bias",
        "use-wandb",
        "use-tensorboard",
        "include",
        "launcher",
        "deepspeed",
        "vocab-file",
        "merge-file",
        "distributed-",
        "warmup",
        "tokenizer",
        "extra-save",
        "global-num",
        "sample-",
        "label-",
        "s3-",
        "precision",
        "norm-",
        "moe-aux",
        "moe-jitter",
        "moe-lbl",
        "moe-loss",
        "moe-z-loss",
        "text-gen",
        "hostfile",
        "print-",
        "contiguous-",
        "is-pipe",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
