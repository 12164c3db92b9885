//! Definitions of the known columns: names, values and defaults.

use std::fmt::Write;

/// A known column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name in the header.
    pub name: &'static str,
    /// Type and range.
    pub holds: Holds,
    /// Default for an empty cell or a missing column, as text.
    pub default: &'static str,
}

/// Type and range of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// An integer in an inclusive range.
    Integer(u32, u32),
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
pub(super) const TP: Column = integer("tp", 1, MAX_DEVICES, "1");
pub(super) const PP: Column = integer("pp", 1, MAX_DEVICES, "1");
pub(super) const DP: Column = integer("dp", 1, MAX_DEVICES, "n_gpus / (tp x pp x cp)");
pub(super) const CP: Column = integer("cp", 1, MAX_DEVICES, "1");
pub(super) const EP: Column = integer("ep", 1, MAX_DEVICES, "1");
pub(super) const VPP: Column = integer("vpp", 1, 1024, "1");
pub(super) const MICROBATCH: Column = integer("microbatch", 1, 65_536, "1");
pub(super) const GLOBAL_BATCH: Column = integer("global_batch", 1, 1_048_576, "dp x microbatch x 4 x pp");
pub(super) const RECOMPUTE: Column = word("recompute", &["none", "selective", "full"], "none");
pub(super) const SEQUENCE_PARALLEL: Column = flag("sequence_parallel", "true if tp > 1");
pub(super) const ZERO: Column = integer("zero", 0, 3, "1 if dp x cp > 1, else 0");
pub(super) const PRECISION: Column = word("precision", &["bf16", "fp16", "fp8", "fp32"], "bf16");
pub(super) const FSDP: Column = flag("fsdp", "false");

/// All known columns.
pub const COLUMNS: [Column; 29] = [
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
    TP,
    PP,
    DP,
    CP,
    EP,
    VPP,
    MICROBATCH,
    GLOBAL_BATCH,
    RECOMPUTE,
    SEQUENCE_PARALLEL,
    ZERO,
    PRECISION,
    FSDP,
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
