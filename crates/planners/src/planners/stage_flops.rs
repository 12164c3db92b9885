//! Model FLOPs per stage, for achieved FLOPs per device.

use planscope_core::workload::PackedBatch;
use planscope_cost::cost::MicrobatchLoad;
use planscope_cost::cost::load::Instances;
use planscope_cost::cost::partition::LayerRange;
use planscope_plan::plan::Arrangement;
use planscope_plan::plan::{Part, Plan, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// Model FLOPs per stage for a replica and iteration, forward and backward. Empty for pipelines
/// with schemes. Context-parallel groups have a single stage.
pub(crate) fn replica_flops(
    scenario: &Scenario,
    plan: &Plan,
    replica: &ReplicaPlan,
    loads: &[MicrobatchLoad],
    batch: &PackedBatch,
) -> Vec<f64> {
    let model = &scenario.model;
    if replica.strategy().is_some() {
        return Vec::new();
    }
    if let Some(arrangement) = plan.arrangement() {
        return copy_flops(scenario, plan, &arrangement, (replica, loads), batch);
    }
    if replica.is_grouped() {
        return vec![loads.iter().map(|load| load.model_flops(model).get()).sum()];
    }
    let stage = |ranges: &Vec<LayerRange>| {
        let load_flops =
            |load: &MicrobatchLoad| ranges.iter().map(|&range| load.range_flops(model, range).get()).sum::<f64>();
        // Most microbatches of samples with one length are equal.
        loads.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64 * load_flops(&equal[0])).sum()
    };
    plan.partition.stages.iter().map(stage).collect()
}

/// Model FLOPs per stage copy, from the parts assigned to it.
fn copy_flops(
    scenario: &Scenario,
    plan: &Plan,
    arrangement: &Arrangement,
    (replica, loads): (&ReplicaPlan, &[MicrobatchLoad]),
    batch: &PackedBatch,
) -> Vec<f64> {
    let model = &scenario.model;
    let mut flops = vec![0.0; arrangement.cut.len()];
    for part in replica.parts() {
        let placement = arrangement.modules[part.module as usize];
        let share = if arrangement.joined { 1.0 } else { part_share(scenario, part, replica, batch) };
        for stage in placement.copy_stages(part.copy as usize) {
            let ranges = &plan.partition.stages[arrangement.cut[stage] as usize];
            let load = &loads[part.microbatch as usize];
            flops[stage] += share * ranges.iter().map(|&range| load.range_flops(model, range).get()).sum::<f64>();
        }
    }
    flops
}

/// A part's fraction of the module instances in its microbatch.
fn part_share(scenario: &Scenario, part: &Part, replica: &ReplicaPlan, batch: &PackedBatch) -> f64 {
    let contents = batch.contents(&replica.microbatches[part.microbatch as usize]);
    let module = &scenario.model.modules[part.module as usize];
    let all = Instances::new(&contents, module, scenario.workload.packing).count();
    f64::from(part.end - part.first) / f64::from(all.max(1))
}
