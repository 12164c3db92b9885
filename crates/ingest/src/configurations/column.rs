//! The known columns: their list, types, and other words in cells.

mod conditions;
mod definitions;

use std::fmt::Write;

use super::heading;

pub(super) use conditions::{Facts, PresetParts, Reason};
pub(super) use definitions::*;

/// A known column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Column {
    /// Name in the header.
    pub name: &'static str,
    /// Type and range.
    pub holds: Holds,
    /// Default for an empty cell or a missing column, as text.
    pub default: &'static str,
}

/// Type and range of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Holds {
    /// An integer in an inclusive range.
    Integer(u32, u32),
    /// A number in an inclusive range.
    Number(f64, f64),
    /// `true`, `yes`, `1`, `false`, `no` or `0`.
    Flag,
    /// One of a list of words.
    Word(&'static [&'static str]),
    /// A name. The string describes the named item.
    Name(&'static str),
}

impl std::fmt::Display for Holds {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(min, max) => write!(out, "{min} to {max}"),
            Self::Number(min, max) => write!(out, "{min} to {max}"),
            Self::Flag => out.write_str("true or false"),
            Self::Word(terms) => out.write_str(&terms.join(", ")),
            Self::Name(description) => out.write_str(description),
        }
    }
}

/// Other usual words in cells: (word, word of the column).
const WORD_ALIASES: [(&str, &str); 75] = [
    ("rmsnorm", "rms"),
    ("layernorm", "layer"),
    ("rope", "rotary"),
    ("learned_absolute", "learned"),
    ("p2p", "ring"),
    ("a2a", "all_to_all"),
    ("fp8_mixed", "fp8"),
    ("all_linear", "all"),
    ("adamw8bit", "adam_8bit"),
    ("adamw_bnb_8bit", "adam_8bit"),
    ("adamw_torch", "adam"),
    ("adamw_torch_fused", "adam"),
    ("fused_adam", "adam"),
    ("bf16_mixed", "bf16"),
    ("mixed_bf16", "bf16"),
    ("bf16_amp", "bf16"),
    ("bf16_true", "bf16"),
    ("mixed_fp16", "fp16"),
    ("fp8_e4m3", "fp8"),
    ("fp8_hybrid", "fp8"),
    ("torch_compile", "compiled"),
    ("yes", "full"),
    ("on", "full"),
    ("no", "none"),
    ("off", "none"),
    ("flash_attention_2", "flash2"),
    ("flash_attention_3", "flash3"),
    ("adamw", "adam"),
    ("adamw_8bit", "adam_8bit"),
    ("paged_adamw_8bit", "adam_8bit"),
    ("bf16-mixed", "bf16"),
    ("bfloat16", "bf16"),
    ("amp_bf16", "bf16"),
    ("16-mixed", "fp16"),
    ("float16", "fp16"),
    ("float32", "fp32"),
    ("float8", "fp8"),
    ("compile", "compiled"),
    ("op", "operators"),
    ("selop", "operators"),
    ("true", "full"),
    ("false", "none"),
    ("fa2", "flash2"),
    ("sdpa", "flash2"),
    ("fa3", "flash3"),
    ("flashattention", "flash"),
    ("triton", "flash1"),
    ("te", "cudnn"),
    ("eager", "unfused"),
    ("flash_attn_2", "flash2"),
    ("flash_attn2", "flash2"),
    ("flash_attention2", "flash2"),
    ("flashattention_2", "flash2"),
    ("flashattention2", "flash2"),
    ("flash_2", "flash2"),
    ("flash_attn_v2", "flash2"),
    ("flash_attn_3", "flash3"),
    ("flash_attn3", "flash3"),
    ("flash_attention3", "flash3"),
    ("flashattention_3", "flash3"),
    ("flashattention3", "flash3"),
    ("flash_3", "flash3"),
    ("flash_attn_v3", "flash3"),
    ("flash_attention_1", "flash1"),
    ("flash_attn_1", "flash1"),
    ("flashattention_1", "flash1"),
    ("fa1", "flash1"),
    ("flash_attention", "flash"),
    ("flash_attn", "flash"),
    ("16_true", "fp16"),
    ("fp16_true", "fp16"),
    ("32_true", "fp32"),
    ("1", "full"),
    ("0", "none"),
    ("bf_16", "bf16"),
];

/// Returns the column that an unknown name differs from by one letter: another letter, one more, one
/// less, or two in another order.
pub fn similar(name: &str) -> Option<&'static str> {
    let name = heading::key(name);
    let long_enough = COLUMNS.iter().map(|column| column.name).filter(|column| column.len() > 2);
    long_enough.into_iter().find(|column| differ_by_one_letter(name.as_bytes(), heading::key(column).as_bytes()))
}

fn differ_by_one_letter(a: &[u8], b: &[u8]) -> bool {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    match (a, b) {
        ([_, rest @ ..], _) if rest == b => true,
        (_, [_, rest @ ..]) if rest == a => true,
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([first, second, a @ ..], [third, fourth, b @ ..]) => first == fourth && second == third && a == b,
        _ => false,
    }
}

/// Returns the position of a word, or of the word that it stands for.
pub(super) fn position(words: &[&str], text: &str) -> Option<usize> {
    let text = plain(text);
    let find = |text: &str| words.iter().position(|word| word.eq_ignore_ascii_case(text));
    let alias = || WORD_ALIASES.iter().filter(|(alias, _)| plain(alias) == text).find_map(|it| find(it.1));
    find(&text).or_else(alias)
}

/// Returns a word in lower case with an underscore between its parts: `BF16 (mixed)` is `bf16_mixed`.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let parts: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.join("_")
}

/// All known columns.
pub const COLUMNS: [Column; 87] = [
    GPU,
    N_GPUS,
    GPUS_PER_NODE,
    MODEL,
    PRESET,
    LAYERS,
    HIDDEN,
    HEADS,
    KV_HEADS,
    HEAD_SIZE,
    FFN,
    VOCAB,
    GATED,
    NORM,
    BIAS,
    POSITIONS,
    SEQ_LEN,
    CAUSAL,
    WINDOW,
    FULL_EVERY,
    QUERY_RANK,
    KV_RANK,
    CONTENT_SIZE,
    ROTARY_SIZE,
    VALUE_SIZE,
    N_EXPERTS,
    TOP_K,
    EXPERT_FFN,
    SHARED_EXPERT_FFN,
    DENSE_LAYERS,
    DENSE_FFN,
    EXPERTS_EVERY,
    ROUTER_SKEW,
    EXPERT_OVERLAP,
    DISPATCH_BY_NODE,
    PREDICTED_AHEAD,
    LORA_RANK,
    LORA_TARGETS,
    BASE_BITS,
    OPTIMIZER,
    MASTER_WEIGHTS,
    MOMENTS,
    OPTIMIZER_OFFLOAD,
    TP,
    PP,
    DP,
    CP,
    EP,
    ETP,
    VPP,
    LAYERS_PER_STAGE,
    MICROBATCH,
    GLOBAL_BATCH,
    RECOMPUTE,
    SEQUENCE_PARALLEL,
    ZERO,
    PRECISION,
    FP8_RECIPE,
    FP8_WEIGHTS,
    FP8_ACTIVATION_INPUT,
    FSDP,
    FRAMEWORK,
    EXECUTION,
    ATTENTION,
    DROPOUT,
    TIED_EMBEDDINGS,
    RECOMPUTE_LAYERS,
    RECOMPUTE_MODULES,
    ACTIVATION_OFFLOAD,
    GRADIENTS,
    CP_BALANCED,
    CP_EXCHANGE,
    SHARD_DEGREE,
    CHUNKED_LOSS,
    IN_PLACE_LOSS,
    GROUPED_EXPERTS,
    MICROBATCHES_PER_FLUSH,
    UNSHARDED_GRADIENTS,
    PARAMETER_OFFLOAD,
    FUSED_WEIGHT_GRADIENTS,
    TENSOR_OVERLAP,
    DATA_OVERLAP,
    SEND_OVERLAP,
    LINK_GB_PER_S,
    NETWORK_GB_PER_S,
    MEMORY_RESERVE_GIB,
    HOST_MEMORY_GIB,
];

/// Returns a help text with one column per line.
pub fn describe_columns() -> String {
    let mut text = String::new();
    for Column { name, holds, default } in COLUMNS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<18} {holds}; default {default}");
    }
    text
}
