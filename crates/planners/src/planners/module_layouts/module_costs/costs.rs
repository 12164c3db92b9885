//! Costs of parts on module copies, and of transfers between modules.

use std::ops::Range;

use crate::planners::replica::Cut;
use planscope_core::stage_graph::{Flows, Path, Placement};
use planscope_core::timeline::MicrobatchShape;
use planscope_core::units::{Bytes, Nanos};
use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_cost::cost::boundary::Side;
use planscope_cost::cost::load::Instances;
use planscope_cost::cost::pipeline::NO_GAIN_PPM;
use planscope_cost::cost::{
    Crossing, LayerTable, MicrobatchLoad, ModuleLoad, Partition, PipelineCosts, Pricing, ReplicaLayout, StateMemory,
};
use planscope_plan::plan::overlap;
use planscope_plan::plan::{Arrangement, ModuleLayout};
use planscope_plan::plan::{Part, Plan, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// Computes the costs of the cluster. Ranks follow the plan's [`Arrangement`].
///
/// # Errors
/// Describes the problem: partly overlapping ranks, a part on a missing copy, or degrees without
/// cost tables.
pub(crate) fn costs(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    (layouts, partition): (&[ModuleLayout], &Partition),
    batch: &PackedBatch,
    plan: &ReplicaPlan,
) -> Result<PipelineCosts, String> {
    let arrangement = Arrangement::new(layouts, partition, scenario.model.modules.len())?;
    let work = Work::new(scenario, layouts, &arrangement, batch, plan)?;
    let flows = work.flows(&arrangement)?;
    let mut costs = empty(flows);
    costs.shapes = work.cut.loads.iter().map(|load| load.shape).collect();
    for index in 0..layouts.len() {
        work.add_layout(pricing, (index, partition), &arrangement, &mut costs)?;
    }
    for (part, crossings) in work.crossings(&arrangement).into_iter().enumerate() {
        for (input, crossing) in crossings {
            let cells = (costs.flows.microbatch_cells(input).end - 1, costs.flows.microbatch_cells(part).start);
            add_crossing(&mut costs, cells, crossing, scenario.training.overlapped_sends);
        }
    }
    Ok(costs)
}

/// Returns all transfers between different layouts as (source module, target module, crossing).
pub(crate) fn boundaries(
    scenario: &Scenario,
    (layouts, partition): (&[ModuleLayout], &Partition),
    batch: &PackedBatch,
    plan: &ReplicaPlan,
) -> Result<Vec<(usize, usize, Crossing)>, String> {
    let arrangement = Arrangement::new(layouts, partition, scenario.model.modules.len())?;
    let work = Work::new(scenario, layouts, &arrangement, batch, plan)?;
    let module = |part: usize| plan.parts()[part].module as usize;
    let part_crossings = |(part, crossings): (usize, Vec<(usize, Crossing)>)| {
        crossings.into_iter().map(move |(input, crossing)| (module(input), module(part), crossing))
    };
    Ok(work.crossings(&arrangement).into_iter().enumerate().flat_map(part_crossings).collect())
}

/// Adds a boundary transfer to the communication lane of the sending rank, or to its computation if
/// sends are not overlapped.
fn add_crossing(costs: &mut PipelineCosts, (from, to): (usize, usize), crossing: Crossing, overlapped: bool) {
    let (forward, backward) = (crossing.forward.to_nanos(), crossing.backward.to_nanos());
    if overlapped {
        costs.send_forward[from] += forward;
        costs.send_backward[to] += backward;
    } else {
        costs.forward[from] += forward;
        costs.exposed_forward[from] += forward;
        costs.input_grad[to] += backward;
        costs.exposed_backward[to] += backward;
    }
}

fn empty(flows: Flows) -> PipelineCosts {
    let (cells, ranks) = (flows.cells(), flows.ranks());
    let (times, bytes) = (|| vec![Nanos::ZERO; cells], || vec![Bytes::ZERO; cells]);
    PipelineCosts {
        forward: times(),
        input_grad: times(),
        weight_grad: times(),
        send_forward: times(),
        send_backward: times(),
        activation: bytes(),
        offloaded: bytes(),
        transient: bytes(),
        exposed_forward: times(),
        exposed_backward: times(),
        recomputed: times(),
        communication: times(),
        static_memory: vec![Bytes::ZERO; ranks],
        state: vec![StateMemory::default(); ranks],
        sync: vec![Nanos::ZERO; ranks],
        optimizer: vec![Nanos::ZERO; ranks],
        shapes: Vec::new(),
        overlapped_ppm: NO_GAIN_PPM,
        flows,
    }
}

/// Parts of a plan, including their loads and inputs.
struct Work<'a> {
    scenario: &'a Scenario,
    layouts: &'a [ModuleLayout],
    parts: &'a [Part],
    contents: Vec<MicrobatchContents>,
    cut: Cut,
}

impl<'a> Work<'a> {
    fn new(
        scenario: &'a Scenario,
        layouts: &'a [ModuleLayout],
        arrangement: &Arrangement,
        batch: &PackedBatch,
        plan: &'a ReplicaPlan,
    ) -> Result<Self, String> {
        let exists = |part: &Part| {
            let placement = arrangement.modules.get(part.module as usize);
            placement.is_some_and(|placed| part.copy < layouts[placed.layout].pipelines())
        };
        if !plan.parts().iter().all(exists) {
            return Err("a part runs on a copy that does not exist".to_owned());
        }
        let contents: Vec<MicrobatchContents> =
            plan.microbatches.iter().map(|members| batch.contents(members)).collect();
        let mut cut = Cut::new(&scenario.model, scenario.workload.packing, &contents, plan.parts());
        if arrangement.joined {
            for (load, part) in cut.loads.iter_mut().zip(plan.parts()) {
                let sequences = contents[part.microbatch as usize].sequences();
                *load = MicrobatchLoad::new(sequences, &scenario.model, scenario.workload.packing);
            }
        }
        Ok(Self { scenario, layouts, parts: plan.parts(), contents, cut })
    }

    fn layout_index(&self, arrangement: &Arrangement, part: usize) -> usize {
        arrangement.modules[self.parts[part].module as usize].layout
    }

    fn stages(&self, arrangement: &Arrangement, part: usize) -> Range<usize> {
        let Part { module, copy, .. } = self.parts[part];
        arrangement.modules[module as usize].copy_stages(copy as usize)
    }

    fn flows(&self, arrangement: &Arrangement) -> Result<Flows, String> {
        let path = |(part, inputs): (usize, &Vec<usize>)| Path {
            stages: self.stages(arrangement, part),
            inputs: inputs.clone(),
        };
        let paths: Vec<Path> = self.cut.inputs.iter().enumerate().map(path).collect();
        Flows::new(arrangement.ranks.len(), arrangement.stage_rank.clone(), &paths).map_err(|error| error.to_string())
    }

    /// Adds the costs for all modules in a layout. Pipelines are priced individually at the
    /// layout's degrees.
    fn add_layout(
        &self,
        pricing: &Pricing<'_>,
        (index, partition): (usize, &Partition),
        arrangement: &Arrangement,
        costs: &mut PipelineCosts,
    ) -> Result<(), String> {
        let layout = &self.layouts[index];
        let layout_parts: Vec<usize> =
            (0..self.parts.len()).filter(|&part| self.layout_index(arrangement, part) == index).collect();
        let pricing = pricing
            .at_degrees(layout.context, layout.expert)
            .ok_or_else(|| format!("no prices for CP {} and EP {}", layout.context, layout.expert))?;
        let loads = self.shares(pricing, layout, &layout_parts);
        let table = pricing.table(layout.tensor, &loads).from_device(layout.first_device);
        let standings = &arrangement.modules[layout.modules()];
        let each = if arrangement.joined { &standings[..1] } else { standings };
        let cut = each.iter().flat_map(|placement| placement.cut..placement.cut + placement.stages);
        let local = Partition {
            stages: cut.map(|stage| partition.stages[stage].clone()).collect(),
            placement: Placement::Cyclic,
        };
        let first = standings.first().map_or(0, |first_placement| first_placement.cut);
        for copy in 0..layout.pipelines() {
            let mine: Vec<usize> = (0..layout_parts.len())
                .filter(|&local_part| self.parts[layout_parts[local_part]].copy == copy)
                .collect();
            let path = |&local_part: &usize| {
                let part = layout_parts[local_part];
                let part_placement = arrangement.modules[self.parts[part].module as usize];
                let inside = |input: &usize| mine.iter().position(|&other| layout_parts[other] == *input);
                Path {
                    stages: part_placement.cut - first..part_placement.cut - first + part_placement.stages,
                    inputs: self.cut.inputs[part].iter().filter_map(inside).collect(),
                }
            };
            let paths: Vec<Path> = mine.iter().map(path).collect();
            let placed = Placement::Cyclic.stage_ranks(local.stages.len(), layout.pipeline as usize);
            let flows = Flows::new(layout.pipeline as usize, placed, &paths).map_err(|error| error.to_string())?;
            let position =
                ReplicaLayout { pipeline: layout.pipeline, data: layout.data, replica: copy * layout.copies_per_rank };
            let copy_costs = table.pipeline_over(&local, position, flows, &mine, &[]);
            for (item, &local_index) in mine.iter().enumerate() {
                for (from, to) in
                    copy_costs.flows.microbatch_cells(item).zip(costs.flows.microbatch_cells(layout_parts[local_index]))
                {
                    costs.copy_cell(to, &copy_costs, from);
                }
            }
            for rank in 0..layout.pipeline {
                let to = arrangement.rank(index, layout.pipeline, copy, rank) as usize;
                let from = rank as usize;
                costs.static_memory[to] += copy_costs.static_memory[from];
                let (state, added) = (&mut costs.state[to], copy_costs.state[from]);
                state.weights += added.weights;
                state.gradients += added.gradients;
                state.optimizer += added.optimizer;
                state.host += added.host;
                costs.sync[to] += copy_costs.sync[from];
                costs.optimizer[to] += copy_costs.optimizer[from];
            }
        }
        Ok(())
    }

    /// Loads of the parts in a layout. If several copies on a rank split a part, the load of the
    /// slowest split.
    fn shares(&self, pricing: &Pricing<'_>, layout: &ModuleLayout, layout_parts: &[usize]) -> Vec<MicrobatchLoad> {
        if layout.copies_per_rank == 1 {
            return layout_parts.iter().map(|&part| self.cut.loads[part].clone()).collect();
        }
        let mut shares: Vec<MicrobatchLoad> = Vec::new();
        let mut first = Vec::with_capacity(layout_parts.len() + 1);
        for &part in layout_parts {
            first.push(shares.len());
            let Part { microbatch, module, first, end, .. } = self.parts[part];
            let module = module as usize;
            let contents = &self.contents[microbatch as usize];
            let instances =
                Instances::new(contents, &self.scenario.model.modules[module], self.scenario.workload.packing);
            let full_load = &self.cut.loads[part];
            let mut known: Vec<ModuleLoad> = Vec::new();
            for range in dealt(first..end, layout.copies_per_rank) {
                let load = instances.load(range);
                if !known.contains(&load) {
                    known.push(load);
                    let mut modules = vec![ModuleLoad::default(); full_load.modules.len()];
                    modules[module] = load;
                    shares.push(MicrobatchLoad { modules, shape: full_load.shape });
                }
            }
        }
        first.push(shares.len());
        let table = pricing.table(layout.tensor, &shares);
        let heaviest = |(index, &part): (usize, &usize)| {
            let module = self.parts[part].module as usize;
            let time = |share: &usize| module_time(&table, module, *share);
            let share = (first[index]..first[index + 1]).max_by(|a, b| time(a).total_cmp(&time(b)).then(b.cmp(a)));
            share.map_or_else(|| self.cut.loads[part].clone(), |share| shares[share].clone())
        };
        layout_parts.iter().enumerate().map(heaviest).collect()
    }

    /// Returns the inputs per part from other layouts or copies, and the transfers.
    fn crossings(&self, arrangement: &Arrangement) -> Vec<Vec<(usize, Crossing)>> {
        let mut fed = vec![0_u32; self.parts.len()];
        for &input in self.cut.inputs.iter().flatten() {
            fed[input] += 1;
        }
        let part_crossings = |(part, inputs): (usize, &Vec<usize>)| {
            let behind = self.layout_index(arrangement, part);
            let inside = |input: usize| {
                self.layout_index(arrangement, input) == behind && self.parts[input].copy == self.parts[part].copy
            };
            let crossing = |&input: &usize| {
                let before = self.layout_index(arrangement, input);
                let side = |index: usize, stage: usize| {
                    let ModuleLayout { tensor, context, copies_per_rank, .. } = self.layouts[index];
                    let devices = arrangement.ranks[arrangement.stage_rank[stage] as usize].clone();
                    Side { devices, tensor, context, copies_per_rank, layout: index }
                };
                let from = side(before, self.stages(arrangement, input).end - 1);
                let to = side(behind, self.stages(arrangement, part).start);
                let colocated = overlap(&self.layouts[before].devices(), &self.layouts[behind].devices());
                let bytes = self.bytes(part, input, inputs) / f64::from(fed[input].max(1));
                (input, Crossing::new(&self.scenario.cluster, &from, &to, colocated, bytes))
            };
            inputs.iter().filter(|&&input| !inside(input)).map(crossing).collect()
        };
        self.cut.inputs.iter().enumerate().map(part_crossings).collect()
    }

    /// Bytes that an input sends to a part.
    fn bytes(&self, part: usize, input: usize, inputs: &[usize]) -> f64 {
        let model = &self.scenario.model;
        let (module, before) = (self.parts[part].module as usize, self.parts[input].module as usize);
        let mut modules = vec![ModuleLoad::default(); model.modules.len()];
        modules[before] = self.cut.loads[input].modules[before];
        // For an image generator, the input size follows from its images, split equally across the
        // inputs.
        let shape = MicrobatchShape { ..self.cut.loads[part].shape };
        let input_load = MicrobatchLoad { modules, shape };
        let entered = &model.modules[module];
        let by_images = entered.role == planscope_core::model::ModuleRole::Generator && entered.video.is_none();
        let share = if by_images { 1.0 / inputs.len() as f64 } else { 1.0 };
        self.scenario.training.width() * input_load.entering(model, module) * share * f64::from(entered.hidden)
    }
}

/// Splits an instance range into `count` equal ranges and omits empty ones.
fn dealt(range: Range<u32>, count: u32) -> impl Iterator<Item = Range<u32>> {
    let length = u64::from(range.end.saturating_sub(range.start));
    let cut = move |index: u64| range.start + (length * index / u64::from(count)) as u32;
    (0..u64::from(count)).map(move |index| cut(index)..cut(index + 1)).filter(|range| !range.is_empty())
}

fn module_time(table: &LayerTable<'_>, module: usize, load: usize) -> f64 {
    let weight = table.mean_weight(module, &[load], 1);
    weight.layer + weight.input + weight.output
}

/// Computes the costs for a plan that was priced before. Panics if plan and batch cannot be priced.
pub(crate) fn plan_costs(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    plan: &Plan,
    batch: &PackedBatch,
    replica: &ReplicaPlan,
) -> PipelineCosts {
    costs(scenario, pricing, (&plan.modules, &plan.partition), batch, replica)
        .expect("the planner asked for these prices before")
}
