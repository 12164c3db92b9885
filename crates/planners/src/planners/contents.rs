//! Samples per microbatch and layers per stage for timelines. They identify corresponding actions
//! in different plans.

use planscope_core::timeline::{MicrobatchSamples, SamplePart, StageLayers};
use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_cost::cost::load::Instances;
use planscope_cost::cost::partition::LayerRange;
use planscope_plan::plan::Arrangement;
use planscope_plan::plan::{Plan, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// A complete sample, in millionths.
const FULL_PPM: u32 = 1_000_000;

/// Returns the samples per microbatch or sub-microbatch.
pub(crate) fn microbatch_samples(
    scenario: &Scenario,
    batch: &PackedBatch,
    replica: &ReplicaPlan,
) -> Vec<MicrobatchSamples> {
    if replica.parts().is_empty() {
        replica.microbatches.iter().map(|sequences| undivided_samples(batch, sequences)).collect()
    } else {
        part_samples(scenario, batch, replica)
    }
}

/// Returns the layers of a range.
pub(crate) fn layers(range: &LayerRange) -> StageLayers {
    StageLayers { module: range.module as u32, first: range.first, end: range.end }
}

/// Returns the layers per stage of the replica, or of a rank if the ranks form groups.
pub(crate) fn stage_layers(
    plan: &Plan,
    arrangement: Option<&Arrangement>,
    replica: &ReplicaPlan,
) -> Vec<Vec<StageLayers>> {
    let nonempty_layers =
        |ranges: &[LayerRange]| ranges.iter().filter(|range| !range.is_empty()).map(layers).collect::<Vec<_>>();
    let stages = &plan.partition.stages;
    match (&replica.kind, arrangement) {
        (ReplicaKind::Strategy(strategy), _) => {
            let stages = strategy.pipelines.iter().flat_map(|pipeline| &pipeline.partition.stages);
            stages.map(|ranges| nonempty_layers(ranges)).collect()
        }
        (ReplicaKind::Groups(_), _) => vec![nonempty_layers(&stages.concat())],
        (_, Some(arrangement)) => arrangement.cut.iter().map(|&cut| nonempty_layers(&stages[cut as usize])).collect(),
        (_, None) => stages.iter().map(|ranges| nonempty_layers(ranges)).collect(),
    }
}

fn undivided_samples(batch: &PackedBatch, sequences: &[u32]) -> MicrobatchSamples {
    let samples = |&sequence: &u32| {
        let members = batch.member_range(sequence as usize).zip(batch.members(sequence as usize));
        members.map(|(sample, member)| SamplePart { sample, tokens: member.tokens, from_ppm: 0, to_ppm: FULL_PPM })
    };
    MicrobatchSamples { module: None, samples: sequences.iter().flat_map(samples).collect() }
}

fn part_samples(scenario: &Scenario, batch: &PackedBatch, replica: &ReplicaPlan) -> Vec<MicrobatchSamples> {
    let contents: Vec<MicrobatchContents> =
        replica.microbatches.iter().map(|sequences| batch.contents(sequences)).collect();
    let undivided: Vec<MicrobatchSamples> =
        replica.microbatches.iter().map(|sequences| undivided_samples(batch, sequences)).collect();
    let part = |part: &planscope_plan::plan::Part| {
        let (microbatch, module) = (part.microbatch as usize, part.module as usize);
        let packing = scenario.workload.packing;
        let instances = Instances::new(&contents[microbatch], &scenario.model.modules[module], packing);
        let samples = instances.sample_parts(part.first..part.end).into_iter();
        let samples = samples.map(|(member, from_ppm, to_ppm)| SamplePart {
            from_ppm,
            to_ppm,
            ..undivided[microbatch].samples[member]
        });
        MicrobatchSamples { module: Some(part.module), samples: samples.collect() }
    };
    replica.parts().iter().map(part).collect()
}
