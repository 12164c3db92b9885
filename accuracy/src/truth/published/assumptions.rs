//! Facts of publications that `planscope estimate` has no column for.

use planner::estimate::Configuration;
use planner::training::{AttentionKernel, Recompute};

use super::{Error, Line};

/// Nothing to add.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn nothing(_: Line<'_>, _: &mut Configuration) -> Result<(), Error> {
    Ok(())
}

/// Fused attention without dropout.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn fused_attention(_: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    configuration.training.attention = AttentionKernel::Flash;
    for module in &mut configuration.model.modules {
        module.dropout = false;
    }
    Ok(())
}

/// nanotron: the embedding and the output head share a matrix where the file says so.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all facts")]
pub(super) fn tied_embeddings(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    for module in &mut configuration.model.modules {
        module.tied_embeddings = line.text("tied_word_vectors") == "True";
    }
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

/// The file gives the bandwidth of the network.
pub(super) fn network(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    configuration.cluster.inter_node.gb_per_s = line.number("network_gb_per_s_per_gpu")?;
    Ok(())
}

/// The preset counts the global batch by accumulation steps.
pub(super) fn accumulation(line: Line<'_>, configuration: &mut Configuration) -> Result<(), Error> {
    let layout = configuration.layout;
    configuration.global_batch = line.number::<u32>("accumulation")? * layout.microbatch * layout.data;
    Ok(())
}
