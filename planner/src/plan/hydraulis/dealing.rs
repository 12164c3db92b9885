//! Sequences dealt to pipelines: packed to the longest length and dealt in turn as static systems do, or as Hydraulis assigns them.

use super::profile::Profiled;
use crate::heterogeneous_strategies::{Assignment, DispatchSettings, PackingSettings, SchemeCost, assign, dispatch};
use crate::plan::ReplicaPlan;
use crate::plan::strategy::{OptimizerSharding, SchemedPipeline, Strategy, schedule};
use crate::schedule::Schedule;

/// What one pipeline of an iteration trains.
#[derive(Debug, Clone)]
pub(super) struct Dealt {
    /// Place of its scheme among the profiled ones.
    pub scheme: usize,
    pub phase: u32,
    /// Sequences of its microbatches, by index in the batch.
    pub microbatches: Vec<Vec<u32>>,
    /// Seconds by the fitted cost.
    pub estimated_s: f64,
}

/// Longest first, each to the first microbatch with room for it (first-fit decreasing).
pub(super) fn packed_to(lengths: &[u64], own: &[u32], capacity: u64) -> Vec<Vec<u32>> {
    let mut order = own.to_vec();
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

/// Seconds of a pipeline: every microbatch once, and the slowest on its way through the other stages.
///
/// Eq. 1, which takes all microbatches for as slow as the slowest, where they are equal; Eq. 2 with the microbatches as they are.
pub(super) fn seconds(cost: &SchemeCost, microbatches: &[Vec<u32>], lengths: &[u64]) -> f64 {
    let of = |own: &Vec<u32>| own.iter().map(|&index| cost.work(lengths[index as usize])).sum::<f64>() + cost.c;
    let all: Vec<f64> = microbatches.iter().map(of).collect();
    all.iter().sum::<f64>() + f64::from(cost.pp - 1) * all.iter().copied().fold(0.0, f64::max)
}

/// Equal pipelines: sequences packed to `capacity`, microbatches dealt in turn.
pub(super) fn in_turn(
    (place, scheme): (usize, &Profiled),
    copies: u32,
    lengths: &[u64],
    own: &[u32],
    (capacity, phase): (u64, u32),
) -> Vec<Dealt> {
    let packed = packed_to(lengths, own, capacity);
    let of = |copy: usize| {
        let microbatches: Vec<Vec<u32>> = packed.iter().skip(copy).step_by(copies as usize).cloned().collect();
        let estimated_s = seconds(&scheme.cost, &microbatches, lengths);
        Dealt { scheme: place, phase, microbatches, estimated_s }
    };
    (0..copies as usize).map(of).collect()
}

/// Equal pipelines: sequences dealt by Eq. 3, then packed to `capacity` in each (step a of the ablation).
pub(super) fn dispatched(
    (place, scheme): (usize, &Profiled),
    copies: u32,
    lengths: &[u64],
    (capacity, seed): (u64, u32),
) -> Option<Vec<Dealt>> {
    let pipelines = vec![scheme.cost; copies as usize];
    let settings = DispatchSettings { seed, ..DispatchSettings::default() };
    let dealt = dispatch(lengths, &pipelines, settings).ok()?;
    let of = |own: &Vec<u32>| {
        let microbatches = packed_to(lengths, own, capacity);
        let estimated_s = seconds(&scheme.cost, &microbatches, lengths);
        Dealt { scheme: place, phase: 0, microbatches, estimated_s }
    };
    Some(dealt.pipelines.iter().map(of).collect())
}

/// Both stages of the assignment under one strategy: of every scheme how many pipelines.
pub(super) fn assigned(schemes: &[Profiled], copies: &[u32], lengths: &[u64], seed: u32) -> Option<Vec<Dealt>> {
    let pipelines = pipelines(schemes, copies);
    let settings = DispatchSettings { seed, ..DispatchSettings::default() };
    let assignment = assign(lengths, &pipelines, settings, PackingSettings::default()).ok()?;
    Some(of_assignment(schemes, copies, lengths, &assignment))
}

/// The costs of the pipelines of a strategy, scheme by scheme.
pub(super) fn pipelines(schemes: &[Profiled], copies: &[u32]) -> Vec<SchemeCost> {
    let of = |(scheme, &count): (&Profiled, &u32)| std::iter::repeat_n(scheme.cost, count as usize);
    schemes.iter().zip(copies).flat_map(of).collect()
}

/// What an assignment to the pipelines of [`pipelines`] deals.
pub(super) fn of_assignment(
    schemes: &[Profiled],
    copies: &[u32],
    lengths: &[u64],
    assignment: &Assignment,
) -> Vec<Dealt> {
    let of = |(place, &count): (usize, &u32)| std::iter::repeat_n(place, count as usize);
    let places = copies.iter().enumerate().flat_map(of);
    let dealt = places.zip(&assignment.packings).map(|(scheme, packing)| {
        let microbatches = packing.as_ref().map_or_else(Vec::new, |packing| packing.microbatches.clone());
        let estimated_s = seconds(&schemes[scheme].cost, &microbatches, lengths);
        Dealt { scheme, phase: 0, microbatches, estimated_s }
    });
    dealt.collect()
}

/// The plan of an iteration: pipelines find their devices, those with the largest stages first, so that no stage of a degree that
/// divides a node stands across two.
pub(super) fn replica(schemes: &[Profiled], mut dealt: Vec<Dealt>, optimizer: OptimizerSharding) -> ReplicaPlan {
    dealt.sort_by_key(|own| {
        let scheme = schemes[own.scheme].scheme;
        (own.phase, std::cmp::Reverse((scheme.stage_devices(), scheme.pipeline, scheme.tensor)))
    });
    let phases = dealt.iter().map(|own| own.phase + 1).max().unwrap_or(0);
    let slowest = |phase: u32| {
        let own = dealt.iter().filter(move |own| own.phase == phase);
        own.map(|own| own.estimated_s).fold(0.0, f64::max)
    };
    let estimated_s = (0..phases).map(slowest).sum();
    let copies = dealt.len() as u32;
    let mut microbatches = Vec::new();
    let mut pipelines = Vec::with_capacity(dealt.len());
    let (mut phase, mut next) = (0, 0);
    for (number, own) in dealt.into_iter().enumerate() {
        let Profiled { scheme, partition, .. } = &schemes[own.scheme];
        if own.phase != phase {
            (phase, next) = (own.phase, 0);
        }
        let each = scheme.stage_devices();
        // As Megatron-LM places them: replicas of a stage stand next to each other.
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
            microbatches: own.microbatches.len() as u32,
            phase: own.phase,
            estimated_s: own.estimated_s,
        });
        microbatches.extend(own.microbatches);
    }
    let strategy = Strategy { pipelines, optimizer, estimated_s };
    let mut plan = ReplicaPlan::whole(microbatches, Schedule { stages: 0, microbatches: 0, orders: Vec::new() });
    plan.schedule = schedule(&strategy);
    plan.strategy = Some(strategy);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 6, 5, 4, 3, 2 into 10: 6 and 4 fill the first, 5 and 3 and 2 the second.
    #[test]
    fn the_longest_comes_first_and_goes_where_there_is_room() {
        assert_eq!(packed_to(&[2, 6, 3, 5, 4], &[0, 1, 2, 3, 4], 10), [vec![1, 4], vec![3, 2, 0]]);
        assert_eq!(packed_to(&[2, 6, 3, 5, 4], &[0, 2], 10), [vec![2, 0]]);
    }

    /// Work of l is l² here and c is 1: microbatches of 3 (10) and of 1 and 2 (6) on three stages take 10 + 6 + 2 x 10.
    #[test]
    fn the_slowest_microbatch_goes_through_all_stages() {
        let cost = SchemeCost { tp: 1, pp: 3, cp: 1, a: 1.0, b: 0.0, c: 1.0, max_len: 10, util_len: 0 };
        let lengths = [3, 1, 2];
        assert!((seconds(&cost, &[vec![0], vec![1, 2]], &lengths) - 36.0).abs() < 1e-12);
        assert!(seconds(&cost, &[], &lengths).abs() < 1e-12);
    }
}
