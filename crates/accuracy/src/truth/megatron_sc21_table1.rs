//! Megatron-LM throughput, April 2021: 1.7B to 1T parameters on 32 to 3,072 A100.

use std::path::Path;

use planner::estimate::Estimate;
use planner::outcome::Layout;
use planner::training::Training;

use super::Error;
use super::search::{Chunks, Search, splits};
use super::setting::{Gpt, layout_label, machine, megatron_2021};
use super::table::{Line, Table};
use crate::set::{Facet, Goal, Listing, Row, Set, Variant};
use crate::statistics::Statistics;
use crate::step::Step;

/// Attention heads by hidden size, from Narayanan et al. (2021), table 1.
const HEADS: [(u32, u32); 10] = [
    (2304, 24),
    (3072, 32),
    (4096, 32),
    (6144, 48),
    (8192, 64),
    (10_240, 80),
    (12_288, 96),
    (16_384, 128),
    (20_480, 128),
    (25_600, 160),
];

/// Predicts the rows of the table.
pub(super) fn measure(folder: &Path) -> Result<Vec<Set>, Error> {
    let table = Table::read(folder, "megatron_sc21_table1.csv")?;
    let (mut rows, mut by_rule) = (Vec::new(), Vec::new());
    for line in table.lines() {
        let (row, rule) = both(line)?;
        by_rule.push((row.measured, rule.1.iteration.secs()));
        rows.push(row);
    }
    let rule = Variant {
        title: "the publication's rule: tensor parallelism up to a node of eight, then the pipeline".to_owned(),
        statistics: Statistics::from_pairs(&by_rule),
    };
    Ok(vec![Set {
        id: "megatron_sc21_table1",
        title: "Weak scaling of GPT, 1.7B to 1T, on A100",
        source: "Megatron-LM's README of April 2021 (the models of Narayanan et al., SC'21, table 1)",
        unit: "s",
        goal: Goal { mean: 7.0, largest: None },
        peer: "llm-analysis: mean 8.5 %",
        assumptions: vec![
            "The table gives TFLOP/s per GPU by F = 96 B s L h² (1 + s/6h + V/16Lh), recomputation included; the \
             measured time is F over (GPUs x TFLOP/s).",
            "Only the product TP x PP is given: the fastest split that fits 76 GiB counts, over TP 1 to 8, PP that \
             divides the layers, microbatches of 1 to 16 sequences and VPP over the divisors of a rank's layers. The \
             split of the publication's rule is also reported.",
            "The fastest of several layouts is taken where the run may have used another: a negative bias is to be \
             expected of that choice alone.",
            "Everything recomputed, no sequence parallelism, attention in separate kernels, no sharded optimizer, \
             16-bit gradients accumulated by a kernel of their own, nothing overlapped.",
        ],
        rows,
        variants: vec![rule],
        findings: vec![],
        listing: Listing::Rows,
    }])
}

/// Returns the row for the fastest TP and PP degrees, and the layout from the rule in the
/// publication.
fn both(line: Line<'_>) -> Result<(Row, (Layout, Estimate, Step)), Error> {
    let label = line.text("model").to_owned();
    let number = |column| line.number::<u32>(column);
    let hidden = number("hidden")?;
    let heads = HEADS.iter().find(|(width, _)| *width == hidden);
    let gpt = Gpt {
        hidden,
        layers: number("layers")?,
        heads: heads.ok_or_else(|| Error::row(&label, &format!("heads of hidden size {hidden}")))?.1,
        vocab: number("vocab")?,
        sequence_length: number("seq_len")?,
        dropout: true,
    };
    let (devices, product) = (number("n_gpus")?, number("model_parallel_size_tp_x_pp")?);
    let global_batch = number("global_batch")?;
    let model = gpt.model(&label);
    let cluster = machine("a100-80gb", devices)?;
    let training = Training { memory_reserve_gib: 4.0, ..megatron_2021() };
    let fastest = |splits: &[(u32, u32)]| {
        let search = Search {
            model: &model,
            cluster: &cluster,
            training: &training,
            global_batch,
            sequence_length: gpt.sequence_length,
            splits,
            microbatches: &[1, 2, 4, 8, 16],
            chunks: Chunks::Divisors,
        };
        search.fastest().ok_or_else(|| Error::row(&label, &"no layout fits"))
    };
    let (layout, estimate, step) = fastest(&splits(product))?;
    let tensor = product.min(8);
    let rule = fastest(&[(tensor, product / tensor)])?;
    let flops = gpt.published_flops(global_batch, 4.0);
    let measured = flops / (f64::from(devices) * line.number::<f64>("tflops_per_gpu")? * 1e12);
    let by_rule = (rule.1.iteration.secs() / measured - 1.0) * 100.0;
    let row = Row {
        measured,
        predicted: estimate.iteration.secs(),
        note: format!("{}; by the rule: {}, {by_rule:+.1} %", layout_label(layout), layout_label(rule.0)),
        facets: vec![Facet::new("TP", layout.tensor), Facet::new("PP", layout.pipeline), Facet::new("model", &label)],
        setup: vec![],
        left_out: None,
        step: Some(step),
        label,
    };
    Ok((row, rule))
}
