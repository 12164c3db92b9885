//! Converts a row to a configuration.

use planner::cluster::Cluster;
use planner::estimate::Configuration;
use planner::outcome::Layout;
use planner::training::{AttentionKernel, Precision, Recompute, Training};

use super::architecture;
use super::cells::{Cells, Rejection, refuse};
use super::column::{FSDP, PRECISION, RECOMPUTE, SEQUENCE_PARALLEL, ZERO};
use super::degrees::Degrees;
use super::presets::Presets;

/// Builds the configuration of a row and fills in defaults.
pub(super) fn configuration(cells: Cells<'_>, presets: &Presets) -> Result<Configuration, Rejection> {
    let degrees = Degrees::read(cells)?;
    let cluster = degrees.cluster(cells, presets)?;
    let (mut model, sequence_length) = architecture::read(cells, presets)?;
    let training = training(cells, degrees, &cluster, model.modules[0].gated)?;
    // Models from the time before fused attention were trained with dropout.
    let separate = training.attention == AttentionKernel::Unfused;
    for module in &mut model.modules {
        module.dropout |= separate && !module.gated;
    }
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

fn training(cells: Cells<'_>, degrees: Degrees, cluster: &Cluster, gated: bool) -> Result<Training, Rejection> {
    let recompute = [Recompute::None, Recompute::Selective, Recompute::Full][cells.word(RECOMPUTE)?];
    let precision = [Precision::Bf16, Precision::Bf16, Precision::Fp8, Precision::Fp32][cells.word(PRECISION)?];
    if precision == Precision::Fp8 && cluster.device.fp8_tflops.is_none() {
        return refuse(PRECISION, format!("{} has no fp8", cluster.name));
    }
    let replicated = degrees.data > 1 || degrees.context > 1;
    let given = cells.integer(ZERO)?.unwrap_or(u32::from(replicated));
    let zero = if cells.flag(FSDP)?.unwrap_or(false) { 3 } else { given };
    // Devices without fp8 predate the current generation. GPT-style models with recomputation on
    // such devices were trained before fused attention. Selective recomputation only saves memory
    // if attention scores are stored.
    let earlier = cluster.device.fp8_tflops.is_none();
    let before_fused = earlier && !gated && recompute == Recompute::Full;
    let separate = recompute == Recompute::Selective || before_fused;
    Ok(Training {
        recompute,
        attention: if separate { AttentionKernel::Unfused } else { AttentionKernel::Flash },
        // Megatron-LM overlaps sends with computation only with interleaving, and only since 2023.
        overlapped_sends: degrees.chunks > 1 && !earlier,
        sequence_parallel: cells.flag(SEQUENCE_PARALLEL)?.unwrap_or(degrees.tensor > 1),
        distributed_optimizer: zero >= 1,
        // Frameworks with sharded optimizer state overlap its communication with computation.
        data_overlap: if zero >= 1 { 1.0 } else { 0.0 },
        precision,
        zero: Some(zero),
        context_parallel: degrees.context,
        expert_parallel: degrees.expert,
        ..Training::default()
    })
}
