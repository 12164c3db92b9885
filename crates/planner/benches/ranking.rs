//! Measures rankings per second in the PipeWeaver search. The pipeline is similar to VLM-L: 8
//! ranks, a one-segment encoder, a three-segment backbone, uneven microbatches. `tests/studies.rs`
//! reports the ranking quality.

#[path = "shared/threads.rs"]
mod threads;

use divan::counter::ItemsCount;
use planner::cost::{PipelineCosts, UniformTimes};
use planner::host::{NeverCancelled, SequentialWorkers};
use planner::planners::pipeweaver::ranking::{Budget, Goal, Starts, Strategy, search};
use planner::random::Random;
use planner::schedule::dual_queue::{Interleaver, Interleaving, Priorities};
use planner::stage_graph::{Flows, Path};
use planner::units::{Bytes, Nanos};
use threads::Threads;

const RANKS: usize = 8;
const SEGMENTS: usize = 4;
const ROLLOUTS: u32 = 320;

fn main() {
    divan::main();
}

/// Microbatches that contain 1 to 4 image sub-microbatches. Durations per stage: sub-microbatch 10
/// to 20 ms, backbone 30 ms.
fn pipeline(microbatches: u32) -> (PipelineCosts, Vec<u32>) {
    let mut random = Random::new(1, 0);
    let (mut paths, mut groups) = (Vec::new(), Vec::new());
    for microbatch in 0..microbatches {
        let first = paths.len();
        for _ in 0..=random.below(4) {
            paths.push(Path { stages: 0..RANKS, inputs: Vec::new() });
            groups.push(2 * microbatch);
        }
        paths.push(Path { stages: RANKS..SEGMENTS * RANKS, inputs: (first..paths.len()).collect() });
        groups.push(2 * microbatch + 1);
    }
    let ranks = (0..SEGMENTS * RANKS).map(|stage| (stage % RANKS) as u32).collect();
    let flows = Flows::new(RANKS, ranks, &paths).expect("parts stand before what they feed");
    let millisecond = Nanos::new(1_000_000);
    let times = UniformTimes {
        forward: millisecond,
        input_grad: millisecond,
        weight_grad: millisecond,
        communication: Nanos::new(200_000),
    };
    let mut costs = PipelineCosts::uniform_over(flows, times);
    for (microbatch, path) in paths.iter().enumerate() {
        let time = if path.inputs.is_empty() { 10 + random.below(10) } else { 30 } * 1_000_000;
        for cell in costs.flows.microbatch_cells(microbatch) {
            let time = Nanos::new(time);
            (costs.forward[cell], costs.input_grad[cell], costs.weight_grad[cell]) = (time, time, time);
            costs.activation[cell] = Bytes::new(time.get());
        }
    }
    (costs, groups)
}

/// Single-threaded rollouts, by strategy. Items are rankings.
#[divan::bench(args = Strategy::ALL, consts = [16, 32])]
fn rankings<const MICROBATCHES: u32>(bencher: divan::Bencher<'_, '_>, strategy: Strategy) {
    let (costs, groups) = pipeline(MICROBATCHES);
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(u64::MAX)).expect("memory without end");
    let budget = Budget { starts: Starts::All, rollouts: ROLLOUTS, seed: 1, stream: 0 };
    bencher
        .counter(ItemsCount::new(ROLLOUTS))
        .bench(|| search(&interleaving, strategy, Goal::Fastest, budget, &SequentialWorkers, &NeverCancelled).end);
}

/// A single interleaving for a fixed ranking.
#[divan::bench(consts = [16, 32])]
fn single_interleaving<const MICROBATCHES: u32>(bencher: divan::Bencher<'_, '_>) {
    let (costs, groups) = pipeline(MICROBATCHES);
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(u64::MAX)).expect("memory without end");
    let priorities = Priorities::natural(interleaving.groups());
    let mut interleaver = Interleaver::new(&interleaving);
    bencher.bench_local(|| interleaver.end(&priorities));
}

/// Tree search on worker threads. Items are rankings, so the rate ratio is the speed-up.
#[divan::bench(args = [1, 2, 4])]
fn tree_search_on_threads(bencher: divan::Bencher<'_, '_>, threads: usize) {
    let (costs, groups) = pipeline(16);
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(u64::MAX)).expect("memory without end");
    let budget = Budget { starts: Starts::All, rollouts: 4 * ROLLOUTS, seed: 1, stream: 0 };
    bencher.counter(ItemsCount::new(4 * ROLLOUTS)).bench(|| {
        search(&interleaving, Strategy::MonteCarlo, Goal::Fastest, budget, &Threads(threads), &NeverCancelled).end
    });
}
