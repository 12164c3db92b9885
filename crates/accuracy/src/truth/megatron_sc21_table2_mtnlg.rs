//! Strong scaling of Megatron-LM (SC'21, table 2), Megatron-Turing NLG, and GPT-3 175B from the
//! README.

use std::path::Path;

use planner::training::{GradientFormat, Training};

use super::Error;
use super::search::{Chunks, Search};
use super::setting::{Gpt, layout_label, machine, megatron_2021};
use super::table::{Line, Table};
use crate::set::{Facet, Goal, Listing, Row, Set, Variant};
use crate::statistics::Statistics;

/// Sequences per iteration for Megatron-Turing NLG.
const SEQUENCES: f64 = 1920.0;

/// Predicts the rows of the table.
pub(super) fn measure(folder: &Path) -> Result<Vec<Set>, Error> {
    let table = Table::read(folder, "megatron_sc21_table2_mtnlg.csv")?;
    let rows = table.lines().map(row).collect::<Result<Vec<_>, _>>()?;
    let variant = |title: &str, deepspeed: bool| {
        let pairs: Vec<_> =
            rows.iter().filter(|row| row.label.starts_with("mt-nlg") == deepspeed).map(Row::pair).collect();
        Variant { title: title.to_owned(), statistics: Statistics::from_pairs(&pairs) }
    };
    let variants = vec![variant("Megatron-LM rows only", false), variant("Megatron-Turing NLG rows only", true)];
    Ok(vec![Set {
        id: "megatron_sc21_table2_mtnlg",
        title: "Strong scaling of GPT, 175B and 530B, on A100",
        source: "Narayanan et al., SC'21, table 2; Smith et al. (arXiv 2201.11990), section 2.4; Megatron-LM's README; \
                 as transcribed by llm-analysis",
        unit: "s",
        goal: Goal { mean: 7.0, largest: None },
        peer: "llm-analysis: mean 8.5 %",
        assumptions: vec![
            "Where the source gives TFLOP/s, the measured time is F = 96 B s L h² (1 + s/6h + V/16Lh) over (GPUs x \
             TFLOP/s).",
            "Sequences of 2,048 tokens, vocabulary 51,200; 175B: 96 layers, h 12,288, 96 heads; 530B: 105 layers, h \
             20,480, 128 heads.",
            "TP and PP are given. Microbatch 1 is assumed throughout, and no chunks for GPT-3 175B: as far as we know \
             that is how these runs were made, but the transcription has neither and we could not check it. With \
             the fastest microbatch instead the mean error was 8.0 %. Megatron-Turing NLG ran on DeepSpeed's \
             pipeline: VPP 1, gradients in fp32.",
            "VPP of the other rows is the fastest that fits 76 GiB, where the run may have used another.",
            "Everything recomputed, no sequence parallelism, attention in separate kernels, no sharded optimizer, \
             16-bit gradients accumulated by a kernel of their own, nothing overlapped.",
        ],
        findings: deepspeed(&rows),
        rows,
        variants,
        listing: Listing::Rows,
    }])
}

/// Computes the time per additional microbatch and the constant remainder from three
/// Megatron-Turing NLG runs that differ only in DP.
fn deepspeed(rows: &[Row]) -> Vec<String> {
    let runs: Vec<(f64, f64, f64)> = rows
        .iter()
        .filter(|row| row.label.starts_with("mt-nlg"))
        .filter_map(|row| {
            let data = row.facets.iter().find(|facet| facet.name == "DP")?;
            Some((SEQUENCES / data.value.parse::<f64>().ok()?, row.measured, row.predicted))
        })
        .collect();
    let ([max_run, .., min_run], true) = (runs.as_slice(), runs.len() > 2) else { return vec![] };
    let line = |metric: fn(&(f64, f64, f64)) -> f64| {
        let slope = (metric(max_run) - metric(min_run)) / (max_run.0 - min_run.0);
        (slope, metric(max_run) - slope * max_run.0)
    };
    let (measured, predicted) = (line(|run| run.1), line(|run| run.2));
    vec![format!(
        "Megatron-Turing NLG, one microbatch more: {:.1} ms measured, {:.1} ms predicted; time that does not depend on \
         the number of microbatches: {:.1} s measured, {:.1} s predicted.",
        measured.0 * 1e3,
        predicted.0 * 1e3,
        measured.1,
        predicted.1
    )]
}

fn row(line: Line<'_>) -> Result<Row, Error> {
    let name = line.text("model");
    let number = |column| line.number::<u32>(column);
    let (devices, global_batch) = (number("n_gpus")?, number("global_batch")?);
    let label = format!("{name}, {devices} GPUs");
    let (hidden, layers, heads) = if name.contains("530B") { (20_480, 105, 128) } else { (12_288, 96, 96) };
    let gpt = Gpt { hidden, layers, heads, vocab: 51_200, sequence_length: 2048, dropout: true };
    let deepspeed = name.starts_with("mt-nlg");
    let training = Training {
        memory_reserve_gib: 4.0,
        gradients: if deepspeed { GradientFormat::Fp32 } else { GradientFormat::Bf16 },
        ..megatron_2021()
    };
    let model = gpt.model(name);
    let cluster = machine("a100-80gb", devices)?;
    let search = Search {
        model: &model,
        cluster: &cluster,
        training: &training,
        global_batch,
        sequence_length: gpt.sequence_length,
        splits: &[(number("tp")?, number("pp")?)],
        microbatches: &[1],
        chunks: if deepspeed || name.starts_with("gpt3") { Chunks::Single } else { Chunks::Divisors },
    };
    let (layout, estimate, step) = search.fastest().ok_or_else(|| Error::row(&label, &"no layout fits"))?;
    let measured = if line.lacks("iter_time_s") {
        gpt.published_flops(global_batch, 4.0) / (f64::from(devices) * line.number::<f64>("tflops_per_gpu")? * 1e12)
    } else {
        line.number("iter_time_s")?
    };
    Ok(Row {
        label,
        measured,
        predicted: estimate.iteration.secs(),
        note: layout_label(layout),
        facets: vec![Facet::new("model", name), Facet::new("PP", layout.pipeline), Facet::new("DP", layout.data)],
        setup: vec![],
        left_out: None,
        step: Some(step),
    })
}
