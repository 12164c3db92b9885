//! Which layouts of modules there are to look at, and which rules exclude one before it costs anything.

use std::ops::Range;

use crate::model::{Model, Module, ModuleRole, heads_trade};
use crate::plan::ModuleLayout;
use crate::scenario::{PlannerKind, Scenario};
use crate::training::{ContextExchange, LayoutRequest};

/// Largest context-parallel degree that is looked at: eight nodes of eight hold one sequence.
const MOST_CONTEXT: u32 = 64;
/// Most sequences of a microbatch that are looked at.
const LARGEST_MICROBATCH: u32 = 16;
/// Most ranks that are simulated one by one: the order of all of them is found by running it.
const MOST_RANKS: u32 = 1024;
/// Most pairs of layouts that are looked at; what is left out is counted.
const MOST_POINTS: usize = 60_000;

/// How modules stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mode {
    /// One layout for all modules, each cut by itself.
    Homogeneous,
    /// One layout for all modules, all layers in one chain.
    Chain,
    /// Layouts of their own on the same devices.
    Colocated,
    /// Layouts of their own on devices of their own.
    Apart,
}

impl Mode {
    /// That of a planner.
    pub(crate) const fn of(kind: PlannerKind) -> Self {
        match kind {
            PlannerKind::HeterogeneousColocated => Self::Colocated,
            PlannerKind::HeterogeneousApart => Self::Apart,
            _ => Self::Homogeneous,
        }
    }
}

/// Layouts of all modules and the sequences of a microbatch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub mode: Mode,
    /// In the order of the modules.
    pub modules: Vec<ModuleLayout>,
    /// Sequences of a microbatch of one copy of the backbone.
    pub microbatch: u32,
}

/// What is looked at.
#[derive(Debug, Default)]
pub(crate) struct Space {
    pub points: Vec<Point>,
    /// Points that break a rule, and the rule.
    pub illegal: Vec<(Point, String)>,
    /// Points beyond the most that are looked at.
    pub left_out: u64,
}

/// The module whose microbatches set the pace: the backbone, else the last.
pub(crate) fn anchor(model: &Model) -> usize {
    let backbone = model.modules.iter().position(|module| module.role == ModuleRole::Backbone);
    backbone.unwrap_or(model.modules.len() - 1)
}

/// Context- and expert-parallel degrees that points may have, for prices.
pub(crate) fn degrees(scenario: &Scenario) -> (Vec<u32>, Vec<u32>) {
    let experts: Vec<u32> =
        scenario.model.modules.iter().filter_map(|module| module.moe).map(|moe| moe.experts).collect();
    let devices = scenario.cluster.devices();
    let with = |mut list: Vec<u32>, own: u32| {
        if !list.contains(&own) {
            list.push(own);
        }
        list
    };
    let cuts = |degree: &u32| *degree == 1 || experts.iter().any(|experts| experts.is_multiple_of(*degree));
    // Powers of two also where they do not divide the cluster: the backbone may stand on a part of it.
    let stands = |degree: &u32| devices.is_multiple_of(*degree) || degree.is_power_of_two();
    let context = (1..=devices.min(MOST_CONTEXT)).filter(stands).collect();
    let expert = (1..=devices).filter(cuts).collect();
    (with(context, scenario.training.context_parallel), with(expert, scenario.training.expert_parallel))
}

/// What rules need to know of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub name: String,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub experts: Option<u32>,
}

impl Slot {
    fn of(module: &Module) -> Self {
        let Module { layers, heads, kv_heads, .. } = *module;
        Self { name: module.name.clone(), layers, heads, kv_heads, experts: module.moe.map(|moe| moe.experts) }
    }
}

/// What layouts are laid out on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ground {
    pub slots: Vec<Slot>,
    /// The module whose microbatches set the pace.
    pub main: usize,
    pub devices: u32,
    pub devices_per_node: u32,
    /// Context- and expert-parallel degrees that the anchor may have.
    pub contexts: Vec<u32>,
    pub experts: Vec<u32>,
    /// How context-parallel groups exchange what attention needs.
    pub exchange: ContextExchange,
    /// Degrees of the anchor that are fixed.
    pub request: LayoutRequest,
}

impl Ground {
    /// That of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let (contexts, experts) = degrees(scenario);
        Self {
            slots: scenario.model.modules.iter().map(Slot::of).collect(),
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

/// Every point of a mode.
pub(crate) fn space(ground: &Ground, mode: Mode, sequences: u32) -> Space {
    let mut space = space_of(ground, mode, sequences);
    // On one rank both are the same. Microbatches go whole through a chain, so its last module sets the pace.
    if mode == Mode::Homogeneous && ground.slots.len() > 1 && ground.main + 1 == ground.slots.len() {
        let deep = |point: &&Point| point.modules[0].pipeline > 1;
        let chains: Vec<Point> =
            space.points.iter().filter(deep).map(|point| Point { mode: Mode::Chain, ..point.clone() }).collect();
        space.points.extend(chains);
    }
    space
}

fn space_of(ground: &Ground, mode: Mode, sequences: u32) -> Space {
    let (count, devices) = (ground.slots.len() as u32, ground.devices);
    let main = ground.main as u32;
    let mut space = Space::default();
    if count < 2 && mode != Mode::Homogeneous {
        return space;
    }
    let runs: Vec<Range<u32>> = match mode {
        Mode::Homogeneous | Mode::Chain => std::iter::once(0..count).collect(),
        Mode::Colocated => (0..count).map(|module| module..module + 1).collect(),
        // Encoders stand together.
        Mode::Apart => {
            let sides = [0..main, main..main + 1, main + 1..count];
            sides.into_iter().filter(|side| !side.is_empty()).collect()
        }
    };
    for shares in shares(mode, runs.len(), devices, runs.iter().position(|run| run.contains(&main)).unwrap_or(0)) {
        let options: Vec<Vec<ModuleLayout>> =
            runs.iter().zip(&shares).map(|(run, share)| options(ground, mode, run, share)).collect();
        let mut chosen = vec![0; runs.len()];
        loop {
            if options.iter().all(|of| !of.is_empty()) {
                let modules: Vec<ModuleLayout> =
                    options.iter().zip(&chosen).map(|(of, &place)| of[place].clone()).collect();
                space.add(ground, mode, modules, sequences);
            }
            // The next combination.
            let Some(turned) = (0..runs.len()).find(|&run| chosen[run] + 1 < options[run].len()) else { break };
            chosen[turned] += 1;
            chosen[..turned].fill(0);
        }
    }
    space
}

/// Devices of each run: the same for all, or shares that follow each other, the anchor's first.
fn shares(mode: Mode, runs: usize, devices: u32, main: usize) -> Vec<Vec<Range<u32>>> {
    if mode != Mode::Apart {
        return vec![vec![0..devices; runs]];
    }
    // What the others take: powers of two, and whole parts of the cluster.
    let mut takes: Vec<u32> = (0..=devices.ilog2()).map(|power| 1 << power).collect();
    takes.extend((1..8).map(|eighths| devices * eighths / 8));
    takes.retain(|&take| take > 0 && take < devices);
    takes.sort_unstable();
    takes.dedup();
    let mut all = Vec::new();
    let others = runs - 1;
    let mut chosen = vec![0; others];
    loop {
        let taken: Vec<u32> = chosen.iter().map(|&place| takes[place]).collect();
        let sum: u32 = taken.iter().sum();
        if sum < devices {
            let left = devices - sum;
            let whole = 1 << left.ilog2();
            for own in if whole == left { vec![left] } else { vec![left, whole] } {
                let mut next = own;
                let mut others = taken.iter();
                let share = |run: usize| {
                    if run == main {
                        return 0..own;
                    }
                    let first = next;
                    next += others.next().copied().unwrap_or(0);
                    first..next
                };
                all.push((0..runs).map(share).collect());
            }
        }
        let Some(turned) = (0..others).find(|&run| chosen[run] + 1 < takes.len()) else { break };
        chosen[turned] += 1;
        chosen[..turned].fill(0);
    }
    all
}

/// Layouts of some modules that fill some devices.
fn options(ground: &Ground, mode: Mode, run: &Range<u32>, devices: &Range<u32>) -> Vec<ModuleLayout> {
    let size = devices.end - devices.start;
    let (request, main) = (ground.request, run.contains(&(ground.main as u32)));
    // Inputs of encoders are bounded: their sequences are cut only where all modules have one layout.
    let contexts: &[u32] = if main { &ground.contexts } else { &[1] };
    let has_experts = ground.slots[run.start as usize..run.end as usize].iter().any(|slot| slot.experts.is_some());
    let experts: &[u32] = if has_experts { &ground.experts } else { &[1] };
    let fixed = |asked: Option<u32>, open: Vec<u32>| asked.filter(|_| main).map_or(open, |degree| vec![degree]);
    let divisors = |of: u32| (1..=of).filter(|degree| of.is_multiple_of(*degree)).collect::<Vec<u32>>();
    let mut options = Vec::new();
    for tensor in fixed(request.tensor, divisors(ground.devices_per_node)) {
        for &context in contexts {
            for pipeline in fixed(request.pipeline, divisors(size)) {
                let whole = u64::from(tensor) * u64::from(context) * u64::from(pipeline);
                if whole > u64::from(size) || !u64::from(size).is_multiple_of(whole) {
                    continue;
                }
                // Encoders under a pipeline stand whole on each of its ranks.
                if !main && mode == Mode::Colocated && pipeline > 1 {
                    continue;
                }
                let data = size / whole as u32;
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
                        beside: 1,
                    });
                }
            }
        }
    }
    options
}

impl Space {
    /// Adds the points of some layouts, one for every size of microbatches, or the rule that they break.
    fn add(&mut self, ground: &Ground, mode: Mode, mut modules: Vec<ModuleLayout>, sequences: u32) {
        let standing = if mode == Mode::Colocated { stand_beside(&mut modules) } else { Ok(()) };
        let point = |modules: Vec<ModuleLayout>, microbatch| Point { mode, modules, microbatch };
        let broken = standing.err().or_else(|| broken_rule(ground, mode, &modules));
        if let Some(rule) = broken {
            self.illegal.push((point(modules, ground.request.microbatch.unwrap_or(1)), rule));
            return;
        }
        let copies =
            modules.iter().find(|layout| layout.modules().contains(&ground.main)).map_or(1, |layout| layout.data);
        let most = (sequences / copies).min(LARGEST_MICROBATCH);
        let sizes = match ground.request.microbatch {
            Some(size) => vec![size],
            None if most == 0 => Vec::new(),
            None => (0..=most.ilog2()).map(|power| 1 << power).collect(),
        };
        if sizes.is_empty() || sizes.iter().all(|&size| sequences.div_ceil(size) < copies) {
            let rule = format!("{sequences} sequences give fewer microbatches than copies of the backbone");
            self.illegal.push((point(modules, 1), rule));
            return;
        }
        for size in sizes.into_iter().filter(|&size| sequences.div_ceil(size) >= copies) {
            if self.points.len() < MOST_POINTS {
                self.points.push(point(modules.clone(), size));
            } else {
                self.left_out += 1;
            }
        }
    }
}

/// Says how many copies stand side by side so that all ranks cover each other wholly.
fn stand_beside(modules: &mut [ModuleLayout]) -> Result<(), String> {
    let largest = modules.iter().map(ModuleLayout::rank_size).max().unwrap_or(1);
    for layout in modules {
        let size = layout.rank_size();
        if !largest.is_multiple_of(size) || !layout.data.is_multiple_of(largest / size) {
            return Err("the ranks of colocated modules overlap only partly".to_owned());
        }
        layout.beside = largest / size;
    }
    Ok(())
}

/// The rule that layouts break, in words that do not name their degrees, so that they can be counted.
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
    if modules.iter().any(|layout| layout.pipelines() * layout.pipeline > MOST_RANKS) {
        return Some(format!("more than {MOST_RANKS} ranks"));
    }
    let backbone = modules.iter().find(|layout| layout.modules().contains(&ground.main))?;
    if mode == Mode::Homogeneous {
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

fn indivisible(layout: &ModuleLayout, slot: &Slot, exchange: ContextExchange) -> Option<String> {
    let Slot { name, layers, .. } = slot;
    for (what, count) in [("heads", slot.heads), ("key-value heads", slot.kv_heads)] {
        if count % layout.tensor != 0 {
            return Some(format!("TP does not divide the {count} {what} of {name}"));
        }
    }
    let trades = exchange == ContextExchange::AllToAll;
    if trades && !heads_trade((slot.heads, slot.kv_heads), layout.tensor, layout.context) {
        return Some(format!("CP all-to-all cannot distribute the heads of {name} over TP"));
    }
    if *layers < layout.pipeline {
        return Some(format!("PP exceeds the {layers} layers of {name}"));
    }
    let experts = slot.experts.filter(|experts| experts % layout.expert != 0);
    experts.map(|experts| format!("EP does not divide the {experts} experts of {name}"))
}
