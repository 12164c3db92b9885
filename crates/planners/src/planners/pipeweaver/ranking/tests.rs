//! Tests on pipelines small enough to enumerate, and determinism tests.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use planscope_core::host::{NeverCancelled, SequentialWorkers, Workers};
use planscope_core::random::Random;
use planscope_core::stage_graph::{Flows, Path};
use planscope_core::units::Bytes;
use planscope_cost::cost::{PipelineCosts, UniformTimes};

/// `microbatches` uneven families: encoder sub-microbatches and a two-segment backbone.
pub(crate) fn uneven(ranks: usize, microbatches: u32, seed: u32) -> (PipelineCosts, Vec<u32>) {
    let mut random = Random::new(seed, 0);
    let (mut paths, mut groups) = (Vec::new(), Vec::new());
    for microbatch in 0..microbatches {
        let first = paths.len();
        let parts = 1 + random.below(3) as usize;
        for _ in 0..parts {
            paths.push(Path { stages: 0..ranks, inputs: Vec::new() });
            groups.push(2 * microbatch);
        }
        paths.push(Path { stages: ranks..3 * ranks, inputs: (first..first + parts).collect() });
        groups.push(2 * microbatch + 1);
    }
    let flows = Flows::new(ranks, (0..3 * ranks).map(|stage| (stage % ranks) as u32).collect(), &paths).unwrap();
    let unit = Nanos::new(1);
    let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: unit };
    let mut costs = PipelineCosts::uniform_over(flows, times);
    for microbatch in 0..costs.microbatches() {
        let time = 100 + random.below(900);
        for cell in costs.flows.microbatch_cells(microbatch) {
            costs.forward[cell] = Nanos::new(time);
            costs.input_grad[cell] = Nanos::new(time);
            costs.weight_grad[cell] = Nanos::new(time);
        }
    }
    (costs, groups)
}

const fn budget(rollouts: u32, seed: u32) -> Budget {
    Budget { starts: Starts::All, rollouts, seed, stream: 0 }
}

/// Runs jobs in reverse order, to simulate thread scheduling.
struct Backwards;

impl Workers for Backwards {
    fn run(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..jobs).rev().for_each(job);
    }

    fn count(&self) -> usize {
        2
    }
}

/// Three families that contain two groups: 6!/2^3 = 90 sequences per direction, because encoders
/// precede backbones (reversed in the backward direction). Depth-first and tree search both
/// enumerate them and find the same optimum.
#[test]
fn small_spaces_are_exhausted_and_the_best_is_found() {
    let (costs, groups) = uneven(2, 3, 4);
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(6)).unwrap();
    let all = search(
        &interleaving,
        Strategy::DepthFirst,
        Goal::Fastest,
        budget(1_000_000, 0),
        &SequentialWorkers,
        &NeverCancelled,
    );
    assert_eq!(all.ending, Ending::Exhausted);
    let starts = Space::new(&interleaving).starts(&interleaving, Starts::All).len() as u32;
    assert_eq!(all.rollouts - starts, 90 * 90);
    let tree = search(
        &interleaving,
        Strategy::MonteCarlo,
        Goal::Fastest,
        budget(1_000_000, 0),
        &SequentialWorkers,
        &NeverCancelled,
    );
    assert_eq!((tree.ending, tree.end), (Ending::Exhausted, all.end));
    let slowest = search(
        &interleaving,
        Strategy::DepthFirst,
        Goal::Slowest,
        budget(1_000_000, 0),
        &SequentialWorkers,
        &NeverCancelled,
    );
    assert!(slowest.end > all.end);
}

/// Encoders run directly before the backbones, or one or two microbatches ahead: three of the
/// twelve starts.
#[test]
fn the_given_order_is_the_first_start() {
    let (costs, groups) = uneven(2, 6, 4);
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(9)).unwrap();
    let space = Space::new(&interleaving);
    let (all, given) = (space.starts(&interleaving, Starts::All), space.starts(&interleaving, Starts::AsGiven));
    assert_eq!((all.len(), given.as_slice()), (12, &all[..3]));
    let ends = [Starts::All, Starts::AsGiven].map(|starts| {
        let budget = Budget { starts, ..budget(0, 0) };
        search(&interleaving, Strategy::MonteCarlo, Goal::Fastest, budget, &SequentialWorkers, &NeverCancelled).end
    });
    assert!(ends[0] <= ends[1], "{ends:?}");
}

#[test]
fn interchangeable_microbatches_use_a_single_order() {
    let paths: Vec<Path> = (0..4).map(|_| Path { stages: 0..4, inputs: Vec::new() }).collect();
    let costs = PipelineCosts::uniform_over(
        Flows::new(2, vec![0, 1, 0, 1], &paths).unwrap(),
        UniformTimes {
            forward: Nanos::new(3),
            input_grad: Nanos::new(3),
            weight_grad: Nanos::new(3),
            communication: Nanos::ZERO,
        },
    );
    let groups = [0, 1, 2, 3];
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(100)).unwrap();
    let space = Space::new(&interleaving);
    assert_eq!(space.continuations(&[]), [0]);
    assert_eq!(space.continuations(&[0, 1]), [2]);
    assert_eq!(space.starts(&interleaving, Starts::All).len(), 1);
}

#[test]
fn the_same_seed_finds_the_same_on_any_workers() {
    let (costs, groups) = uneven(4, 10, 9);
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(20)).unwrap();
    for strategy in Strategy::ALL {
        let sequential =
            search(&interleaving, strategy, Goal::Fastest, budget(600, 5), &SequentialWorkers, &NeverCancelled);
        let others = search(&interleaving, strategy, Goal::Fastest, budget(600, 5), &Backwards, &NeverCancelled);
        assert_eq!(sequential, others, "{strategy:?}");
        let mut last = sequential.progress[0].end;
        assert!(sequential.progress.iter().all(|step| {
            let falls = step.end <= last;
            last = step.end;
            falls
        }));
    }
}

#[test]
fn the_tree_finds_more_than_chance_and_enumeration() {
    let mut wins = [0, 0];
    for seed in 0..10 {
        let (costs, groups) = uneven(4, 12, seed);
        let interleaving = Interleaving::new(&costs, &groups, Bytes::new(20)).unwrap();
        let end = |strategy| {
            search(&interleaving, strategy, Goal::Fastest, budget(800, 1), &SequentialWorkers, &NeverCancelled).end
        };
        let tree = end(Strategy::MonteCarlo);
        wins[0] += i32::from(tree < end(Strategy::Random));
        wins[1] += i32::from(tree < end(Strategy::DepthFirst));
    }
    assert!(wins.iter().all(|&wins| wins >= 8), "{wins:?} of 10");
}

/// Cancels immediately.
struct NoTime(AtomicU32);

impl Cancellation for NoTime {
    fn is_over(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn seconds(&self) -> f64 {
        0.0
    }
}

#[test]
fn a_search_without_time_answers_with_its_first_start() {
    let (costs, groups) = uneven(4, 8, 2);
    let interleaving = Interleaving::new(&costs, &groups, Bytes::new(20)).unwrap();
    let found = search(
        &interleaving,
        Strategy::MonteCarlo,
        Goal::Fastest,
        budget(1000, 0),
        &SequentialWorkers,
        &NoTime(AtomicU32::new(0)),
    );
    assert_eq!((found.ending, found.rollouts), (Ending::Time, 1));
    assert_eq!(planscope_pipeline::schedule::dual_queue::interleave(&interleaving, &found.priorities).end, found.end);
}
