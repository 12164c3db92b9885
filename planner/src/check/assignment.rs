//! Degrees, layers, sequences: what a plan assigns to whom.

mod strategies;

use super::Violation;
use crate::cost::Partition;
use crate::model::{Model, Module};
use crate::outcome::Layout;
use crate::plan::{Plan, ReplicaPlan};
use crate::training::{ContextExchange, Training};

use strategies::strategies;

pub use strategies::check_phases;

/// Checks degrees (CP is a setting of the scenario) against devices and model, that the stages hold every layer once and in order, and that every
/// iteration trains every sequence once. `sequences[i]` is the number of sequences of iteration `i`.
pub fn check_assignment(
    plan: &Plan,
    model: &Model,
    devices: u32,
    training: &Training,
    sequences: &[usize],
) -> Result<(), Violation> {
    let layout = plan.layout;
    if plan.iterations.iter().flat_map(|iteration| &iteration.replicas).any(|replica| replica.strategy.is_some()) {
        strategies(plan, model, devices, sequences.len())?;
        return once(plan, sequences);
    }
    let context = training.context_parallel;
    let replica = u64::from(layout.tensor) * u64::from(context) * u64::from(layout.pipeline);
    if replica * u64::from(layout.data) != u64::from(devices) {
        let (tensor, pipeline, data) = (layout.tensor, layout.pipeline, layout.data);
        return Err(Violation::Devices { tensor, pipeline, data, devices });
    }
    for module in &model.modules {
        for (what, count) in [("heads", module.heads), ("key-value heads", module.kv_heads)] {
            if count % layout.tensor != 0 {
                return Err(Violation::Divisibility { tensor: layout.tensor, what, count });
            }
        }
    }
    exchanges(plan, model, training)?;
    layers(&plan.partition, model)?;
    let stages = (layout.pipeline * layout.chunks) as usize;
    if plan.partition.stages.len() != stages {
        return Err(Violation::Layers { stage: plan.partition.stages.len() });
    }
    shape(plan, sequences.len())?;
    once(plan, sequences)
}

/// Where heads are traded for tokens, each group of devices that does so has heads enough on every one of them.
fn exchanges(plan: &Plan, model: &Model, training: &Training) -> Result<(), Violation> {
    let tensor = plan.layout.tensor;
    if training.context_exchange == ContextExchange::AllToAll {
        model.modules.iter().try_for_each(|module| traded(module, tensor, training.context_parallel))?;
    }
    let groups = plan.iterations.iter().flat_map(|iteration| &iteration.replicas).flat_map(|replica| &replica.groups);
    for group in groups.filter(|group| group.exchange == ContextExchange::AllToAll) {
        model.modules.iter().try_for_each(|module| traded(module, tensor, group.ranks.len() as u32))?;
    }
    Ok(())
}

/// Of the heads that TP leaves a device, each device of an all-to-all attends with as many. Heads of keys and values are as
/// many on each too, or one of them stands on as many devices as every other.
pub(super) fn traded(module: &Module, tensor: u32, context: u32) -> Result<(), Violation> {
    let (heads, shared) = (module.heads / tensor, module.kv_heads / tensor);
    let (fewer, more) = (shared.min(context), shared.max(context));
    if context > 1 && (heads % context != 0 || fewer == 0 || more % fewer != 0) {
        return Err(Violation::Trade { context, tensor, heads: module.heads, shared: module.kv_heads });
    }
    Ok(())
}

/// Every sequence of every iteration is trained once.
fn once(plan: &Plan, sequences: &[usize]) -> Result<(), Violation> {
    for (iteration, &count) in sequences.iter().enumerate() {
        sequences_once(iteration, &plan.iterations[iteration].replicas, count)?;
    }
    Ok(())
}

/// The replicas of an iteration train each of `count` sequences once.
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

/// Iterations, replicas, ranks, stages and microbatches are as many as the layout says.
fn shape(plan: &Plan, iterations: usize) -> Result<(), Violation> {
    let equal = |what, found: usize, expected: usize| {
        if found == expected { Ok(()) } else { Err(Violation::Shape { what, found, expected }) }
    };
    let layout = plan.layout;
    equal("iterations", plan.iterations.len(), iterations)?;
    for iteration in &plan.iterations {
        let grouped = iteration.replicas.iter().any(|replica| !replica.groups.is_empty());
        // Ranks that work in groups are the replicas, and stand in one list.
        equal("replicas", iteration.replicas.len(), if grouped { 1 } else { layout.data as usize })?;
        for replica in &iteration.replicas {
            if grouped {
                groups(replica, layout)?;
                continue;
            }
            equal("ranks", replica.schedule.orders.len(), layout.pipeline as usize)?;
            equal("stages", replica.schedule.stages, plan.partition.stages.len())?;
            let travelling = if replica.parts.is_empty() { replica.microbatches.len() } else { replica.parts.len() };
            equal("microbatches", replica.schedule.microbatches, travelling)?;
            for microbatch in &replica.microbatches {
                let most = layout.microbatch as usize;
                if microbatch.is_empty() || microbatch.len() > most {
                    return Err(Violation::Shape {
                        what: "sequences of a microbatch",
                        found: microbatch.len(),
                        expected: most,
                    });
                }
            }
        }
    }
    Ok(())
}

/// Every group stands on ranks that exist, each of them once, and no rank is in two groups that start together.
fn groups(replica: &ReplicaPlan, layout: Layout) -> Result<(), Violation> {
    let equal = |what, found: usize, expected: usize| {
        if found == expected { Ok(()) } else { Err(Violation::Shape { what, found, expected }) }
    };
    equal("ranks", replica.schedule.orders.len(), layout.data as usize)?;
    equal("groups", replica.groups.len(), replica.microbatches.len())?;
    equal("microbatches", replica.schedule.microbatches, replica.microbatches.len())?;
    equal("sub-microbatches", replica.parts.len(), 0)?;
    equal("stages of a rank", (layout.pipeline * layout.chunks) as usize, 1)?;
    let mut taken = std::collections::BTreeSet::new();
    for (group, sequences) in replica.groups.iter().zip(&replica.microbatches) {
        if group.ranks.is_empty() || sequences.is_empty() {
            return Err(Violation::Shape { what: "ranks or sequences of a group", found: 0, expected: 1 });
        }
        for &rank in &group.ranks {
            if rank >= layout.data {
                let (found, expected) = (rank as usize, layout.data as usize);
                return Err(Violation::Shape { what: "ranks of a group", found, expected });
            }
            if !taken.insert((group.gang, rank)) {
                return Err(Violation::Shape { what: "groups of a rank at a time", found: 2, expected: 1 });
            }
        }
    }
    Ok(())
}

/// Stages hold every layer once and in order.
pub(super) fn layers(partition: &Partition, model: &Model) -> Result<(), Violation> {
    let (mut module, mut layer) = (0, 0);
    for (stage, ranges) in partition.stages.iter().enumerate() {
        if ranges.is_empty() {
            return Err(Violation::Layers { stage });
        }
        for range in ranges {
            if model.modules.get(module).is_some_and(|current| layer == current.layers) {
                (module, layer) = (module + 1, 0);
            }
            let valid = range.module == module
                && range.first == layer
                && range.end > layer
                && model.modules.get(module).is_some_and(|current| range.end <= current.layers);
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
    use crate::plan::SequenceGroup;
    use crate::schedule::Schedule;

    /// Two groups of one gang over four ranks, after `spoil`.
    fn checked(spoil: impl FnOnce(&mut ReplicaPlan)) -> Result<(), Violation> {
        let group = |ranks: &[u32]| SequenceGroup {
            ranks: ranks.to_vec(),
            microbatch: 0,
            gang: 0,
            exchange: ContextExchange::Ring,
            estimate: crate::units::Nanos::ZERO,
        };
        let mut replica = ReplicaPlan {
            microbatches: vec![vec![0], vec![1, 2]],
            parts: Vec::new(),
            groups: vec![group(&[0, 1, 2]), group(&[3])],
            strategy: None,
            schedule: Schedule { stages: 4, microbatches: 2, orders: vec![Vec::new(); 4] },
            mixes: Vec::new(),
        };
        spoil(&mut replica);
        groups(&replica, Layout { tensor: 1, pipeline: 1, data: 4, chunks: 1, microbatch: 2, group: None })
    }

    #[test]
    fn sound_groups_pass() {
        assert_eq!(checked(|_| {}), Ok(()));
        // One behind the other a rank may be in both.
        assert_eq!(checked(|replica| (replica.groups[1].gang, replica.groups[1].ranks) = (1, vec![0, 3])), Ok(()));
    }

    /// Llama-3 8B, 32 heads with 8 of keys and values: at TP 2 a device has 16 and 4, which 2, 4, 8 and 16 share out, 3 and 6 do
    /// not; at TP 8 the last 4 heads cannot be dealt to 8.
    #[test]
    fn heads_are_traded_only_among_as_many_as_have_some() {
        let model = crate::model::presets::model("llama-3-8b").unwrap();
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
            let refused = Violation::Trade { context, tensor, heads: 32, shared: 8 };
            let expected = if right { Ok(()) } else { Err(refused) };
            assert_eq!(traded(module, tensor, context), expected, "TP {tensor}, CP {context}");
            assert_eq!(module.trades_heads(tensor, context), right, "planners have the same rule in other words");
        }
    }

    #[test]
    fn groups_that_cannot_be_are_refused() {
        let shape = |what, found, expected| Err(Violation::Shape { what, found, expected });
        let shared = checked(|replica| replica.groups[1].ranks = vec![2, 3]);
        assert_eq!(shared, shape("groups of a rank at a time", 2, 1));
        let twice = checked(|replica| replica.groups[0].ranks = vec![0, 0]);
        assert_eq!(twice, shape("groups of a rank at a time", 2, 1));
        let outside = checked(|replica| replica.groups[1].ranks = vec![4]);
        assert_eq!(outside, shape("ranks of a group", 4, 4));
        let nobody = checked(|replica| replica.groups[1].ranks.clear());
        assert_eq!(nobody, shape("ranks or sequences of a group", 0, 1));
        let idle = checked(|replica| replica.microbatches[1].clear());
        assert_eq!(idle, shape("ranks or sequences of a group", 0, 1));
        let fewer = checked(|replica| drop(replica.groups.pop()));
        assert_eq!(fewer, shape("groups", 1, 2));
        let missing = checked(|replica| drop(replica.schedule.orders.pop()));
        assert_eq!(missing, shape("ranks", 3, 4));
    }
}
