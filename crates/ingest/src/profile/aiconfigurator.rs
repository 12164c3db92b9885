//! NVIDIA aiconfigurator tables in Parquet or CSV: `gemm_perf`, `context_attention_perf`,
//! `encoder_attention_perf`, `nccl_perf` and `moe_perf`. Times are in milliseconds, or in the unit
//! in the column name (`latency_us`). All kernels are forward.
//!
//! `message_size` in `nccl_perf` is the element count (type `nccl_dtype`) of the full vector, as in
//! nccl-tests. `moe_perf` times both products over all experts. They become one grouped product
//! with equal FLOPs.

use planner::calibration::Sample;
use planner::cost::kernel::{Attention, Collective, Format, Kernel, MatMul, Product};

use super::ProfileError;
use super::cells::Cells;
use super::ledger::Ledger;
use super::nccl_tests::operation;
use super::refused::Rejection;
use super::table::{Row, Table};

/// Time columns, with unit name and unit in seconds.
const TIMES: [(&str, &str, f64); 4] = [
    ("latency", "milliseconds", 1e-3),
    ("latency_ms", "milliseconds", 1e-3),
    ("latency_us", "microseconds", 1e-6),
    ("latency_s", "seconds", 1.0),
];
/// Minimum tokens per expert. Below this value weight reads dominate, as in serving.
const MIN_TOKENS: f64 = 64.0;

/// aiconfigurator table type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gemm,
    ContextAttention,
    EncoderAttention,
    Nccl,
    Moe,
}

/// True if a header belongs to an aiconfigurator table.
pub(super) fn is(header: &[String]) -> bool {
    kind(header).is_some()
}

fn kind(header: &[String]) -> Option<Kind> {
    let has = |names: &[&str]| names.iter().all(|name| header.iter().any(|column| column == name));
    match () {
        () if time(header).is_none() => None,
        () if has(&["gemm_dtype", "m", "n", "k"]) => Some(Kind::Gemm),
        () if has(&["batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim"]) => {
            Some(Kind::ContextAttention)
        }
        () if has(&["batch_size", "isl", "num_heads", "head_dim"]) => Some(Kind::EncoderAttention),
        () if has(&["nccl_dtype", "num_gpus", "message_size"]) => Some(Kind::Nccl),
        () if has(&["moe_dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts"]) => Some(Kind::Moe),
        () => None,
    }
}

/// Returns the time column. Returns `None` if there are several, because they may contradict each
/// other.
fn time(header: &[String]) -> Option<(&'static str, &'static str, f64)> {
    let mut found = TIMES.into_iter().filter(|(name, ..)| header.iter().any(|column| column == name));
    found.next().filter(|_| found.next().is_none())
}

/// Parses all rows. Returns the device in column `device`.
pub(super) fn read(table: &mut Table<'_>, ledger: &mut Ledger) -> Result<Option<String>, ProfileError> {
    let Some((kind, (column, unit, seconds))) = kind(table.header()).zip(time(table.header())) else { return Ok(None) };
    ledger.assume(format!("{column} is in {unit}; every kernel is a forward pass"));
    match kind {
        Kind::Nccl => {
            ledger.assume("message_size counts elements of nccl_dtype, of the whole vector");
            ledger.assume("all devices are on one node");
        }
        Kind::Moe => ledger.assume(
            "the two products of the experts are fitted as one grouped product with the same operations, balanced rows only",
        ),
        Kind::ContextAttention => ledger.assume("context attention is causal"),
        Kind::EncoderAttention => ledger.assume("encoder attention is not causal"),
        Kind::Gemm => {}
    }
    let mut device: Option<String> = None;
    while let Some(row) = table.next_row()? {
        if let Ok(Some(name)) = row.optional("device") {
            match &device {
                None => device = Some(name.to_owned()),
                Some(known) if known != name => {
                    return Err(ProfileError::TwoDevices { first: known.clone(), second: name.to_owned() });
                }
                Some(_) => {}
            }
        }
        let sample = kernel(&row, kind).and_then(|kernel| Ok(Sample { kernel, time: row.time(column, seconds)? }));
        ledger.take(|| row.describe(column), sample)?;
    }
    Ok(device)
}

fn kernel(row: &Row<'_>, kind: Kind) -> Result<Kernel, Rejection> {
    Ok(match kind {
        Kind::Gemm => {
            let [m, n, k] = [row.size("m")?, row.size("n")?, row.size("k")?];
            let format = number_format(row, "gemm_dtype")?;
            Kernel::MatMul(MatMul { batch: 1.0, m, k, n, product: Product::Forward, format })
        }
        Kind::ContextAttention | Kind::EncoderAttention => attention(row, kind)?,
        Kind::Nccl => {
            let operation = operation(row.text("op_name")?).flatten().ok_or_else(|| {
                Rejection::new("a collective that training plans do not hold", row.describe("op_name"))
            })?;
            let width = match row.text("nccl_dtype")?.to_lowercase().as_str() {
                "half" | "float16" | "bfloat16" => 2.0,
                "float" | "float32" => 4.0,
                "int8" | "fp8" | "uint8" => 1.0,
                _ => return Err(Rejection::new("a number format of unknown width", row.describe("nccl_dtype"))),
            };
            let ranks = row.devices("num_gpus")?;
            let bytes = row.size("message_size")? * width;
            Kernel::Collective(Collective { operation, bytes, ranks, ranks_per_node: ranks })
        }
        Kind::Moe => moe(row)?,
    })
}

fn number_format(row: &Row<'_>, column: &str) -> Result<Format, Rejection> {
    match row.text(column)?.to_lowercase().as_str() {
        "bfloat16" | "float16" | "half" => Ok(Format::Bf16),
        "fp8" | "fp8_block" => Ok(Format::Fp8),
        "float32" => Ok(Format::Fp32),
        _ => Err(Rejection::new("a number format that training plans do not hold", row.describe(column))),
    }
}

fn attention(row: &Row<'_>, kind: Kind) -> Result<Kernel, Rejection> {
    let positive = |column: &str| -> Result<bool, Rejection> {
        Ok(row.optional(column)?.and_then(|cell| cell.parse::<f64>().ok()).is_some_and(|value| value > 0.0))
    };
    if positive("step")? {
        return Err(Rejection::new("attention with cached keys, as in serving", row.describe("step")));
    }
    if positive("window_size")? {
        return Err(Rejection::new("attention with a sliding window", row.describe("window_size")));
    }
    for column in ["attn_dtype", "kv_cache_dtype"] {
        if row.optional(column)?.is_some() && number_format(row, column)? != Format::Bf16 {
            return Err(Rejection::new("attention in fp8", row.describe(column)));
        }
    }
    let [batch, length, heads] = [row.size("batch_size")?, row.size("isl")?, row.size("num_heads")?];
    let causal = kind == Kind::ContextAttention;
    let kv_heads = if causal { row.size("num_key_value_heads")? } else { heads };
    let width = row.size("head_dim")?;
    Ok(Kernel::Attention(Attention {
        tokens: batch * length,
        squared: batch * length * length,
        heads,
        kv_heads,
        qk_dim: width,
        v_dim: width,
        causal,
        backward: false,
    }))
}

fn moe(row: &Row<'_>) -> Result<Kernel, Rejection> {
    if !row.text("distribution")?.eq_ignore_ascii_case("balanced") {
        return Err(Rejection::new("experts with an uneven number of tokens", row.describe("distribution")));
    }
    if row.size("moe_ep_size")? > 1.0 {
        return Err(Rejection::new("experts on several devices", row.describe("moe_ep_size")));
    }
    let experts = row.size("num_experts")?;
    let tokens = row.size("num_tokens")? * row.size("topk")? / experts;
    if tokens < MIN_TOKENS {
        return Err(Rejection::new("fewer than 64 tokens per expert, as in serving", row.describe("num_tokens")));
    }
    let width = row.size("inter_size")? / row.size("moe_tp_size")?;
    // The gate and up products have 2 x width columns; the down product has the FLOPs of another
    // width columns.
    Ok(Kernel::MatMul(MatMul {
        batch: experts,
        m: tokens.round(),
        k: row.size("hidden_size")?,
        n: 3.0 * width,
        product: Product::Forward,
        format: number_format(row, "moe_dtype")?,
    }))
}
