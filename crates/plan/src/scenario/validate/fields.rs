//! Validates cluster, training, layout and planners.

use super::{FieldError, RANGE_ERROR, Ranges, shortened};
use crate::scenario::{FreeSetting, SCHEMA, Scenario, ScenarioId, budget};
use planscope_core::cluster::{Cluster, Curves, Link, LinkCurve};
use planscope_core::model::Model;
use planscope_core::training::{LayoutRequest, MasterWeights, MomentFormat, Precision, Training};

/// Maximum samples over all iterations, so that a result fits into memory.
const MAX_SAMPLES: u64 = 1_048_576;
/// Range of the highest probability of running out of memory.
const MIN_RISK: f64 = 0.001;
const MAX_RISK: f64 = 0.5;
/// Maximum iterations.
const MAX_ITERATIONS: u32 = 10_000;

pub(super) fn check(scenario: &Scenario, errors: &mut Vec<FieldError>) {
    let mut ranges = Ranges(errors);
    if scenario.schema != SCHEMA {
        ranges.refuse("/schema", format!("must be {SCHEMA:?}"));
    }
    if scenario.title.as_ref().is_some_and(|title| title.chars().count() > 200) {
        ranges.refuse("/title", "at most 200 characters".to_owned());
    }
    super::model::check(&scenario.model, &mut ranges);
    cluster(&scenario.cluster, &mut ranges);
    training(&scenario.training, &mut ranges);
    reserve(scenario, &mut ranges);
    // Check relations only between valid fields: an invalid number of heads must not cause an error
    // for degrees that divide it.
    let has_devices = !["/cluster/nodes", "/cluster/devices_per_node"].into_iter().any(|at| ranges.any_under(at));
    let has_model = !ranges.any_under("/model");
    parallel(scenario, has_devices, &mut ranges);
    if has_devices && has_model {
        degrees(scenario, &mut ranges);
    }
    layout(&scenario.layout, &mut ranges);
    if has_model {
        stage_layers(scenario, &mut ranges);
    }
    planners(scenario, &mut ranges);
    profiles(&scenario.profiles, &mut ranges);
    ranges.integer("/search/rollouts", scenario.search.rollouts, 0, MAX_ROLLOUTS, "");
    if let Some(size) = scenario.search.sub_microbatch {
        ranges.integer("/search/sub_microbatch", size, 1, u32::MAX, "");
    }
    if let Some(steps) = scenario.search.best_steps {
        ranges.integer("/search/best_steps", steps, 0, MAX_STEPS, "");
    }
    if let Some(risk) = scenario.max_memory_risk {
        ranges.number("/max_memory_risk", risk, MIN_RISK, MAX_RISK, "");
    }
    ranges.integer("/iterations", scenario.iterations, 1, MAX_ITERATIONS, "");
    let samples = u64::from(scenario.iterations) * u64::from(scenario.workload.global_batch);
    if samples > MAX_SAMPLES && scenario.iterations <= MAX_ITERATIONS {
        let max_iterations = MAX_SAMPLES / u64::from(scenario.workload.global_batch);
        let noun = if max_iterations == 1 { "iteration" } else { "iterations" };
        let detail = format!(
            "{samples} samples in all are more than {MAX_SAMPLES}: at most {max_iterations} {noun} of this batch"
        );
        ranges.refuse("/iterations", detail);
    } else if scenario.iterations <= MAX_ITERATIONS
        && let Some(detail) = budget::excess(scenario)
    {
        ranges.refuse("/iterations", detail);
    }
}

/// Maximum rankings per search, the limit for studies.
const MAX_ROLLOUTS: u32 = 100_000;
/// Maximum limit of steps of the planner `best`. Its whole search has fewer.
const MAX_STEPS: u32 = 100_000;

/// Maximum memory reserve in GiB if the device memory is unknown.
const MAX_RESERVE_GIB: f64 = 1024.0;

/// Maximum profiles per scenario.
const MAX_PROFILES: usize = 16;

/// Profile identifiers are content addresses, like scenario identifiers.
fn profiles(names: &[String], ranges: &mut Ranges<'_>) {
    if names.len() > MAX_PROFILES {
        ranges.refuse("/profiles", format!("{} profiles: at most {MAX_PROFILES}", names.len()));
    }
    for (index, name) in names.iter().enumerate().take(MAX_PROFILES) {
        if name.parse::<ScenarioId>().is_err() {
            ranges.refuse(&format!("/profiles/{index}"), "an identifier is 52 characters of a-z and 2-7".to_owned());
        }
    }
}

/// Validates settings that depend on model or cluster.
fn parallel(scenario: &Scenario, has_devices: bool, ranges: &mut Ranges<'_>) {
    let Training { context_parallel: context, expert_parallel: expert, precision, .. } = scenario.training;
    let devices = scenario.cluster.devices();
    if has_devices && context > 0 && !devices.is_multiple_of(context) {
        ranges.refuse("/training/context_parallel", format!("{devices} devices are not a multiple of CP {context}"));
    }
    if expert > 1 {
        let experts: Vec<u32> =
            scenario.model.modules.iter().filter_map(|module| module.moe).map(|moe| moe.experts).collect();
        if experts.is_empty() {
            ranges.refuse("/training/expert_parallel", "the model has no mixture of experts".to_owned());
        } else if let Some(experts) = experts.iter().find(|experts| !experts.is_multiple_of(expert)) {
            ranges.refuse("/training/expert_parallel", format!("{experts} experts are not a multiple of EP {expert}"));
        }
    }
    if let Some(degree) = scenario.training.expert_tensor_parallel {
        let at = "/training/expert_tensor_parallel";
        if degree != 1 {
            ranges.refuse(at, format!("{degree} is not 1; leave it out for the TP of the model"));
        } else if scenario.model.modules.iter().all(|module| module.moe.is_none()) {
            ranges.refuse(at, "the model has no mixture of experts".to_owned());
        }
    }
    if precision == Precision::Fp8 && scenario.cluster.device.fp8_tflops.is_none() {
        let detail = format!("{} has no fp8; choose bf16, or give the peak fp8 of the device", scenario.cluster.name);
        ranges.refuse("/training/precision", detail);
    }
    let is_stage_fixed = !scenario.is_free(FreeSetting::Zero);
    if scenario.training.parameter_offload && is_stage_fixed && scenario.training.zero_stage() != 3 {
        let detail = format!("needs ZeRO 3; the stage is {}", scenario.training.zero_stage());
        ranges.refuse("/training/parameter_offload", detail);
    }
    state_formats(&scenario.training, ranges);
}

/// Refuses formats of the optimizer state that have no effect.
fn state_formats(training: &Training, ranges: &mut Ranges<'_>) {
    if training.precision == Precision::Fp32 && training.master_weights != MasterWeights::default() {
        let detail = "fp32 training has no master weights; leave it out".to_owned();
        ranges.refuse("/training/master_weights", detail);
    }
    let Training { optimizer, moments, .. } = training;
    if *moments != MomentFormat::default() && !optimizer.has_moment_format() {
        let detail = format!("the moments of {} have no other format; leave it out", optimizer.title());
        ranges.refuse("/training/moments", detail);
    }
}

fn cluster(cluster: &Cluster, ranges: &mut Ranges<'_>) {
    ranges.integer("/cluster/nodes", cluster.nodes, 1, 16_384, "");
    ranges.integer("/cluster/devices_per_node", cluster.devices_per_node, 1, 256, "");
    let device = &cluster.device;
    ranges.number("/cluster/device/memory_gib", device.memory_gib, 1.0, 4096.0, " GiB");
    ranges.number("/cluster/device/peak_tflops", device.peak_tflops, 0.1, 100_000.0, " TFLOP/s");
    ranges.number("/cluster/device/matmul_efficiency", device.matmul_efficiency, 0.01, 1.0, "");
    ranges.number("/cluster/device/attention_efficiency", device.attention_efficiency, 0.01, 1.0, "");
    ranges.number("/cluster/device/memory_gb_per_s", device.memory_gb_per_s, 1.0, 100_000.0, " GB/s");
    ranges.number("/cluster/device/memory_efficiency", device.memory_efficiency, 0.01, 1.0, "");
    ranges.integer("/cluster/device/multiprocessors", device.multiprocessors, 1, 4096, "");
    ranges.number("/cluster/device/launch_us", device.launch_us, 0.0, 1000.0, " µs");
    if let Some(tera) = device.fp8_tflops {
        ranges.number("/cluster/device/fp8_tflops", tera, 0.1, 100_000.0, " TFLOP/s");
    }
    if let Some(giga) = device.host_gb_per_s {
        ranges.number("/cluster/device/host_gb_per_s", giga, 0.1, 10_000.0, " GB/s");
    }
    if let Some(memory) = cluster.host_memory_gib {
        ranges.number("/cluster/host_memory_gib", memory, 0.0, 1_048_576.0, " GiB");
    }
    if let Some(giga) = cluster.host_memory_gb_per_s {
        ranges.number("/cluster/host_memory_gb_per_s", giga, 0.1, 1_000_000.0, " GB/s");
    }
    if let Some(curves) = &device.curves {
        curve_fields(curves, ranges);
    }
    link(&cluster.intra_node, "/cluster/intra_node", ranges);
    link(&cluster.inter_node, "/cluster/inter_node", ranges);
}

/// Efficiencies must be positive, so that rates are positive. Scales must not be negative.
fn curve_fields(curves: &Curves, ranges: &mut Ranges<'_>) {
    let at = "/cluster/device/curves";
    let (matmul, attention, streaming) = (&curves.matmul, &curves.attention, &curves.streaming);
    let shares = [
        ("matmul/tile_128", matmul.tile_128),
        ("matmul/tile_64", matmul.tile_64),
        ("matmul/tile_small", matmul.tile_small),
        ("matmul/traffic", matmul.traffic),
        ("matmul/input_grad", matmul.input_grad),
        ("matmul/weight_grad", matmul.weight_grad),
        ("matmul/grouped", matmul.grouped),
        ("sustained", curves.sustained),
        ("attention/backward", attention.backward),
        ("streaming/norm", streaming.norm),
        ("streaming/elementwise", streaming.elementwise),
        ("streaming/activation", streaming.activation),
        ("streaming/embedding", streaming.embedding),
        ("streaming/softmax", streaming.softmax),
        ("streaming/loss", streaming.loss),
        ("streaming/permute", streaming.permute),
        ("streaming/optimizer", streaming.optimizer),
    ];
    for (field, share) in shares {
        ranges.number(&format!("{at}/{field}"), share, 0.01, 2.0, "");
    }
    let scales = [
        ("matmul/fill", matmul.fill, 100_000.0, ""),
        ("matmul/last_wave", matmul.last_wave, 1.0, ""),
        ("matmul/power_drop", matmul.power_drop, 10.0, ""),
        ("matmul/power_ms", matmul.power_ms, 1e6, " ms"),
        ("attention/half_blocks", attention.half_blocks, 1e6, ""),
        ("attention/half_length", attention.half_length, 1e6, ""),
        ("host_us", curves.host_us, 1e6, " µs"),
        ("host_microbatch_us", curves.host_microbatch_us, 1e9, " µs"),
    ];
    for (field, value, limit, unit) in scales {
        ranges.number(&format!("{at}/{field}"), value, 0.0, limit, unit);
    }
}

fn link_curve(curve: &LinkCurve, at: &str, ranges: &mut Ranges<'_>) {
    for (field, share) in
        [("pair", curve.pair), ("half_collectives", curve.half_collectives), ("all_to_all", curve.all_to_all)]
    {
        ranges.number(&format!("{at}/curve/{field}"), share, 0.01, 2.0, "");
    }
    ranges.number(&format!("{at}/curve/base_us"), curve.base_us, 0.0, 1e6, " µs");
    ranges.number(&format!("{at}/curve/per_rank_us"), curve.per_rank_us, 0.0, 1e6, " µs");
    ranges.number(&format!("{at}/curve/small_bytes"), curve.small_bytes, 0.0, 1e12, " bytes");
}

fn link(link: &Link, at: &str, ranges: &mut Ranges<'_>) {
    if let Some(curve) = &link.curve {
        link_curve(curve, at, ranges);
    }
    ranges.number(&format!("{at}/gb_per_s"), link.gb_per_s, 0.01, 100_000.0, " GB/s");
    ranges.number(&format!("{at}/efficiency"), link.efficiency, 0.01, 1.0, "");
    ranges.number(&format!("{at}/latency_us"), link.latency_us, 0.0, 100_000.0, " µs");
}

fn training(training: &Training, ranges: &mut Ranges<'_>) {
    ranges.number("/training/tensor_overlap", training.tensor_overlap, 0.0, 1.0, "");
    ranges.number("/training/data_overlap", training.data_overlap, 0.0, 1.0, "");
    if let Some(layers) = training.recompute_layers {
        ranges.integer("/training/recompute_layers", layers, 1, 1024, "");
    }
    ranges.number("/training/activation_offload", training.activation_offload, 0.0, 1.0, "");
    ranges.number("/training/expert_overlap", training.expert_overlap, 0.0, 1.0, "");
    ranges.number("/training/optimizer_offload", training.optimizer_offload, 0.0, 1.0, "");
    if let Some(zero) = training.zero {
        ranges.integer("/training/zero", zero, 0, 3, "");
    }
    if let Some(shards) = training.shard_degree {
        ranges.integer("/training/shard_degree", shards, 1, 131_072, " devices");
    }
    if let Some(microbatches) = training.microbatches_per_flush {
        ranges.integer("/training/microbatches_per_flush", microbatches, 1, 1_000_000, "");
    }
    ranges.integer("/training/context_parallel", training.context_parallel, 1, 1024, "");
    ranges.integer("/training/expert_parallel", training.expert_parallel, 1, 1024, "");
}

/// The reserve must leave some device memory for the plan.
fn reserve(scenario: &Scenario, ranges: &mut Ranges<'_>) {
    let at = "/training/memory_reserve_gib";
    let (reserve, memory) = (scenario.training.memory_reserve_gib, scenario.cluster.device.memory_gib);
    if ranges.any_under("/cluster/device/memory_gib") {
        ranges.number(at, reserve, 0.0, MAX_RESERVE_GIB, " GiB");
    } else if !(reserve >= 0.0 && reserve < memory) {
        let reserve = shortened(reserve);
        let detail = format!("{reserve} GiB{RANGE_ERROR}0 to less than the device's memory of {memory} GiB");
        ranges.refuse(at, detail);
    }
}

/// Validates degrees that are infeasible for any choice of the other degrees. The search handles
/// the remaining cases.
fn degrees(scenario: &Scenario, ranges: &mut Ranges<'_>) {
    let Scenario { layout, model, cluster, .. } = scenario;
    let devices = cluster.devices();
    let wrong_tensor = layout.tensor.and_then(|tensor| tensor_error(tensor, model, devices));
    let has_stages = !scenario.layers_per_stage.is_empty();
    let max_stages = if has_stages { u32::MAX } else { model.layers() };
    let pipeline = layout.pipeline.and_then(|pipeline| pipeline_error(pipeline, max_stages, devices));
    // One message states the devices of both degrees.
    let pipeline = match (layout.tensor, layout.pipeline) {
        (Some(tensor), Some(stages)) if wrong_tensor.is_none() && tensor > 1 && (2..=max_stages).contains(&stages) => {
            let needed = u64::from(tensor) * u64::from(stages);
            let is_too_large = needed > u64::from(devices);
            let detail = || format!("TP {tensor} x PP {stages} needs {needed} devices; the cluster has {devices}");
            is_too_large.then(detail).or(pipeline)
        }
        _ => pipeline,
    };
    let are_right = wrong_tensor.is_none() && pipeline.is_none();
    for (at, detail) in [("/layout/tensor", wrong_tensor), ("/layout/pipeline", pipeline)] {
        if let Some(detail) = detail {
            ranges.refuse(at, detail);
        }
    }
    let degrees = layout.tensor.unwrap_or(1).saturating_mul(layout.pipeline.unwrap_or(1));
    if are_right && !devices.is_multiple_of(degrees) {
        ranges.refuse("/layout/pipeline", format!("{devices} devices are not a multiple of TP x PP = {degrees}"));
    }
}

/// Validates layout fields whose range is constant.
fn layout(layout: &LayoutRequest, ranges: &mut Ranges<'_>) {
    if let Some(chunks) = layout.chunks {
        ranges.integer("/layout/chunks", chunks, 1, 64, "");
    }
    if let Some(microbatch) = layout.microbatch {
        ranges.integer("/layout/microbatch", microbatch, 1, 65_536, " sequences");
    }
    if let Some(group) = layout.group {
        ranges.integer("/layout/group", group, 1, 65_536, " microbatches");
    }
}

/// Validates fixed numbers of layers per stage.
fn stage_layers(scenario: &Scenario, ranges: &mut Ranges<'_>) {
    const AT: &str = "/layers_per_stage";
    let stages = scenario.layers_per_stage.as_slice();
    if stages.is_empty() {
        return;
    }
    let layers = scenario.model.layers();
    let total: u64 = stages.iter().map(|&count| u64::from(count)).sum();
    let count = stages.len();
    let Some(pipeline) = scenario.layout.pipeline.filter(|&pipeline| pipeline > 0) else {
        return ranges.refuse(AT, "needs a fixed PP".to_owned());
    };
    let chunks = scenario.layout.chunks;
    let expected = u64::from(pipeline) * u64::from(chunks.unwrap_or(1));
    let empty = stages.iter().position(|&count| count == 0).filter(|_| scenario.model.modules.len() > 1);
    let detail = if let Some(empty) = empty {
        format!("stage {empty} has no layer; at least 1 if the model has several modules")
    } else if total != u64::from(layers) {
        let noun = if total == 1 { "layer" } else { "layers" };
        format!("the stages have {total} {noun}, the model has {layers}")
    } else if chunks.is_some() && count as u64 != expected {
        format!("{count} stages, but PP x VPP is {expected}")
    } else if !count.is_multiple_of(pipeline as usize) {
        {
            let verb = if count == 1 { "is" } else { "are" };
            format!(
                "the number of stages must be a multiple of PP {pipeline} ({pipeline}, {}, …); {count} {verb} given",
                2 * pipeline
            )
        }
    } else if scenario.is_free(FreeSetting::LayersPerStage) {
        "fixed and free at the same time; remove one".to_owned()
    } else {
        return;
    };
    ranges.refuse(AT, detail);
}

/// Returns an error that lists the valid tensor-parallel degrees.
fn tensor_error(tensor: u32, model: &Model, devices: u32) -> Option<String> {
    if tensor > devices {
        let possible = if devices == 1 {
            "1 device has only TP 1".to_owned()
        } else {
            format!("{devices} devices have at most TP {devices}")
        };
        return Some(format!("TP {tensor} needs at least {tensor} devices; {possible}"));
    }
    if tensor == 0 {
        return Some(format!("{tensor}{RANGE_ERROR}1 to {devices}"));
    }
    let heads: Vec<_> = model
        .modules
        .iter()
        .flat_map(|module| module.sharded_heads().map(move |(kind, count)| (count, kind, module)))
        .collect();
    let cut = heads.iter().find(|(count, ..)| !count.is_multiple_of(tensor));
    let reason = match cut {
        Some((count, kind, module)) => format!("{count} {kind} of {}", module.name),
        None if !devices.is_multiple_of(tensor) => format!("{devices} devices"),
        None => return None,
    };
    let divides_all = |degree: &u32| heads.iter().all(|(count, ..)| count.is_multiple_of(*degree));
    let right = divisors(devices).filter(divides_all);
    Some(format!("{reason} are not a multiple of TP {tensor}; possible TP: {}", list(right)))
}

/// Returns an error for a pipeline-parallel degree. Fixed stages can be without layers, others have one layer or more.
fn pipeline_error(pipeline: u32, max_stages: u32, devices: u32) -> Option<String> {
    if pipeline > max_stages {
        return Some(format!("{pipeline} stages for {max_stages} layers; at most one stage a layer"));
    }
    let max_degree = devices.min(max_stages);
    (pipeline == 0 || pipeline > max_degree).then(|| format!("{pipeline}{RANGE_ERROR}1 to {max_degree}"))
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
    for (index, setting) in scenario.free.iter().enumerate() {
        if scenario.free[..index].contains(setting) {
            ranges.refuse(&format!("/free/{index}"), "is there twice".to_owned());
        }
    }
}

fn divisors(number: u32) -> impl Iterator<Item = u32> {
    (1..=number).filter(move |degree| number.is_multiple_of(*degree))
}

fn list(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}
