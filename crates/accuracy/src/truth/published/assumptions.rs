//! Facts of publications that `planscope estimate` has no column for.

use planner::estimate::Configuration;
use planner::training::{Fp8Recipe, Framework, Recompute};

use super::{Error, Line};

/// Nothing to add.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn nothing(_: Line<'_>, _: &mut Configuration) -> Result<(), Error> {
    Ok(())
}

/// Mean time of an all-reduce of 256 MiB over all devices by number of nodes in µs, from the
/// Ultra-Scale Playbook.
const ELASTIC_FABRIC: [(u32, f64); 6] =
    [(2, 1391.3), (4, 3247.8), (8, 5308.0), (16, 6286.0), (32, 8236.7), (64, 16_267.7)];
/// Bytes of these all-reduces.
const ELASTIC_BYTES: f64 = 268_435_456.0;
/// Largest share of the data-sheet bandwidth, as for other networks.
const ELASTIC_SHARE: f64 = 0.95;

/// The network of the Ultra-Scale Playbook, as measured for the number of nodes. The measured time includes the steps
/// of the ring, which the model adds to every collective. The rest of it is the time of the bytes.
pub(super) fn elastic_fabric(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    let nodes = configuration.cluster.nodes;
    let Some((count, measured)) = ELASTIC_FABRIC.iter().find(|(count, _)| *count >= nodes) else {
        return Err(Error::row(line.text("id"), &format!("no measured network of {nodes} nodes")));
    };
    let per_node = f64::from(configuration.cluster.devices_per_node);
    let devices = f64::from(*count) * per_node;
    let link = &mut configuration.cluster.inter_node;
    let (base, step) = link.curve.map_or((0.0, 0.0), |curve| (curve.base_us, curve.per_rank_us));
    let transfer = (measured - base - 2.0 * step * (devices - 1.0)) * 1e-6;
    let bus = 2.0 * (devices - 1.0) / devices * ELASTIC_BYTES / transfer;
    link.gb_per_s = (bus * 1e-9 / per_node).min(link.gb_per_s * ELASTIC_SHARE);
    link.efficiency = 1.0;
    Ok(())
}

/// torchao: scales per tensor, with weights that are gathered in fp8, or scales per row with weights gathered in bf16.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn torchao_recipe(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    let recipe = line.text("recipe");
    configuration.training.fp8_weights = recipe.contains("float8 all-gather");
    configuration.training.fp8_recipe = Fp8Recipe::named(recipe);
    Ok(())
}

/// MaxText: the global batch follows from the tokens of a step, and every chip has its sequences at once.
pub(super) fn tokens_of_step(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    let sequences = line.number::<u32>("tokens_per_step")? / configuration.sequence_length;
    configuration.global_batch = sequences;
    configuration.layout.microbatch = sequences / configuration.layout.data;
    Ok(())
}

/// torchtitan: "sellayer" recomputes every second layer, "asyncTP" overlaps tensor-parallel communication. "fp8row" scales
/// by row; the other fp8 runs scale by tensor and gather weights in fp8.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn torchtitan_notes(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    if line.text("notes").contains("asyncTP") {
        configuration.training.tensor_overlap = Framework::Torchtitan.tensor_overlap().unwrap_or(0.0);
    }
    if line.text("activation_checkpointing") == "sellayer" {
        configuration.training.recompute = Recompute::Full;
        configuration.training.recompute_layers = Some(configuration.model.layers() / 2);
    }
    match line.text("published_precision") {
        "fp8row" => configuration.training.fp8_recipe = Some(Fp8Recipe::Rowwise),
        "fp8" => configuration.training.fp8_weights = true,
        _ => {}
    }
    Ok(())
}

/// MLPerf: the configuration states the overlap of tensor-parallel communication.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn stated_overlap(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    if ["True", "1"].contains(&line.text("tp_overlap")) && configuration.layout.tensor > 1 {
        configuration.training.tensor_overlap = Framework::Megatron.tensor_overlap().unwrap_or(0.0);
    }
    Ok(())
}

/// The preset counts the global batch by accumulation steps.
pub(super) fn accumulation(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    let layout = configuration.layout;
    configuration.global_batch = line.number::<u32>("accumulation")? * layout.microbatch * layout.data;
    Ok(())
}
