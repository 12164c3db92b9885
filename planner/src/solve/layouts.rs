//! Ranks module layouts by a closed-form estimate.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::analysis::layouts::Freedom;
use crate::host::{Watch, Workers};
use crate::plan::ModuleLayout;
use crate::planners::module_layouts::{Ground, Mode, ModuleShape, Point, points_of};
use crate::scenario::FieldError;
use crate::training::{ContextExchange, LayoutRequest};

/// Maximum devices.
const DEVICES: u32 = 16_384;
/// Maximum modules, because the number of layouts grows exponentially.
const MODULES: usize = 4;
/// Maximum samples per batch.
const SAMPLES: u32 = 1_000_000;
/// Default result length.
const RETURNED: usize = 20;

/// Modules, devices and a batch.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
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
pub struct Answer {
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
pub(super) fn answer(question: &Question, _: &dyn Workers, watch: &dyn Watch) -> Result<Answer, Vec<FieldError>> {
    let errors = wrong(question);
    if !errors.is_empty() {
        return Err(errors);
    }
    let freedoms = match question.freedoms.as_slice() {
        [] => vec![Freedom::Homogeneous, Freedom::Colocated, Freedom::NonColocated],
        asked => asked.to_vec(),
    };
    let ground = ground(question);
    let mut answer = Answer { layouts: Vec::new(), candidates: 0, possible: 0, reasons: Vec::new() };
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for freedom in freedoms {
        if watch.is_over() {
            break;
        }
        let space = points_of(&ground, mode(freedom), question.samples);
        answer.candidates += (space.points.len() + space.illegal.len()) as u64 + space.left_out;
        for (_, rule) in space.illegal {
            *reasons.entry(rule).or_default() += 1;
        }
        if space.left_out > 0 {
            *reasons.entry("not looked at: too many".to_owned()).or_default() += space.left_out;
        }
        for point in space.points {
            match ranked(question, freedom, &point) {
                Ok(ranked) => answer.layouts.push(ranked),
                Err(reason) => *reasons.entry(reason).or_default() += 1,
            }
        }
    }
    answer.possible = answer.layouts.len() as u64;
    answer.layouts.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then(a.memory_gib.total_cmp(&b.memory_gib)));
    answer.layouts.truncate(question.returned.unwrap_or(RETURNED));
    answer.reasons = reasons.into_iter().collect();
    answer.reasons.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(answer)
}

const fn mode(freedom: Freedom) -> Mode {
    match freedom {
        Freedom::Homogeneous => Mode::Homogeneous,
        Freedom::Colocated => Mode::Colocated,
        Freedom::NonColocated => Mode::Apart,
    }
}

/// Returns all validation errors.
fn wrong(question: &Question) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut within = |pointer: &str, value: f64, least: f64, most: f64| {
        if !(least..=most).contains(&value) {
            errors.push(FieldError::new(pointer, format!("{value} is not within {least} and {most}")));
        }
    };
    within("/devices", question.devices.into(), 1.0, DEVICES.into());
    within("/devices_per_node", question.devices_per_node.unwrap_or(8).into(), 1.0, DEVICES.into());
    within("/memory_gib", question.memory_gib, 0.0, 1e6);
    within("/samples", question.samples.into(), 1.0, SAMPLES.into());
    within("/max_context", question.max_context.unwrap_or(1).into(), 1.0, DEVICES.into());
    within("/modules", question.modules.len() as f64, 1.0, MODULES as f64);
    for (place, module) in question.modules.iter().enumerate() {
        let of = |field: &str| format!("/modules/{place}/{field}");
        within(&of("layers"), module.layers.into(), 1.0, 1e6);
        within(&of("heads"), module.heads.into(), 1.0, 1e6);
        within(&of("kv_heads"), module.kv_heads.unwrap_or(1).into(), 1.0, 1e6);
        within(&of("seconds"), module.seconds, 0.0, 1e6);
        within(&of("state_gib"), module.state_gib, 0.0, 1e9);
        within(&of("optimizer_gib"), module.optimizer_gib, 0.0, 1e9);
        within(&of("activation_gib"), module.activation_gib, 0.0, 1e9);
        for (field, table) in
            [("tensor_efficiency", &module.tensor_efficiency), ("context_efficiency", &module.context_efficiency)]
        {
            for (degree, &share) in table {
                within(&of(&format!("{field}/{degree}")), share, 1e-6, 1.0);
            }
        }
    }
    errors
}

fn ground(question: &Question) -> Ground {
    let slot = |module: &Module| ModuleShape {
        name: module.name.clone(),
        layers: module.layers,
        heads: module.heads,
        kv_heads: module.kv_heads.unwrap_or(module.heads),
        experts: None,
    };
    let most = question.max_context.unwrap_or(1);
    Ground {
        slots: question.modules.iter().map(slot).collect(),
        main: question.modules.len() - 1,
        devices: question.devices,
        devices_per_node: question.devices_per_node.unwrap_or(8),
        contexts: (0..=most.ilog2()).map(|power| 1 << power).collect(),
        experts: vec![1],
        // The efficiency tables already contain the communication cost, so the exchange type is
        // irrelevant.
        exchange: ContextExchange::Ring,
        request: LayoutRequest::default(),
    }
}

/// Returns time and memory for a layout, or the rejection reason.
fn ranked(question: &Question, freedom: Freedom, point: &Point) -> Result<Ranked, String> {
    let last = question.modules.len() - 1;
    let layout_of = |module: usize| point.modules.iter().find(|layout| layout.modules().contains(&module));
    let pace = layout_of(last).ok_or("no layout")?;
    let samples = f64::from(question.samples);
    let waves = (samples / f64::from(point.microbatch) / f64::from(pace.data)).ceil();
    let (mut seconds, mut busiest, mut filling, mut memory, mut fullest) =
        (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
    let mut slowest = 0;
    let mut behind: u32 = point.modules.iter().map(|layout| layout.pipeline).sum();
    for (index, module) in question.modules.iter().enumerate() {
        let Some(layout) = layout_of(index) else { continue };
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
        filling += f64::from(layout.pipeline - 1) * stage;
        if freedom == Freedom::NonColocated && index < last {
            filling += stage;
        }
        if work > busiest {
            (busiest, slowest) = (work, index);
        }
        let flying = f64::from(behind).min(waves);
        let states = module.state_gib / f64::from(layout.tensor * layout.pipeline)
            + module.optimizer_gib / f64::from(layout.tensor * layout.pipeline * layout.data * layout.context);
        let held = states + flying * each * module.activation_gib / ranks;
        memory = if freedom == Freedom::NonColocated { held } else { memory + held };
        fullest = fullest.max(memory);
        behind = behind.saturating_sub(if point.modules.len() > 1 { layout.pipeline } else { 0 });
    }
    if fullest > question.memory_gib {
        return Err("exceeds the memory".to_owned());
    }
    let total = seconds + filling;
    let busy = if total > 0.0 { seconds / total } else { 1.0 };
    let name = &question.modules[slowest].name;
    let why = format!(
        "{name} works longest, {:.0} % of the time; filling and draining takes {:.0} %",
        100.0 * busiest / total.max(f64::MIN_POSITIVE),
        100.0 * (1.0 - busy)
    );
    let modules = point.modules.iter().map(|layout| placed(question, layout)).collect();
    Ok(Ranked { freedom, modules, microbatch: point.microbatch, seconds: total, busy, memory_gib: fullest, why })
}

fn placed(question: &Question, layout: &ModuleLayout) -> Placed {
    let names: Vec<&str> = question.modules[layout.modules()].iter().map(|module| module.name.as_str()).collect();
    let &ModuleLayout { tensor, context, pipeline, data, first_device, .. } = layout;
    Placed { name: names.join(" + "), tensor, context, pipeline, data, first_device }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{NeverCancelled, SequentialWorkers};

    fn question(json: serde_json::Value) -> Question {
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
    fn times_are_those_of_the_closed_form() {
        let asked = question(serde_json::json!({
            "modules": [module("encoder", 1.0, 1.0), module("backbone", 3.0, 1.0)],
            "devices": 2, "memory_gib": 100.0, "samples": 8, "returned": 1000
        }));
        let answer = answer(&asked, &SequentialWorkers, &NeverCancelled).unwrap();
        let best = |freedom| answer.layouts.iter().find(|of| of.freedom == freedom).map(|of| of.seconds);
        assert_eq!(best(Freedom::Homogeneous), Some(16.0));
        assert_eq!(best(Freedom::NonColocated), Some(25.0));
        assert!(answer.layouts.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds));
    }

    /// TP halves the encoder's speed, and the backbone's states need two devices. Only a separate
    /// encoder layout keeps TP 1: 8 x (1 + 3) / 2 = 16 s versus 8 x (2 + 3) / 2 = 20 s.
    #[test]
    fn layouts_of_their_own_win_where_one_layout_forces_a_degree_on_the_encoder() {
        let mut encoder = module("encoder", 1.0, 1.0);
        encoder["tensor_efficiency"] = serde_json::json!({ "2": 0.5 });
        let mut backbone = module("backbone", 3.0, 20.0);
        backbone["layers"] = 1.into();
        let asked = question(serde_json::json!({
            "modules": [encoder, backbone], "devices": 2, "memory_gib": 12.0, "samples": 8
        }));
        let answer = answer(&asked, &SequentialWorkers, &NeverCancelled).unwrap();
        assert_eq!(answer.layouts[0].freedom, Freedom::Colocated);
        assert!((answer.layouts[0].seconds - 16.0).abs() < 1e-9);
        let single = answer.layouts.iter().find(|of| of.freedom == Freedom::Homogeneous).unwrap();
        assert!((single.seconds - 20.0).abs() < 1e-9);
        assert!(answer.reasons.iter().any(|(reason, _)| reason == "exceeds the memory"));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let mut bad = module("encoder", -1.0, 1.0);
        bad["tensor_efficiency"] = serde_json::json!({ "2": 0.0 });
        let asked = question(serde_json::json!({ "modules": [bad], "devices": 0, "memory_gib": 1.0, "samples": 8 }));
        let errors = answer(&asked, &SequentialWorkers, &NeverCancelled).unwrap_err();
        let pointers: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/devices", "/modules/0/seconds", "/modules/0/tensor_efficiency/2"]);
    }
}
