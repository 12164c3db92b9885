//! Step times from Korthikanti et al. (2022), table 5: 22B to 1T parameters on A100.

use std::path::Path;

use planner::estimate::Configuration;
use planner::outcome::Layout;
use planner::training::{AttentionKernel, Recompute, Training};

use super::Error;
use super::setting::{Gpt, given, machine};
use super::table::{Line, Table};
use crate::set::{Facet, Goal, Listing, Row, Set};
use crate::step::Step;

/// Predicts the rows of the table.
pub(super) fn measure(folder: &Path) -> Result<Vec<Set>, Error> {
    let table = Table::read(folder, "korthikanti22_table5.csv")?;
    let rows = table.lines().filter(|line| !line.lacks("iter_time_s")).map(row).collect::<Result<Vec<_>, _>>()?;
    Ok(vec![Set {
        id: "korthikanti22_table5",
        title: "Step times of GPT, 22B to 1T, on A100",
        source: "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, table 5 \
                 (arXiv 2205.05198), as transcribed by calculon",
        unit: "s",
        goal: Goal { mean: 3.0, largest: Some(6.0) },
        peer: "calculon: mean 3.65 %, largest 8.9 %",
        assumptions: vec![
            "Vocabulary 51,200; attention in separate kernels; dropout; gradients accumulated in fp32 inside the \
             product; the tensor-parallel all-reduce of the backward overlaps with the weight gradient.",
            "Mode \"full\": every layer recomputed, no sequence parallelism. Mode \"seqsel\": the attention core \
             recomputed, sequence parallelism.",
            "TP, PP, VPP and microbatch are given. No data parallelism, so nothing is reduced between replicas.",
        ],
        rows,
        variants: vec![],
        findings: vec![],
        listing: Listing::Rows,
    }])
}

fn row(line: Line<'_>) -> Result<Row, Error> {
    let (model, mode) = (line.text("model"), line.text("mode"));
    let label = format!("{model}, {mode}");
    let number = |column| line.number::<u32>(column);
    let gpt = Gpt {
        hidden: number("hidden")?,
        layers: number("layers")?,
        heads: number("heads")?,
        vocab: 51_200,
        sequence_length: number("seq_len")?,
        dropout: true,
    };
    let full = mode == "full";
    let training = Training {
        recompute: if full { Recompute::Full } else { Recompute::Selective },
        attention: AttentionKernel::Unfused,
        sequence_parallel: !full,
        distributed_optimizer: false,
        memory_reserve_gib: 0.0,
        ..Training::default()
    };
    let layout = Layout {
        tensor: number("tp")?,
        pipeline: number("pp")?,
        data: number("dp")?,
        chunks: number("vpp")?,
        microbatch: number("microbatch")?,
        group: None,
    };
    let configuration = Configuration {
        model: gpt.model(model),
        cluster: machine("a100-80gb", number("n_gpus")?)?,
        training,
        layout,
        layers_per_stage: Vec::new(),
        global_batch: number("global_batch")?,
        sequence_length: gpt.sequence_length,
        items: 0,
    };
    let estimate = given(&label, &configuration)?;
    Ok(Row {
        measured: line.number("iter_time_s")?,
        predicted: estimate.iteration.secs(),
        note: format!(
            "bubble {:.1} %, exposed communication {:.1} %",
            estimate.bubble_fraction * 100.0,
            estimate.exposed_communication * 100.0
        ),
        facets: vec![Facet::new("model", model), Facet::new("mode", mode), Facet::new("PP", layout.pipeline)],
        setup: vec![],
        left_out: None,
        step: Some(Step::new(&configuration, &estimate)),
        label,
    })
}
