//! Stage imbalance in multimodal models (PipeWeaver Sec. 2.2).

use std::path::Path;

use planner::cluster::presets;
use planner::cost::partition::ModuleWeight;
use planner::cost::{LayerModel, ModuleLoad, Partition, PipelineCosts, UniformTimes};
use planner::model::{Model, Module};
use planner::schedule::one_f_one_b;
use planner::simulate::execute;
use planner::training::Training;
use planner::units::Nanos;

use super::Error;
use super::table::Table;
use crate::set::{Goal, Listing, MIXED, Row, Set};

const STAGES: u32 = 16;
const LAYERS: u32 = 64;

/// Predicts the values in the table for the 37B model.
pub(super) fn measure(folder: &Path) -> Result<Vec<Set>, Error> {
    let table = Table::read(folder, "paper_pipeweaver.csv")?;
    let published = |metric: &str, setup: &str| {
        let wanted = |line: &super::table::Line<'_>| {
            line.text("item").starts_with("37B VLM")
                && line.text("metric") == metric
                && line.text("setup").contains(setup)
        };
        let line = table.lines().find(wanted).ok_or_else(|| Error::row("paper_pipeweaver.csv", &metric))?;
        line.number::<f64>("value")
    };
    let (vit, lm) = (published("layer_time", "ViT")?, published("layer_time", "LM layer")?);
    let model = model()?;
    let times = stage_times(&model, vit, lm)?;
    let (low, high) = times.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), t| (low.min(*t), high.max(*t)));
    let bubbles = published("extra_bubbles", "")?;
    let imbalance = closest(&times, bubbles)?;
    let row = |label: &str, measured, predicted, note: String| Row {
        label: label.to_owned(),
        measured,
        predicted,
        note,
        facets: vec![],
        setup: vec![],
        left_out: None,
        step: None,
    };
    let open = "the paper leaves TP and image size open";
    let mut rows = vec![
        row("slowest of 16 stages, ms", published("stage_time_max", "")?, high, "best contiguous cut".to_owned()),
        row("fastest of 16 stages, ms", published("stage_time_min", "")?, low, "in the same cut".to_owned()),
        row(
            "longer step than with perfectly balanced stages, %",
            published("e2e_increase", "")?,
            imbalance.slower * 100.0,
            format!("1F1B of {} microbatches", imbalance.microbatches),
        ),
        Row {
            left_out: Some("the number of microbatches was chosen by it"),
            ..row("additional bubbles, %", bubbles, imbalance.bubbles * 100.0, "1F1B simulated".to_owned())
        },
    ];
    for tensor in [1, 2, 4, 8] {
        let (ratio, forward) = layer_ratio(&model, tensor)?;
        let note = format!("TP {tensor}, images of 728 x 728; forward of an LM layer {forward:.2} ms");
        rows.push(Row { left_out: Some(open), ..row("ViT layer over LM layer, forward", vit / lm, ratio, note) });
    }
    Ok(vec![Set {
        id: "paper_pipeweaver",
        title: "Stage imbalance of a 37B vision-language model",
        source: "PipeWeaver (papers of the field, section 2.2 and table 1)",
        unit: MIXED,
        goal: Goal { mean: 5.0, largest: Some(5.0) },
        peer: "SEMU: 2.4 % after calibration",
        assumptions: vec![
            "Stage times follow from the published layer times (6.75 ms and 10.5 ms) by the engine's best contiguous cut.",
            "The paper does not give the number of microbatches behind its 22.8 % additional bubbles and 5 % longer \
             steps; it is the one of 16 to 128 that comes closest to the former, the latter is then a prediction. \
             Additional bubbles: idle time divided by that of perfectly balanced stages, minus 1; backward twice the forward.",
            "ViT: 64 layers of ViT 5B (width 1,792, MLP 15,360, 2,704 patches an image); LM: Qwen2 32B; H800. The paper \
             gives neither TP nor image size for its layer times, so their ratio is shown and does not count.",
        ],
        rows,
        variants: vec![],
        findings: vec![
            "Table 1 (7B models on 8 GPUs) cannot be set up: the paper gives TP 2, PP 4 and the operations of a step, \
             but no widths and layers of \"LM 7B\", \"ViT 2B\" and \"LM 5B\", no sequence length, number of \
             microbatches, images a sample, or lengths of its dynamic data. Its three MFU figures do agree with its \
             times and operations at a peak of 989 TFLOP/s."
                .to_owned(),
        ],
        listing: Listing::Rows,
    }])
}

fn preset(id: &str) -> Result<Module, Error> {
    let model = planner::model::presets::model(id).ok_or_else(|| Error::row(id, &"no such model preset"))?;
    model.modules.into_iter().next().ok_or_else(|| Error::row(id, &"a preset without modules"))
}

/// Builds a model with 64 ViT layers followed by 64 language model layers.
fn model() -> Result<Model, Error> {
    let vit = Module { layers: LAYERS, ..preset("vit-5b")? };
    let lm = Module { layers: LAYERS, ..preset("qwen2-32b")? };
    Ok(Model { name: "37B VLM".to_owned(), modules: vec![vit, lm] })
}

/// Stage times for the best contiguous partition, in ms.
fn stage_times(model: &Model, vit: f64, lm: f64) -> Result<Vec<f64>, Error> {
    let weights = [vit, lm].map(|layer| ModuleWeight { layer, ..Default::default() });
    let partition =
        Partition::balanced(model, &weights, STAGES).ok_or_else(|| Error::row("37B VLM", &"no cut into 16 stages"))?;
    let time = |ranges: &Vec<planner::cost::partition::LayerRange>| {
        ranges.iter().map(|range| f64::from(range.len()) * weights[range.module].layer).sum()
    };
    Ok(partition.stages.iter().map(time).collect())
}

/// Comparison of a pipeline with unequal stages to a pipeline with equal stages and the same total.
struct Imbalance {
    microbatches: usize,
    /// Additional idle time relative to equal stages.
    bubbles: f64,
    /// Additional step time.
    slower: f64,
}

/// Selects the microbatch count whose additional bubbles are closest to the published value in
/// percent.
fn closest(times: &[f64], bubbles: f64) -> Result<Imbalance, Error> {
    let mut best: Option<Imbalance> = None;
    for microbatches in 16..=128 {
        let imbalance = imbalance(times, microbatches)?;
        let distance = |imbalance: &Imbalance| (imbalance.bubbles * 100.0 - bubbles).abs();
        if best.as_ref().is_none_or(|best| distance(&imbalance) < distance(best)) {
            best = Some(imbalance);
        }
    }
    best.ok_or_else(|| Error::row("37B VLM", &"no number of microbatches"))
}

fn imbalance(times: &[f64], microbatches: usize) -> Result<Imbalance, Error> {
    let ranks = times.len();
    let work: f64 = times.iter().sum::<f64>() * microbatches as f64;
    let equal = vec![times.iter().sum::<f64>() / ranks as f64; ranks];
    let (unequal, equal) = (makespan(times, microbatches)?, makespan(&equal, microbatches)?);
    let idle = |makespan: f64| makespan * ranks as f64 - work;
    Ok(Imbalance { microbatches, bubbles: idle(unequal) / idle(equal) - 1.0, slower: unequal / equal - 1.0 })
}

/// 1F1B makespan for these stage times, in ms. A third of each stage time is the forward pass.
fn makespan(times: &[f64], microbatches: usize) -> Result<f64, Error> {
    let ranks = times.len();
    let none = UniformTimes {
        forward: Nanos::ZERO,
        input_grad: Nanos::ZERO,
        weight_grad: Nanos::ZERO,
        communication: Nanos::ZERO,
    };
    let mut costs = PipelineCosts::uniform(ranks, 1, microbatches, none);
    for (stage, time) in times.iter().enumerate() {
        let third = Nanos::new((time * 1e6 / 3.0).round() as u64);
        for cell in (0..microbatches).map(|microbatch| costs.cell(stage, microbatch)).collect::<Vec<_>>() {
            (costs.forward[cell], costs.input_grad[cell], costs.weight_grad[cell]) = (third, third, third);
        }
    }
    let execution =
        execute(&one_f_one_b(ranks, microbatches), &costs).map_err(|error| Error::row("37B VLM", &error))?;
    Ok(execution.makespan().secs() * 1e3)
}

/// Ratio of a ViT layer forward for 8 images to an LM layer forward for 8,192 tokens, and the LM
/// time in ms.
fn layer_ratio(model: &Model, tensor: u32) -> Result<(f64, f64), Error> {
    let cluster = presets::cluster("h800").ok_or_else(|| Error::row("h800", &"no such cluster preset"))?;
    let training = Training::default();
    let forward = |module: &Module, sequences: f64, length: f64| {
        let (tokens, squared) = (sequences * length, sequences * length * length);
        let load = ModuleLoad::unpadded(tokens, squared);
        LayerModel::new(module, &cluster, &training, tensor).layer(load).forward.secs() * 1e3
    };
    let vit = forward(&model.modules[0], 8.0, f64::from(model.modules[0].tokens_per_item()));
    let lm = forward(&model.modules[1], 1.0, 8192.0);
    Ok((vit / lm, lm))
}
