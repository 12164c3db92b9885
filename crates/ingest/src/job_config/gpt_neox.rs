//! GPT-NeoX job files (YAML), read as arguments of Megatron-DeepSpeed. Names have underscores or hyphens.

use super::keys::Keys;
use super::settings::{Batch, Settings};
use super::{JobConfigError, megatron};

/// Keys with another name in Megatron-LM.
const NAMES: [(&str, &str); 9] = [
    ("pipe-parallel-size", "pipeline-model-parallel-size"),
    ("model-parallel-size", "tensor-model-parallel-size"),
    ("num-kv-heads", "num-key-value-heads"),
    ("intermediate-size", "ffn-hidden-size"),
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

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    keys.rename(|key| {
        let name = key.replace('_', "-");
        let argument = NAMES.into_iter().find(|(from, _)| *from == name).map(|(_, to)| to.to_owned());
        Some(argument.unwrap_or(name))
    });
    model(keys);
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
    } else {
        keys.assume("GPT-NeoX's default attention has no fused kernel.");
        keys.derive("attention-backend", "unfused", "");
    }
    let accumulation = keys.count(&["gradient-accumulation-steps"], "accumulation steps")?;
    if !keys.has("zero-stage") {
        keys.derive("zero-stage", "0", "");
        keys.assume("The ZeRO stage is not stated. It is 0, the default.");
    }
    let mut settings = megatron::read(keys)?;
    settings.accumulation = accumulation;
    if let (Batch::Replica(microbatch), Some(steps)) = (settings.batch, accumulation) {
        settings.batch = Batch::Replica(microbatch.saturating_mul(steps));
    }
    keys.ignore(is_without_effect);
    Ok(settings)
}

/// Adds arguments for keys of the model with other words.
fn model(keys: &mut Keys) {
    let is = |keys: &Keys, name: &str, words: &[&str]| {
        keys.peek(name).is_some_and(|value| words.iter().any(|word| value.eq_ignore_ascii_case(word)))
    };
    if is(keys, "mlp-type", &["llama"]) || is(keys, "activation", &["swiglu", "geglu", "reglu", "bilinear"]) {
        let source = if keys.has("mlp-type") { "mlp-type" } else { "activation" };
        keys.derive("swiglu", "true", source);
        keys.derive("disable-bias-linear", "true", "");
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
        "moe-",
        "text-gen",
        "hostfile",
        "print-",
        "contiguous-",
        "intermediate",
        "is-pipe",
    ];
    starts.iter().any(|start| key.starts_with(start))
}
