//! Weak scaling of Megatron-Core on H100: 1.7B to 462B parameters.

use std::path::Path;

use planner::training::{Recompute, Training};

use super::Error;
use super::search::{Chunks, Search};
use super::setting::{Gpt, layout_label, machine};
use super::table::{Line, Table};
use crate::set::{Facet, Goal, Listing, Row, Set};

/// Predicts the rows of the table.
pub(super) fn measure(folder: &Path) -> Result<Vec<Set>, Error> {
    let table = Table::read(folder, "megatron_h100_weak_scaling.csv")?;
    let rows = table.lines().map(row).collect::<Result<Vec<_>, _>>()?;
    Ok(vec![Set {
        id: "megatron_h100_weak_scaling",
        title: "Weak scaling of GPT, 1.7B to 462B, on H100",
        source: "Megatron-LM's README, table of Megatron-Core r0.8.0",
        unit: "s",
        goal: Goal { mean: 7.0, largest: None },
        peer: "none",
        assumptions: vec![
            "The table gives TFLOP/s per GPU; the measured time is F = 72 B s L h² (1 + s/6h + V/12Lh) over (GPUs x \
             TFLOP/s).",
            "TP, PP and DP are given; microbatch (1, 2 or 4) and VPP (any divisor of a rank's layers) are not: the \
             fastest that fit 76 GiB.",
            "The fastest of several layouts is taken where the run may have used another: a negative bias is to be \
             expected of that choice alone.",
            "Nothing recomputed, fused attention, sequence parallelism where TP > 1, optimizer state sharded over the \
             replicas, gradient and weight traffic overlapped, fp32 gradients, no dropout.",
        ],
        rows,
        variants: vec![],
        findings: vec![],
        listing: Listing::Rows,
    }])
}

fn row(line: Line<'_>) -> Result<Row, Error> {
    let label = line.text("model").to_owned();
    let number = |column| line.number::<u32>(column);
    let gpt = Gpt {
        hidden: number("hidden")?,
        layers: number("layers")?,
        heads: number("heads")?,
        vocab: number("vocab")?,
        sequence_length: number("seq_len")?,
        dropout: false,
    };
    let (devices, global_batch) = (number("n_gpus")?, number("global_batch")?);
    let training =
        Training { recompute: Recompute::None, data_overlap: 1.0, memory_reserve_gib: 4.0, ..Training::default() };
    let model = gpt.model(&label);
    let cluster = machine("h100", devices)?;
    let search = Search {
        model: &model,
        cluster: &cluster,
        training: &training,
        global_batch,
        sequence_length: gpt.sequence_length,
        splits: &[(number("tp")?, number("pp")?)],
        microbatches: &[1, 2, 4],
        chunks: Chunks::Divisors,
    };
    let (layout, estimate, step) = search.fastest().ok_or_else(|| Error::row(&label, &"no layout fits"))?;
    let tflops: f64 = line.number("tflops_per_gpu")?;
    Ok(Row {
        measured: gpt.published_flops(global_batch, 3.0) / (f64::from(devices) * tflops * 1e12),
        predicted: estimate.iteration.secs(),
        note: layout_label(layout),
        facets: vec![Facet::new("TP", layout.tensor), Facet::new("PP", layout.pipeline), Facet::new("model", &label)],
        setup: vec![],
        left_out: None,
        step: Some(step),
        label,
    })
}
