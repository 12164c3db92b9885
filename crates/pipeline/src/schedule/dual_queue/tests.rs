//! Invariants: complete orders, times equal to the simulator's, memory limits, no deadlocks.

use proptest::prelude::*;

use super::*;
use crate::schedule::one_f_one_b;
use crate::simulate::{StepEnd, execute};
use planscope_core::random::Random;
use planscope_core::stage_graph::{Flows, Path};
use planscope_cost::cost::UniformTimes;

fn times(communication: u64) -> UniformTimes {
    let unit = Nanos::new(1);
    UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: Nanos::new(communication) }
}

/// Encoders with sub-microbatches and a backbone with `segments` segments, with random times and
/// memory.
pub(super) fn multimodal(ranks: usize, microbatches: usize, segments: usize, seed: u32) -> (PipelineCosts, Vec<u32>) {
    let mut random = Random::new(seed, 0);
    let (mut paths, mut groups) = (Vec::new(), Vec::new());
    for microbatch in 0..microbatches as u32 {
        let parts = random.below(4) as usize;
        let first = paths.len();
        for _ in 0..parts {
            paths.push(Path { stages: 0..ranks, inputs: Vec::new() });
            groups.push(2 * microbatch);
        }
        paths.push(Path { stages: ranks..ranks * (1 + segments), inputs: (first..first + parts).collect() });
        groups.push(2 * microbatch + 1);
    }
    let stage_rank = (0..ranks * (1 + segments)).map(|stage| (stage % ranks) as u32).collect();
    let flows = Flows::new(ranks, stage_rank, &paths).unwrap();
    let mut costs = PipelineCosts::uniform_over(flows, times(random.below(5)));
    for column in [&mut costs.forward, &mut costs.input_grad, &mut costs.weight_grad] {
        for time in column.iter_mut() {
            *time = Nanos::new(random.below(50));
        }
    }
    for bytes in &mut costs.activation {
        *bytes = Bytes::new(1 + random.below(30));
    }
    (costs, groups)
}

fn shuffled(count: usize, random: &mut Random) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    for index in (1..count).rev() {
        order.swap(index, random.below(index as u64 + 1) as usize);
    }
    order
}

/// With equal times and the memory of 1F1B, the makespan equals the 1F1B makespan, (m + p - 1)(F +
/// B).
#[test]
fn equal_microbatches_with_1f1b_memory_take_its_time() {
    let costs = PipelineCosts::uniform(4, 1, 8, times(0));
    let groups: Vec<u32> = (0..8).collect();
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(4)).unwrap();
    let found = interleave(&interleaving, &Priorities::natural(8));
    assert_eq!(found.end, execute(&one_f_one_b(4, 8), &costs).unwrap().makespan());
    assert_eq!(found.end, Nanos::new((8 + 3) * 3));
}

#[test]
fn a_microbatch_that_never_fits_is_named() {
    let (mut costs, groups) = multimodal(2, 3, 2, 5);
    costs.activation.fill(Bytes::new(1));
    let backbone = groups.iter().rposition(|&group| group == 3).unwrap();
    let cell = costs.cell(4, backbone);
    costs.activation[cell] = Bytes::new(100);
    let error = Interleaving::new(&costs, &groups, Bytes::new(50)).unwrap_err();
    assert_eq!((error.rank, error.microbatch), (0, backbone));
    assert!(error.needs > Bytes::new(100));
}

proptest! {
    #[test]
    fn every_walk_is_complete_and_takes_the_time_that_the_simulator_says(
        ranks in 1_usize..6, microbatches in 1_usize..9, segments in 1_usize..4, seed in any::<u32>(),
        spare in 0_u64..200,
    ) {
        let (costs, groups) = multimodal(ranks, microbatches, segments, seed);
        let mut random = Random::new(seed, 1);
        let count = 2 * microbatches;
        let priorities = Priorities { forward: shuffled(count, &mut random), backward: shuffled(count, &mut random) };
        // Limits from the maximum need of a single family upwards, so that the algorithm must avoid
        // deadlocks.
        let min_memory = Interleaving::new(&costs, &groups, Bytes::ZERO).unwrap_err().needs;
        let limit = min_memory + Bytes::new(spare);
        let interleaving = Interleaving::new(&costs, &groups, limit).unwrap();
        let found = interleave(&interleaving, &priorities);
        let execution = execute(&found.schedule, &costs).unwrap();
        let end = StepEnd::from_executions(ranks, std::iter::once(&execution)).iteration_end(&costs);
        prop_assert_eq!(end, found.end);
        prop_assert!(crate::lower_bound::lower_bound(&costs) <= end);
        // A repeated run with reused buffers has the same result.
        let mut interleaver = Interleaver::new(&interleaving);
        interleaver.end(&Priorities::natural(count));
        prop_assert_eq!(interleaver.interleave(&priorities), found);
    }
}
