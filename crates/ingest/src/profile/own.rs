//! Planscope measurement table. [`super`] documents the columns.

use planner::calibration::Sample;
use planner::cost::kernel::{
    Attention, Collective, Format, Kernel, MatMul, Operation, Product, Streaming, StreamingClass,
};
use planner::units::Seconds;

use super::ProfileError;
use super::cells::Cells;
use super::ledger::Ledger;
use super::refused::Rejection;
use super::table::Table;

/// Time columns with unit in seconds.
const TIMES: [(&str, f64); 4] = [("time_us", 1e-6), ("time_ms", 1e-3), ("time_s", 1.0), ("time_ns", 1e-9)];
/// Other columns.
const OTHERS: [&str; 20] = [
    "kernel",
    "batch",
    "m",
    "k",
    "n",
    "product",
    "format",
    "tokens",
    "squared",
    "heads",
    "kv_heads",
    "qk_dim",
    "v_dim",
    "causal",
    "backward",
    "class",
    "bytes",
    "operation",
    "ranks",
    "ranks_per_node",
];
/// Maximum relative difference between two times in a row.
const AGREE: f64 = 0.01;

pub(super) fn read(table: &mut Table<'_>, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let times: Vec<(&str, f64)> = TIMES.into_iter().filter(|(column, _)| table.has(column)).collect();
    if times.is_empty() {
        return Err(ProfileError::MissingColumn { format: ledger.format(), column: "time_us".to_owned() });
    }
    table.require(ledger.format(), &["kernel"])?;
    for column in OTHERS.into_iter().chain(times.iter().map(|(column, _)| *column)) {
        if table.has(column) {
            table.require(ledger.format(), &[column])?;
        }
    }
    for column in table.header() {
        if !OTHERS.contains(&column.as_str()) && !times.iter().any(|(name, _)| name == column) {
            let excerpt: String = column.chars().take(40).collect();
            ledger.assume(format!("column {excerpt:?} is not read"));
        }
    }
    while let Some(row) = table.next_row()? {
        let column =
            times.iter().find(|(column, _)| matches!(row.optional(column), Ok(Some(_)))).unwrap_or(&times[0]).0;
        let sample = kernel(&row, ledger).and_then(|kernel| Ok(Sample { kernel, time: time(&row, &times)? }));
        ledger.take(|| row.describe(column), sample)?;
    }
    Ok(())
}

/// Returns the first time in a row. Other times in the row must agree with it.
fn time(row: &impl Cells, times: &[(&str, f64)]) -> Result<Seconds, Rejection> {
    let mut found: Option<(&str, Seconds)> = None;
    for &(column, unit) in times {
        if row.optional(column)?.is_none() {
            continue;
        }
        let time = row.time(column, unit)?;
        match found {
            Some((first, expected)) if (time.secs() / expected.secs() - 1.0).abs() > AGREE => {
                let description = format!("{}, but {}", row.describe(first), row.describe(column));
                return Err(Rejection::new(
                    "two time columns contradict each other: one is in another unit",
                    description,
                ));
            }
            Some(_) => {}
            None => found = Some((column, time)),
        }
    }
    let missing =
        || Rejection::new("a needed cell is empty", row.location(times.first().map_or("time_us", |time| time.0)));
    found.map(|(_, time)| time).ok_or_else(missing)
}

pub(super) fn kernel(row: &impl Cells, ledger: &mut Ledger) -> Result<Kernel, Rejection> {
    match word(row, "kernel")?.as_str() {
        "matmul" => matmul(row, ledger).map(Kernel::MatMul),
        "attention" => attention(row, ledger).map(Kernel::Attention),
        "streaming" => streaming(row).map(Kernel::Streaming),
        "collective" => collective(row, ledger).map(Kernel::Collective),
        _ => Err(unknown(row, "kernel")),
    }
}

fn matmul(row: &impl Cells, ledger: &mut Ledger) -> Result<MatMul, Rejection> {
    let [m, k, n] = [row.size("m")?, row.size("k")?, row.size("n")?];
    let batch = if given(row, "batch", "1", ledger)? { row.size("batch")? } else { 1.0 };
    let product = if given(row, "product", "forward", ledger)? {
        match word(row, "product")?.as_str() {
            "forward" => Product::Forward,
            "input_grad" => Product::InputGrad,
            "weight_grad" => Product::WeightGrad,
            _ => return Err(unknown(row, "product")),
        }
    } else {
        Product::Forward
    };
    let format = if given(row, "format", "bf16", ledger)? {
        match word(row, "format")?.as_str() {
            "bf16" | "fp16" => Format::Bf16,
            "fp8" => Format::Fp8,
            "fp32" | "tf32" => Format::Fp32,
            _ => return Err(unknown(row, "format")),
        }
    } else {
        Format::Bf16
    };
    Ok(MatMul { batch, m, k, n, product, format })
}

fn attention(row: &impl Cells, ledger: &mut Ledger) -> Result<Attention, Rejection> {
    let [tokens, squared] = [row.size("tokens")?, row.size("squared")?];
    let [heads, qk_dim] = [row.size("heads")?, row.size("qk_dim")?];
    let causal = row.flag("causal")?;
    let kv_heads = if given(row, "kv_heads", "as heads", ledger)? { row.size("kv_heads")? } else { heads };
    let v_dim = if given(row, "v_dim", "as qk_dim", ledger)? { row.size("v_dim")? } else { qk_dim };
    let backward = given(row, "backward", "false", ledger)? && row.flag("backward")?;
    Ok(Attention { tokens, squared, heads, kv_heads, qk_dim, v_dim, causal, backward })
}

fn streaming(row: &impl Cells) -> Result<Streaming, Rejection> {
    let class = match word(row, "class")?.as_str() {
        "norm" => StreamingClass::Norm,
        "elementwise" => StreamingClass::Elementwise,
        "activation" => StreamingClass::Activation,
        "embedding" => StreamingClass::Embedding,
        "softmax" => StreamingClass::Softmax,
        "loss" => StreamingClass::Loss,
        "permute" => StreamingClass::Permute,
        "optimizer" => StreamingClass::Optimizer,
        _ => return Err(unknown(row, "class")),
    };
    Ok(Streaming { class, bytes: row.size("bytes")? })
}

fn collective(row: &impl Cells, ledger: &mut Ledger) -> Result<Collective, Rejection> {
    let operation = match word(row, "operation")?.as_str() {
        "all_reduce" => Operation::AllReduce,
        "all_gather" => Operation::AllGather,
        "reduce_scatter" => Operation::ReduceScatter,
        "all_to_all" => Operation::AllToAll,
        "send_receive" | "send_recv" => Operation::SendReceive,
        _ => return Err(unknown(row, "operation")),
    };
    let bytes = row.size("bytes")?;
    let ranks = if operation == Operation::SendReceive && !given(row, "ranks", "2", ledger)? {
        2
    } else {
        row.devices("ranks")?
    };
    let ranks_per_node =
        if given(row, "ranks_per_node", "as ranks", ledger)? { row.devices("ranks_per_node")? } else { ranks };
    Ok(Collective { operation, bytes, ranks, ranks_per_node })
}

/// True if a cell is not empty. Otherwise the default is recorded as an assumption.
fn given(row: &impl Cells, column: &str, default: &str, ledger: &mut Ledger) -> Result<bool, Rejection> {
    let filled = row.optional(column)?.is_some();
    if !filled {
        ledger.assume(format!("{column} is {default} where it is empty"));
    }
    Ok(filled)
}

fn word(row: &impl Cells, column: &str) -> Result<String, Rejection> {
    Ok(row.text(column)?.to_lowercase().replace('-', "_"))
}

fn unknown(row: &impl Cells, column: &str) -> Rejection {
    let reason = match column {
        "kernel" => "an unknown kernel: known are matmul, attention, streaming, collective",
        "product" => "an unknown product: known are forward, input_grad, weight_grad",
        "format" => "an unknown format: known are bf16, fp16, fp8, fp32, tf32",
        "class" => {
            "an unknown class: known are norm, elementwise, activation, embedding, softmax, loss, permute, optimizer"
        }
        _ => "an unknown operation: known are all_reduce, all_gather, reduce_scatter, all_to_all, send_receive",
    };
    Rejection::new(reason, row.describe(column))
}
