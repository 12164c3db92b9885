//! Independent random rankings, for comparison.

use std::sync::Mutex;

use super::monte_carlo::LEAVES;
use super::space::Space;
use super::trial::{Bench, TRIES};
use super::{Budget, Ending, Record};
use planscope_core::host::Workers;
use planscope_core::random::Random;
use planscope_pipeline::schedule::dual_queue::Interleaving;

pub(crate) fn run<'a>(
    interleaving: &'a Interleaving<'a>,
    space: &Space,
    budget: Budget,
    workers: &dyn Workers,
    record: &mut Record<'_>,
) -> Ending {
    let benches: Vec<Mutex<Bench<'a>>> = (0..LEAVES).map(|_| Mutex::new(Bench::new(interleaving))).collect();
    let mut stream = budget.stream << 32;
    loop {
        if let Some(ending) = record.ending() {
            return ending;
        }
        let goal = record.goal;
        let jobs = LEAVES.min((record.limit - record.rollouts).div_ceil(TRIES) as usize);
        workers.run(jobs, &|job| {
            let mut bench = benches[job].lock().expect("a bench has one user");
            bench.clear();
            let mut random = Random::new(budget.seed, stream + job as u64);
            let mut sequence = Vec::new();
            for _ in 0..TRIES {
                let keys: Vec<u64> = (0..space.len()).map(|_| random.below(u64::MAX)).collect();
                space.complete(&[], &keys, &mut sequence);
                bench.see(space, &sequence, goal);
            }
        });
        stream += jobs as u64;
        for bench in &benches[..jobs] {
            let bench = bench.lock().expect("a bench has one user");
            record.rollouts += bench.rollouts;
            if let Some((sequence, end)) = &bench.best {
                record.offer(sequence, *end);
            }
        }
    }
}
