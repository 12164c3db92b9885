//! Rankings in lexicographic order, for comparison.

use std::sync::Mutex;

use super::monte_carlo::LEAVES;
use super::space::Space;
use super::trial::{Bench, TRIES};
use super::{Ending, Record};
use planscope_core::host::Workers;
use planscope_pipeline::schedule::dual_queue::Interleaving;

pub(crate) fn run<'a>(
    interleaving: &'a Interleaving<'a>,
    space: &Space,
    workers: &dyn Workers,
    record: &mut Record<'_>,
) -> Ending {
    let benches: Vec<Mutex<Bench<'a>>> = (0..LEAVES).map(|_| Mutex::new(Bench::new(interleaving))).collect();
    let mut walk = Walk { space, prefix: Vec::new(), open: vec![reversed(space, &[])] };
    loop {
        if let Some(ending) = record.ending() {
            return ending;
        }
        let goal = record.goal;
        let wanted = (LEAVES as u32 * TRIES).min(record.limit - record.rollouts) as usize;
        let sequences: Vec<Vec<u32>> = std::iter::from_fn(|| walk.next()).take(wanted).collect();
        if sequences.is_empty() {
            return Ending::Exhausted;
        }
        let jobs: Vec<&[Vec<u32>]> = sequences.chunks(TRIES as usize).collect();
        workers.run(jobs.len(), &|job| {
            let mut bench = benches[job].lock().expect("a bench has one user");
            bench.clear();
            jobs[job].iter().for_each(|sequence| bench.see(space, sequence, goal));
        });
        for bench in &benches[..jobs.len()] {
            let bench = bench.lock().expect("a bench has one user");
            record.rollouts += bench.rollouts;
            if let Some((sequence, end)) = &bench.best {
                record.offer(sequence, *end);
            }
        }
    }
}

/// Returns the groups that may follow a prefix, in descending order.
fn reversed(space: &Space, prefix: &[u32]) -> Vec<u32> {
    let mut open = space.continuations(prefix);
    open.reverse();
    open
}

struct Walk<'a> {
    space: &'a Space,
    prefix: Vec<u32>,
    /// Untried groups per prefix position, plus the position after it.
    open: Vec<Vec<u32>>,
}

impl Walk<'_> {
    /// Returns the subsequent complete sequence.
    fn next(&mut self) -> Option<Vec<u32>> {
        loop {
            let Some(group) = self.open.last_mut()?.pop() else {
                self.open.pop();
                self.prefix.pop();
                continue;
            };
            self.prefix.push(group);
            if self.prefix.len() == self.space.len() {
                let sequence = self.prefix.clone();
                self.prefix.pop();
                return Some(sequence);
            }
            self.open.push(reversed(self.space, &self.prefix));
        }
    }
}
