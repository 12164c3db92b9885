//! Model, cluster, training, layout, planners.

use super::{FieldError, Ranges};
use crate::cluster::{Cluster, Link};
use crate::model::{Model, Module, ModuleRole};
use crate::scenario::{SCHEMA, Scenario};
use crate::training::{LayoutRequest, Training};

/// Samples that one scenario may draw over all its iterations, so that an answer fits into memory.
const MOST_SAMPLES: u64 = 262_144;

pub(super) fn check(scenario: &Scenario, errors: &mut Vec<FieldError>) {
    let mut ranges = Ranges(errors);
    if scenario.schema != SCHEMA {
        ranges.refuse("/schema", format!("must be {SCHEMA:?}"));
    }
    if scenario.title.as_ref().is_some_and(|title| title.chars().count() > 200) {
        ranges.refuse("/title", "at most 200 characters".to_owned());
    }
    model(&scenario.model, &mut ranges);
    cluster(&scenario.cluster, &mut ranges);
    training(&scenario.training, &mut ranges);
    if scenario.cluster.devices() > 0 {
        layout(&scenario.layout, &scenario.model, &scenario.cluster, &mut ranges);
    }
    planners(scenario, &mut ranges);
    ranges.whole("/iterations", scenario.iterations, 1, 1000, "");
    let samples = u64::from(scenario.iterations) * u64::from(scenario.workload.global_batch);
    if samples > MOST_SAMPLES && scenario.iterations <= 1000 {
        let most = MOST_SAMPLES / u64::from(scenario.workload.global_batch);
        let detail =
            format!("{samples} samples in all are more than {MOST_SAMPLES}: at most {most} iterations of this batch");
        ranges.refuse("/iterations", detail);
    }
}

fn model(model: &Model, ranges: &mut Ranges<'_>) {
    if model.modules.is_empty() || model.modules.len() > 8 {
        ranges.refuse("/model/modules", "a model has one to eight modules".to_owned());
        return;
    }
    for (index, part) in model.modules.iter().enumerate() {
        module(part, &format!("/model/modules/{index}"), ranges);
    }
    let backbones = model.modules.iter().filter(|module| module.role == ModuleRole::Backbone).count();
    let last = model.modules.len() - 1;
    if backbones > 1 || (backbones == 1 && model.modules[last].role != ModuleRole::Backbone) {
        ranges.refuse("/model/modules", "the backbone is one module, the last".to_owned());
    }
    if model.modules.iter().filter(|module| module.role == ModuleRole::VisionEncoder).count() > 1 {
        ranges.refuse("/model/modules", "at most one vision encoder".to_owned());
    }
}

fn module(module: &Module, at: &str, ranges: &mut Ranges<'_>) {
    ranges.whole(&format!("{at}/layers"), module.layers, 1, 1024, "");
    ranges.whole(&format!("{at}/hidden"), module.hidden, 16, 131_072, "");
    ranges.whole(&format!("{at}/heads"), module.heads, 1, 1024, "");
    ranges.whole(&format!("{at}/kv_heads"), module.kv_heads, 1, 1024, "");
    ranges.whole(&format!("{at}/ffn"), module.ffn, 16, 1_048_576, "");
    ranges.whole(&format!("{at}/vocab"), module.vocab, 0, 4_194_304, "");
    ranges.whole(&format!("{at}/learned_positions"), module.learned_positions, 0, 16_777_216, "");
    let (h, a, kv) = (module.hidden, module.heads, module.kv_heads);
    if a > 0 && h % a != 0 {
        ranges.refuse(&format!("{at}/heads"), format!("{a} heads do not divide the hidden size {h}"));
    }
    if kv > 0 && (kv > a || a % kv != 0) {
        ranges.refuse(&format!("{at}/kv_heads"), format!("{kv} key-value heads do not divide {a} query heads"));
    }
    match (module.role, module.patch) {
        (ModuleRole::VisionEncoder, None) => {
            ranges.refuse(&format!("{at}/patch"), "a vision encoder needs patches".to_owned());
        }
        (ModuleRole::Backbone, Some(_)) => {
            ranges.refuse(&format!("{at}/patch"), "a backbone has no patches".to_owned());
        }
        (ModuleRole::VisionEncoder, Some(patch)) => {
            ranges.whole(&format!("{at}/patch/patch_px"), patch.patch_px, 1, 256, " px");
            ranges.whole(&format!("{at}/patch/patches_per_image"), patch.patches_per_image, 1, 65_536, "");
            ranges.whole(&format!("{at}/patch/tokens_per_image"), patch.tokens_per_image, 1, 65_536, "");
        }
        (ModuleRole::Backbone, None) => {}
    }
    if let Some(moe) = module.moe {
        ranges.whole(&format!("{at}/moe/experts"), moe.experts, 1, 1024, "");
        ranges.whole(&format!("{at}/moe/top_k"), moe.top_k, 1, moe.experts.max(1), "");
    }
}

fn cluster(cluster: &Cluster, ranges: &mut Ranges<'_>) {
    ranges.whole("/cluster/nodes", cluster.nodes, 1, 4096, "");
    ranges.whole("/cluster/devices_per_node", cluster.devices_per_node, 1, 256, "");
    let device = &cluster.device;
    ranges.number("/cluster/device/memory_gib", device.memory_gib, 1.0, 4096.0, " GiB");
    ranges.number("/cluster/device/peak_tflops", device.peak_tflops, 0.1, 100_000.0, " TFLOP/s");
    ranges.number("/cluster/device/matmul_efficiency", device.matmul_efficiency, 0.01, 1.0, "");
    ranges.number("/cluster/device/attention_efficiency", device.attention_efficiency, 0.01, 1.0, "");
    ranges.number("/cluster/device/memory_gb_per_s", device.memory_gb_per_s, 1.0, 100_000.0, " GB/s");
    ranges.number("/cluster/device/memory_efficiency", device.memory_efficiency, 0.01, 1.0, "");
    ranges.whole("/cluster/device/multiprocessors", device.multiprocessors, 1, 4096, "");
    ranges.number("/cluster/device/launch_us", device.launch_us, 0.0, 1000.0, " µs");
    link(&cluster.intra_node, "/cluster/intra_node", ranges);
    link(&cluster.inter_node, "/cluster/inter_node", ranges);
}

fn link(link: &Link, at: &str, ranges: &mut Ranges<'_>) {
    ranges.number(&format!("{at}/gb_per_s"), link.gb_per_s, 0.01, 100_000.0, " GB/s");
    ranges.number(&format!("{at}/efficiency"), link.efficiency, 0.01, 1.0, "");
    ranges.number(&format!("{at}/latency_us"), link.latency_us, 0.0, 100_000.0, " µs");
}

fn training(training: &Training, ranges: &mut Ranges<'_>) {
    ranges.number("/training/tensor_overlap", training.tensor_overlap, 0.0, 1.0, "");
    ranges.number("/training/data_overlap", training.data_overlap, 0.0, 1.0, "");
    ranges.number("/training/memory_reserve_gib", training.memory_reserve_gib, 0.0, 1024.0, " GiB");
}

/// Degrees that no other degree could make right; the rest is a matter of the search, with its reasons.
fn layout(layout: &LayoutRequest, model: &Model, cluster: &Cluster, ranges: &mut Ranges<'_>) {
    let devices = cluster.nodes.saturating_mul(cluster.devices_per_node);
    if let Some(tensor) = layout.tensor {
        ranges.whole("/layout/tensor", tensor, 1, devices.max(1), "");
        for module in &model.modules {
            for (what, heads) in [("heads", module.heads), ("key-value heads", module.kv_heads)] {
                if tensor > 0 && heads % tensor != 0 {
                    let right = divisors(heads).filter(|degree| *degree <= devices);
                    let detail =
                        format!("{tensor} does not divide {heads} {what} of {}; {} do", module.name, list(right));
                    ranges.refuse("/layout/tensor", detail);
                }
            }
        }
    }
    if let Some(pipeline) = layout.pipeline {
        ranges.whole("/layout/pipeline", pipeline, 1, devices.max(1), "");
        if pipeline > model.layers() {
            let detail = format!("{pipeline} stages for {} layers; at most one stage a layer", model.layers());
            ranges.refuse("/layout/pipeline", detail);
        }
    }
    let degrees = layout.tensor.unwrap_or(1).saturating_mul(layout.pipeline.unwrap_or(1));
    if degrees > 0 && devices > 0 && (degrees > devices || !devices.is_multiple_of(degrees)) {
        let at = if layout.pipeline.is_some() { "/layout/pipeline" } else { "/layout/tensor" };
        ranges.refuse(at, format!("TP x PP = {degrees} does not divide {devices} devices"));
    }
    if let Some(chunks) = layout.chunks {
        ranges.whole("/layout/chunks", chunks, 1, 64, "");
    }
    if let Some(microbatch) = layout.microbatch {
        ranges.whole("/layout/microbatch", microbatch, 1, 65_536, " sequences");
    }
    if let Some(group) = layout.group {
        ranges.whole("/layout/group", group, 1, 65_536, " microbatches");
    }
}

fn planners(scenario: &Scenario, ranges: &mut Ranges<'_>) {
    if scenario.planners.is_empty() {
        ranges.refuse("/planners", "choose at least one planner".to_owned());
    }
    for (index, planner) in scenario.planners.iter().enumerate() {
        if scenario.planners[..index].contains(planner) {
            ranges.refuse(&format!("/planners/{index}"), format!("{} is there twice", planner.id()));
        }
    }
}

fn divisors(number: u32) -> impl Iterator<Item = u32> {
    (1..=number).filter(move |degree| number.is_multiple_of(*degree))
}

fn list(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}
