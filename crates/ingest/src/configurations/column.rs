//! Definitions of the known columns: names, values and defaults.

use std::fmt::Write;

use super::heading;

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

/// Maximum device count, 4,096 nodes with 256 devices, as in scenarios.
const MAX_DEVICES: u32 = 4096 * 256;

const fn integer(name: &'static str, min: u32, max: u32, default: &'static str) -> Column {
    Column { name, holds: Holds::Integer(min, max), default }
}

const fn number(name: &'static str, min: f64, max: f64, default: &'static str) -> Column {
    Column { name, holds: Holds::Number(min, max), default }
}

const fn flag(name: &'static str, default: &'static str) -> Column {
    Column { name, holds: Holds::Flag, default }
}

const fn word(name: &'static str, terms: &'static [&'static str], default: &'static str) -> Column {
    Column { name, holds: Holds::Word(terms), default }
}

const fn name(name: &'static str, description: &'static str, default: &'static str) -> Column {
    Column { name, holds: Holds::Name(description), default }
}

pub(super) const GPU: Column = name("gpu", "a cluster preset, or a usual name such as H100-SXM", "a100-80gb");
pub(super) const N_GPUS: Column = integer("n_gpus", 1, MAX_DEVICES, "tp x pp x cp x dp");
pub(super) const GPUS_PER_NODE: Column = integer("gpus_per_node", 1, 256, "value in the preset, 8; n_gpus if smaller");
pub(super) const MODEL: Column = name("model", "a model preset; a label if layers and hidden are given", "none");
pub(super) const PRESET: Column = name("preset", "a model preset; has priority over model", "none");
pub(super) const LAYERS: Column = integer("layers", 1, 1024, "32");
pub(super) const HIDDEN: Column = integer("hidden", 16, 131_072, "4096");
pub(super) const HEADS: Column = integer("heads", 1, 1024, "hidden / 128, at least 1");
pub(super) const KV_HEADS: Column = integer("kv_heads", 1, 1024, "heads");
pub(super) const FFN: Column =
    integer("ffn", 16, 1_048_576, "4 x hidden; gated: 8/3 x hidden, rounded up to a multiple of 256");
pub(super) const VOCAB: Column = integer("vocab", 0, 4_194_304, "51200");
pub(super) const GATED: Column = flag("gated", "false");
pub(super) const SEQ_LEN: Column = integer("seq_len", 1, 16_777_216, "2048");
pub(super) const CAUSAL: Column = flag("causal", "true");
pub(super) const N_EXPERTS: Column = integer("n_experts", 0, 1024, "0; 0 and 1 are a dense model");
pub(super) const TOP_K: Column = integer("top_k", 0, 1024, "2; ignored for a dense model");
pub(super) const EXPERT_FFN: Column = integer("expert_ffn", 16, 1_048_576, "ffn");
pub(super) const SHARED_EXPERT_FFN: Column = integer("shared_expert_ffn", 0, 1_048_576, "0; all shared experts");
pub(super) const DENSE_LAYERS: Column = integer("dense_layers", 0, 1023, "0; first layers without experts");
pub(super) const ROUTER_SKEW: Column = number("router_skew", 1.0, 1024.0, "1; most over mean tokens of an EP rank");
pub(super) const EXPERT_OVERLAP: Column = number("expert_overlap", 0.0, 1.0, "0; hidden share of the exchange");
pub(super) const DISPATCH_BY_NODE: Column = flag("dispatch_by_node", "false; true as with DeepEP");
pub(super) const LORA_RANK: Column = integer("lora_rank", 0, 4096, "0: all parameters are trained");
pub(super) const OPTIMIZER: Column = word("optimizer", &["adam", "adam_8bit", "muon", "adafactor", "sgd"], "adam");
pub(super) const MASTER_WEIGHTS: Column = word("master_weights", &["fp32", "half", "none"], "fp32");
pub(super) const MOMENTS: Column = word("moments", &["fp32", "bf16", "fp8"], "fp32");
pub(super) const OPTIMIZER_OFFLOAD: Column = number("optimizer_offload", 0.0, 1.0, "0; share in host memory");
pub(super) const TP: Column = integer("tp", 1, MAX_DEVICES, "1");
pub(super) const PP: Column = integer("pp", 1, MAX_DEVICES, "1");
pub(super) const DP: Column = integer("dp", 1, MAX_DEVICES, "n_gpus / (tp x pp x cp)");
pub(super) const CP: Column = integer("cp", 1, MAX_DEVICES, "1");
pub(super) const EP: Column = integer("ep", 1, MAX_DEVICES, "1");
pub(super) const ETP: Column = integer("etp", 1, 64, "tp; or 1: whole experts");
pub(super) const VPP: Column = integer("vpp", 1, 1024, "1");
pub(super) const LAYERS_PER_STAGE: Column =
    name("layers_per_stage", "pp x vpp numbers, such as 7 8*6 9", "as the framework splits the layers");
pub(super) const MICROBATCH: Column = integer("microbatch", 1, 65_536, "1");
pub(super) const GLOBAL_BATCH: Column = integer("global_batch", 1, 1_048_576, "dp x microbatch x 4 x pp");
pub(super) const RECOMPUTE: Column = word("recompute", &["none", "selective", "operators", "full"], "none");
pub(super) const RECOMPUTE_LAYERS: Column =
    integer("recompute_layers", 1, 1024, "all layers of a stage; needs recompute full");
pub(super) const SEQUENCE_PARALLEL: Column = flag("sequence_parallel", "true if tp > 1 and the framework has it");
pub(super) const ZERO: Column = integer("zero", 0, 3, "1 if dp x cp > 1 (3 with framework torchtitan or fsdp), else 0");
pub(super) const SHARD_DEGREE: Column = integer("shard_degree", 1, 131_072, "dp x cp; needs zero >= 1");
pub(super) const CHUNKED_LOSS: Column = flag("chunked_loss", "false");
pub(super) const IN_PLACE_LOSS: Column = flag("in_place_loss", "false");
pub(super) const PARAMETER_OFFLOAD: Column = flag("parameter_offload", "false; needs zero 3");
pub(super) const PRECISION: Column = word("precision", &["bf16", "fp16", "fp8", "fp32"], "bf16");
pub(super) const FSDP: Column = flag("fsdp", "false");
pub(super) const FRAMEWORK: Column = name(
    "framework",
    "megatron, megatron_deepspeed, torchtitan, fsdp, nanotron, hugging_face, deepspeed or internevo",
    "fsdp if fsdp is true, else megatron",
);
pub(super) const EXECUTION: Column =
    word("execution", &["framework", "eager", "compiled", "cuda_graph"], "as usual in the framework");
pub(super) const ATTENTION: Column = word(
    "attention",
    &["default", "flash", "unfused", "flash1", "flash2", "flash3", "cudnn"],
    "by framework, device and recompute",
);
pub(super) const DROPOUT: Column = flag("dropout", "true if attention is unfused and the model is not gated");
pub(super) const TIED_EMBEDDINGS: Column = flag("tied_embeddings", "true if the model is not gated");
pub(super) const GRADIENTS: Column = word("gradients", &["fp32", "bf16"], "bf16 for internevo, else fp32");
pub(super) const CP_BALANCED: Column = flag("cp_balanced", "true");
pub(super) const FUSED_WEIGHT_GRADIENTS: Column = flag("fused_weight_gradients", "true for megatron, else false");
pub(super) const TENSOR_OVERLAP: Column = number("tensor_overlap", 0.0, 1.0, "0");
pub(super) const DATA_OVERLAP: Column = number("data_overlap", 0.0, 1.0, "1 if zero >= 1, except nanotron");
pub(super) const LINK_GB_PER_S: Column = number("link_gb_per_s", 0.1, 100_000.0, "value in the preset");
pub(super) const NETWORK_GB_PER_S: Column = number("network_gb_per_s", 0.1, 100_000.0, "value in the preset");
pub(super) const HOST_MEMORY_GIB: Column = number("host_memory_gib", 0.0, 1_048_576.0, "256 per device; per node");
pub(super) const MEMORY_RESERVE_GIB: Column = number("memory_reserve_gib", 0.0, 1000.0, "4");

/// Other usual words in cells: (word, word of the column).
const WORD_ALIASES: [(&str, &str); 41] = [
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
pub const COLUMNS: [Column; 61] = [
    GPU,
    N_GPUS,
    GPUS_PER_NODE,
    MODEL,
    PRESET,
    LAYERS,
    HIDDEN,
    HEADS,
    KV_HEADS,
    FFN,
    VOCAB,
    GATED,
    SEQ_LEN,
    CAUSAL,
    N_EXPERTS,
    TOP_K,
    EXPERT_FFN,
    SHARED_EXPERT_FFN,
    DENSE_LAYERS,
    ROUTER_SKEW,
    EXPERT_OVERLAP,
    DISPATCH_BY_NODE,
    LORA_RANK,
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
    FSDP,
    FRAMEWORK,
    EXECUTION,
    ATTENTION,
    DROPOUT,
    TIED_EMBEDDINGS,
    RECOMPUTE_LAYERS,
    GRADIENTS,
    CP_BALANCED,
    SHARD_DEGREE,
    CHUNKED_LOSS,
    IN_PLACE_LOSS,
    PARAMETER_OFFLOAD,
    FUSED_WEIGHT_GRADIENTS,
    TENSOR_OVERLAP,
    DATA_OVERLAP,
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
