//! Validation for modules with separate layouts: placement, assignment of parts, and timing.
//!
//! All definitions are implemented again: devices per pipeline rank of a copy, stages of a copy,
//! module instances in a microbatch, and inputs of a part.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Violation;
use super::assignment::{layers, sequences_once, traded};
use planscope_core::action::ActionKind;
use planscope_core::model::{Model, Module, ModuleRole};
use planscope_core::training::{ContextExchange, Training};
use planscope_core::workload::{PackedBatch, Sequence};
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::simulate::Execution;
use planscope_plan::plan::{ModuleLayout, Part, Plan, ReplicaPlan};

/// Validates placement and assignment. Module devices exist in the cluster. Ranks use equal or
/// disjoint devices. Degrees divide the quantities they split. Each iteration trains all instances
/// in all modules exactly once.
pub fn check_modules(
    plan: &Plan,
    model: &Model,
    devices: u32,
    training: &Training,
    batches: &[PackedBatch],
) -> Result<(), Violation> {
    layers(&plan.partition, model)?;
    let mut next = 0;
    for (index, layout) in plan.modules.iter().enumerate() {
        let wrong = |problem: &str| Violation::Placement { layout: index, problem: problem.to_owned() };
        if layout.first != next || layout.end <= layout.first || layout.end as usize > model.modules.len() {
            return Err(wrong("its modules do not follow those of the layout before"));
        }
        next = layout.end;
        degrees(layout, devices).map_err(wrong)?;
        for module in &model.modules[layout.first as usize..layout.end as usize] {
            divides(layout, module).map_err(|reason| Violation::Placement { layout: index, problem: reason })?;
            if training.context_exchange == ContextExchange::AllToAll {
                traded(module, layout.tensor, layout.context)?;
            }
        }
    }
    if next as usize != model.modules.len() {
        return Err(Violation::Placement {
            layout: plan.modules.len(),
            problem: "the last modules have none".to_owned(),
        });
    }
    let stage_devices = StageDevices::new(plan, model)?;
    let equal = |element, found: usize, expected: usize| {
        if found == expected { Ok(()) } else { Err(Violation::Shape { element, found, expected }) }
    };
    equal("iterations", plan.iterations.len(), batches.len())?;
    for (iteration, (planned, batch)) in plan.iterations.iter().zip(batches).enumerate() {
        equal("replicas", planned.replicas.len(), 1)?;
        let replica = &planned.replicas[0];
        equal("groups", replica.groups().len(), 0)?;
        equal("strategies of layers", replica.mixes.len(), 0)?;
        equal("ranks", replica.schedule.orders.len(), stage_devices.blocks.len())?;
        equal("stages", replica.schedule.stages, stage_devices.stages.len())?;
        equal("microbatches", replica.schedule.microbatches, replica.parts().len())?;
        if replica.microbatches.iter().any(Vec::is_empty) {
            return Err(Violation::Shape { element: "sequences of a microbatch", found: 0, expected: 1 });
        }
        sequences_once(iteration, &planned.replicas, batch.sequences.len())?;
        // In a chain, parts are undivided microbatches of the last module, including all inputs.
        let cut = if is_chain(plan) { model.modules.len() - 1..model.modules.len() } else { 0..model.modules.len() };
        if cut.start > 0 {
            undivided_microbatches(model, replica, batch)?;
        }
        instances_once(model, (replica, batch), cut, |module| {
            let layout = plan.modules.iter().find(|layout| (layout.first..layout.end).contains(&module));
            layout.map_or(0, |layout| layout.data / layout.copies_per_rank)
        })?;
    }
    Ok(())
}

/// Checks that each microbatch is a single part of the last module.
fn undivided_microbatches(model: &Model, replica: &ReplicaPlan, batch: &PackedBatch) -> Result<(), Violation> {
    let Some(last) = model.modules.last() else { return Ok(()) };
    for (microbatch, sequences) in replica.microbatches.iter().enumerate() {
        let count = samples(last, batch, sequences).len();
        if replica.parts().get(microbatch).is_none_or(|part| part.end.saturating_sub(part.first) as usize != count) {
            return Err(Violation::Shape { element: "instances of a whole microbatch", found: 0, expected: count });
        }
    }
    Ok(())
}

fn degrees(layout: &ModuleLayout, devices: u32) -> Result<(), &'static str> {
    let ModuleLayout { tensor, context, pipeline, data, expert, copies_per_rank, first_device, .. } = *layout;
    if [tensor, context, pipeline, data, expert, copies_per_rank].contains(&0) {
        return Err("a degree is 0");
    }
    let all = [tensor, context, pipeline, data].iter().fold(1_u64, |all, &degree| all.saturating_mul(degree.into()));
    if u64::from(first_device) + all > u64::from(devices) {
        return Err("it stands on devices that the cluster does not have");
    }
    if data % copies_per_rank != 0 {
        return Err("its copies do not divide by those that stand side by side");
    }
    if (data * context) % expert != 0 {
        return Err("EP does not divide DP x CP");
    }
    Ok(())
}

fn divides(layout: &ModuleLayout, module: &Module) -> Result<(), String> {
    for (dimension, count) in module.sharded_heads() {
        if count % layout.tensor != 0 {
            return Err(format!("TP {} does not divide the {count} {dimension} of {}", layout.tensor, module.name));
        }
    }
    match module.moe {
        Some(moe) if moe.experts % layout.expert != 0 => {
            Err(format!("EP {} does not divide the {} experts of {}", layout.expert, moe.experts, module.name))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, Clone)]
struct Stage {
    module: usize,
    copy: u32,
    /// Index in the partition.
    cut: usize,
    devices: Range<u32>,
}

/// All stages, ordered by module, copy and layer, and their device blocks.
struct StageDevices {
    stages: Vec<Stage>,
    blocks: Vec<Range<u32>>,
}

impl StageDevices {
    fn new(plan: &Plan, model: &Model) -> Result<Self, Violation> {
        let mut stage_devices = Self { stages: Vec::new(), blocks: Vec::new() };
        let joined = is_chain(plan);
        for (index, layout) in plan.modules.iter().enumerate() {
            let size = layout.tensor * layout.context;
            for module in layout.first as usize..layout.end as usize {
                let all = &plan.partition.stages;
                let holds = |stage: &usize| all[*stage].iter().any(|range| range.module == module);
                let mut stages: Vec<usize> = (0..all.len()).filter(holds).collect();
                if joined && module + 1 < layout.end as usize {
                    continue;
                }
                if joined {
                    stages = (0..all.len()).collect();
                }
                let is_single_range = stages.iter().all(|&stage| all[stage].len() == 1);
                if !(is_single_range || joined)
                    || stages.is_empty()
                    || !stages.len().is_multiple_of(layout.pipeline as usize)
                {
                    let name = &model.modules[module].name;
                    let problem = format!("the stages of {name} are not the same number on each of its ranks");
                    return Err(Violation::Placement { layout: index, problem });
                }
                for copy in 0..layout.data / layout.copies_per_rank {
                    for (stage_index, &cut) in (0_u32..).zip(&stages) {
                        // TP fastest, then CP, then copies, then pipeline ranks.
                        let before = (stage_index % layout.pipeline) * layout.data + copy * layout.copies_per_rank;
                        let first = layout.first_device + before * size;
                        let devices = first..first + layout.copies_per_rank * size;
                        stage_devices.stages.push(Stage { module, copy, cut, devices: devices.clone() });
                        if !stage_devices.blocks.contains(&devices) {
                            if stage_devices
                                .blocks
                                .iter()
                                .any(|other| other.start < devices.end && devices.start < other.end)
                            {
                                let conflict =
                                    "its ranks share devices with others that do not stand on the same".to_owned();
                                return Err(Violation::Placement { layout: index, problem: conflict });
                            }
                            stage_devices.blocks.push(devices);
                        }
                    }
                }
            }
        }
        Ok(stage_devices)
    }
}

/// Returns true if a single layout splits all modules as a chain: a stage contains layers from two
/// modules, or a module's stages are not divisible by the number of ranks.
fn is_chain(plan: &Plan) -> bool {
    let [layout] = plan.modules.as_slice() else { return false };
    let stages = &plan.partition.stages;
    let uneven = |module: usize| {
        let module_stages = stages.iter().filter(|ranges| ranges.iter().any(|range| range.module == module));
        module_stages.count() % layout.pipeline.max(1) as usize != 0
    };
    let several = layout.end > layout.first + 1;
    several
        && (stages.iter().any(|ranges| ranges.len() > 1) || (layout.first as usize..layout.end as usize).any(uneven))
}

/// Instances of a module in a sample or sequence.
fn instances(module: &Module, carrier: &Sequence) -> u32 {
    match (module.role, module.video) {
        (ModuleRole::Backbone, _) => 1,
        (ModuleRole::Generator, Some(_)) => carrier.video_clips,
        (ModuleRole::VisionEncoder | ModuleRole::Generator, _) => carrier.images,
        (ModuleRole::AudioEncoder, _) => carrier.audio_clips,
    }
}

/// Returns the sample range per instance. A backbone instance covers all samples in a sequence.
fn samples(module: &Module, batch: &PackedBatch, microbatch: &[u32]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut sample = 0;
    for &sequence in microbatch {
        let members = batch.members(sequence as usize);
        if module.role == ModuleRole::Backbone {
            all.push(sample..sample + members.len());
        } else {
            for (index, member) in members.iter().enumerate() {
                let sample_range = sample + index..sample + index + 1;
                all.extend(std::iter::repeat_n(sample_range, instances(module, member) as usize));
            }
        }
        sample += members.len();
    }
    all
}

/// Checks that parts contain all instances of the modules in `cut` exactly once per microbatch, on
/// existing copies.
pub(super) fn instances_once(
    model: &Model,
    (replica, batch): (&ReplicaPlan, &PackedBatch),
    cut: Range<usize>,
    copies: impl Fn(u32) -> u32,
) -> Result<(), Violation> {
    let mut times: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for (microbatch, sequences) in replica.microbatches.iter().enumerate() {
        for index in cut.clone() {
            let count = samples(&model.modules[index], batch, sequences).len();
            times.insert((microbatch as u32, index as u32), vec![0; count]);
        }
    }
    for part in replica.parts() {
        let Part { microbatch, module, first, end, copy } = *part;
        let unknown = Violation::Instance { microbatch, module, instance: end, times: 1 };
        let copies = copies(module);
        if copy >= copies {
            return Err(Violation::Shape {
                element: "copies of a module",
                found: copy as usize,
                expected: copies as usize,
            });
        }
        let part_counts = times.get_mut(&(microbatch, module)).ok_or(unknown.clone())?;
        if first >= end {
            return Err(unknown);
        }
        for time in part_counts.get_mut(first as usize..end as usize).ok_or(unknown)? {
            *time += 1;
        }
    }
    for ((microbatch, module), times) in times {
        if let Some(instance) = times.iter().position(|&times| times != 1) {
            let (instance, times) = (instance as u32, times[instance]);
            return Err(Violation::Instance { microbatch, module, instance, times });
        }
    }
    Ok(())
}

/// Validates the timing of a run. Devices run at most one action at a time. Parts start when all
/// inputs are available, gradients when all dependent backwards are done. Static memory covers the
/// weights of all modules on a rank.
pub fn check_module_run(
    plan: &Plan,
    (model, training): (&Model, &Training),
    batch: &PackedBatch,
    replica: &ReplicaPlan,
    execution: &Execution,
    costs: &PipelineCosts,
) -> Result<(), Violation> {
    let stage_devices = StageDevices::new(plan, model)?;
    // Actions keyed by the lowest device in the block, which identifies the block.
    let mut occupied: BTreeMap<u32, Vec<(u64, u64, usize, String)>> = BTreeMap::new();
    // Earliest start and latest end by part: forwards, then input gradients.
    let mut spans = vec![[(u64::MAX, 0_u64); 2]; replica.parts().len()];
    let mut homes: BTreeMap<usize, u32> = BTreeMap::new();
    for (rank, order) in replica.schedule.orders.iter().enumerate() {
        for (index, action) in order.iter().enumerate() {
            let foreign = || Violation::Foreign { rank, action: action.to_string() };
            let stage = stage_devices.stages.get(action.stage as usize).ok_or_else(foreign)?;
            let part = replica.parts().get(action.microbatch as usize).ok_or_else(foreign)?;
            let home = *homes.entry(rank).or_insert(stage.devices.start);
            if stage.module != part.module as usize || stage.copy != part.copy || home != stage.devices.start {
                return Err(foreign());
            }
            let (start, end) = (execution.start[rank][index].get(), execution.end[rank][index].get());
            occupied.entry(home).or_default().push((start, end, rank, action.to_string()));
            // Weight gradients are not sent.
            if action.kind != ActionKind::WeightGrad {
                let span = &mut spans[action.microbatch as usize][usize::from(action.kind != ActionKind::Forward)];
                *span = (span.0.min(start), span.1.max(end));
            }
        }
    }
    for spans in occupied.values_mut() {
        spans.sort();
        for pair in spans.windows(2) {
            let (start, end, rank, ref action) = pair[1];
            if start < pair[0].1 {
                return Err(Violation::Exclusivity { rank, action: action.clone(), start, end });
            }
        }
    }
    fed(model, batch, replica, &spans)?;
    if training.zero_stage() < 3 { weights(plan, (model, training), &stage_devices, &homes, costs) } else { Ok(()) }
}

/// Checks that parts start after their inputs, and that input parts run backward after the parts
/// that depend on them.
fn fed(model: &Model, batch: &PackedBatch, replica: &ReplicaPlan, spans: &[[(u64, u64); 2]]) -> Result<(), Violation> {
    let mut by_microbatch: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, part) in replica.parts().iter().enumerate() {
        by_microbatch.entry(part.microbatch).or_default().push(index);
    }
    for (microbatch, parts) in by_microbatch {
        let sequences = &replica.microbatches[microbatch as usize];
        let module_samples: Vec<Vec<Range<usize>>> =
            model.modules.iter().map(|module| samples(module, batch, sequences)).collect();
        let sample_range = |index: usize| {
            let Part { module, first, end, .. } = replica.parts()[index];
            let ranges = &module_samples[module as usize][first as usize..end as usize];
            ranges.first().map_or(0, |range| range.start)..ranges.last().map_or(0, |range| range.end)
        };
        for &into in &parts {
            for &from in &parts {
                let feeds = reads(model, replica.parts()[into].module as usize, replica.parts()[from].module as usize);
                let (a, b) = (sample_range(into), sample_range(from));
                if !feeds || a.start >= b.end || b.start >= a.end {
                    continue;
                }
                let early = |start: u64, input: u64| Violation::Unfed { part: into, from, start, input };
                if spans[into][0].0 < spans[from][0].1 {
                    return Err(early(spans[into][0].0, spans[from][0].1));
                }
                if spans[from][1].0 < spans[into][1].1 {
                    return Err(early(spans[from][1].0, spans[into][1].1));
                }
            }
        }
    }
    Ok(())
}

/// Returns true if module `into` reads the output of module `from`. Backbones read encoders.
/// Generators read the backbone or, without a backbone, the encoders.
fn reads(model: &Model, into: usize, from: usize) -> bool {
    let encoder = |role| matches!(role, ModuleRole::VisionEncoder | ModuleRole::AudioEncoder);
    let (reader, producer) = (model.modules[into].role, model.modules[from].role);
    let backbone_before = model.modules[..into].iter().any(|module| module.role == ModuleRole::Backbone);
    from < into
        && match reader {
            ModuleRole::VisionEncoder | ModuleRole::AudioEncoder => false,
            ModuleRole::Generator if backbone_before => producer == ModuleRole::Backbone,
            ModuleRole::Backbone | ModuleRole::Generator => encoder(producer),
        }
}

/// Size of a layer weight relative to the training precision: below 1 for quantized and fp8 weights.
fn weight_share(module: &Module, training: &Training) -> f64 {
    let bits = module.adapters.and_then(|adapters| adapters.base_bits);
    bits.map_or(training.layer_weight_bytes() / training.width(), |bits| f64::from(bits) / 8.0 / training.width())
}

/// Checks that static memory per rank is at least the weight size of all modules on it.
fn weights(
    plan: &Plan,
    (model, training): (&Model, &Training),
    stage_devices: &StageDevices,
    homes: &BTreeMap<usize, u32>,
    costs: &PipelineCosts,
) -> Result<(), Violation> {
    for (&rank, &home) in homes {
        let mut bytes = 0.0;
        for stage in stage_devices.stages.iter().filter(|stage| stage.devices.start == home) {
            let layout = plan.modules.iter().find(|layout| (layout.first..layout.end).contains(&(stage.module as u32)));
            let Some(layout) = layout else { continue };
            for range in &plan.partition.stages[stage.cut] {
                let module = &model.modules[range.module];
                let layers = module.range_parameters(range.first, range.end);
                let sharded = layers.dense as f64 + layers.expert as f64 / f64::from(layout.expert);
                bytes += training.width() * sharded * weight_share(module, training) / f64::from(layout.tensor);
            }
        }
        let static_bytes = costs.static_memory[rank].get() as f64;
        if static_bytes < bytes * (1.0 - 1e-9) {
            let (needed_mib, limit_mib) = ((bytes / f64::from(1 << 20)) as u64, costs.static_memory[rank].get() >> 20);
            return Err(Violation::Memory { rank, needed_mib, limit_mib });
        }
    }
    Ok(())
}
