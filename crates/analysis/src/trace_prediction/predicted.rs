//! Predicted operator times of a pipeline rank per step, by type.

use std::collections::BTreeMap;
use std::ops::Range;

use super::kernels::KernelType;
use planscope_core::model::LayerKind;
use planscope_core::workload::packing::pack;
use planscope_cost::cost::kernel::{Kernel, Operation};
use planscope_cost::cost::layer::{LayerModel, TimedOperator};
use planscope_cost::cost::load::{MicrobatchLoad, ModuleLoad, microbatches};
use planscope_plan::outcome::{Planned, StageSummary};
use planscope_plan::scenario::{Sampler, ValidScenario};

/// Most microbatches whose operators are summed up one by one; beyond, every n-th of them is used.
const MAX_LOADS: usize = 64;

type Times = BTreeMap<KernelType, f64>;

/// Returns the predicted times in s.
pub(super) fn by_type(valid: &ValidScenario, planned: &Planned, rank: u32, notes: &mut Vec<String>) -> Times {
    let scenario = valid.scenario();
    if planned.placement.is_some() || planned.iterations.iter().any(|iteration| iteration.strategy.is_some()) {
        notes.push(
            "Operators are not predicted for plans in which modules or sequences have their own layouts.".to_owned(),
        );
        return Times::new();
    }
    if planned.stages.iter().all(|stage| stage.ranges.is_empty()) {
        notes.push(
            "The plan is of an earlier version of Planscope, without the layers of its stages. Plan the scenario again for predicted \
             operators."
                .to_owned(),
        );
        return Times::new();
    }
    let mut training = scenario.training.clone();
    if let Some(settings) = &planned.settings {
        settings.apply(&mut training);
    }
    let packed = pack(&Sampler::new(valid).sizing().samples, &scenario.model, &scenario.workload.packing_rule());
    let loads = microbatches(&packed.sequences, planned.layout.microbatch, &scenario.model, scenario.workload.packing);
    let every = loads.len().div_ceil(MAX_LOADS).max(1);
    let chosen: Vec<&MicrobatchLoad> = loads.iter().step_by(every).collect();
    // Microbatches of a replica that a chosen one stands for.
    let weight = loads.len() as f64 / chosen.len().max(1) as f64 / f64::from(planned.layout.data.max(1));
    let stages: Vec<&StageSummary> = planned.stages.iter().filter(|stage| stage.rank == rank).collect();
    let mut times = Times::new();
    for (index, module) in scenario.model.modules.iter().enumerate() {
        let costs = LayerModel::new(module, &scenario.cluster, &training, planned.layout.tensor)
            .with_gradients(scenario.model.module_gradients(index));
        let ranges = stages.iter().flat_map(|stage| &stage.ranges);
        for range in ranges.filter(|range| range.module == index as u32) {
            let layers = range.first..range.end;
            let recomputed = training.recompute_layers.map_or(u32::MAX, |count| layers.start.saturating_add(count));
            for load in &chosen {
                let load = load.modules[index];
                let mut counts: BTreeMap<bool, Vec<(LayerKind, u32)>> = BTreeMap::new();
                for layer in layers.clone() {
                    let kind = module.layer_kind(layer);
                    let kinds = counts.entry(layer < recomputed).or_default();
                    match kinds.iter_mut().find(|(known, _)| *known == kind) {
                        Some((_, count)) => *count += 1,
                        None => kinds.push((kind, 1)),
                    }
                }
                for (is_recomputed, kinds) in counts {
                    for (kind, count) in kinds {
                        add(&mut times, &costs.timed_layer(kind, load, is_recomputed), weight * f64::from(count));
                    }
                }
                add_ends(&mut times, &costs, &layers, (module.layers, load), weight);
            }
        }
    }
    let rank = planned.ranks.get(rank as usize);
    times.insert(KernelType::Optimizer, rank.map_or(0.0, |rank| rank.time.optimizer_s));
    if planned.layout.data * training.context_parallel > 1 {
        notes.push(
            "Predicted collectives are those of the layers (tensor, context and expert parallelism). Gathering of weights and reduction \
             of gradients over the data-parallel replicas are a part of the predicted exposed communication only."
                .to_owned(),
        );
        // The trace has both.
        for kind in [KernelType::AllReduce, KernelType::AllGather, KernelType::ReduceScatter] {
            times.remove(&kind);
        }
    }
    times
}

/// Adds the operators of the input block and of the output block.
fn add_ends(
    times: &mut Times,
    costs: &LayerModel<'_>,
    layers: &Range<u32>,
    (count, load): (u32, ModuleLoad),
    weight: f64,
) {
    if layers.start == 0 {
        add(times, &costs.timed_input(load), weight);
    }
    if layers.end == count {
        add(times, &costs.timed_output(load), weight);
    }
}

fn add(times: &mut Times, operators: &[TimedOperator], weight: f64) {
    for TimedOperator { operator, time, runs } in operators {
        *times.entry(kind(&operator.kernel)).or_default() += time.secs() * runs * weight;
    }
}

const fn kind(kernel: &Kernel) -> KernelType {
    match kernel {
        Kernel::MatMul(_) => KernelType::Matmul,
        Kernel::Attention(_) => KernelType::Attention,
        Kernel::Streaming(_) => KernelType::MemoryBound,
        Kernel::Collective(collective) => match collective.operation {
            Operation::AllReduce => KernelType::AllReduce,
            Operation::AllGather => KernelType::AllGather,
            Operation::ReduceScatter => KernelType::ReduceScatter,
            Operation::AllToAll => KernelType::AllToAll,
            Operation::SendReceive => KernelType::SendReceive,
        },
    }
}
