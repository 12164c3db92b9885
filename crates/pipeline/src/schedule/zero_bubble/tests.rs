use proptest::prelude::*;

use super::*;
use crate::lower_bound::{lower_bound, memory_bound};
use crate::schedule::{Grouping, interleaved_zero_bubble, one_f_one_b};
use crate::simulate::{Execution, peak_memory};
use planscope_core::random::Random;
use planscope_cost::cost::UniformTimes;

fn uniform(ranks: usize, microbatches: usize, [forward, input, weight]: [u64; 3]) -> PipelineCosts {
    let times = UniformTimes {
        forward: Nanos::new(forward),
        input_grad: Nanos::new(input),
        weight_grad: Nanos::new(weight),
        communication: Nanos::ZERO,
    };
    PipelineCosts::uniform(ranks, 1, microbatches, times)
}

fn span(execution: &Execution) -> u64 {
    let ranks = 0..execution.start.len();
    ranks.map(|rank| (execution.rank_end(rank) - execution.start[rank][0]).get()).max().unwrap_or(0)
}

/// Returns makespan, maximum rank span and maximum activations per rank.
fn measures(kind: ScheduleKind, costs: &PipelineCosts) -> (u64, u64, u64) {
    let schedule = automatic(kind, costs, None, &[]).unwrap();
    let execution = execute(&schedule, costs).unwrap();
    let peaks = (0..costs.ranks()).map(|rank| peak_memory(rank, &schedule, &execution, costs).get());
    (execution.makespan().get(), span(&execution), peaks.max().unwrap())
}

/// Published reference: p = 4, m = 12, F = I = W = 1000. The work per rank is 36000, and rank 3
/// starts at 3000.
#[test]
fn the_reference_is_reached() {
    let costs = uniform(4, 12, [1000; 3]);
    assert_eq!(measures(ScheduleKind::ZbH1, &costs), (39_000, 39_000, 4));
    assert_eq!(measures(ScheduleKind::ZbH2, &costs), (39_000, 36_000, 8));
}

/// The bubble is (p - 1)(F + I - W) for ZB-H1 and <= (p - 1)(F + I - 2 W) for ZB-H2, for all times
/// with W <= I and W <= F.
#[test]
fn bubble_matches_the_closed_form() {
    for (ranks, times) in
        [2, 3, 4, 7, 8, 12].into_iter().flat_map(|p| [[10; 3], [10, 12, 8], [5, 6, 3]].map(|t| (p, t)))
    {
        let [forward, input, weight] = times;
        for microbatches in [2 * ranks - 1, 2 * ranks, 4 * ranks] {
            let costs = uniform(ranks, microbatches, times);
            let work = microbatches as u64 * (forward + input + weight);
            let (_, h1, activations) = measures(ScheduleKind::ZbH1, &costs);
            let others = ranks as u64 - 1;
            assert_eq!(
                (h1 - work, activations),
                (others * (forward + input - weight), ranks as u64),
                "{ranks} {times:?}"
            );
            let (_, h2, peak_activations) = measures(ScheduleKind::ZbH2, &costs);
            assert!(h2 - work <= others * (forward + input - 2 * weight), "{ranks} {times:?} {}", h2 - work);
            assert!(peak_activations <= 2 * ranks as u64);
        }
    }
}

#[test]
fn a_microbatch_that_does_not_fit_is_named() {
    let mut costs = uniform(3, 4, [1; 3]);
    costs.activation[4] = Bytes::new(7);
    let rejection = zb_h1(&costs, Some(Bytes::new(6)));
    let (kind, limit) = (ScheduleKind::ZbH1, Bytes::new(6));
    assert_eq!(rejection, Err(ScheduleError::Memory { kind, rank: 1, needs: Bytes::new(7), limit }));
}

/// Memory for fewer activations than ranks. The makespan is at most 1.25 times the bound of memory and
/// work for equal times, and 1.3 times for others; rounds alone take up to three times the bound.
#[test]
fn tight_memory_does_not_idle_needlessly() {
    for (ranks, microbatches) in [(2, 8), (4, 12), (4, 16), (8, 24), (8, 32)] {
        for (activations, (times, ratio)) in
            (1..=ranks as u64).flat_map(|count| [([1000; 3], 1.25), ([1000, 1200, 800], 1.3)].map(|case| (count, case)))
        {
            let costs = uniform(ranks, microbatches, times);
            let limit = Bytes::new(activations);
            let bound = lower_bound(&costs).max(memory_bound(&costs, limit)).get() as f64;
            for kind in [ScheduleKind::ZbH1, ScheduleKind::ZbH2] {
                let schedule = automatic(kind, &costs, Some(limit), &[]).unwrap();
                let execution = execute(&schedule, &costs).unwrap();
                let end = execution.makespan().get() as f64;
                let name = format!("{kind:?} p {ranks} m {microbatches} {activations} {times:?}: {end} {bound}");
                assert!(end <= ratio * bound, "{name}");
                assert!((0..ranks).all(|rank| peak_memory(rank, &schedule, &execution, &costs) <= limit), "{name}");
            }
        }
    }
}

/// p = 8, m = 32, four activations: the rounds take 327,000.
#[test]
fn half_the_memory_of_1f1b_takes_half_of_the_time_of_rounds() {
    let costs = uniform(8, 32, [1000; 3]);
    let schedule = zb_h1(&costs, Some(Bytes::new(4))).unwrap();
    assert_eq!(execute(&schedule, &costs).unwrap().makespan().get(), 153_000);
}

proptest! {
    /// Random times per rank: the schedule fits the cap, simulates to the built times, and is not
    /// slower than the fixed orders.
    #[test]
    fn it_keeps_to_any_cap_and_is_never_behind_fixed_orders(
        ranks in 1_usize..8, microbatches in 1_usize..20, cap in 10_u64..80, communication in 0_u64..40, seed in any::<u32>(),
    ) {
        let mut costs = uniform(ranks, microbatches, [1; 3]);
        costs.send_everywhere(Nanos::new(communication));
        let mut random = Random::new(seed, 0);
        for time in [&mut costs.forward, &mut costs.input_grad, &mut costs.weight_grad].into_iter().flatten() {
            *time = Nanos::new(random.below(100));
        }
        let end = |schedule: &Schedule| execute(schedule, &costs).unwrap().makespan();
        let h1 = end(&zb_h1(&costs, None).unwrap());
        prop_assert!(h1 <= end(&interleaved_zero_bubble(ranks, 1, microbatches, Grouping::Fixed(ranks))));
        prop_assert!(h1 <= end(&one_f_one_b(ranks, microbatches)));
        prop_assert!(end(&zb_h2(&costs, None).unwrap()) <= h1);
        for cell in 0..costs.flows.cells() {
            costs.activation[cell] = Bytes::new(1 + random.below(8));
            costs.transient[cell] = Bytes::new(random.below(3));
        }
        for kind in [ScheduleKind::ZbH1, ScheduleKind::ZbH2] {
            let schedule = automatic(kind, &costs, Some(Bytes::new(cap)), &[]).unwrap();
            let execution = execute(&schedule, &costs).unwrap();
            for rank in 0..ranks {
                prop_assert!(peak_memory(rank, &schedule, &execution, &costs) <= Bytes::new(cap));
            }
        }
    }
}
