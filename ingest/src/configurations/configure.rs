//! One row as a configuration.

use planner::cluster::Cluster;
use planner::estimate::Configuration;
use planner::outcome::Layout;
use planner::training::{AttentionKernel, Precision, Recompute, Training};

use super::architecture;
use super::cells::{Cells, Refused, refuse};
use super::column::{FSDP, PRECISION, RECOMPUTE, SEQUENCE_PARALLEL, ZERO};
use super::degrees::Degrees;
use super::presets::Presets;

/// The configuration of a row, with its defaults.
pub(super) fn configuration(cells: Cells<'_>, presets: &Presets) -> Result<Configuration, Refused> {
    let degrees = Degrees::read(cells)?;
    let cluster = degrees.cluster(cells, presets)?;
    let (model, sequence_length) = architecture::read(cells, presets)?;
    let training = training(cells, degrees, &cluster)?;
    degrees.check(&model.modules[0], sequence_length)?;
    let layout = Layout {
        tensor: degrees.tensor,
        pipeline: degrees.pipeline,
        data: degrees.data,
        chunks: degrees.chunks,
        microbatch: degrees.microbatch,
        group: None,
    };
    let global_batch = degrees.global_batch;
    Ok(Configuration { model, cluster, training, layout, global_batch, sequence_length, items: 0 })
}

fn training(cells: Cells<'_>, degrees: Degrees, cluster: &Cluster) -> Result<Training, Refused> {
    let recompute = [Recompute::None, Recompute::Selective, Recompute::Full][cells.word(RECOMPUTE)?];
    let precision = [Precision::Bf16, Precision::Bf16, Precision::Fp8, Precision::Fp32][cells.word(PRECISION)?];
    if precision == Precision::Fp8 && cluster.device.fp8_tflops.is_none() {
        return refuse(PRECISION, format!("{} has no fp8", cluster.name));
    }
    let replicated = degrees.data > 1 || degrees.context > 1;
    let given = cells.whole(ZERO)?.unwrap_or(u32::from(replicated));
    let zero = if cells.flag(FSDP)?.unwrap_or(false) { 3 } else { given };
    Ok(Training {
        recompute,
        // To recompute the attention core alone pays only where its scores are stored.
        attention: if recompute == Recompute::Selective { AttentionKernel::Unfused } else { AttentionKernel::Flash },
        sequence_parallel: cells.flag(SEQUENCE_PARALLEL)?.unwrap_or(degrees.tensor > 1),
        distributed_optimizer: zero >= 1,
        // Frameworks that shard the state hide its communication behind computation.
        data_overlap: if zero >= 1 { 1.0 } else { 0.0 },
        precision,
        zero: Some(zero),
        context_parallel: degrees.context,
        expert_parallel: degrees.expert,
        ..Training::default()
    })
}
