//! Facts of publications that `planscope estimate` has no column for.

use planner::estimate::Configuration;
use planner::training::Recompute;

use super::{Error, Line};

/// Nothing to add.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn nothing(_: Line<'_>, _: &mut Configuration) -> Result<(), Error> {
    Ok(())
}

/// Mean all-reduce bandwidth of 256 MB by number of nodes in GB/s, from the Ultra-Scale Playbook.
const ELASTIC_FABRIC: [(u32, f64); 6] = [(2, 362.0), (4, 160.0), (8, 100.0), (16, 85.0), (32, 65.0), (64, 33.0)];

/// The network of the Ultra-Scale Playbook, as measured for the number of nodes.
pub(super) fn elastic_fabric(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    let nodes = configuration.cluster.nodes;
    let Some((_, measured)) = ELASTIC_FABRIC.iter().find(|(count, _)| *count >= nodes) else {
        return Err(Error::row(line.text("id"), &format!("no measured network of {nodes} nodes")));
    };
    let link = &mut configuration.cluster.inter_node;
    link.gb_per_s = measured / f64::from(configuration.cluster.devices_per_node);
    link.efficiency = 1.0;
    Ok(())
}

/// torchtitan: "sellayer" recomputes every second layer.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn every_second_layer(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    if line.text("activation_checkpointing") == "sellayer" {
        configuration.training.recompute = Recompute::Full;
        configuration.training.recompute_layers = Some(configuration.model.layers() / 2);
    }
    Ok(())
}

/// The preset counts the global batch by accumulation steps.
pub(super) fn accumulation(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    let layout = configuration.layout;
    configuration.global_batch = line.number::<u32>("accumulation")? * layout.microbatch * layout.data;
    Ok(())
}
