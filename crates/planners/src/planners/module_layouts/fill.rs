//! Microbatches, parts and order of actions for a batch on module copies, in both placement modes
//! (arXiv 2605.27678).

use std::ops::Range;

use super::space::{Mode, Point, anchor};
use crate::planners::infeasible::Infeasibility;
use crate::planners::layout_search::Composition;
use crate::planners::layouts::MAX_CELLS;
use crate::planners::module_layouts::module_costs;
use planscope_core::action::Schedule;
use planscope_core::model::{Model, ModuleRole};
use planscope_core::stage_graph::Placement;
use planscope_core::units::{Bytes, Nanos};
use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_cost::cost::load::Instances;
use planscope_cost::cost::partition::LayerRange;
use planscope_cost::cost::pipeline::Cell;
use planscope_cost::cost::{MicrobatchLoad, Partition, PipelineCosts, Pricing};
use planscope_pipeline::schedule::{Turn, multi_module};
use planscope_pipeline::simulate::{Execution, StepEnd, execute, peak_memory_over};
use planscope_plan::compare;
use planscope_plan::plan::Arrangement;
use planscope_plan::plan::{ModuleLayout, Part, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// Order of actions for colocated modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Multi-module 1F1B. On shared ranks, encoders run between backbone stages.
    Interleaved,
    /// Encoder forwards of `n` waves, then the backbone pipeline, then encoder backwards.
    Waves(u32),
}

/// Distribution of a backbone copy's microbatches across the encoder pipelines that serve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dealing {
    /// Pipelines run equal parts of every microbatch.
    Shared,
    /// Pipelines run complete microbatches, round-robin. This improves the balance but extends the
    /// warm-up.
    InTurn,
    /// All pipelines run equal parts of every wave, whatever their number (DFLOP Sec. 4).
    Wave,
}

/// Assigns layers to the stages of a point for equal time.
pub(crate) fn partition(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    point: &Point,
    loads: &[MicrobatchLoad],
) -> Result<Partition, Infeasibility> {
    let mut stages = Vec::new();
    for layout in &point.modules {
        let prices = prices(pricing, layout)?;
        let table = prices.table(layout.tensor, loads);
        if point.mode == Mode::Chain {
            return Partition::balanced(&scenario.model, &table.weights(layout.pipeline), layout.pipeline)
                .ok_or_else(|| Infeasibility::rule("more stages than layers"));
        }
        let all: Vec<usize> = (0..loads.len()).collect();
        let weights: Vec<_> = layout.modules().map(|module| table.mean_weight(module, &all, layout.pipeline)).collect();
        let submodel = Model { name: String::new(), modules: scenario.model.modules[layout.modules()].to_vec() };
        let cut = Partition::by_module(&submodel, &weights, layout.pipeline, &vec![1; submodel.modules.len()])
            .ok_or_else(|| Infeasibility::rule("a module has fewer layers than stages"))?;
        let moved = |ranges: Vec<LayerRange>| -> Vec<LayerRange> {
            let offset = layout.first as usize;
            ranges.into_iter().map(|range| LayerRange { module: range.module + offset, ..range }).collect()
        };
        stages.extend(cut.stages.into_iter().map(moved));
    }
    Ok(Partition { stages, placement: Placement::Cyclic })
}

/// Returns the pricing at the CP and EP degrees of a layout.
pub(crate) fn prices<'a, 'b>(
    pricing: &'b Pricing<'a>,
    layout: &ModuleLayout,
) -> Result<&'b Pricing<'a>, Infeasibility> {
    pricing
        .at_degrees(layout.context, layout.expert)
        .ok_or_else(|| Infeasibility::rule("no prices for such context- and expert-parallel degrees"))
}

/// Groups sequences into microbatches in data-loader order. Backbone copies on the same rank share
/// a microbatch.
pub(crate) fn microbatches(point: &Point, main: usize, batch: &PackedBatch) -> Vec<Vec<u32>> {
    let all: Vec<u32> = (0..batch.sequences.len() as u32).collect();
    all.chunks(sequences_per_microbatch(point, main)).map(<[u32]>::to_vec).collect()
}

/// Returns the sequences of a microbatch, with those of all backbone copies on its rank.
pub(crate) fn sequences_per_microbatch(point: &Point, main: usize) -> usize {
    let backbone = point.modules.iter().find(|layout| layout.modules().contains(&main));
    (point.microbatch * backbone.map_or(1, |layout| layout.copies_per_rank)) as usize
}

/// Plan, order, time and memory of a batch.
pub(crate) struct Filled {
    pub plan: ReplicaPlan,
    pub order: Order,
    pub dealing: Dealing,
    pub time: Nanos,
    pub peak: Bytes,
    /// Idle fraction of the devices in use.
    pub bubble: f64,
    pub exposed: f64,
}

/// Returns the pipelines that serve a backbone copy: those on the same devices if colocated,
/// otherwise an equal fraction of all.
fn serving(point: &Point, layout: &ModuleLayout, backbone: &ModuleLayout, copy: u32) -> Vec<u32> {
    let pipelines = layout.pipelines();
    if std::ptr::eq(layout, backbone) {
        return vec![copy];
    }
    if point.mode == Mode::NonColocated {
        let copies = backbone.pipelines();
        return if pipelines >= copies {
            (copy * (pipelines / copies)..(copy + 1) * (pipelines / copies)).collect()
        } else {
            vec![copy / (copies / pipelines)]
        };
    }
    let ranks = |layout: &ModuleLayout, copy: u32| -> Vec<Range<u32>> {
        (0..layout.pipeline).map(|rank| layout.rank_device_range(copy, rank)).collect()
    };
    let mine = ranks(backbone, copy);
    let shares = |line: &u32| ranks(layout, *line).iter().any(|devices| mine.contains(devices));
    (0..pipelines).filter(shares).collect()
}

/// Splits all microbatches into parts: the pipelines that serve the microbatch's copy share the
/// instances of each module.
fn parts(scenario: &Scenario, point: &Point, contents: &[MicrobatchContents], dealing: Dealing) -> Vec<Part> {
    let model = &scenario.model;
    let main = anchor(model);
    let module_layout = |module: usize| point.modules.iter().find(|layout| layout.modules().contains(&module));
    let Some(backbone) = module_layout(main) else { return Vec::new() };
    let copies = backbone.pipelines();
    let lines: Vec<Vec<Vec<u32>>> = (0..model.modules.len())
        .map(|module| {
            let serving_pipelines =
                |copy| module_layout(module).map_or_else(Vec::new, |layout| serving(point, layout, backbone, copy));
            (0..copies).map(serving_pipelines).collect()
        })
        .collect();
    let counts: Vec<Vec<u32>> = contents
        .iter()
        .map(|contents| {
            let count = |module| Instances::new(contents, module, scenario.workload.packing).count();
            model.modules.iter().map(count).collect()
        })
        .collect();
    let mut parts = Vec::new();
    for (wave, members) in counts.chunks(copies as usize).enumerate() {
        for (copy, counts) in members.iter().enumerate() {
            let microbatch = (wave * copies as usize + copy) as u32;
            for (index, &count) in counts.iter().enumerate() {
                if point.mode == Mode::Chain && index != main {
                    continue;
                }
                let module = index as u32;
                let mut add = |(copy, Range { start: first, end }): (u32, Range<u32>)| {
                    parts.push(Part { microbatch, module, first, end, copy });
                };
                let serving = &lines[index][copy];
                let pieces = match dealing {
                    Dealing::Wave if index != main => {
                        let sum = |members: &[Vec<u32>]| members.iter().map(|counts| u64::from(counts[index])).sum();
                        let before: u64 = sum(&members[..copy]);
                        let own = before..before + u64::from(count);
                        let pipelines = module_layout(index).map_or(1, ModuleLayout::pipelines);
                        wave_pieces(sum(members), own, pipelines).for_each(add);
                        continue;
                    }
                    Dealing::Shared | Dealing::Wave => (serving.len() as u32).min(count).max(1),
                    Dealing::InTurn => 1,
                };
                for piece in 0..pieces {
                    let cut = |piece: u32| (u64::from(count) * u64::from(piece) / u64::from(pieces)) as u32;
                    let range = cut(piece)..cut(piece + 1);
                    if !range.is_empty() {
                        // With fewer instances than pipelines, the starting pipeline changes per wave.
                        let start = if pieces < serving.len() as u32 { wave } else { 0 };
                        add((serving[(piece as usize + start) % serving.len()], range));
                    }
                }
            }
        }
    }
    parts
}

/// Divides the `all` instances of a wave equally among the copies of a module. Returns the pieces of the microbatch
/// that has the instances `own`, relative to its first instance, with the copy.
pub(crate) fn wave_pieces(all: u64, own: Range<u64>, copies: u32) -> impl Iterator<Item = (u32, Range<u32>)> {
    let cut = move |copy: u32| {
        let at = all * u64::from(copy) / u64::from(copies);
        (at.clamp(own.start, own.end) - own.start) as u32
    };
    (0..copies).map(move |copy| (copy, cut(copy)..cut(copy + 1))).filter(|(_, range)| !range.is_empty())
}

/// Number of stages on the longest path to the end, including the stage itself, per stage of the
/// arrangement.
fn depths(model: &Model, arrangement: &Arrangement) -> Vec<u32> {
    let modules = arrangement.modules.len();
    let mut behind = vec![0_u32; modules];
    for module in (0..modules).rev() {
        let fed = (module + 1..modules).filter(|&other| model.fed_by(other).contains(&module));
        behind[module] = fed.map(|other| behind[other] + arrangement.modules[other].stages as u32).max().unwrap_or(0);
    }
    let mut depths = vec![1; arrangement.stage_rank.len()];
    for (placement, behind) in arrangement.modules.iter().zip(behind) {
        let mut copy = 0;
        while placement.copy_stages(copy).start < depths.len()
            && arrangement.cut[placement.copy_stages(copy).start] as usize == placement.cut
        {
            for (index, stage) in placement.copy_stages(copy).enumerate() {
                depths[stage] = (placement.stages - index) as u32 + behind;
            }
            copy += 1;
        }
    }
    depths
}

/// Plans a batch of consecutive sequences in the fastest dealing and order. Returns `Err` if no variant fits in memory.
pub(crate) fn fill(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    candidate: (&Point, &Partition),
    batch: &PackedBatch,
) -> Result<Filled, Infeasibility> {
    fill_composed(scenario, pricing, candidate, (batch, Composition::Consecutive))
}

/// Returns the composition whose plan is the fastest on `batch`. If the assignment is fixed, sequences are consecutive.
pub(crate) fn fastest_composition(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    candidate: (&Point, &Partition),
    batch: &PackedBatch,
) -> Composition {
    if !Composition::is_free(scenario, batch) || sequences_per_microbatch(candidate.0, anchor(&scenario.model)) == 1 {
        return Composition::Consecutive;
    }
    let time = |composition: Composition| {
        let filled = fill_composed(scenario, pricing, candidate, (batch, composition)).ok()?;
        Some((filled.time, composition))
    };
    let compositions = std::iter::once(Composition::Consecutive).chain(Composition::EQUAL);
    compositions.filter_map(time).min_by_key(|(time, _)| *time).map_or(Composition::Consecutive, |(_, fastest)| fastest)
}

/// Plans a batch in the fastest dealing and order. Returns `Err` if no variant fits in memory.
pub(crate) fn fill_composed(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    candidate: (&Point, &Partition),
    batch: (&PackedBatch, Composition),
) -> Result<Filled, Infeasibility> {
    let point = candidate.0;
    let main = anchor(&scenario.model);
    let backbone = point.modules.iter().find(|layout| layout.modules().contains(&main));
    let copies = backbone.map_or(1, ModuleLayout::pipelines);
    let (mut fastest, mut misfit) = (None::<Filled>, None);
    for &dealing in dealings(point, copies) {
        match fill_dealt(scenario, pricing, candidate, batch, dealing) {
            Ok(filled) => {
                if fastest.as_ref().is_none_or(|fastest| filled.time < fastest.time) {
                    fastest = Some(filled);
                }
            }
            Err(error) => {
                misfit.get_or_insert(error);
            }
        }
    }
    fastest.ok_or_else(|| misfit.unwrap_or_else(|| Infeasibility::rule("no order to run")))
}

/// Returns the dealings that a point can use. Pipelines serve fixed copies of the backbone if one number divides the
/// other.
fn dealings(point: &Point, copies: u32) -> &'static [Dealing] {
    let pipelines = || point.modules.iter().map(ModuleLayout::pipelines);
    if point.mode != Mode::NonColocated {
        &[Dealing::Shared]
    } else if !pipelines().all(|own| own.max(copies).is_multiple_of(own.min(copies))) {
        &[Dealing::Wave]
    } else if pipelines().all(|own| own <= copies) {
        &[Dealing::Shared, Dealing::Wave]
    } else {
        &[Dealing::Shared, Dealing::InTurn, Dealing::Wave]
    }
}

/// Splits microbatches into parts and computes costs.
fn priced(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    (point, partition): (&Point, &Partition),
    batch: &PackedBatch,
    (microbatches, dealing): (Vec<Vec<u32>>, Dealing),
) -> Result<(ReplicaPlan, PipelineCosts), Infeasibility> {
    let contents: Vec<MicrobatchContents> = microbatches.iter().map(|sequences| batch.contents(sequences)).collect();
    let parts = parts(scenario, point, &contents, dealing);
    let schedule = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
    let plan = ReplicaPlan::new(microbatches, ReplicaKind::Parts(parts), schedule);
    let layouts = (point.modules.as_slice(), partition);
    let costs =
        module_costs::costs(scenario, pricing, layouts, batch, &plan).map_err(|why| Infeasibility::rule(&why))?;
    Ok((plan, costs))
}

fn fill_dealt(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    (point, partition): (&Point, &Partition),
    (batch, composition): (&PackedBatch, Composition),
    dealing: Dealing,
) -> Result<Filled, Infeasibility> {
    let model = &scenario.model;
    let main = anchor(model);
    let order: Vec<usize> = (0..batch.sequences.len()).collect();
    let size = sequences_per_microbatch(point, main) as u32;
    let microbatches = composition.microbatches(scenario, pricing, size, batch, &order);
    let arrangement =
        Arrangement::new(&point.modules, partition, model.modules.len()).map_err(|why| Infeasibility::rule(&why))?;
    let copies = point.modules[arrangement.modules[main].layout].pipelines();
    // A microbatch passes through the stages of all layouts.
    let depth: u64 = point.modules.iter().map(|layout| u64::from(layout.pipeline)).sum();
    if depth.saturating_mul(microbatches.len() as u64) > MAX_CELLS {
        return Err(Infeasibility::rule(&format!("more than {MAX_CELLS} microbatches x stages")));
    }
    // Testing a single wave is cheap and detects nearly all infeasible points.
    if let Some(first) = microbatches.get(..copies as usize) {
        let (_, costs) = priced(scenario, pricing, (point, partition), batch, (first.to_vec(), dealing))?;
        check_parts_fit(scenario, &costs)?;
    }
    let (mut plan, costs) = priced(scenario, pricing, (point, partition), batch, (microbatches, dealing))?;
    check_parts_fit(scenario, &costs)?;
    let waves = (plan.microbatches.len() as u32).div_ceil(copies).max(1);
    let halves = std::iter::successors(Some(waves), |&waves| (waves > 1).then(|| waves.div_ceil(2)));
    let halves = halves.filter(|_| matches!(point.mode, Mode::Homogeneous | Mode::Colocated));
    let orders: Vec<Order> = std::iter::once(Order::Interleaved).chain(halves.map(Order::Waves)).collect();
    let mut deep = depths(model, &arrangement);
    if dealing == Dealing::InTurn {
        for placement in &arrangement.modules {
            // With `turns` pipelines in rotation, a microbatch takes `turns` times as long, forward
            // and backward.
            let turns = point.modules[placement.layout].pipelines() / copies;
            for depth in
                (0..point.modules[placement.layout].pipelines()).flat_map(|copy| placement.copy_stages(copy as usize))
            {
                deep[depth] += 2 * turns.saturating_sub(1);
            }
        }
    }
    let together = arrangement.synchronised(&point.modules);
    let mut best: Option<(Nanos, Bytes, Order, Schedule)> = None;
    let (mut infeasibility, mut wave_fits) = (None, false);
    for order in orders {
        // Larger waves are faster: smaller waves only add warm-up and drain phases.
        if wave_fits {
            break;
        }
        let (schedule, execution) = run(model, &costs, plan.parts(), (copies, order), (&arrangement, &deep))?;
        let (rank, peak) = peak_memory_over(&schedule, &execution, &costs);
        if peak > scenario.memory_limit() {
            infeasibility.get_or_insert_with(|| Infeasibility::activations(rank, peak));
            continue;
        }
        wave_fits = matches!(order, Order::Waves(_));
        let mut end = StepEnd::from_executions(arrangement.ranks.len(), std::iter::once(&execution));
        end.join(&together);
        let time = end.iteration_end(&costs);
        if best.as_ref().is_none_or(|(best_time, ..)| time < *best_time) {
            best = Some((time, peak, order, schedule));
        }
    }
    let Some((time, peak, order, schedule)) = best else {
        return Err(infeasibility.unwrap_or_else(|| Infeasibility::rule("no order to run")));
    };
    let mut totals = compare::IterationTotals { time, ..compare::IterationTotals::default() };
    let sizes = arrangement.sizes();
    totals.add_blocks(&schedule, &costs, &sizes, (sizes.iter().sum(), 1));
    let exposed = totals.exposed.secs() / (totals.ranks as f64 * time.secs().max(1e-12));
    plan.schedule = schedule;
    Ok(Filled { plan, order, dealing, time, peak, bubble: totals.bubble(), exposed })
}

/// Checks that every part fits next to the model states of its rank with no other part in flight.
/// All orders require this.
fn check_parts_fit(scenario: &Scenario, costs: &PipelineCosts) -> Result<(), Infeasibility> {
    let needs = |cell: &Cell| {
        let rank = costs.rank_for_stage(cell.stage);
        (costs.static_memory[rank] + costs.activation[cell.index] + costs.transient[cell.index], rank)
    };
    match costs.cells().map(|cell| needs(&cell)).max() {
        Some((max_bytes, rank)) if max_bytes > scenario.memory_limit() => {
            Err(Infeasibility::activations(rank, max_bytes))
        }
        _ => Ok(()),
    }
}

fn run(
    model: &Model,
    costs: &PipelineCosts,
    parts: &[Part],
    (copies, order): (u32, Order),
    (arrangement, deep): (&Arrangement, &[u32]),
) -> Result<(Schedule, Execution), Infeasibility> {
    let encodes = |module: u32| {
        matches!(model.modules[module as usize].role, ModuleRole::VisionEncoder | ModuleRole::AudioEncoder)
    };
    let turn = |part: &Part| {
        let wave = part.microbatch / copies;
        let phases = match order {
            Order::Interleaved => [0, 0],
            Order::Waves(size) if encodes(part.module) => [3 * (wave / size), 3 * (wave / size) + 2],
            Order::Waves(size) => [3 * (wave / size) + 1; 2],
        };
        Turn { wave, phases }
    };
    let turns: Vec<Turn> = parts.iter().map(turn).collect();
    let mut depths = deep.to_vec();
    if let Order::Waves(size) = order {
        for (module, placement) in arrangement.modules.iter().enumerate() {
            if encodes(module as u32) {
                let is_module_stage = |&(_, cut): &(usize, &u32)| {
                    (placement.cut..placement.cut + placement.stages).contains(&(*cut as usize))
                };
                for (stage, _) in arrangement.cut.iter().enumerate().filter(is_module_stage) {
                    depths[stage] = depths[stage].max(size);
                }
            }
        }
    }
    let schedule = multi_module(costs, &turns, &depths);
    let execution = execute(&schedule, costs).map_err(|_| Infeasibility::deadlock())?;
    Ok((schedule, execution))
}

/// Lower bound on the time of a layout's modules for all microbatches on one rank's devices,
/// forward plus backward, in seconds.
pub(crate) fn work(
    pricing: &Pricing<'_>,
    layout: &ModuleLayout,
    loads: &[MicrobatchLoad],
) -> Result<f64, Infeasibility> {
    let table = prices(pricing, layout)?.table(layout.tensor, loads);
    Ok(table.min_time(layout.modules()))
}
