//! Keys for features that a scenario cannot represent, with the consequence for each.

use super::keys::Keys;

/// Condition under which a key is reported.
#[derive(Debug, Clone, Copy)]
enum When {
    /// The value is not zero, false or an empty list.
    Set,
    /// The value differs from the word.
    IsNot(&'static str),
    /// The value does not contain the word.
    Without(&'static str),
}

const SPARSE: &str = "Sparse attention is read as full attention.";

/// Sentence for adapters without their sizes.
pub(super) const LORA: &str =
    "The adapters (LoRA) are left out. All parameters are trained, so memory and time are upper bounds.";

/// Sentence for DeepSpeed with bf16 and without ZeRO.
pub(super) const BF16_OPTIMIZER: &str =
    "DeepSpeed's optimizer for bf16 at ZeRO stage 0 shards its state over the replicas. It is read as ZeRO stage 1.";

/// Sentence for an optimizer step of each layer in the backward pass.
pub(super) const OPTIMIZER_IN_BACKWARD: &str =
    "The optimizer step runs after the backward pass: the memory of the gradients is an upper bound.";

/// Keys, condition, sentence.
const PARTS: &[(&[&str], When, &str)] = &[
    (&["o_lora_rank"], When::Set, "The low-rank output projection is read as a full one."),
    (&["attn_output_gate"], When::Set, "The gate of the attention output is left out."),
    (
        &["mamba_n_heads", "mamba_d_state", "attn_layer_period"],
        When::Set,
        "State-space (Mamba) layers are read as transformer layers.",
    ),
    (
        &["fullatt_block_indexes"],
        When::Set,
        "Layers of the encoder with a window are read as layers with full attention.",
    ),
    (
        &["spec"],
        // The layers of this specification follow from the pattern.
        When::Without("mamba_stack_spec"),
        "The layer specification of the script's own is not read. The layers are those of Megatron-LM.",
    ),
    (&["index_topk", "compress_ratios"], When::Set, SPARSE),
    (&["cross_attention_layers"], When::Set, "Cross-attention layers are read as layers with self-attention."),
    (&["quantization_config.quant_method"], When::Set, "The quantised weights are read as bf16."),
    (&["audio_config.model_type"], When::Set, "The audio encoder is left out."),
    (&["cuda-graph-impl"], When::IsNot("none"), "CUDA graphs are not applied."),
    (&["enable-cuda-graph", "external-cuda-graph"], When::Set, "CUDA graphs are not applied."),
    (
        &["moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity"],
        When::Set,
        "The capacity of the experts is not applied: no token is dropped and no expert is padded. With padding and a factor \
         above 1, memory and time of the experts are lower bounds, by that factor.",
    ),
    (
        &["overlap-cpu-optimizer-d2h-h2d"],
        When::Set,
        "Overlap of the transfers of the offloaded optimizer is not applied.",
    ),
    (
        &["fp32-residual-connection"],
        When::Set,
        "The residual connection in fp32 is read as one in 16 bits, so memory and time are lower bounds.",
    ),
    (
        &["distribute-saved-activations"],
        When::Set,
        "Inputs of recomputed layers are not distributed over the devices of the group, so memory is an upper bound.",
    ),
    (
        &["microbatch-group-size-per-virtual-pipeline-stage", "microbatch-group-size-per-vp-stage"],
        When::Set,
        "The size of the groups of microbatches in the interleaved schedule is read as the number of stages. Larger groups need \
         more memory, so memory is a lower bound.",
    ),
    (
        &["fine-grained-activation-offloading"],
        When::Set,
        "Offload of the activations of single modules is not applied, so device memory is an upper bound and the time a lower one.",
    ),
    (&["padding_free"], When::Set, "Batches without padding are read as batches of samples with the stated length."),
];

/// Additional keys for the features above.
const DETAILS: [&str; 23] = [
    "offload-modules",
    "attn_layer_",
    "expert_layer_",
    "q_lora_rank",
    "q-lora-rank",
    "qk_",
    "qk-",
    "v_head_dim",
    "v-head-dim",
    "o_groups",
    "index_",
    "linear_",
    "mamba",
    "mtp",
    "use_mtp",
    "quantization_config",
    "n_group",
    "topk_",
    "scoring_func",
    "hc_",
    "audio_config",
    "window",
    "compress",
];

fn report_part(keys: &mut Keys, names: &[&str], when: When, sentence: &str) {
    if names.iter().any(|name| keys.peek(name).is_some_and(|value| matters(value, when))) {
        keys.not_modelled(sentence);
    }
    keys.ignore(|key| names.contains(&key));
}

/// Reports stated features that a scenario cannot represent.
pub(super) fn report(keys: &mut Keys) {
    for &(names, when, sentence) in PARTS {
        report_part(keys, names, when, sentence);
    }
    keys.ignore(|key| key.ends_with("sliding_window") || DETAILS.iter().any(|detail| key.starts_with(detail)));
}

fn matters(value: &str, when: When) -> bool {
    match when {
        When::Set => !matches!(value.trim(), "0" | "false" | "False" | "[]" | "None" | "-1" | "-1,-1" | "(-1, -1)"),
        When::Without(word) => !value.contains(word),
        When::IsNot(word) => !value.trim().eq_ignore_ascii_case(word),
    }
}
