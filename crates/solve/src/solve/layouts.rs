//! Ranks module layouts by a closed-form estimate.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use planscope_analysis::analysis::layouts::Freedom;
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::plan::ModuleLayout;
use planscope_planners::planners::module_layouts::{Ground, Mode, ModuleShape, Point, points_of};
use planscope_plan::scenario::FieldError;
use planscope_core::training::{ContextExchange, LayoutRequest};

/// Maximum devices.
const DEVICES: u32 = 16_384;
/// Maximum modules, because the number of layouts grows exponentially.
const MODULES: usize = 4;
/// Maximum samples per batch.
const SAMPLES: u32 = 1_000_000;
/// Layouts between two looks at the clock.
const LOOK: usize = 1024;
/// Default result length.
const RETURNED: usize = 20;

/// Modules, devices and a batch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Modules in data-flow order. The last module is the reference for the microbatches.
    pub modules: Vec<Module>,
    /// Number of devices.
    pub devices: u32,
    /// Devices per node, the limit for tensor parallelism. Default: 8.
    #[serde(default)]
    pub devices_per_node: Option<u32>,
    /// Memory limit per device in GiB.
    pub memory_gib: f64,
    /// Samples per global batch.
    pub samples: u32,
    /// Permitted placements. Default: all.
    #[serde(default)]
    pub freedoms: Vec<Freedom>,
    /// Maximum context-parallel degree for the last module. Default: 1.
    #[serde(default)]
    pub max_context: Option<u32>,
    /// Layouts to return. Default: 20.
    #[serde(default)]
    pub returned: Option<usize>,
}

/// A module.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// Module name.
    pub name: String,
    /// Number of layers.
    pub layers: u32,
    /// Attention heads.
    pub heads: u32,
    /// Key-value heads. Default: `heads`.
    #[serde(default)]
    pub kv_heads: Option<u32>,
    /// Forward plus backward time per sample on a single device, in seconds.
    pub seconds: f64,
    /// Weights and gradients on a single device, in GiB.
    pub state_gib: f64,
    /// Optimizer state, sharded over DP x CP, in GiB.
    #[serde(default)]
    pub optimizer_gib: f64,
    /// Stored activations per sample on a single device, in GiB.
    pub activation_gib: f64,
    /// Parallel efficiency per TP degree, relative to a single device. Default: 1.
    #[serde(default)]
    pub tensor_efficiency: BTreeMap<u32, f64>,
    /// Parallel efficiency per CP degree. Default: 1.
    #[serde(default)]
    pub context_efficiency: BTreeMap<u32, f64>,
}

/// Top layouts, and rejection statistics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Layouts by ascending time.
    pub layouts: Vec<Ranked>,
    /// Evaluated layouts.
    pub candidates: u64,
    /// Feasible layouts.
    pub possible: u64,
    /// Rejection reasons, sorted by descending frequency.
    pub reasons: Vec<(String, u64)>,
}

/// A joint layout for all modules.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// Module placement.
    pub freedom: Freedom,
    /// Layout per module.
    pub modules: Vec<Placed>,
    /// Samples per microbatch.
    pub microbatch: u32,
    /// Estimated batch time in seconds.
    pub seconds: f64,
    /// Time fraction outside pipeline fill and drain.
    pub busy: f64,
    /// Maximum memory per device in GiB.
    pub memory_gib: f64,
    /// Names the bottleneck module and the fill and drain overhead.
    pub why: String,
}

/// A module's layout.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placed {
    /// Module name.
    pub name: String,
    /// Tensor-parallel degree.
    pub tensor: u32,
    /// Context-parallel degree.
    pub context: u32,
    /// Pipeline-parallel degree.
    pub pipeline: u32,
    /// Data-parallel degree.
    pub data: u32,
    /// First device.
    pub first_device: u32,
}

/// Ranks layouts. A stage takes seconds x microbatch / (TP CP PP) / efficiency (docs/models.md,
/// section 14).
pub(super) fn respond(request: &Request, _: &dyn Workers, cancellation: &dyn Cancellation) -> Result<Response, Vec<FieldError>> {
    let errors = wrong(request);
    if !errors.is_empty() {
        return Err(errors);
    }
    let freedoms = match request.freedoms.as_slice() {
        [] => vec![Freedom::Homogeneous, Freedom::Colocated, Freedom::NonColocated],
        requested => requested.to_vec(),
    };
    let ground = ground(request);
    let mut response = Response { layouts: Vec::new(), candidates: 0, possible: 0, reasons: Vec::new() };
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for freedom in freedoms {
        // At least one placement is ranked, so that there is an answer.
        if cancellation.is_over() && !response.layouts.is_empty() {
            break;
        }
        let space = points_of(&ground, mode(freedom), request.samples);
        response.candidates += (space.points.len() + space.illegal.len()) as u64 + space.left_out;
        for (_, rule) in space.illegal {
            *reasons.entry(rule).or_default() += 1;
        }
        if space.left_out > 0 {
            *reasons.entry("not looked at: too many".to_owned()).or_default() += space.left_out;
        }
        for (index, point) in space.points.iter().enumerate() {
            if index % LOOK == LOOK - 1 && cancellation.is_over() && !response.layouts.is_empty() {
                let left = (space.points.len() - index) as u64;
                response.candidates -= left;
                *reasons.entry("not looked at: the time is over".to_owned()).or_default() += left;
                break;
            }
            match ranked(request, freedom, point) {
                Ok(ranked) => response.layouts.push(ranked),
                Err(reason) => *reasons.entry(reason).or_default() += 1,
            }
        }
    }
    response.possible = response.layouts.len() as u64;
    response.layouts.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then(a.memory_gib.total_cmp(&b.memory_gib)));
    response.layouts.truncate(request.returned.unwrap_or(RETURNED));
    response.reasons = reasons.into_iter().collect();
    response.reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(response)
}

const fn mode(freedom: Freedom) -> Mode {
    match freedom {
        Freedom::Homogeneous => Mode::Homogeneous,
        Freedom::Colocated => Mode::Colocated,
        Freedom::NonColocated => Mode::NonColocated,
    }
}

/// Returns all validation errors.
fn wrong(request: &Request) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut within = |pointer: &str, value: f64, min: f64, max: f64| {
        if !(min..=max).contains(&value) {
            errors.push(FieldError::new(pointer, format!("{value} is not within {min} and {max}")));
        }
    };
    within("/devices", request.devices.into(), 1.0, DEVICES.into());
    within("/devices_per_node", request.devices_per_node.unwrap_or(8).into(), 1.0, DEVICES.into());
    within("/memory_gib", request.memory_gib, 0.0, 1e6);
    within("/samples", request.samples.into(), 1.0, SAMPLES.into());
    within("/max_context", request.max_context.unwrap_or(1).into(), 1.0, DEVICES.into());
    within("/modules", request.modules.len() as f64, 1.0, MODULES as f64);
    for (index, module) in request.modules.iter().enumerate() {
        let field_pointer = |field: &str| format!("/modules/{index}/{field}");
        within(&field_pointer("layers"), module.layers.into(), 1.0, 1e6);
        within(&field_pointer("heads"), module.heads.into(), 1.0, 1e6);
        within(&field_pointer("kv_heads"), module.kv_heads.unwrap_or(1).into(), 1.0, 1e6);
        within(&field_pointer("seconds"), module.seconds, 0.0, 1e6);
        within(&field_pointer("state_gib"), module.state_gib, 0.0, 1e9);
        within(&field_pointer("optimizer_gib"), module.optimizer_gib, 0.0, 1e9);
        within(&field_pointer("activation_gib"), module.activation_gib, 0.0, 1e9);
        for (field, table) in
            [("tensor_efficiency", &module.tensor_efficiency), ("context_efficiency", &module.context_efficiency)]
        {
            for (degree, &share) in table {
                within(&field_pointer(&format!("{field}/{degree}")), share, 1e-6, 1.0);
            }
        }
    }
    errors
}

fn ground(request: &Request) -> Ground {
    let slot = |module: &Module| ModuleShape {
        name: module.name.clone(),
        layers: module.layers,
        heads: module.heads,
        kv_heads: module.kv_heads.unwrap_or(module.heads),
        sharded: vec![("heads", module.heads), ("key-value heads", module.kv_heads.unwrap_or(module.heads))],
        experts: None,
    };
    let context_limit = request.max_context.unwrap_or(1);
    Ground {
        slots: request.modules.iter().map(slot).collect(),
        main: request.modules.len() - 1,
        devices: request.devices,
        devices_per_node: request.devices_per_node.unwrap_or(8),
        contexts: (0..=context_limit.ilog2()).map(|power| 1 << power).collect(),
        experts: vec![1],
        // The efficiency tables already contain the communication cost, so the exchange type is
        // irrelevant.
        exchange: ContextExchange::Ring,
        request: LayoutRequest::default(),
    }
}

/// Returns time and memory for a layout, or the rejection reason.
fn ranked(request: &Request, freedom: Freedom, point: &Point) -> Result<Ranked, String> {
    let last = request.modules.len() - 1;
    let find_layout = |module: usize| point.modules.iter().find(|layout| layout.modules().contains(&module));
    let pace = find_layout(last).ok_or("no layout")?;
    let samples = f64::from(request.samples);
    let waves = (samples / f64::from(point.microbatch) / f64::from(pace.data)).ceil();
    let (mut seconds, mut busiest, mut fill_time, mut memory, mut fullest) =
        (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    let mut slowest = 0;
    let mut behind: u32 = point.modules.iter().map(|layout| layout.pipeline).sum();
    for (index, module) in request.modules.iter().enumerate() {
        let Some(layout) = find_layout(index) else { continue };
        let share = |table: &BTreeMap<u32, f64>, degree: u32| table.get(&degree).copied().unwrap_or(1.0);
        let speed = share(&module.tensor_efficiency, layout.tensor) * share(&module.context_efficiency, layout.context);
        let ranks = f64::from(layout.tensor * layout.context * layout.pipeline);
        // Samples per replica and wave.
        let each = f64::from(point.microbatch) * f64::from(pace.data) / f64::from(layout.data);
        let stage = module.seconds * each / ranks / speed;
        let work = waves * stage;
        if freedom == Freedom::NonColocated {
            seconds = seconds.max(work);
        } else {
            seconds += work;
        }
        fill_time += f64::from(layout.pipeline - 1) * stage;
        if freedom == Freedom::NonColocated && index < last {
            fill_time += stage;
        }
        if work > busiest {
            (busiest, slowest) = (work, index);
        }
        let flying = f64::from(behind).min(waves);
        let states = module.state_gib / f64::from(layout.tensor * layout.pipeline)
            + module.optimizer_gib / f64::from(layout.tensor * layout.pipeline * layout.data * layout.context);
        let required_gib = states + flying * each * module.activation_gib / ranks;
        memory = if freedom == Freedom::NonColocated { required_gib } else { memory + required_gib };
        fullest = fullest.max(memory);
        behind = behind.saturating_sub(if point.modules.len() > 1 { layout.pipeline } else { 0 });
    }
    if fullest > request.memory_gib {
        return Err("exceeds the memory".to_owned());
    }
    let total = seconds + fill_time;
    let active_share = if total > 0.0 { seconds / total } else { 1.0 };
    let name = &request.modules[slowest].name;
    let why = format!(
        "{name} works longest, {:.0} % of the time; filling and draining takes {:.0} %",
        100.0 * busiest / total.max(f64::MIN_POSITIVE),
        100.0 * (1.0 - active_share)
    );
    let modules = point.modules.iter().map(|layout| placed(request, layout)).collect();
    Ok(Ranked { freedom, modules, microbatch: point.microbatch, seconds: total, busy: active_share, memory_gib: fullest, why })
}

fn placed(request: &Request, layout: &ModuleLayout) -> Placed {
    let names: Vec<&str> = request.modules[layout.modules()].iter().map(|module| module.name.as_str()).collect();
    let &ModuleLayout { tensor, context, pipeline, data, first_device, .. } = layout;
    Placed { name: names.join(" + "), tensor, context, pipeline, data, first_device }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::host::{NeverCancelled, SequentialWorkers};

    fn parse_request(json: serde_json::Value) -> Request {
        serde_json::from_value(json).unwrap()
    }

    fn module(name: &str, seconds: f64, state_gib: f64) -> serde_json::Value {
        serde_json::json!({
            "name": name, "layers": 8, "heads": 8, "seconds": seconds, "state_gib": state_gib, "activation_gib": 0.0
        })
    }

    /// Two devices, eight samples, 1 s encoder and 3 s backbone time. Colocated: 8 x 4 s / 2 = 16
    /// s. Non-colocated: 8 x 3 s for the backbone, plus 1 s until it receives its first sample.
    #[test]
    fn times_match_the_closed_form() {
        let request = parse_request(serde_json::json!({
            "modules": [module("encoder", 1.0, 1.0), module("backbone", 3.0, 1.0)],
            "devices": 2, "memory_gib": 100.0, "samples": 8, "returned": 1000
        }));
        let response = respond(&request, &SequentialWorkers, &NeverCancelled).unwrap();
        let best = |freedom| response.layouts.iter().find(|layout| layout.freedom == freedom).map(|best_layout| best_layout.seconds);
        assert_eq!(best(Freedom::Homogeneous), Some(16.0));
        assert_eq!(best(Freedom::NonColocated), Some(25.0));
        assert!(response.layouts.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds));
    }

    /// TP halves the encoder's speed, and the backbone's states need two devices. Only a separate
    /// encoder layout keeps TP 1: 8 x (1 + 3) / 2 = 16 s versus 8 x (2 + 3) / 2 = 20 s.
    #[test]
    fn separate_layouts_win_if_a_shared_layout_forces_a_degree() {
        let mut encoder = module("encoder", 1.0, 1.0);
        encoder["tensor_efficiency"] = serde_json::json!({ "2": 0.5 });
        let mut backbone = module("backbone", 3.0, 20.0);
        backbone["layers"] = 1.into();
        let request = parse_request(serde_json::json!({
            "modules": [encoder, backbone], "devices": 2, "memory_gib": 12.0, "samples": 8
        }));
        let response = respond(&request, &SequentialWorkers, &NeverCancelled).unwrap();
        assert_eq!(response.layouts[0].freedom, Freedom::Colocated);
        assert!((response.layouts[0].seconds - 16.0).abs() < 1e-9);
        let single = response.layouts.iter().find(|layout| layout.freedom == Freedom::Homogeneous).unwrap();
        assert!((single.seconds - 20.0).abs() < 1e-9);
        assert!(response.reasons.iter().any(|(reason, _)| reason == "exceeds the memory"));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let mut bad = module("encoder", -1.0, 1.0);
        bad["tensor_efficiency"] = serde_json::json!({ "2": 0.0 });
        let request = parse_request(serde_json::json!({ "modules": [bad], "devices": 0, "memory_gib": 1.0, "samples": 8 }));
        let errors = respond(&request, &SequentialWorkers, &NeverCancelled).unwrap_err();
        let pointers: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/devices", "/modules/0/seconds", "/modules/0/tensor_efficiency/2"]);
    }
}
