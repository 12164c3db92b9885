//! Keys for features that a scenario cannot represent, with the consequence for each.

use super::keys::Keys;

/// Condition under which a key is reported.
#[derive(Debug, Clone, Copy)]
enum When {
    /// The value is not zero, false or an empty list.
    Set,
    /// The value is a number above 1.
    Above1,
    /// The value contains the text.
    Contains(&'static str),
    /// The value differs from the word.
    IsNot(&'static str),
}

const DENSE: &str = "The dense layers are read as layers with experts.";
const LINEAR: &str = "Layers with linear attention are read as layers with full attention.";
const WINDOW: &str = "Layers with a sliding window are read as layers with full attention.";
const SHARED: &str = "The shared experts are left out.";
const LATENT: &str = "Multi-head latent attention is read as attention with separate keys and values.";
const SPARSE: &str = "Sparse attention is read as full attention.";
const MTP: &str = "Layers for multi-token prediction are left out.";

/// Sentence for adapters.
pub(super) const LORA: &str =
    "The adapters (LoRA) are left out. All parameters are trained, so memory and time are upper bounds.";

/// Keys of offload by DeepSpeed.
const OFFLOAD: &[&str] = &[
    "deepspeed.zero_optimization.offload_optimizer.device",
    "deepspeed.zero_optimization.offload_param.device",
    "deepspeed.zero_optimization.cpu_offload",
    "accelerate.deepspeed_config.offload_optimizer_device",
    "accelerate.deepspeed_config.offload_param_device",
];

/// Keys, condition, sentence.
const PARTS: &[(&[&str], When, &str)] = &[
    (&["kv_lora_rank", "kv-lora-rank", "multi-latent-attention", "o_lora_rank"], When::Set, LATENT),
    (&["n_shared_experts", "shared_expert_intermediate_size", "num_shared_experts"], When::Set, SHARED),
    // Llama 4: a shared expert in each MoE layer.
    (&["moe-shared-expert-intermediate-size", "intermediate_size_mlp"], When::Set, SHARED),
    (&["first_k_dense_replace", "mlp_only_layers", "moe_layers"], When::Set, DENSE),
    (&["decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", "moe-layer-freq"], When::Above1, DENSE),
    (&["moe-layer-freq"], When::Contains("0"), DENSE),
    (&["expert_layer_period"], When::Above1, DENSE),
    (&["layer_types", "layers_block_type"], When::Contains("linear_attention"), LINEAR),
    (&["full_attention_interval", "linear_num_key_heads"], When::Above1, LINEAR),
    (
        &[
            "hybrid_override_pattern",
            "hybrid-override-pattern",
            "hybrid-layer-pattern",
            "mamba_num_heads",
            "mamba_n_heads",
            "mamba_d_state",
            "attn_layer_period",
            "ssm_state_size",
        ],
        When::Set,
        "State-space (Mamba) layers are read as transformer layers.",
    ),
    (&["layer_types"], When::Contains("sliding_attention"), WINDOW),
    (&["window-size", "window_size", "fullatt_block_indexes"], When::Set, WINDOW),
    (
        &["spec"],
        When::Set,
        "The layer specification of the script's own is not read. The layers are those of Megatron-LM.",
    ),
    (&["optimizer"], When::IsNot("adam"), "The optimizer is read as Adam."),
    (&["attention_chunk_size"], When::Set, "Layers with chunked attention are read as layers with full attention."),
    (&["index_topk", "compress_ratios"], When::Set, SPARSE),
    (&["cross_attention_layers"], When::Set, "Cross-attention layers are read as layers with self-attention."),
    (&["num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp-num-layers", "num_mtp_modules"], When::Set, MTP),
    (&["quantization_config.quant_method"], When::Set, "The quantised weights are read as bf16."),
    (&["audio_config.model_type"], When::Set, "The audio encoder is left out."),
    (&["vision-model-type"], When::Set, "The vision encoder is left out: the file does not state its sizes."),
    (&["step-batch-size-schedule"], When::Set, "The schedule of the batch size is not read."),
    (&["expert-tensor-parallel-size"], When::Above1, "Expert tensor parallelism follows the tensor parallelism."),
];

/// Additional keys for the features above.
const DETAILS: [&str; 22] = [
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

/// Reports offload by DeepSpeed.
pub(super) fn report_offload(keys: &mut Keys) {
    let sentence = "Offload of parameters and the optimizer to the host is not applied.";
    for name in OFFLOAD {
        let is_flag = keys.peek(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
        report_part(keys, &[name], if is_flag { When::Set } else { When::IsNot("none") }, sentence);
    }
}

/// Reports stated features that a scenario cannot represent.
pub(super) fn report(keys: &mut Keys) {
    for &(names, when, sentence) in PARTS {
        report_part(keys, names, when, sentence);
    }
    report_offload(keys);
    let has_window = keys.peek("sliding_window").is_some_and(|value| matters(value, When::Set));
    if has_window && keys.peek("use_sliding_window").is_none_or(|value| value == "true") {
        keys.not_modelled(WINDOW);
    }
    keys.ignore(|key| key.ends_with("sliding_window") || DETAILS.iter().any(|detail| key.starts_with(detail)));
}

fn matters(value: &str, when: When) -> bool {
    match when {
        When::Set => !matches!(value.trim(), "0" | "false" | "False" | "[]" | "None" | "-1" | "-1,-1" | "(-1, -1)"),
        When::Above1 => value.trim().parse::<f64>().is_ok_and(|number| number > 1.0),
        When::Contains(text) => value.contains(text),
        When::IsNot(word) => !value.trim().eq_ignore_ascii_case(word),
    }
}
