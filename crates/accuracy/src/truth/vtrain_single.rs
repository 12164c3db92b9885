//! Step times of small GPT models on 2 to 8 A100, published with vTrain.

mod dependence;

use std::path::Path;

use planner::estimate::Configuration;
use planner::outcome::Layout;
use planner::training::Training;

use super::Error;
use super::setting::{Gpt, given, machine, megatron_2021};
use super::table::{Line, Table};
use crate::set::{Facet, Goal, Listing, Row, Set, Variant};
use crate::statistics::Statistics;
use crate::step::Step;

/// Rows used to fit the host overhead, by the number in the column `source`. They are excluded from
/// the statistics. At most 20 rows.
///
/// Selection rule: PP 1, microbatches with a single sequence, four microbatches per iteration, 12
/// and 24 layers. For each hidden size and TP degree, the run with the smallest DP degree. Sorted
/// by hidden size (1,024, 2,048), TP (1, 2, 4, 8), layers (12, 24).
pub const FITTED_ROWS: &[u32] = &[15, 1335, 1200, 579, 418, 1195, 1050, 949, 1419, 1426, 939, 1064, 644, 353, 198, 983];

const FILE: &str = "vtrain_single.csv";

/// GPT-2 vocabulary size without padding.
const VOCAB: u32 = 50_257;

/// Values of a line used in error analysis.
#[derive(Debug, Clone, Copy)]
struct Run {
    number: u32,
    hidden: u32,
    layers: u32,
    layout: Layout,
    microbatches: u32,
    /// Measured time in ms.
    measured: f64,
    /// Predicted time in ms.
    predicted: f64,
    step: Step,
}

/// Predicts the rows of the table.
pub(super) fn measure(folder: &Path) -> Result<Vec<Set>, Error> {
    let table = Table::read(folder, FILE)?;
    let (mut rows, mut runs) = (Vec::new(), Vec::new());
    for line in table.lines() {
        let run = run(line)?;
        rows.push(row(run));
        runs.push(run);
    }
    let pairs = |keep: &dyn Fn(&Row) -> bool| {
        Statistics::from_pairs(&rows.iter().filter(|row| keep(row)).map(Row::pair).collect::<Vec<_>>())
    };
    let mut variants = vec![Variant {
        title: "time of one more microbatch, each distinct value once".to_owned(),
        statistics: Statistics::from_pairs(&dependence::increments(&runs)),
    }];
    if !FITTED_ROWS.is_empty() {
        variants.push(Variant {
            title: "the rows used to fit the host's overhead".to_owned(),
            statistics: pairs(&|row| row.left_out.is_some()),
        });
    }
    Ok(vec![Set {
        id: "vtrain_single",
        title: "Step times of GPT, 0.2B to 1.3B, on 2 to 8 A100",
        source: "vTrain (Bang et al., MICRO'24), data/ground_truth_single.csv of its repository",
        unit: "ms",
        goal: Goal { mean: 8.0, largest: None },
        peer: "vTrain itself, from profiled kernels: mean 8.4 %; calculon: 38.9 %",
        assumptions: vec![
            "Devices in one NVLink node; A100 of 80 GB.",
            "The file does not give the vocabulary: 50,257, the default of vTrain's configuration, cut to a multiple of \
             TP as its model does. At TP 1 it is odd, and the head's products miss the alignment of tensor cores.",
            "Activation checkpointing of every layer, 1F1B, no ZeRO, no sequence parallelism, attention in separate \
             kernels, dropout.",
            "16-bit gradients, accumulated by a kernel of their own; nothing overlapped.",
        ],
        rows,
        variants,
        findings: dependence::findings(&runs),
        listing: Listing::Groups,
    }])
}

/// Configuration and its measured time.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) label: String,
    pub(crate) configuration: Configuration,
    /// Measured time in ms.
    pub(crate) milliseconds: f64,
}

/// Returns the rows used to fit the host overhead, in file order.
pub(crate) fn fitted(folder: &Path) -> Result<Vec<Measured>, Error> {
    let table = Table::read(folder, FILE)?;
    let fitted_lines = table.lines().filter(|line| FITTED_ROWS.contains(&number(*line)));
    fitted_lines.map(measured).collect()
}

/// Returns the row number in the published file.
fn number(line: Line<'_>) -> u32 {
    line.text("source").rsplit("row ").next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn measured(line: Line<'_>) -> Result<Measured, Error> {
    let number = |column| line.number::<u32>(column);
    let tensor = number("tensor parallelism")?;
    let gpt = Gpt {
        hidden: number("hidden size")?,
        layers: number("# layers")?,
        heads: number("attention heads")?,
        vocab: VOCAB / tensor.max(1) * tensor,
        sequence_length: number("sequence length")?,
        dropout: true,
    };
    let configuration = Configuration {
        model: gpt.model("GPT"),
        cluster: machine("a100-80gb", number("# GPUs")?)?,
        training: Training { memory_reserve_gib: 0.0, ..megatron_2021() },
        layout: Layout {
            tensor,
            pipeline: number("pipeline parallelism")?,
            data: number("data parallelism")?,
            chunks: 1,
            microbatch: number("micro batch")?,
            group: None,
        },
        layers_per_stage: Vec::new(),
        global_batch: number("global batch")?,
        sequence_length: gpt.sequence_length,
        items: 0,
    };
    let milliseconds = line.number("iteration time (ms)")?;
    Ok(Measured { label: line.text("source").to_owned(), configuration, milliseconds })
}

fn run(line: Line<'_>) -> Result<Run, Error> {
    let Measured { label, configuration, milliseconds } = measured(line)?;
    let estimate = given(&label, &configuration)?;
    Ok(Run {
        number: number(line),
        hidden: line.number("hidden size")?,
        layers: line.number("# layers")?,
        layout: configuration.layout,
        microbatches: configuration.global_batch / configuration.layout.data / configuration.layout.microbatch,
        measured: milliseconds,
        predicted: estimate.iteration.secs() * 1e3,
        step: Step::new(&configuration, &estimate),
    })
}

fn row(run: Run) -> Row {
    Row {
        label: format!("row {}", run.number),
        measured: run.measured,
        predicted: run.predicted,
        note: String::new(),
        facets: vec![
            Facet::new("hidden size", run.hidden),
            Facet::new("layers", run.layers),
            Facet::new("TP", run.layout.tensor),
            Facet::new("PP", run.layout.pipeline),
            Facet::new("DP", run.layout.data),
            Facet::new("microbatch", run.layout.microbatch),
            Facet::new("microbatches", run.microbatches),
        ],
        setup: vec![],
        left_out: FITTED_ROWS.contains(&run.number).then_some("used to fit the host's overhead"),
        step: Some(run.step),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn no_more_rows_are_fitted_to_than_allowed() {
        assert!(FITTED_ROWS.len() <= 20);
    }

    #[test]
    fn fitted_rows_follow_the_rule() {
        let Some(data) = std::env::var_os("PLANSCOPE_DATA") else {
            eprintln!("skipped: PLANSCOPE_DATA is not set, so there are no rows to choose from");
            return;
        };
        let table = Table::read(&Path::new(&data).join("truth"), FILE).unwrap();
        let mut smallest: BTreeMap<[u32; 3], (u32, u32)> = BTreeMap::new();
        for line in table.lines() {
            let value = |column| line.number::<u32>(column).unwrap();
            let (layers, data) = (value("# layers"), value("data parallelism"));
            let is_single_rank = value("micro batch") == 1 && value("pipeline parallelism") == 1;
            if is_single_rank && [12, 24].contains(&layers) && value("global batch") == 4 * data {
                let best = smallest.entry([value("hidden size"), value("tensor parallelism"), layers]);
                let found = (data, number(line));
                best.and_modify(|best| *best = found.min(*best)).or_insert(found);
            }
        }
        let selected: Vec<u32> = smallest.into_values().map(|(_, number)| number).collect();
        assert_eq!(selected, FITTED_ROWS);
    }
}
