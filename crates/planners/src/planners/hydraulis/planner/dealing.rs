//! Sequence assignment to pipelines: static packing and round-robin distribution, or the Hydraulis
//! assignment.

use super::profile::Profiled;
use crate::planners::hydraulis::pipeline_costs::schedule;
use crate::planners::hydraulis::{Assignment, DispatchSettings, PackingSettings, SchemeCost, assign, dispatch};
use planscope_plan::plan::{OptimizerSharding, ReplicaKind, ReplicaPlan, SchemedPipeline, Strategy};

/// Work of a pipeline in an iteration.
#[derive(Debug, Clone)]
pub(crate) struct Dealt {
    /// Index into the profiled schemes.
    pub scheme: usize,
    pub phase: u32,
    /// Sequences per microbatch, as indices into the batch.
    pub microbatches: Vec<Vec<u32>>,
    /// Time in seconds by the fitted cost.
    pub estimated_s: f64,
}

/// Packs sequences into microbatches of `capacity` tokens by first-fit decreasing.
pub(crate) fn packed_to(lengths: &[u64], sequences: &[u32], capacity: u64) -> Vec<Vec<u32>> {
    let mut order = sequences.to_vec();
    order.sort_by_key(|&index| (std::cmp::Reverse(lengths[index as usize]), index));
    let mut bins: Vec<(u64, Vec<u32>)> = Vec::new();
    for index in order {
        let tokens = lengths[index as usize];
        match bins.iter_mut().find(|(used, _)| used + tokens <= capacity) {
            Some((used, bin)) => {
                *used += tokens;
                bin.push(index);
            }
            None => bins.push((tokens, vec![index])),
        }
    }
    bins.into_iter().map(|(_, bin)| bin).collect()
}

/// Pipeline time in seconds: Σ_j T_j + (PP - 1) max_j T_j for the microbatches j.
///
/// Hydraulis Eq. 1 uses the maximum for all microbatches, which is equivalent if they are equal.
/// Hydraulis Eq. 2 uses individual times.
pub(crate) fn seconds(cost: &SchemeCost, microbatches: &[Vec<u32>], lengths: &[u64]) -> f64 {
    let microbatch_time =
        |sequences: &Vec<u32>| sequences.iter().map(|&index| cost.work(lengths[index as usize])).sum::<f64>() + cost.c;
    let all: Vec<f64> = microbatches.iter().map(microbatch_time).collect();
    all.iter().sum::<f64>() + f64::from(cost.pp - 1) * all.iter().copied().fold(0.0, f64::max)
}

/// Packs sequences to `capacity` and distributes the microbatches round-robin across equal
/// pipelines.
pub(crate) fn in_turn(
    (scheme_index, scheme): (usize, &Profiled),
    copies: u32,
    lengths: &[u64],
    sequences: &[u32],
    (capacity, phase): (u64, u32),
) -> Vec<Dealt> {
    let packed = packed_to(lengths, sequences, capacity);
    let pipeline = |copy: usize| {
        let microbatches: Vec<Vec<u32>> = packed.iter().skip(copy).step_by(copies as usize).cloned().collect();
        let estimated_s = seconds(&scheme.cost, &microbatches, lengths);
        Dealt { scheme: scheme_index, phase, microbatches, estimated_s }
    };
    (0..copies as usize).map(pipeline).collect()
}

/// Distributes sequences across equal pipelines by Hydraulis Eq. 3, then packs each pipeline to
/// `capacity` (step a of the ablation).
pub(crate) fn dispatched(
    (scheme_index, scheme): (usize, &Profiled),
    copies: u32,
    lengths: &[u64],
    (capacity, seed): (u64, u32),
) -> Option<Vec<Dealt>> {
    let pipelines = vec![scheme.cost; copies as usize];
    let settings = DispatchSettings { seed, ..DispatchSettings::default() };
    let dealt = dispatch(lengths, &pipelines, settings).ok()?;
    let pipeline = |sequences: &Vec<u32>| {
        let microbatches = packed_to(lengths, sequences, capacity);
        let estimated_s = seconds(&scheme.cost, &microbatches, lengths);
        Dealt { scheme: scheme_index, phase: 0, microbatches, estimated_s }
    };
    Some(dealt.pipelines.iter().map(pipeline).collect())
}

/// Runs both assignment stages for a strategy. `copies` is the number of pipelines per scheme.
pub(crate) fn assigned(schemes: &[Profiled], copies: &[u32], lengths: &[u64], seed: u32) -> Option<Vec<Dealt>> {
    let pipelines = pipelines(schemes, copies);
    let settings = DispatchSettings { seed, ..DispatchSettings::default() };
    let assignment = assign(lengths, &pipelines, settings, PackingSettings::default()).ok()?;
    Some(dealt_pipelines(schemes, copies, lengths, &assignment))
}

/// Costs for a strategy's pipelines, ordered by scheme.
pub(crate) fn pipelines(schemes: &[Profiled], copies: &[u32]) -> Vec<SchemeCost> {
    let repeated = |(scheme, &count): (&Profiled, &u32)| std::iter::repeat_n(scheme.cost, count as usize);
    schemes.iter().zip(copies).flat_map(repeated).collect()
}

/// Converts an assignment to the pipelines from [`pipelines`].
pub(crate) fn dealt_pipelines(
    schemes: &[Profiled],
    copies: &[u32],
    lengths: &[u64],
    assignment: &Assignment,
) -> Vec<Dealt> {
    let repeated = |(scheme_index, &count): (usize, &u32)| std::iter::repeat_n(scheme_index, count as usize);
    let places = copies.iter().enumerate().flat_map(repeated);
    let dealt = places.zip(&assignment.packings).map(|(scheme, packing)| {
        let microbatches = packing.as_ref().map_or_else(Vec::new, |packing| packing.microbatches.clone());
        let estimated_s = seconds(&schemes[scheme].cost, &microbatches, lengths);
        Dealt { scheme, phase: 0, microbatches, estimated_s }
    });
    dealt.collect()
}

/// Builds the plan for an iteration. Pipelines are sorted by stage size in descending order, so
/// stages whose degree divides the node size stay inside a node.
pub(crate) fn replica(schemes: &[Profiled], mut dealt: Vec<Dealt>, optimizer: OptimizerSharding) -> ReplicaPlan {
    dealt.sort_by_key(|pipeline| {
        let scheme = schemes[pipeline.scheme].scheme;
        (pipeline.phase, std::cmp::Reverse((scheme.stage_devices(), scheme.pipeline, scheme.tensor)))
    });
    let phases = dealt.iter().map(|pipeline| pipeline.phase + 1).max().unwrap_or(0);
    let slowest = |phase: u32| {
        let phase_pipelines = dealt.iter().filter(move |pipeline| pipeline.phase == phase);
        phase_pipelines.map(|pipeline| pipeline.estimated_s).fold(0.0, f64::max)
    };
    let estimated_s = (0..phases).map(slowest).sum();
    let copies = dealt.len() as u32;
    let mut microbatches = Vec::new();
    let mut pipelines = Vec::with_capacity(dealt.len());
    let (mut phase, mut next) = (0, 0);
    for (number, pipeline) in dealt.into_iter().enumerate() {
        let Profiled { scheme, partition, .. } = &schemes[pipeline.scheme];
        if pipeline.phase != phase {
            (phase, next) = (pipeline.phase, 0);
        }
        let each = scheme.stage_devices();
        // Megatron-LM device order: replicas of a stage are adjacent.
        let (first_device, stage_stride) = match optimizer {
            OptimizerSharding::Replicas => (number as u32 * each, copies * each),
            OptimizerSharding::AllDevices => (next, each),
        };
        next += scheme.devices();
        pipelines.push(SchemedPipeline {
            scheme: *scheme,
            first_device,
            stage_stride,
            partition: partition.clone(),
            microbatches: pipeline.microbatches.len() as u32,
            phase: pipeline.phase,
            estimated_s: pipeline.estimated_s,
        });
        microbatches.extend(pipeline.microbatches);
    }
    let strategy = Strategy { pipelines, optimizer, estimated_s };
    let schedule = schedule(&strategy);
    ReplicaPlan::new(microbatches, ReplicaKind::Strategy(strategy), schedule)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity 10: 6 and 4 fill microbatch 0; 5, 3 and 2 fill microbatch 1.
    #[test]
    fn first_fit_decreasing_fills_free_space() {
        assert_eq!(packed_to(&[2, 6, 3, 5, 4], &[0, 1, 2, 3, 4], 10), [vec![1, 4], vec![3, 2, 0]]);
        assert_eq!(packed_to(&[2, 6, 3, 5, 4], &[0, 2], 10), [vec![2, 0]]);
    }

    /// Work is l² and c is 1. Microbatches of lengths 3 (cost 10) and 1, 2 (cost 6) on three stages
    /// take 10 + 6 + 2 x 10.
    #[test]
    fn the_slowest_microbatch_goes_through_all_stages() {
        let cost = SchemeCost { tp: 1, pp: 3, cp: 1, a: 1.0, b: 0.0, c: 1.0, max_len: 10, util_len: 0 };
        let lengths = [3, 1, 2];
        assert!((seconds(&cost, &[vec![0], vec![1, 2]], &lengths) - 36.0).abs() < 1e-12);
        assert!(seconds(&cost, &[], &lengths).abs() < 1e-12);
    }
}
