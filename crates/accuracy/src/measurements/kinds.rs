//! Layers and models of current kinds: predictions of rows that are never fitted.

use std::fmt::Write;

use anyhow::Context;
use planner::cluster::Cluster;
use planner::cost::{LayerModel, ModuleLoad};
use planner::estimate::Estimate;
use planner::model::module::Module;
use planner::training::{Framework, GradientFormat, Training};

use super::device::{Device, KindRow};
use super::fitted::Calibrated;
use super::layers::single_device;
use super::summary::{median, percent};

const MIB_PER_GIB: f64 = 1024.0;
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

fn module(row: &KindRow) -> anyhow::Result<Module> {
    serde_json::from_str(&row.module).with_context(|| format!("module of {}", row.model))
}

/// Returns the settings of the rows: bf16 with gradients in bf16 and a master copy in fp32, and the
/// kernels of PyTorch without compilation.
fn training() -> Training {
    Training {
        framework: Framework::Fsdp,
        distributed_optimizer: false,
        zero: Some(0),
        gradients: GradientFormat::Bf16,
        fused_weight_gradients: true,
        ..Training::default()
    }
}

fn step(row: &KindRow, cluster: &Cluster) -> anyhow::Result<Estimate> {
    let batch = row.batch.context("a step has a batch")?;
    single_device(module(row)?, training(), (batch, row.tokens), cluster)
}

/// Returns predicted forward and backward of a layer in us.
fn layer(row: &KindRow, cluster: &Cluster) -> anyhow::Result<[f64; 2]> {
    let (module, training, tokens) = (module(row)?, training(), f64::from(row.tokens));
    let cost = LayerModel::new(&module, cluster, &training, 1).layer(ModuleLoad::unpadded(tokens, tokens * tokens));
    Ok([cost.forward.secs() * 1e6, (cost.input_grad + cost.weight_grad).secs() * 1e6])
}

fn mean(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len().max(1) as f64
}

/// Returns the section; empty for a device without these rows.
pub(super) fn kinds(device: &Device, calibrated: &Calibrated) -> anyhow::Result<String> {
    if device.kinds.is_empty() {
        return Ok(String::new());
    }
    let date = device.header["sections"]["kinds"]["date"].as_str().unwrap_or_default();
    let clusters = [device.cluster.clone(), calibrated.fitted.cluster.clone()];
    let mut text = format!(
        "### Layers of current models\n\nMeasured on {}. Layers have the published sizes; forward / backward / both, on the device alone. \
         Predicted / measured - 1 in percent, with the preset and the calibration, both with the factor `sustained`:\n\n\
         | layer | tokens | kernel of the mixer | measured ms | preset | calibrated |\n|---|---:|---|---:|---:|---:|\n",
        date.split('T').next().unwrap_or_default()
    );
    let mut errors = [Vec::new(), Vec::new()];
    for row in device.kinds.iter().filter(|row| row.op == "layer") {
        let (Some(forward), Some(backward), Some(both)) =
            (row.forward_device_us, row.backward_device_us, row.layer_device_us)
        else {
            continue;
        };
        let mut cells = Vec::new();
        for (cluster, errors) in clusters.iter().zip(&mut errors) {
            let [first, second] = layer(row, cluster)?;
            errors.push(percent(first + second, both));
            let parts = [(first, forward), (second, backward), (first + second, both)];
            cells.push(parts.map(|(time, measured)| format!("{:+.0}", percent(time, measured))).join(" / "));
        }
        let part = if row.part.is_empty() { String::new() } else { format!(" `{}`", row.part) };
        let _ = writeln!(
            text,
            "| {}{part} | {} | {} | {:.2} | {} |",
            row.model,
            row.tokens,
            row.kernels,
            both * 1e-3,
            cells.join(" | ")
        );
    }
    let _ = writeln!(text, "| **mean absolute, both** | | | | {:.0} | {:.0} |\n", mean(&errors[0]), mean(&errors[1]));
    steps(&mut text, device, &clusters)?;
    Ok(text)
}

/// Adds training steps and their memory.
fn steps(text: &mut String, device: &Device, clusters: &[Cluster; 2]) -> anyhow::Result<()> {
    text.push_str(
        "Training steps of models with few layers and a vocabulary of 32,768, bf16 with a master copy in fp32, fused AdamW. The phases are \
         forward / backward / optimizer. Memory in GiB: before a step, after its forward pass in addition, and the peak; allocated, \
         measured / predicted:\n\n\
         | model | sequences x tokens | measured ms | phases ms | preset % | calibrated % | states | activations | peak | reserved |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut errors = [Vec::new(), Vec::new()];
    let mut peaks = Vec::new();
    for row in device.kinds.iter().filter(|row| row.op == "training_step") {
        let estimates = [step(row, &clusters[0])?, step(row, &clusters[1])?];
        let of = estimates.each_ref().map(|estimate| percent(estimate.iteration.secs() * 1e6, row.time_us));
        errors.iter_mut().zip(of).for_each(|(all, error)| all.push(error));
        let memory = estimates[0].peak_memory;
        let measured = |value: Option<f64>| value.map(|mib| mib / MIB_PER_GIB).context("a step has its memory");
        let (start, peak) = (measured(row.start_mib)?, measured(row.peak_allocated_mib)?);
        let predicted = memory.total() / GIB;
        peaks.push(percent(predicted, peak));
        let _ = writeln!(
            text,
            "| {} | {} x {} | {:.1} | {:.1} / {:.1} / {:.1} | {:+.0} | {:+.0} | {start:.1} / {:.1} | {:.1} / {:.1} | {peak:.1} / {predicted:.1} | {:.1} |",
            row.model,
            row.batch.unwrap_or_default(),
            row.tokens,
            row.time_us * 1e-3,
            row.forward_us * 1e-3,
            row.backward_us * 1e-3,
            row.optimizer_us.unwrap_or_default() * 1e-3,
            of[0],
            of[1],
            (memory.weights + memory.optimizer) / GIB,
            measured(row.after_forward_mib)? - start,
            memory.activations / GIB,
            measured(row.peak_reserved_mib)?,
        );
    }
    let _ = writeln!(
        text,
        "| **mean absolute** | | | | {:.0} | {:.0} | | | median {:+.0} % | |\n",
        mean(&errors[0]),
        mean(&errors[1]),
        median(&peaks)
    );
    Ok(())
}
