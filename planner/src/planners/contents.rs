//! Samples per microbatch and layers per stage for timelines. They identify corresponding actions
//! in different plans.

use crate::cost::load::Instances;
use crate::cost::partition::LayerRange;
use crate::plan::Arrangement;
use crate::plan::{Plan, ReplicaKind, ReplicaPlan};
use crate::scenario::Scenario;
use crate::timeline::{MicrobatchSamples, SamplePart, StageLayers, Timeline};
use crate::workload::{MicrobatchContents, PackedBatch};

/// A complete sample, in millionths.
const WHOLE: u32 = 1_000_000;

/// Returns the samples per microbatch or sub-microbatch. Empty if the timeline has a different
/// number of microbatches.
pub(crate) fn of_microbatches(
    scenario: &Scenario,
    batch: &PackedBatch,
    replica: &ReplicaPlan,
    timeline: &Timeline,
) -> Vec<MicrobatchSamples> {
    let contents = if replica.parts().is_empty() {
        replica.microbatches.iter().map(|sequences| whole(batch, sequences)).collect()
    } else {
        of_parts(scenario, batch, replica)
    };
    if contents.len() == timeline.microbatches.len() { contents } else { Vec::new() }
}

/// Returns the layers per stage. Empty if pipelines have different stages.
pub(crate) fn of_stages(
    plan: &Plan,
    arrangement: Option<&Arrangement>,
    replica: &ReplicaPlan,
) -> Vec<Vec<StageLayers>> {
    let of = |ranges: &[LayerRange]| {
        let layers =
            |range: &LayerRange| StageLayers { module: range.module as u32, first: range.first, end: range.end };
        ranges.iter().filter(|range| !range.is_empty()).map(layers).collect::<Vec<_>>()
    };
    let stages = &plan.partition.stages;
    match (&replica.kind, arrangement) {
        (ReplicaKind::Strategy(_), _) => Vec::new(),
        (ReplicaKind::Groups(_), _) => vec![of(&stages.concat())],
        (_, Some(arrangement)) => arrangement.cut.iter().map(|&cut| of(&stages[cut as usize])).collect(),
        (_, None) => stages.iter().map(|ranges| of(ranges)).collect(),
    }
}

fn whole(batch: &PackedBatch, sequences: &[u32]) -> MicrobatchSamples {
    let samples = |&sequence: &u32| {
        let members = batch.member_range(sequence as usize).zip(batch.members(sequence as usize));
        members.map(|(sample, member)| SamplePart { sample, tokens: member.tokens, from_ppm: 0, to_ppm: WHOLE })
    };
    MicrobatchSamples { module: None, samples: sequences.iter().flat_map(samples).collect() }
}

fn of_parts(scenario: &Scenario, batch: &PackedBatch, replica: &ReplicaPlan) -> Vec<MicrobatchSamples> {
    let contents: Vec<MicrobatchContents> = replica.microbatches.iter().map(|own| batch.contents(own)).collect();
    let whole: Vec<MicrobatchSamples> = replica.microbatches.iter().map(|own| whole(batch, own)).collect();
    let part = |part: &crate::plan::Part| {
        let (microbatch, module) = (part.microbatch as usize, part.module as usize);
        let packing = scenario.workload.packing;
        let instances = Instances::of(&contents[microbatch], &scenario.model.modules[module], packing);
        let samples = instances.sample_parts(part.first..part.end).into_iter();
        let samples = samples.map(|(member, from_ppm, to_ppm)| SamplePart {
            from_ppm,
            to_ppm,
            ..whole[microbatch].samples[member]
        });
        MicrobatchSamples { module: Some(part.module), samples: samples.collect() }
    };
    replica.parts().iter().map(part).collect()
}
