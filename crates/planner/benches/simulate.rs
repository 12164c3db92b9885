//! Benchmarks for simulating a replica including memory: 8 ranks x 64 microbatches, and the calls
//! that a search makes.

use planner::cost::{PipelineCosts, UniformTimes};
use planner::random::Random;
use planner::schedule::{Grouping, Schedule, interleaved, one_f_one_b};
use planner::simulate::{StepEnd, assemble, execute, peak_memory_over};
use planner::units::{Bytes, Nanos};

fn main() {
    divan::main();
}

/// Uneven microbatches: 1 to 9 ms per stage; backward time is twice the forward time.
fn uneven(ranks: usize, chunks: usize, microbatches: usize) -> PipelineCosts {
    let millisecond = Nanos::new(1_000_000);
    let times = UniformTimes {
        forward: millisecond,
        input_grad: millisecond,
        weight_grad: millisecond,
        communication: Nanos::new(50_000),
    };
    let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times);
    let mut random = Random::new(1, 0);
    for microbatch in 0..microbatches {
        let time = Nanos::new(1_000_000 + random.below(8_000_000));
        for stage in 0..costs.stages() {
            let cell = costs.cell(stage, microbatch);
            (costs.forward[cell], costs.input_grad[cell], costs.weight_grad[cell]) = (time, time, time);
            costs.activation[cell] = Bytes::new(time.get() * 100);
        }
    }
    costs
}

fn cases() -> [(usize, usize, usize); 4] {
    [(8, 1, 64), (8, 4, 64), (64, 1, 256), (16, 2, 512)]
}

fn schedule(ranks: usize, chunks: usize, microbatches: usize) -> Schedule {
    if chunks == 1 {
        one_f_one_b(ranks, microbatches)
    } else {
        interleaved(ranks, chunks, microbatches, Grouping::Balanced)
    }
}

/// Computes the content of a result page: times, memory curves for all ranks, critical path.
#[divan::bench(args = cases())]
fn timeline_with_memory(bencher: divan::Bencher<'_, '_>, (ranks, chunks, microbatches): (usize, usize, usize)) {
    let (costs, schedule) = (uneven(ranks, chunks, microbatches), schedule(ranks, chunks, microbatches));
    bencher.counter(divan::counter::ItemsCount::new(schedule.len())).bench(|| {
        let execution = execute(&schedule, &costs).expect("no deadlock");
        let end = StepEnd::from_executions(ranks, std::iter::once(&execution));
        assemble(&schedule, &execution, &costs, &end)
    });
}

/// Makespan and peak memory, as required by a schedule search.
#[divan::bench(args = cases())]
fn makespan_and_peak(bencher: divan::Bencher<'_, '_>, (ranks, chunks, microbatches): (usize, usize, usize)) {
    let (costs, schedule) = (uneven(ranks, chunks, microbatches), schedule(ranks, chunks, microbatches));
    bencher.counter(divan::counter::ItemsCount::new(schedule.len())).bench(|| {
        let execution = execute(&schedule, &costs).expect("no deadlock");
        (execution.makespan(), peak_memory_over(&schedule, &execution, &costs))
    });
}
