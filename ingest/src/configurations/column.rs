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
    Whole(u32, u32),
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
            Self::Whole(least, most) => write!(out, "{least} to {most}"),
            Self::Flag => out.write_str("true or false"),
            Self::Word(words) => out.write_str(&words.join(", ")),
            Self::Name(what) => out.write_str(what),
        }
    }
}

/// Maximum device count, 4,096 nodes with 256 devices, as in scenarios.
const MAX_DEVICES: u32 = 4096 * 256;

const fn whole(name: &'static str, least: u32, most: u32, default: &'static str) -> Column {
    Column { name, holds: Holds::Whole(least, most), default }
}

const fn flag(name: &'static str, default: &'static str) -> Column {
    Column { name, holds: Holds::Flag, default }
}

const fn word(name: &'static str, words: &'static [&'static str], default: &'static str) -> Column {
    Column { name, holds: Holds::Word(words), default }
}

const fn name(name: &'static str, what: &'static str, default: &'static str) -> Column {
    Column { name, holds: Holds::Name(what), default }
}

pub(super) const GPU: Column = name("gpu", "a cluster preset, or a usual name such as H100-SXM", "a100-80gb");
pub(super) const N_GPUS: Column = whole("n_gpus", 1, MAX_DEVICES, "tp x pp x cp x dp");
pub(super) const GPUS_PER_NODE: Column = whole("gpus_per_node", 1, 256, "value in the preset, 8; n_gpus if smaller");
pub(super) const MODEL: Column = name("model", "a model preset; a label if layers and hidden are given", "none");
pub(super) const PRESET: Column = name("preset", "a model preset; has priority over model", "none");
pub(super) const LAYERS: Column = whole("layers", 1, 1024, "32");
pub(super) const HIDDEN: Column = whole("hidden", 16, 131_072, "4096");
pub(super) const HEADS: Column = whole("heads", 1, 1024, "hidden / 128, at least 1");
pub(super) const KV_HEADS: Column = whole("kv_heads", 1, 1024, "heads");
pub(super) const FFN: Column =
    whole("ffn", 16, 1_048_576, "4 x hidden; gated: 8/3 x hidden, rounded up to a multiple of 256");
pub(super) const VOCAB: Column = whole("vocab", 0, 4_194_304, "51200");
pub(super) const GATED: Column = flag("gated", "false");
pub(super) const SEQ_LEN: Column = whole("seq_len", 1, 16_777_216, "2048");
pub(super) const CAUSAL: Column = flag("causal", "true");
pub(super) const N_EXPERTS: Column = whole("n_experts", 0, 1024, "0; 0 and 1 are a dense model");
pub(super) const TOP_K: Column = whole("top_k", 0, 1024, "2; ignored for a dense model");
pub(super) const TP: Column = whole("tp", 1, MAX_DEVICES, "1");
pub(super) const PP: Column = whole("pp", 1, MAX_DEVICES, "1");
pub(super) const DP: Column = whole("dp", 1, MAX_DEVICES, "n_gpus / (tp x pp x cp)");
pub(super) const CP: Column = whole("cp", 1, MAX_DEVICES, "1");
pub(super) const EP: Column = whole("ep", 1, MAX_DEVICES, "1");
pub(super) const VPP: Column = whole("vpp", 1, 1024, "1");
pub(super) const MICROBATCH: Column = whole("microbatch", 1, 65_536, "1");
pub(super) const GLOBAL_BATCH: Column = whole("global_batch", 1, 1_048_576, "dp x microbatch x 4 x pp");
pub(super) const RECOMPUTE: Column = word("recompute", &["none", "selective", "full"], "none");
pub(super) const SEQUENCE_PARALLEL: Column = flag("sequence_parallel", "true if tp > 1");
pub(super) const ZERO: Column = whole("zero", 0, 3, "1 if dp x cp > 1, else 0");
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
