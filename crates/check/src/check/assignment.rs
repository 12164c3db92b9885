//! Assignment validation: degrees, layers and sequences.

mod strategies;

use super::Violation;
use super::modules::instances_once;
use planscope_core::model::{Model, Module};
use planscope_core::training::{ContextExchange, Training};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::Partition;
use planscope_cost::cost::partition::{LayerRange, OutputPart};
use planscope_plan::outcome::Layout;
use planscope_plan::plan::{Part, Plan, ReplicaKind, ReplicaPlan};

use strategies::strategies;

pub use strategies::check_phases;

/// Validates a plan without separate module layouts. Checks the degrees against devices and model
/// (CP is a scenario setting), layers per stage, sequences per iteration, instances per
/// sub-microbatch and layer strategies. `batches[i]` is the batch of iteration `i`.
pub fn check_assignment(
    plan: &Plan,
    model: &Model,
    devices: u32,
    training: &Training,
    batches: &[PackedBatch],
) -> Result<(), Violation> {
    let layout = plan.layout;
    if plan.iterations.iter().flat_map(|iteration| &iteration.replicas).any(|replica| replica.strategy().is_some()) {
        strategies(plan, model, devices, batches.len())?;
        return once(plan, batches);
    }
    let context = training.context_parallel;
    let replica = u64::from(layout.tensor) * u64::from(context) * u64::from(layout.pipeline);
    if replica * u64::from(layout.data) != u64::from(devices) {
        let (tensor, pipeline, data) = (layout.tensor, layout.pipeline, layout.data);
        return Err(Violation::Devices { tensor, pipeline, data, devices });
    }
    for module in &model.modules {
        for (dimension, count) in module.sharded_heads() {
            if count % layout.tensor != 0 {
                return Err(Violation::Divisibility { tensor: layout.tensor, dimension, count });
            }
        }
    }
    exchanges(plan, model, training)?;
    layers(&plan.partition, model)?;
    let stages = (layout.pipeline * layout.chunks) as usize;
    if plan.partition.stages.len() != stages {
        return Err(Violation::Layers { stage: plan.partition.stages.len() });
    }
    shape(plan, batches.len())?;
    once(plan, batches)?;
    for (iteration, batch) in plan.iterations.iter().zip(batches) {
        for replica in &iteration.replicas {
            if !replica.parts().is_empty() {
                instances_once(model, (replica, batch), 0..model.modules.len(), |_| 1)?;
            }
            mixes(&plan.partition, replica)?;
        }
    }
    Ok(())
}

/// Checks that the stages have the numbers of layers that the scenario fixes, if any.
pub fn check_layers_per_stage(partition: &Partition, fixed: &[u32]) -> Result<(), Violation> {
    if fixed.is_empty() {
        return Ok(());
    }
    let (found, expected) = (partition.stages.len(), fixed.len());
    if found != expected {
        return Err(Violation::Shape { element: "stages", found, expected });
    }
    for (stage, expected) in partition.stages.iter().zip(fixed) {
        let (found, expected) =
            (stage.iter().map(|range| (range.end - range.first) as usize).sum(), *expected as usize);
        if found != expected {
            return Err(Violation::Shape { element: "layers of a stage", found, expected });
        }
    }
    Ok(())
}

/// Checks the number of sequences per microbatch of a plan that is checked by [`check_assignment`]. If the assignment
/// of sequences is fixed, no microbatch has more than the layout says; if it is free, the microbatches have no more in
/// the mean. Groups and strategies have sizes of their own.
pub fn check_microbatch_sizes(plan: &Plan, is_free: bool) -> Result<(), Violation> {
    let expected = plan.layout.microbatch as usize;
    for iteration in &plan.iterations {
        let pipelines = iteration
            .replicas
            .iter()
            .filter(|replica| matches!(replica.kind, ReplicaKind::Pipeline | ReplicaKind::Parts(_)));
        let sizes: Vec<usize> = pipelines.flat_map(|replica| &replica.microbatches).map(Vec::len).collect();
        let found = if is_free {
            sizes.iter().sum::<usize>().div_ceil(sizes.len().max(1))
        } else {
            sizes.iter().copied().max().unwrap_or(0)
        };
        if found > expected {
            return Err(Violation::Shape { element: "sequences of a microbatch", found, expected });
        }
    }
    Ok(())
}

/// Checks that layer strategies, if present, cover all layers of all cells. Cells are ordered by
/// microbatch, then stage.
fn mixes(partition: &Partition, replica: &ReplicaPlan) -> Result<(), Violation> {
    if replica.mixes.is_empty() {
        return Ok(());
    }
    let layers = |stage: &[LayerRange]| -> u32 { stage.iter().map(|range| range.end - range.first).sum() };
    let stages = &partition.stages;
    let part_stages = |part: &Part| {
        let module = part.module as usize;
        stages.iter().filter(move |stage| stage.iter().any(|range| range.module == module))
    };
    let cells: Vec<u32> = if replica.parts().is_empty() {
        replica.microbatches.iter().flat_map(|_| stages).map(|stage| layers(stage)).collect()
    } else {
        replica.parts().iter().flat_map(part_stages).map(|stage| layers(stage)).collect()
    };
    let (found, expected) = (replica.mixes.len(), cells.len());
    if found != expected {
        return Err(Violation::Shape { element: "strategies of layers", found, expected });
    }
    for (mix, expected) in replica.mixes.iter().zip(cells) {
        if mix.layers() != expected {
            let (found, expected) = (mix.layers() as usize, expected as usize);
            return Err(Violation::Shape { element: "layers with a strategy", found, expected });
        }
    }
    Ok(())
}

/// Checks all-to-all groups: the heads must be divisible among the devices.
fn exchanges(plan: &Plan, model: &Model, training: &Training) -> Result<(), Violation> {
    let tensor = plan.layout.tensor;
    if training.context_exchange == ContextExchange::AllToAll {
        model.modules.iter().try_for_each(|module| traded(module, tensor, training.context_parallel))?;
    }
    let groups = plan.iterations.iter().flat_map(|iteration| &iteration.replicas).flat_map(ReplicaPlan::groups);
    for group in groups.filter(|group| group.exchange == ContextExchange::AllToAll) {
        model.modules.iter().try_for_each(|module| traded(module, tensor, group.ranks.len() as u32))?;
    }
    Ok(())
}

/// Checks head numbers for all-to-all exchange: the CP degree divides the query heads per TP rank.
/// Key-value heads per rank divide the CP degree, or vice versa.
pub(super) fn traded(module: &Module, tensor: u32, context: u32) -> Result<(), Violation> {
    let (heads, shared) = (module.heads / tensor, module.kv_heads / tensor);
    let (fewer, more) = (shared.min(context), shared.max(context));
    if context > 1 && (heads % context != 0 || fewer == 0 || more % fewer != 0) {
        return Err(Violation::Trade { context, tensor, heads: module.heads, shared: module.kv_heads });
    }
    Ok(())
}

/// Checks that every sequence is trained exactly once per iteration.
fn once(plan: &Plan, batches: &[PackedBatch]) -> Result<(), Violation> {
    for (iteration, batch) in batches.iter().enumerate() {
        sequences_once(iteration, &plan.iterations[iteration].replicas, batch.sequences.len())?;
    }
    Ok(())
}

/// Checks that the replicas train each of `count` sequences exactly once.
pub(super) fn sequences_once(iteration: usize, replicas: &[ReplicaPlan], count: usize) -> Result<(), Violation> {
    let mut times = vec![0_u32; count];
    for &sequence in replicas.iter().flat_map(|replica| &replica.microbatches).flatten() {
        match times.get_mut(sequence as usize) {
            Some(times) => *times += 1,
            None => return Err(Violation::Sequence { iteration, sequence: sequence as usize, times: 1 }),
        }
    }
    match times.iter().position(|&times| times != 1) {
        Some(sequence) => Err(Violation::Sequence { iteration, sequence, times: times[sequence] }),
        None => Ok(()),
    }
}

/// Checks the number of iterations, replicas, ranks, stages and microbatches against the layout.
fn shape(plan: &Plan, iterations: usize) -> Result<(), Violation> {
    let equal = |element, found: usize, expected: usize| {
        if found == expected { Ok(()) } else { Err(Violation::Shape { element, found, expected }) }
    };
    let layout = plan.layout;
    equal("iterations", plan.iterations.len(), iterations)?;
    for iteration in &plan.iterations {
        let grouped = iteration.replicas.iter().any(|replica| !replica.groups().is_empty());
        // Context-parallel ranks are the replicas; the plan stores them in a single list.
        equal("replicas", iteration.replicas.len(), if grouped { 1 } else { layout.data as usize })?;
        for replica in &iteration.replicas {
            if grouped {
                groups(replica, layout)?;
                continue;
            }
            equal("ranks", replica.schedule.orders.len(), layout.pipeline as usize)?;
            equal("stages", replica.schedule.stages, plan.partition.stages.len())?;
            let travelling =
                if replica.parts().is_empty() { replica.microbatches.len() } else { replica.parts().len() };
            equal("microbatches", replica.schedule.microbatches, travelling)?;
            if replica.microbatches.iter().any(Vec::is_empty) {
                return Err(Violation::Shape { element: "sequences of a microbatch", found: 0, expected: 1 });
            }
        }
    }
    Ok(())
}

/// Checks that group ranks exist and are distinct, and that simultaneous groups are disjoint.
fn groups(replica: &ReplicaPlan, layout: Layout) -> Result<(), Violation> {
    let equal = |element, found: usize, expected: usize| {
        if found == expected { Ok(()) } else { Err(Violation::Shape { element, found, expected }) }
    };
    equal("ranks", replica.schedule.orders.len(), layout.data as usize)?;
    equal("groups", replica.groups().len(), replica.microbatches.len())?;
    equal("microbatches", replica.schedule.microbatches, replica.microbatches.len())?;
    equal("sub-microbatches", replica.parts().len(), 0)?;
    equal("strategies of layers", replica.mixes.len(), 0)?;
    equal("stages of a rank", (layout.pipeline * layout.chunks) as usize, 1)?;
    let mut taken = std::collections::BTreeSet::new();
    for (group, sequences) in replica.groups().iter().zip(&replica.microbatches) {
        if group.ranks.is_empty() || sequences.is_empty() {
            return Err(Violation::Shape { element: "ranks or sequences of a group", found: 0, expected: 1 });
        }
        for &rank in &group.ranks {
            if rank >= layout.data {
                let (found, expected) = (rank as usize, layout.data as usize);
                return Err(Violation::Shape { element: "ranks of a group", found, expected });
            }
            if !taken.insert((group.gang, rank)) {
                return Err(Violation::Shape { element: "groups of a rank at a time", found: 2, expected: 1 });
            }
        }
    }
    Ok(())
}

/// Checks that the stages contain all layers exactly once and in order, and the input and output block of each module once.
/// Stages of a single module can be without layers.
pub(super) fn layers(partition: &Partition, model: &Model) -> Result<(), Violation> {
    let (mut module, mut layer) = (0, 0);
    let is_single = model.modules.len() == 1;
    let last = partition.stages.len().wrapping_sub(1);
    for (stage, ranges) in partition.stages.iter().enumerate() {
        if ranges.is_empty() {
            return Err(Violation::Layers { stage });
        }
        for range in ranges {
            if !is_single && model.modules.get(module).is_some_and(|current| layer == current.layers) {
                (module, layer) = (module + 1, 0);
            }
            let Some(current) = model.modules.get(module) else { return Err(Violation::Layers { stage }) };
            // The first and the last stage of a single module have its input and output block, even without layers.
            let has_input = if is_single { stage == 0 } else { range.first == 0 };
            let has_output = if is_single { stage == last } else { range.end == current.layers };
            let valid = range.module == module
                && range.first == layer
                && (range.end > layer || (is_single && range.end == layer))
                && range.end <= current.layers
                && (range.first > 0 || range.input == has_input)
                && (range.end < current.layers || (range.output == OutputPart::Whole) == has_output);
            if !valid {
                return Err(Violation::Layers { stage });
            }
            layer = range.end;
        }
    }
    let complete = module + 1 == model.modules.len() && layer == model.modules[module].layers;
    if complete { Ok(()) } else { Err(Violation::Layers { stage: partition.stages.len() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::action::Schedule;
    use planscope_cost::cost::StrategyMix;
    use planscope_plan::plan::{ReplicaKind, SequenceGroup};

    /// Validates two simultaneous groups on four ranks after `spoil`.
    fn checked(spoil: impl FnOnce(&mut ReplicaPlan)) -> Result<(), Violation> {
        let group = |ranks: &[u32]| SequenceGroup {
            ranks: ranks.to_vec(),
            microbatch: 0,
            gang: 0,
            exchange: ContextExchange::Ring,
            estimate: planscope_core::units::Nanos::ZERO,
        };
        let mut replica = ReplicaPlan {
            microbatches: vec![vec![0], vec![1, 2]],
            kind: ReplicaKind::Groups(vec![group(&[0, 1, 2]), group(&[3])]),
            schedule: Schedule { stages: 4, microbatches: 2, orders: vec![Vec::new(); 4] },
            mixes: Vec::new(),
        };
        spoil(&mut replica);
        groups(&replica, Layout { tensor: 1, pipeline: 1, data: 4, chunks: 1, microbatch: 2, group: None })
    }

    #[test]
    fn sound_groups_pass() {
        assert_eq!(checked(|_| {}), Ok(()));
        // Sequential groups may share ranks.
        assert_eq!(
            checked(|replica| (replica.groups_mut()[1].gang, replica.groups_mut()[1].ranks) = (1, vec![0, 3])),
            Ok(())
        );
    }

    /// Llama-3 8B has 32 heads and 8 key-value heads. At TP 2, a device has 16 and 4 of them: CP 2,
    /// 4, 8 and 16 are valid, 3 and 6 are not. At TP 8, the remaining 4 heads cannot be split
    /// across CP 8.
    #[test]
    fn heads_are_traded_only_among_as_many_as_have_some() {
        let model = planscope_core::model::presets::model("llama-3-8b").unwrap();
        let module = &model.modules[0];
        for (tensor, context, right) in [
            (2, 1, true),
            (2, 2, true),
            (2, 4, true),
            (2, 8, true),
            (2, 16, true),
            (2, 3, false),
            (2, 6, false),
            (2, 32, false),
            (8, 4, true),
            (8, 8, false),
        ] {
            let rejection = Violation::Trade { context, tensor, heads: 32, shared: 8 };
            let expected = if right { Ok(()) } else { Err(rejection) };
            assert_eq!(traded(module, tensor, context), expected, "TP {tensor}, CP {context}");
            assert_eq!(
                module.supports_all_to_all(tensor, context),
                right,
                "planners have the same rule in other words"
            );
        }
    }

    /// Context-parallel groups and schemes use the strategies from the settings.
    #[test]
    fn groups_with_strategies_are_rejected() {
        let grouped = checked(|replica| replica.mixes.push(StrategyMix::default()));
        assert_eq!(grouped, Err(Violation::Shape { element: "strategies of layers", found: 1, expected: 0 }));
    }

    #[test]
    fn invalid_groups_are_rejected() {
        let shape = |element, found, expected| Err(Violation::Shape { element, found, expected });
        let shared = checked(|replica| replica.groups_mut()[1].ranks = vec![2, 3]);
        assert_eq!(shared, shape("groups of a rank at a time", 2, 1));
        let twice = checked(|replica| replica.groups_mut()[0].ranks = vec![0, 0]);
        assert_eq!(twice, shape("groups of a rank at a time", 2, 1));
        let outside = checked(|replica| replica.groups_mut()[1].ranks = vec![4]);
        assert_eq!(outside, shape("ranks of a group", 4, 4));
        let nobody = checked(|replica| replica.groups_mut()[1].ranks.clear());
        assert_eq!(nobody, shape("ranks or sequences of a group", 0, 1));
        let idle = checked(|replica| replica.microbatches[1].clear());
        assert_eq!(idle, shape("ranks or sequences of a group", 0, 1));
        let fewer = checked(|replica| drop(replica.groups_mut().pop()));
        assert_eq!(fewer, shape("groups", 1, 2));
        let missing = checked(|replica| drop(replica.schedule.orders.pop()));
        assert_eq!(missing, shape("ranks", 3, 4));
    }
}
