//! Layers, training steps and memory: predictions of rows that are never fitted.

use std::fmt::Write;

use anyhow::Context;
use planner::cluster::Cluster;
use planner::cost::{LayerModel, ModuleLoad};
use planner::estimate::{Configuration, Estimate};
use planner::model::Model;
use planner::model::module::{Bias, Module, Norm};
use planner::outcome::Layout;
use planner::training::{GradientFormat, Recompute, Training};

use super::device::{Device, ModelRow};
use super::fitted::{Calibrated, burst};
use super::summary::{median, percent};
use crate::truth::given;

const MIB: f64 = 1_048_576.0;

/// Returns the module of a row. A model without its vocabulary has no embedding and no head.
fn module(row: &ModelRow) -> Module {
    let is_llama = row.model.starts_with("llama");
    Module {
        name: row.model.clone(),
        layers: row.layers.unwrap_or(1),
        hidden: row.hidden,
        heads: row.heads,
        kv_heads: row.kv_heads,
        ffn: row.ffn,
        gated: is_llama,
        norm: if is_llama { Norm::Rms } else { Norm::Layer },
        bias: if is_llama { Bias::None } else { Bias::All },
        vocab: row.vocabulary.unwrap_or(0),
        tied_embeddings: false,
        learned_positions: if is_llama { 0 } else { row.tokens },
        ..Module::decoder()
    }
}

/// Returns the settings of a row. Autocast adds each gradient in bf16 to one in fp32 by a separate kernel.
fn training(row: &ModelRow) -> Training {
    let is_autocast = row.precision == "autocast";
    Training {
        recompute: if row.recompute == "full" { Recompute::Full } else { Recompute::None },
        distributed_optimizer: false,
        zero: Some(0),
        gradients: if is_autocast { GradientFormat::Fp32 } else { GradientFormat::Bf16 },
        fused_weight_gradients: !is_autocast,
        ..Training::default()
    }
}

fn step(row: &ModelRow, cluster: &Cluster) -> anyhow::Result<Estimate> {
    let batch = row.batch.context("a step has a batch")?;
    single_device(module(row), training(row), (batch, row.tokens), cluster)
}

/// Predicts a step of one microbatch on one device, of `batch` sequences with `tokens` each.
pub(super) fn single_device(
    module: Module,
    training: Training,
    (batch, tokens): (u32, u32),
    cluster: &Cluster,
) -> anyhow::Result<Estimate> {
    let name = module.name.clone();
    let configuration = Configuration {
        model: Model { name: name.clone(), modules: vec![module] },
        cluster: cluster.clone(),
        training,
        layout: Layout { tensor: 1, pipeline: 1, data: 1, chunks: 1, microbatch: batch, group: None },
        layers_per_stage: Vec::new(),
        global_batch: batch,
        sequence_length: tokens,
        items: 0,
    };
    Ok(given(&name, &configuration)?)
}

/// Clusters that predict: the preset and the calibration, each with and without the sustained factor.
fn clusters(device: &Device, calibrated: &Calibrated) -> [Cluster; 4] {
    let fitted = &calibrated.fitted.cluster;
    [device.cluster.clone(), burst(&device.cluster), fitted.clone(), burst(fitted)]
}

/// Returns the predicted host time of a layer, forward and backward.
pub(super) fn host_us(row: &ModelRow, cluster: &Cluster) -> f64 {
    let (module, training, tokens) = (module(row), training(row), f64::from(row.tokens));
    let cost = LayerModel::new(&module, cluster, &training, 1).layer(ModuleLoad::unpadded(tokens, tokens * tokens));
    (cost.host_forward + cost.host_backward).secs() * 1e6
}

const HEAD: &str = "preset | preset, burst | calibrated | calibrated, burst";

/// Returns the section about layers.
pub(super) fn layers(device: &Device, calibrated: &Calibrated) -> String {
    let clusters = clusters(device, calibrated);
    let mut text = format!(
        "Predicted / measured - 1 in percent, forward / backward / both:\n\n| layer | tokens | variant | measured ms, device alone | with \
         the host | {HEAD} |\n|---|---:|---|---:|---:|---:|---:|---:|---:|\n"
    );
    let mut errors: [Vec<f64>; 4] = Default::default();
    for row in device.validation.iter().filter(|row| row.op == "layer") {
        let (Some(forward), Some(backward), Some(both), Some(host)) =
            (row.forward_device_us, row.backward_device_us, row.layer_device_us, row.time_us)
        else {
            continue;
        };
        let tokens = f64::from(row.tokens);
        let (module, training) = (module(row), training(row));
        let cells: Vec<String> = clusters
            .iter()
            .zip(&mut errors)
            .map(|(cluster, errors)| {
                let cost = LayerModel::new(&module, cluster, &training, 1)
                    .layer(ModuleLoad::unpadded(tokens, tokens * tokens));
                let (first, second) = (cost.forward.secs() * 1e6, (cost.input_grad + cost.weight_grad).secs() * 1e6);
                if row.variant == "eager" {
                    errors.push(percent(first + second, both));
                }
                format!(
                    "{:+.0} / {:+.0} / {:+.0}",
                    percent(first, forward),
                    percent(second, backward),
                    percent(first + second, both)
                )
            })
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.2} | {:.2} | {} |",
            row.model,
            row.tokens,
            row.variant,
            both * 1e-3,
            host * 1e-3,
            cells.join(" | ")
        );
    }
    let _ = writeln!(text, "| **mean absolute, eager, both** | | | | | {} |\n", means(&errors));
    text
}

/// Returns the section about training steps.
pub(super) fn steps(device: &Device, calibrated: &Calibrated) -> anyhow::Result<String> {
    let clusters = clusters(device, calibrated);
    let mut text = format!(
        "Predicted / measured - 1 in percent:\n\n| step | sequences x tokens | parameters | variant | measured ms | {HEAD} | peak allocated \
         GiB | predicted GiB |\n|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    let mut errors: [Vec<f64>; 4] = Default::default();
    for row in device.validation.iter().filter(|row| row.op == "training_step") {
        let measured = row.time_us.context("a step has a time")?;
        let estimates = clusters.iter().map(|cluster| step(row, cluster)).collect::<anyhow::Result<Vec<_>>>()?;
        let of: Vec<f64> =
            estimates.iter().map(|estimate| percent(estimate.iteration.secs() * 1e6, measured)).collect();
        if row.variant == "eager" {
            errors.iter_mut().zip(&of).for_each(|(all, error)| all.push(*error));
        }
        let parameters = if row.precision == "autocast" { "fp32, autocast" } else { "bf16, fp32 master" };
        let _ = writeln!(
            text,
            "| {} | {} x {} | {parameters} | {} | {:.1} | {} | {:.1} | {:.1} |",
            row.model,
            row.batch.unwrap_or_default(),
            row.tokens,
            row.variant,
            measured * 1e-3,
            of.iter().map(|error| format!("{error:+.0}")).collect::<Vec<_>>().join(" | "),
            row.peak_allocated_mib.context("a step has a peak")? / 1024.0,
            estimates[0].peak_memory.total() / MIB / 1024.0
        );
    }
    let _ = writeln!(text, "| **mean absolute, eager** | | | | | {} | | |\n", means(&errors));
    Ok(text)
}

fn means(errors: &[Vec<f64>; 4]) -> String {
    let mean = |all: &Vec<f64>| all.iter().map(|error| error.abs()).sum::<f64>() / all.len().max(1) as f64;
    errors.iter().map(|all| format!("{:.0}", mean(all))).collect::<Vec<_>>().join(" | ")
}

/// Returns the section about memory: bf16 models with gradients in bf16 and without an optimizer.
pub(super) fn memory(device: &Device) -> anyhow::Result<String> {
    let mut text = "| model | recompute | rows | activations: median % | measured MiB | predicted MiB | peak: median % |\n|---|---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for model in ["llama-1b", "llama-8b"] {
        for recompute in ["none", "full"] {
            let (mut activations, mut peaks, mut stored) = (Vec::new(), Vec::new(), Vec::new());
            let own =
                |row: &&ModelRow| row.model == model && row.recompute == recompute && row.optimizer == Some(false);
            for row in device.memory.iter().filter(own) {
                let (Some(start), Some(after), Some(measured)) =
                    (row.start_mib, row.after_forward_mib, row.peak_allocated_mib)
                else {
                    continue;
                };
                let memory = step(row, &device.cluster)?.peak_memory;
                activations.push(percent(memory.activations / MIB, after - start));
                stored.push([after - start, memory.activations / MIB]);
                let peak = (memory.total() - memory.optimizer) / MIB;
                peaks.push(percent(peak, measured));
            }
            if activations.is_empty() {
                continue;
            }
            let sums = [0, 1].map(|place| stored.iter().map(|pair| pair[place]).sum::<f64>() / stored.len() as f64);
            let _ = writeln!(
                text,
                "| {model} | {recompute} | {} | {:+.0} | {:.0} | {:.0} | {:+.0} |",
                peaks.len(),
                median(&activations),
                sums[0],
                sums[1],
                median(&peaks)
            );
        }
    }
    text.push('\n');
    Ok(text)
}
