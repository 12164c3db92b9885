//! Vidur operator profile: forward times in milliseconds by token count and tensor-parallel degree.
//!
//! Shapes follow the profiler's model (vidur/profiling/mlp/mlp_impl.py): the up projection includes
//! the gate, and `n_expanded_embd` is the width of a single one. Measured rates confirm this: for
//! Llama-2-70b with 4,096 tokens, an A100 reaches 239 TFLOP/s in the up projection and 236 in the
//! down projection. Without the gate the rate would be 120. If the width were already doubled, it
//! would be 478, above the peak of 312.

use planner::calibration::Sample;
use planner::cost::kernel::{Format, Kernel, MatMul, Product, Streaming, StreamingClass};

use super::ProfileError;
use super::cells::Cells;
use super::ledger::Ledger;
use super::refused::Rejection;
use super::table::{Row, Table};

/// Shape columns.
const SHAPE: [&str; 7] =
    ["n_head", "n_kv_head", "n_embd", "n_expanded_embd", "use_gated_mlp", "num_tokens", "num_tensor_parallel_workers"];

/// Time columns.
const TIMES: [(&str, Operator); 10] = [
    ("time_stats.emb.median", Operator::Embedding),
    ("time_stats.input_layernorm.median", Operator::Norm),
    ("time_stats.attn_pre_proj.median", Operator::QueryKeyValue),
    ("time_stats.attn_rope.median", Operator::Rotary),
    ("time_stats.attn_post_proj.median", Operator::AttentionOutput),
    ("time_stats.post_attention_layernorm.median", Operator::Norm),
    ("time_stats.mlp_up_proj.median", Operator::Up),
    ("time_stats.mlp_act.median", Operator::Activation),
    ("time_stats.mlp_down_proj.median", Operator::Down),
    ("time_stats.add.median", Operator::Add),
];

/// Bytes per bf16 element.
const BF16: f64 = 2.0;
const MILLISECOND: f64 = 1e-3;

#[derive(Debug, Clone, Copy)]
enum Operator {
    Embedding,
    Norm,
    QueryKeyValue,
    Rotary,
    AttentionOutput,
    Up,
    Activation,
    Down,
    Add,
}

/// True for time columns.
pub(super) fn is_time(column: &str) -> bool {
    TIMES.iter().any(|(name, _)| *name == column)
}

/// Parses all operators in all rows.
pub(super) fn read(table: &mut Table<'_>, ledger: &mut Ledger) -> Result<(), ProfileError> {
    table.require(ledger.format(), &SHAPE)?;
    let measured: Vec<_> = TIMES.into_iter().filter(|(column, _)| table.has(column)).collect();
    for (column, _) in TIMES {
        if !table.has(column) {
            ledger.assume(format!("there is no column {column}: that operator was not measured"));
        }
    }
    ledger.assume("times are the medians, in milliseconds, of forward passes in 16 bits");
    ledger.assume("the up projection holds the gate of a gated MLP, and n_expanded_embd is the width of one of them");
    ledger.assume(
        "bytes of norms, activation, addition, rotary embedding and lookup are those of reading and writing each tensor once",
    );
    while let Some(row) = table.next_row()? {
        let shape = Shape::read(&row);
        for &(column, operator) in &measured {
            let sample = shape
                .clone()
                .and_then(|shape| Ok(Sample { kernel: shape.kernel(operator), time: row.time(column, MILLISECOND)? }));
            ledger.take(|| row.describe(column), sample)?;
        }
    }
    Ok(())
}

/// Dimensions per device.
#[derive(Debug, Clone)]
struct Shape {
    tokens: f64,
    /// Hidden size.
    hidden: f64,
    /// Query width, hidden / t.
    queries: f64,
    /// Key width, equal to value width. A head shared by several devices is replicated.
    keys: f64,
    /// MLP width, n_expanded_embd / t.
    expanded: f64,
    /// True if the up projection has a gate.
    gated: bool,
}

impl Shape {
    fn read(row: &Row<'_>) -> Result<Self, Rejection> {
        let [heads, kv_heads, hidden, expanded] =
            [row.size("n_head")?, row.size("n_kv_head")?, row.size("n_embd")?, row.size("n_expanded_embd")?];
        let tokens = row.size("num_tokens")?;
        let gated = row.flag("use_gated_mlp")?;
        let workers = row.size("num_tensor_parallel_workers")?;
        let uneven = |divided: &str| {
            let found = format!("{}, {divided}", row.describe("num_tensor_parallel_workers"));
            Err(Rejection::new("sizes do not divide evenly", found))
        };
        if hidden % heads != 0.0 {
            return uneven("n_embd by n_head");
        }
        if heads % workers != 0.0 {
            return uneven("n_head by workers");
        }
        if expanded % workers != 0.0 {
            return uneven("n_expanded_embd by workers");
        }
        Ok(Self {
            tokens,
            hidden,
            queries: hidden / workers,
            keys: (kv_heads / workers).max(1.0) * (hidden / heads),
            expanded: expanded / workers,
            gated,
        })
    }

    fn kernel(&self, operator: Operator) -> Kernel {
        let Self { tokens, hidden, queries, keys, expanded, gated } = *self;
        let product = |k: f64, n: f64| {
            Kernel::MatMul(MatMul { batch: 1.0, m: tokens, k, n, product: Product::Forward, format: Format::Bf16 })
        };
        let streaming = |class: StreamingClass, tensors: f64, width: f64| {
            Kernel::Streaming(Streaming { class, bytes: BF16 * tensors * tokens * width })
        };
        match operator {
            Operator::Embedding => streaming(StreamingClass::Embedding, 2.0, hidden),
            Operator::Norm => streaming(StreamingClass::Norm, 2.0, hidden),
            Operator::QueryKeyValue => product(hidden, queries + 2.0 * keys),
            Operator::Rotary => streaming(StreamingClass::Activation, 2.0, queries + keys),
            Operator::AttentionOutput => product(queries, hidden),
            Operator::Up => product(hidden, if gated { 2.0 * expanded } else { expanded }),
            // A gated activation reads two tensors and writes one.
            Operator::Activation => streaming(StreamingClass::Activation, if gated { 3.0 } else { 2.0 }, expanded),
            Operator::Down => product(expanded, hidden),
            Operator::Add => streaming(StreamingClass::Elementwise, 3.0, hidden),
        }
    }
}
