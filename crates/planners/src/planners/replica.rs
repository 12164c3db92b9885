//! Costs for a replica's microbatches, undivided or split by module.

use std::ops::Range;

use planscope_core::model::Model;
use planscope_core::stage_graph::{Flows, Path};
use planscope_core::timeline::MicrobatchShape;
use planscope_core::workload::{MicrobatchContents, PackedBatch, Packing, Sequence};
use planscope_cost::cost::load::Instances;
use planscope_cost::cost::{MicrobatchLoad, ModuleLoad, Partition, PipelineCosts, Pricing, ReplicaLayout};
use planscope_plan::outcome::Layout;
use planscope_plan::plan::{Part, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// Computes the loads for microbatches from their sequences.
pub(crate) fn loads(scenario: &Scenario, batch: &PackedBatch, microbatches: &[Vec<u32>]) -> Vec<MicrobatchLoad> {
    loads_packed(scenario, scenario.workload.packing, batch, microbatches)
}

/// Computes the loads under a packing rule that differs from the scenario's.
pub(crate) fn loads_packed(
    scenario: &Scenario,
    packing: Packing,
    batch: &PackedBatch,
    microbatches: &[Vec<u32>],
) -> Vec<MicrobatchLoad> {
    let load = |microbatch: &Vec<u32>| {
        let sequences: Vec<Sequence> = microbatch.iter().map(|&index| batch.sequences[index as usize]).collect();
        MicrobatchLoad::new(&sequences, &scenario.model, packing)
    };
    microbatches.iter().map(load).collect()
}

/// Returns the placement of replica number `replica`.
pub(crate) const fn replica_position(layout: Layout, replica: usize) -> ReplicaLayout {
    ReplicaLayout { pipeline: layout.pipeline, data: layout.data, replica: replica as u32 }
}

/// Computes the costs for a replica under its plan.
pub(crate) fn costs(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    (partition, layout): (&Partition, Layout),
    replica: usize,
    batch: &PackedBatch,
    plan: &ReplicaPlan,
) -> PipelineCosts {
    let position = replica_position(layout, replica);
    let count = plan.microbatches.len();
    if plan.parts().is_empty() {
        let loads = loads(scenario, batch, &plan.microbatches);
        let all: Vec<usize> = (0..loads.len()).collect();
        if plan.mixes.is_empty() {
            let table = pricing.table(layout.tensor, &loads).of_replica(count);
            return table.pipeline(partition, position, &all);
        }
        let flows = Flows::placed(layout.pipeline as usize, partition.stages.len(), loads.len(), partition.placement);
        let table = pricing.tunable_table(layout.tensor, &loads).of_replica(count);
        return table.pipeline_over(partition, position, flows, &all, &plan.mixes);
    }
    let contents: Vec<MicrobatchContents> =
        plan.microbatches.iter().map(|sequences| batch.contents(sequences)).collect();
    let cut = Cut::new(&scenario.model, scenario.workload.packing, &contents, plan.parts());
    let table = if plan.mixes.is_empty() {
        pricing.table(layout.tensor, &cut.loads)
    } else {
        pricing.tunable_table(layout.tensor, &cut.loads)
    };
    let flows = cut.flows(partition, plan.parts(), layout.pipeline as usize, scenario.model.modules.len());
    let all: Vec<usize> = (0..cut.loads.len()).collect();
    table.of_replica(count).pipeline_over(partition, position, flows, &all, &plan.mixes)
}

/// Splits microbatches per module into equal parts of at most `sizes[module]` instances: the
/// sub-microbatches in PipeWeaver Sec. 5.
pub(crate) fn parts(model: &Model, packing: Packing, contents: &[MicrobatchContents], sizes: &[u32]) -> Vec<Part> {
    let mut parts = Vec::new();
    for (microbatch, contents) in contents.iter().enumerate() {
        for (index, module) in model.modules.iter().enumerate() {
            let instances = Instances::new(contents, module, packing);
            parts.extend(instances.parts(sizes[index]).map(|range| Part {
                microbatch: microbatch as u32,
                module: index as u32,
                first: range.start,
                end: range.end,
                copy: 0,
            }));
        }
    }
    parts
}

/// Loads and inputs of parts.
pub(crate) struct Cut {
    pub loads: Vec<MicrobatchLoad>,
    /// Input parts per part.
    pub inputs: Vec<Vec<usize>>,
}

impl Cut {
    /// Computes loads and inputs. `parts` is sorted by microbatch, in topological order.
    pub(crate) fn new(model: &Model, packing: Packing, contents: &[MicrobatchContents], parts: &[Part]) -> Self {
        let modules = model.modules.len();
        let fed_by: Vec<Vec<usize>> = (0..modules).map(|module| model.fed_by(module)).collect();
        let mut cut = Self { loads: Vec::with_capacity(parts.len()), inputs: Vec::with_capacity(parts.len()) };
        let mut start = 0;
        for group in parts.chunk_by(|a, b| a.microbatch == b.microbatch) {
            let contents = &contents[group[0].microbatch as usize];
            let instances: Vec<Instances<'_>> =
                model.modules.iter().map(|module| Instances::new(contents, module, packing)).collect();
            let samples: Vec<Range<usize>> =
                group.iter().map(|part| instances[part.module as usize].members(part.first..part.end)).collect();
            for (index, part) in group.iter().enumerate() {
                let module = part.module as usize;
                let feeds = |&other: &usize| {
                    let shares = samples[other].start < samples[index].end && samples[index].start < samples[other].end;
                    shares && fed_by[module].contains(&(group[other].module as usize))
                };
                let inputs: Vec<usize> = (0..index).filter(feeds).map(|other| start + other).collect();
                let module_instances = &instances[module];
                let load = module_instances.load(part.first..part.end);
                let shape = module_instances.shape(part.first..part.end);
                cut.loads.push(part_load(modules, module, load, shape, &inputs, &cut.loads));
                cut.inputs.push(inputs);
            }
            start += group.len();
        }
        cut
    }

    /// Paths of the parts through their modules' stages.
    pub(crate) fn flows(&self, partition: &Partition, parts: &[Part], ranks: usize, modules: usize) -> Flows {
        let stages = partition.stages_by_module(modules).expect("parts are cut only where stages are of one module");
        let paths: Vec<Path> = parts
            .iter()
            .zip(&self.inputs)
            .map(|(part, inputs)| Path { stages: stages[part.module as usize].clone(), inputs: inputs.clone() })
            .collect();
        let placed = partition.placement.stage_ranks(partition.stages.len(), ranks);
        Flows::new(ranks, placed, &paths).expect("what feeds stands before what it feeds")
    }
}

/// Load of a part: the load in its module, plus the output of its inputs to determine send sizes.
fn part_load(
    modules: usize,
    module: usize,
    load: ModuleLoad,
    shape: MicrobatchShape,
    inputs: &[usize],
    before: &[MicrobatchLoad],
) -> MicrobatchLoad {
    let mut loads = vec![ModuleLoad::default(); modules];
    let mut shape = shape;
    for &input in inputs {
        for (sum, handed) in loads.iter_mut().zip(&before[input].modules).take(module) {
            *sum = sum.and(*handed);
        }
        shape.images += before[input].shape.images;
        shape.audio_clips += before[input].shape.audio_clips;
    }
    loads[module] = load;
    MicrobatchLoad { modules: loads, shape }
}

/// Numbers the part groups. A group contains all parts of a microbatch in the same module.
pub(crate) fn groups(parts: &[Part]) -> Vec<u32> {
    let mut number = 0;
    let mut before: Option<&Part> = None;
    parts
        .iter()
        .map(|part| {
            let same = before.is_none_or(|before| (before.microbatch, before.module) == (part.microbatch, part.module));
            number += u32::from(!same);
            before = Some(part);
            number
        })
        .collect()
}
