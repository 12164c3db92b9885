use proptest::prelude::*;

use super::*;
use planscope_check::check::check_run;
use planscope_core::host::NeverCancelled;
use planscope_cost::cost::UniformTimes;
use planscope_pipeline::schedule::{Grouping, interleaved};
use planscope_pipeline::simulate::execute;

fn uneven(ranks: usize, chunks: usize, microbatches: usize, seed: u32, send: u64) -> PipelineCosts {
    let times = UniformTimes { communication: Nanos::new(send), ..UniformTimes::default() };
    let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times);
    let mut random = Random::new(seed, 0);
    for cell in 0..costs.flows.cells() {
        costs.forward[cell] = Nanos::new(random.below(12));
        costs.input_grad[cell] = Nanos::new(random.below(24));
    }
    costs
}

fn justified(costs: &PipelineCosts, limit: Bytes, start: (Nanos, Schedule), passes: u64, seed: u32) -> Justified {
    let limits = Limits { passes, target: Nanos::ZERO, cancellation: &NeverCancelled };
    justify(costs, limit, start, seed, &limits)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Times of zero, sends that queue, several chunks per rank, and any limit on activations.
    #[test]
    fn a_justified_schedule_passes_the_check_and_is_never_longer(
        ranks in 1_usize..6, chunks in 1_usize..3, microbatches in 1_usize..12, seed in any::<u32>(),
        send in 0_u64..9, limit in 1_u64..12,
    ) {
        let costs = uneven(ranks, chunks, microbatches, seed, send);
        let start = interleaved(ranks, chunks, microbatches, Grouping::Balanced);
        let peak = {
            let execution = execute(&start, &costs).unwrap();
            let peaks = (0..ranks).map(|rank| planscope_pipeline::simulate::peak_memory(rank, &start, &execution, &costs));
            peaks.max().unwrap()
        };
        let limit = peak.max(Bytes::new(limit));
        let before = schedule_end(&start, &costs).unwrap();
        let found = justified(&costs, limit, (before, start), 40 + u64::from(seed % 2) * 2000, seed);
        let execution = execute(&found.schedule, &costs).unwrap();
        prop_assert_eq!(check_run(&found.schedule, &execution, &costs, limit), Ok(()));
        prop_assert_eq!(execution.makespan(), found.end);
        prop_assert!(found.end <= before);
    }
}

/// Equal arguments give the same schedule; another seed and more passes may give a faster one.
#[test]
fn passes_are_deterministic_and_counted() {
    let costs = uneven(4, 1, 24, 3, 0);
    let start = planscope_pipeline::schedule::one_f_one_b(4, 24);
    let before = schedule_end(&start, &costs).unwrap();
    let limit = Bytes::new(8);
    let [first, again, longer] =
        [60, 60, 600].map(|passes| justified(&costs, limit, (before, start.clone()), passes, 7));
    assert_eq!((first.passes, first.end), (60, again.end));
    assert_eq!(first.schedule, again.schedule);
    assert!(longer.end <= first.end && first.end < before);
    let none = justified(&costs, limit, (before, start.clone()), 0, 7);
    assert_eq!((none.passes, none.end, none.schedule), (0, before, start));
}
