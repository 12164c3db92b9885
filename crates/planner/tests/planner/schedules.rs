//! Validates all generated schedules by the independent checker, for arbitrary times.

use planner::check::check_run;
use planner::cost::{PipelineCosts, UniformTimes};
use planner::export::{schedule_csv, torch_csv};
use planner::lower_bound::lower_bound;
use planner::random::Random;
use planner::schedule::wait_free_cyclic::{Effort, search};
use planner::schedule::{Grouping, Schedule, gpipe, interleaved, one_f_one_b};
use planner::simulate::{StepEnd, assemble, execute};
use planner::units::{Bytes, Nanos};
use proptest::prelude::*;

/// Multiplies every time by a number below 50 and gives every pass its own memory, drawn from a seed.
pub(crate) fn vary(costs: &mut PipelineCosts, seed: u32) {
    let mut random = Random::new(seed, 0);
    let columns = [
        &mut costs.forward,
        &mut costs.input_grad,
        &mut costs.weight_grad,
        &mut costs.send_forward,
        &mut costs.send_backward,
    ];
    for time in columns.into_iter().flatten() {
        *time = Nanos::new(time.get() * random.below(50));
    }
    for (activation, transient) in costs.activation.iter_mut().zip(&mut costs.transient) {
        *activation = Bytes::new(1 + random.below(9));
        *transient = Bytes::new(random.below(4));
    }
}

/// Uneven microbatches on uneven stages, drawn from a seed.
fn uneven(ranks: usize, chunks: usize, microbatches: usize, seed: u32) -> PipelineCosts {
    let unit = Nanos::new(1);
    let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: unit };
    let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times);
    vary(&mut costs, seed);
    costs
}

fn passes(schedule: &Schedule, costs: &PipelineCosts, limit: Bytes) -> Result<(), TestCaseError> {
    let execution = execute(schedule, costs).map_err(|deadlock| TestCaseError::fail(deadlock.to_string()))?;
    check_run(schedule, &execution, costs, limit).map_err(|violation| TestCaseError::fail(violation.to_string()))?;
    prop_assert!(lower_bound(costs) <= execution.makespan());
    let end = StepEnd::from_executions(costs.ranks(), std::iter::once(&execution));
    let timeline = assemble(schedule, &execution, costs, &end);
    prop_assert_eq!(torch_csv(&timeline), schedule_csv(schedule), "a timeline tells the schedule it came from");
    for lane in timeline.lane_offsets.windows(2) {
        for span in lane[0] as usize + 1..lane[1] as usize {
            prop_assert!(timeline.end_ns(span - 1) <= timeline.start_ns[span], "spans of a lane never overlap");
        }
    }
    prop_assert_eq!(timeline.critical_path.first().map(|&first| timeline.start_ns[first as usize]), Some(0));
    for pair in timeline.critical_path.windows(2) {
        prop_assert_eq!(timeline.end_ns(pair[0] as usize), timeline.start_ns[pair[1] as usize], "no hole in the path");
    }
    let peak = |rank: usize| *timeline.memory[rank].bytes.iter().max().unwrap();
    prop_assert!(
        (0..costs.ranks()).all(|rank| peak(rank) <= limit.get() && timeline.memory[rank].peak_bytes >= peak(rank))
    );
    Ok(())
}

proptest! {
    #[test]
    fn fixed_schedules_pass(ranks in 1_usize..7, chunks in 1_usize..4, microbatches in 1_usize..14, seed in any::<u32>()) {
        let limit = Bytes::new(u64::MAX);
        let costs = uneven(ranks, 1, microbatches, seed);
        passes(&gpipe(ranks, microbatches), &costs, limit)?;
        passes(&one_f_one_b(ranks, microbatches), &costs, limit)?;
        let costs = uneven(ranks, chunks, microbatches, seed);
        passes(&interleaved(ranks, chunks, microbatches, Grouping::Balanced), &costs, limit)?;
    }

    #[test]
    fn dynamic_schedules_pass_within_their_memory(
        ranks in 1_usize..6, chunks in 1_usize..4, microbatches in 1_usize..12, seed in any::<u32>(), limit in 20_u64..200,
    ) {
        let costs = uneven(ranks, chunks, microbatches, seed);
        let found = search(&costs, Bytes::new(limit), Effort::Thorough { swaps: 12 }, Nanos::ZERO, &mut Random::new(seed, 1));
        if let Ok(selection) = found {
            passes(&selection.schedule, &costs, Bytes::new(limit))?;
        } else {
            prop_assert!(limit < 9 * (microbatches * chunks) as u64 + 4, "all activations at once fit, so an order exists");
        }
    }
}
