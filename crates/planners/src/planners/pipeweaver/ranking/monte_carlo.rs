//! Monte-Carlo tree search (PipeWeaver Alg. 1). Each round completes a batch of leaves in parallel.

use std::sync::Mutex;

use super::space::Space;
use super::tree::Tree;
use super::trial::{Bench, TRIES};
use super::{Budget, Ending, Goal, Record};
use planscope_core::host::Workers;
use planscope_core::random::Random;
use planscope_core::units::Nanos;
use planscope_pipeline::schedule::dual_queue::Interleaving;

/// Leaves per round. Constant, so that the result does not depend on the worker count.
pub(crate) const LEAVES: usize = 16;
/// Number of random streams reserved for leaves per budget stream.
const STREAMS: u64 = 1 << 32;

pub(crate) fn run<'a>(
    interleaving: &'a Interleaving<'a>,
    space: &Space,
    budget: Budget,
    workers: &dyn Workers,
    record: &mut Record<'_>,
) -> Ending {
    let mut tree = Tree::new();
    let benches: Vec<Mutex<Bench<'a>>> = (0..LEAVES).map(|_| Mutex::new(Bench::new(interleaving))).collect();
    let work = work(interleaving);
    let mut stream = budget.stream.wrapping_mul(STREAMS);
    loop {
        if let Some(ending) = record.ending() {
            return ending;
        }
        let guide = record.guide().to_vec();
        let left = (record.limit - record.rollouts).div_ceil(TRIES) as usize;
        let leaves: Vec<(usize, Vec<u32>)> = (0..LEAVES.min(left)).map_while(|_| tree.pick(space, &guide)).collect();
        if leaves.is_empty() {
            return Ending::Exhausted;
        }
        let goal = record.goal;
        workers.run(leaves.len(), &|job| {
            let mut bench = benches[job].lock().expect("a bench has one user");
            bench.clear();
            let mut random = Random::new(budget.seed, stream + job as u64);
            let tries = if leaves[job].1.len() == space.len() { 1 } else { TRIES };
            bench.complete(space, &leaves[job].1, &guide, tries, goal, &mut random);
        });
        stream += leaves.len() as u64;
        for ((leaf, _), bench) in leaves.iter().zip(&benches) {
            let bench = bench.lock().expect("a bench has one user");
            record.rollouts += bench.rollouts;
            if let Some((sequence, end)) = &bench.best {
                record.offer(sequence, *end);
                tree.carry(*leaf, score(goal, work, *end));
            }
        }
    }
}

/// Total busy time divided by the rank count.
fn work(interleaving: &Interleaving<'_>) -> f64 {
    let costs = interleaving.costs();
    let cells = costs.cells().map(|cell| (costs.forward[cell.index] + costs.backward(cell.index)).secs());
    cells.sum::<f64>() / costs.ranks() as f64
}

/// Busy fraction, or bubble fraction if the search maximizes the end.
fn score(goal: Goal, work: f64, end: Nanos) -> f64 {
    let utilization = (work / end.secs().max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
    match goal {
        Goal::Fastest => utilization,
        Goal::Slowest => 1.0 - utilization,
    }
}
