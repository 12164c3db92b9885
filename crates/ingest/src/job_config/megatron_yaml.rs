//! Megatron-LM YAML files (`--yaml-cfg`), read as its arguments.
//!
//! A key, also in the sections `language_model` and `model_parallel`, is the argument with hyphens. Keys of the sections
//! that are fields of Megatron-Core have the names of [`nemo`].

use super::keys::Keys;
use super::settings::Settings;
use super::{JobConfigError, megatron, nemo};

const SECTIONS: [&str; 2] = ["language_model.", "model_parallel."];

pub(super) fn is_job(keys: &Keys) -> bool {
    SECTIONS.iter().all(|section| keys.has_section(section))
}

pub(super) fn read(keys: &mut Keys) -> Result<Settings, JobConfigError> {
    let chunks = SECTIONS.map(|section| format!("{section}virtual_pipeline_model_parallel_size"));
    if chunks.iter().any(|key| keys.peek(key).is_some_and(|value| !matches!(value, "null" | "1"))) {
        keys.not_modelled(
            "virtual_pipeline_model_parallel_size is not applied: Megatron-LM computes it from \
             num_layers_per_virtual_pipeline_stage.",
        );
    }
    keys.rename(|key| chunks.iter().any(|chunks| chunks == key).then(|| "unused-chunks".to_owned()));
    nemo::rename(keys, &SECTIONS);
    keys.rename(|key| key.contains('_').then(|| key.replace('_', "-")));
    // The format of fp8 products, or false.
    if keys.peek("fp8").is_some_and(|format| !format.eq_ignore_ascii_case("false")) {
        keys.rename(|key| (key == "fp8").then(|| "fp8-format".to_owned()));
    }
    nemo::switches(keys);
    let settings = megatron::read(keys)?;
    nemo::ignore(keys);
    keys.ignore(|key| IGNORED.iter().any(|start| key.starts_with(start)));
    Ok(settings)
}

/// Starts of the names of other fields of Megatron-Core and of its training loop, which affect neither time nor memory.
const IGNORED: [&str; 36] = [
    "accumulate-allreduce",
    "apply-",
    "async-tensor-model-parallel",
    "attention-softmax",
    "autocast",
    "barrier-with",
    "batch-p2p",
    "bias-",
    "clone-scatter",
    "cpu-offloading",
    "deallocate-",
    "defer-embedding",
    "disable-parameter",
    "enable-autocast",
    "grad-scale-func",
    "gradient-accumulation-fusion",
    "head-scale",
    "layernorm-",
    "masked-softmax",
    "memory-efficient",
    "moe-rotary",
    "no-sync-func",
    "grad-sync-func",
    "param-sync-func",
    "output-layer",
    "overlap-p2p",
    "params-dtype",
    "perform-initialization",
    "persist-",
    "pipeline-dtype",
    "rotary-",
    "timers",
    "tp-comm-",
    "use-legacy",
    "unused-chunks",
    "variable-seq",
];
