//! Layout combinations of a scenario, and the rules that exclude invalid ones before any cost
//! computation.

use std::ops::Range;

use planscope_core::model::{Model, Module, ModuleRole, heads_support_all_to_all};
use planscope_core::training::{ContextExchange, LayoutRequest};
use planscope_cost::cost::DegreeSettings;
use planscope_plan::plan::ModuleLayout;
use planscope_plan::scenario::{PlannerKind, Scenario};

/// Maximum context-parallel degree: one sequence on eight eight-device nodes.
const MAX_CONTEXT: u32 = 64;
/// Limit on sequences per microbatch.
const MAX_MICROBATCH: u32 = 16;
/// Maximum rank count. All ranks are simulated individually, because the order of actions depends
/// on all ranks.
const MAX_RANKS: u32 = 1024;
/// Steps of the number of devices of a module beside the main module: each number up to 64 devices, if one range of
/// devices is beside that of the main module. Two ranges have fewer steps, because their numbers are combined.
const STEPS_OF_ONE: u32 = 64;
const STEPS_OF_TWO: u32 = 16;
/// Limit on points. Points above the limit are counted.
const MAX_POINTS: usize = 60_000;

/// Relation between the module layouts: homogeneous, colocated or non-colocated
/// (arXiv 2605.27678).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// One layout for all modules. Each module is split across all ranks.
    Homogeneous,
    /// One layout for all modules; all layers form a chain.
    Chain,
    /// Separate layouts on the same devices.
    Colocated,
    /// Separate layouts on disjoint devices.
    NonColocated,
}

impl Mode {
    /// Returns the mode of a planner.
    pub(crate) const fn from_planner(kind: PlannerKind) -> Self {
        match kind {
            PlannerKind::HeterogeneousColocated => Self::Colocated,
            PlannerKind::HeterogeneousApart => Self::NonColocated,
            _ => Self::Homogeneous,
        }
    }
}

/// Layouts of all modules and a microbatch size.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub mode: Mode,
    /// In module order.
    pub modules: Vec<ModuleLayout>,
    /// Sequences per microbatch of one backbone copy.
    pub microbatch: u32,
}

/// Valid and invalid points.
#[derive(Debug, Default)]
pub struct Space {
    pub points: Vec<Point>,
    /// Points that violate a rule, and the rule.
    pub illegal: Vec<(Point, String)>,
    /// Points above the limit.
    pub left_out: u64,
}

/// Returns the module that defines the microbatches: the backbone, otherwise the last module.
pub(crate) fn anchor(model: &Model) -> usize {
    let backbone = model.modules.iter().position(|module| module.role == ModuleRole::Backbone);
    backbone.unwrap_or(model.modules.len() - 1)
}

/// Returns the settings of all possible degrees, for cost tables.
pub fn degree_settings(scenario: &Scenario) -> DegreeSettings {
    let (contexts, experts) = degrees(scenario);
    DegreeSettings::new(&scenario.training, &contexts, &experts)
}

/// Returns the possible context- and expert-parallel degrees, for cost tables.
pub(crate) fn degrees(scenario: &Scenario) -> (Vec<u32>, Vec<u32>) {
    let experts: Vec<u32> =
        scenario.model.modules.iter().filter_map(|module| module.moe).map(|moe| moe.experts).collect();
    let devices = scenario.cluster.devices();
    let with = |mut list: Vec<u32>, requested: u32| {
        if !list.contains(&requested) {
            list.push(requested);
        }
        list
    };
    let cuts = |degree: &u32| *degree == 1 || experts.iter().any(|experts| experts.is_multiple_of(*degree));
    // Powers of two may not divide the cluster, but the backbone can run on a subset of devices.
    let is_allowed = |degree: &u32| devices.is_multiple_of(*degree) || degree.is_power_of_two();
    let context = (1..=devices.min(MAX_CONTEXT)).filter(is_allowed).collect();
    let expert = (1..=devices).filter(cuts).collect();
    (with(context, scenario.training.context_parallel), with(expert, scenario.training.expert_parallel))
}

/// Module properties for the layout rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleShape {
    pub name: String,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    /// Heads that tensor parallelism distributes, with their names.
    pub sharded: Vec<(&'static str, u32)>,
    pub experts: Option<u32>,
}

impl ModuleShape {
    fn from_module(module: &Module) -> Self {
        let Module { layers, heads, kv_heads, .. } = *module;
        Self {
            name: module.name.clone(),
            layers,
            heads,
            kv_heads,
            sharded: module.sharded_heads().collect(),
            experts: module.moe.map(|moe| moe.experts),
        }
    }
}

/// Input of the layout enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    pub slots: Vec<ModuleShape>,
    /// Module that defines the microbatches.
    pub main: usize,
    pub devices: u32,
    pub devices_per_node: u32,
    /// Possible context- and expert-parallel degrees of the main module.
    pub contexts: Vec<u32>,
    pub experts: Vec<u32>,
    /// Context-parallel exchange for attention.
    pub exchange: ContextExchange,
    /// Requested degrees of the main module.
    pub request: LayoutRequest,
}

impl Ground {
    pub(crate) fn from_scenario(scenario: &Scenario) -> Self {
        let (contexts, experts) = degrees(scenario);
        Self {
            slots: scenario.model.modules.iter().map(ModuleShape::from_module).collect(),
            main: anchor(&scenario.model),
            devices: scenario.cluster.devices(),
            devices_per_node: scenario.cluster.devices_per_node,
            contexts,
            experts,
            exchange: scenario.training.context_exchange,
            request: scenario.layout,
        }
    }
}

/// Enumerates the points of a mode. If there are more than the limit, the first ones.
pub fn space(ground: &Ground, mode: Mode, sequences: u32) -> Space {
    space_by(ground, mode, sequences, &mut |_| 0.0)
}

/// Enumerates the points of a mode. If there are more than the limit, those with the lowest scores.
pub(crate) fn space_by(ground: &Ground, mode: Mode, sequences: u32, score: &mut dyn FnMut(&Point) -> f64) -> Space {
    let mut space = Enumeration { ground, mode, sequences, score, scored: Vec::new(), space: Space::default() }.run();
    // With PP 1 both modes are equal. A chain has undivided microbatches, so the main module must
    // be the last module.
    if mode == Mode::Homogeneous && ground.slots.len() > 1 && ground.main + 1 == ground.slots.len() {
        let deep = |point: &&Point| point.modules[0].pipeline > 1;
        let chains: Vec<Point> =
            space.points.iter().filter(deep).map(|point| Point { mode: Mode::Chain, ..point.clone() }).collect();
        space.points.extend(chains);
    }
    space
}

/// Enumeration of the points of a mode.
struct Enumeration<'a> {
    ground: &'a Ground,
    mode: Mode,
    sequences: u32,
    score: &'a mut dyn FnMut(&Point) -> f64,
    /// Valid points and their scores.
    scored: Vec<(f64, Point)>,
    space: Space,
}

impl Enumeration<'_> {
    fn run(mut self) -> Space {
        let (ground, mode) = (self.ground, self.mode);
        let (count, main, devices) = (ground.slots.len() as u32, ground.main as u32, ground.devices);
        if count < 2 && mode != Mode::Homogeneous {
            return self.space;
        }
        let runs: Vec<Range<u32>> = match mode {
            Mode::Homogeneous | Mode::Chain => std::iter::once(0..count).collect(),
            Mode::Colocated => (0..count).map(|module| module..module + 1).collect(),
            // Encoders share a layout.
            Mode::NonColocated => {
                let sides = [0..main, main..main + 1, main + 1..count];
                sides.into_iter().filter(|side| !side.is_empty()).collect()
            }
        };
        let main_run = runs.iter().position(|run| run.contains(&main)).unwrap_or(0);
        for shares in shares(mode, runs.len(), (devices, ground.devices_per_node), main_run) {
            let options: Vec<Vec<ModuleLayout>> =
                runs.iter().zip(&shares).map(|(run, share)| options(ground, mode, run, share)).collect();
            let mut selected = vec![0; runs.len()];
            loop {
                if options.iter().all(|layouts| !layouts.is_empty()) {
                    let modules: Vec<ModuleLayout> =
                        options.iter().zip(&selected).map(|(layouts, &index)| layouts[index].clone()).collect();
                    self.add(modules);
                }
                // Advance to the next combination.
                let Some(turned) = (0..runs.len()).find(|&run| selected[run] + 1 < options[run].len()) else { break };
                selected[turned] += 1;
                selected[..turned].fill(0);
            }
        }
        self.select();
        self.space.points = self.scored.into_iter().map(|(_, point)| point).collect();
        self.space
    }

    /// Adds one point per microbatch size for the given layouts, or the violated rule.
    fn add(&mut self, mut modules: Vec<ModuleLayout>) {
        let (ground, mode, sequences) = (self.ground, self.mode, self.sequences);
        let alignment = if mode == Mode::Colocated { set_copies_per_rank(&mut modules) } else { Ok(()) };
        let point = |modules: Vec<ModuleLayout>, microbatch| Point { mode, modules, microbatch };
        let broken = alignment.err().or_else(|| broken_rule(ground, mode, &modules));
        if let Some(rule) = broken {
            self.space.illegal.push((point(modules, ground.request.microbatch.unwrap_or(1)), rule));
            return;
        }
        let copies =
            modules.iter().find(|layout| layout.modules().contains(&ground.main)).map_or(1, |layout| layout.data);
        let max_size = (sequences / copies).min(MAX_MICROBATCH);
        let sizes = match ground.request.microbatch {
            Some(size) => vec![size],
            None if max_size == 0 => Vec::new(),
            None => (0..=max_size.ilog2()).map(|power| 1 << power).collect(),
        };
        if sizes.is_empty() || sizes.iter().all(|&size| sequences.div_ceil(size) < copies) {
            let rule = format!("{sequences} sequences give fewer microbatches than copies of the backbone");
            self.space.illegal.push((point(modules, 1), rule));
            return;
        }
        for size in sizes.into_iter().filter(|&size| sequences.div_ceil(size) >= copies) {
            let point = point(modules.clone(), size);
            self.scored.push(((self.score)(&point), point));
        }
        if self.scored.len() >= 2 * MAX_POINTS {
            self.select();
        }
    }

    /// Removes the points with the highest scores above the limit.
    fn select(&mut self) {
        if self.scored.len() > MAX_POINTS {
            self.space.left_out += (self.scored.len() - MAX_POINTS) as u64;
            self.scored.sort_by(|a, b| a.0.total_cmp(&b.0));
            self.scored.truncate(MAX_POINTS);
        }
    }
}

/// Enumerates device ranges for the module runs: all devices, or consecutive disjoint ranges with
/// the main module's range at the start.
fn shares(mode: Mode, runs: usize, (devices, per_node): (u32, u32), main: usize) -> Vec<Vec<Range<u32>>> {
    if mode != Mode::NonColocated {
        return vec![vec![0..devices; runs]];
    }
    if (devices as usize) < runs {
        return Vec::new();
    }
    let others = runs - 1;
    let takes = takes(devices, others);
    let mut all = Vec::new();
    let mut selected = vec![0; others];
    loop {
        let taken: Vec<u32> = selected.iter().map(|&index| takes[index]).collect();
        let sum: u32 = taken.iter().sum();
        if sum < devices {
            let left = devices - sum;
            // Few degrees divide an odd number of devices, so the main module can leave devices idle.
            let mut sizes = vec![left, left / per_node * per_node, 1 << left.ilog2()];
            sizes.retain(|&size| size > 0);
            sizes.sort_unstable();
            sizes.dedup();
            for main_size in sizes {
                let mut next = main_size;
                let mut others = taken.iter();
                let share = |run: usize| {
                    if run == main {
                        return 0..main_size;
                    }
                    let first = next;
                    next += others.next().copied().unwrap_or(0);
                    first..next
                };
                all.push((0..runs).map(share).collect());
            }
        }
        let Some(turned) = (0..others).find(|&run| selected[run] + 1 < takes.len()) else { break };
        selected[turned] += 1;
        selected[..turned].fill(0);
    }
    all
}

/// Returns the possible device counts of each of `others` ranges beside that of the main module: every multiple of
/// a step, and powers of two.
fn takes(devices: u32, others: usize) -> Vec<u32> {
    let steps = if others > 1 { STEPS_OF_TWO } else { STEPS_OF_ONE };
    let step = devices.div_ceil(steps);
    let mut takes: Vec<u32> = (step..devices).step_by(step as usize).collect();
    takes.extend((0..=devices.ilog2()).map(|power| 1 << power).filter(|&take| take < devices));
    takes.sort_unstable();
    takes.dedup();
    takes
}

/// Enumerates layouts for a module run on a device range.
fn options(ground: &Ground, mode: Mode, run: &Range<u32>, devices: &Range<u32>) -> Vec<ModuleLayout> {
    let size = devices.end - devices.start;
    let (request, main) = (ground.request, run.contains(&(ground.main as u32)));
    // Encoder inputs have bounded length, so encoders use CP only in a shared layout.
    let contexts: &[u32] = if main { &ground.contexts } else { &[1] };
    let has_experts = ground.slots[run.start as usize..run.end as usize].iter().any(|slot| slot.experts.is_some());
    let experts: &[u32] = if has_experts { &ground.experts } else { &[1] };
    let fixed = |requested: Option<u32>, open: Vec<u32>| requested.filter(|_| main).map_or(open, |degree| vec![degree]);
    let divisors = |number: u32| (1..=number).filter(|degree| number.is_multiple_of(*degree)).collect::<Vec<u32>>();
    let mut options = Vec::new();
    for tensor in fixed(request.tensor, divisors(ground.devices_per_node)) {
        for &context in contexts {
            for pipeline in fixed(request.pipeline, divisors(size)) {
                let product = u64::from(tensor) * u64::from(context) * u64::from(pipeline);
                if product > u64::from(size) || !u64::from(size).is_multiple_of(product) {
                    continue;
                }
                // An encoder colocated with a pipelined backbone has no pipeline; every rank
                // contains all layers.
                if !main && mode == Mode::Colocated && pipeline > 1 {
                    continue;
                }
                let data = size / product as u32;
                for &expert in experts {
                    options.push(ModuleLayout {
                        first: run.start,
                        end: run.end,
                        tensor,
                        context,
                        pipeline,
                        data,
                        expert,
                        first_device: devices.start,
                        copies_per_rank: 1,
                    });
                }
            }
        }
    }
    options
}

/// Sets the number of copies per rank so that all ranks use equal device blocks.
fn set_copies_per_rank(modules: &mut [ModuleLayout]) -> Result<(), String> {
    let max_size = modules.iter().map(ModuleLayout::rank_size).max().unwrap_or(1);
    for layout in modules {
        let size = layout.rank_size();
        if !max_size.is_multiple_of(size) || !layout.data.is_multiple_of(max_size / size) {
            return Err("the ranks of colocated modules overlap only partly".to_owned());
        }
        layout.copies_per_rank = max_size / size;
    }
    Ok(())
}

/// Returns the violated rule. The text contains no degrees, so that equal rejections can be
/// counted.
fn broken_rule(ground: &Ground, mode: Mode, modules: &[ModuleLayout]) -> Option<String> {
    for layout in modules {
        for slot in &ground.slots[layout.modules()] {
            if let Some(rule) = indivisible(layout, slot, ground.exchange) {
                return Some(rule);
            }
        }
        if !(layout.data * layout.context).is_multiple_of(layout.expert) {
            return Some("EP does not divide DP x CP".to_owned());
        }
        if layout.tensor > 1 && !(layout.first_device % ground.devices_per_node).is_multiple_of(layout.tensor) {
            return Some("a tensor-parallel group would cross nodes".to_owned());
        }
    }
    if modules.iter().any(|layout| layout.pipelines() * layout.pipeline > MAX_RANKS) {
        return Some(format!("more than {MAX_RANKS} ranks"));
    }
    let backbone = modules.iter().find(|layout| layout.modules().contains(&ground.main))?;
    // On disjoint devices, the instances of a wave are divided among all copies of a module.
    if matches!(mode, Mode::Homogeneous | Mode::NonColocated) {
        return None;
    }
    for layout in modules.iter().filter(|layout| *layout != backbone) {
        let (a, b) = (layout.data.max(backbone.data), layout.data.min(backbone.data));
        if !a.is_multiple_of(b) {
            let name = &ground.slots[layout.first as usize].name;
            return Some(format!("the copies of {name} and of the backbone do not divide each other's batches"));
        }
    }
    let same = |layout: &ModuleLayout| {
        (layout.tensor, layout.context, layout.pipeline) == (backbone.tensor, backbone.context, backbone.pipeline)
    };
    (mode == Mode::Colocated && modules.iter().all(same))
        .then(|| "all modules have the same layout: homogeneous".to_owned())
}

fn indivisible(layout: &ModuleLayout, slot: &ModuleShape, exchange: ContextExchange) -> Option<String> {
    let ModuleShape { name, layers, .. } = slot;
    for (head_kind, count) in &slot.sharded {
        if count % layout.tensor != 0 {
            return Some(format!("TP does not divide the {count} {head_kind} of {name}"));
        }
    }
    let trades = exchange == ContextExchange::AllToAll;
    if trades && !heads_support_all_to_all((slot.heads, slot.kv_heads), layout.tensor, layout.context) {
        return Some(format!("CP all-to-all cannot distribute the heads of {name} over TP"));
    }
    if *layers < layout.pipeline {
        return Some(format!("PP exceeds the {layers} layers of {name}"));
    }
    let experts = slot.experts.filter(|experts| experts % layout.expert != 0);
    experts.map(|experts| format!("EP does not divide the {experts} experts of {name}"))
}
