//! Compares heuristics to the proven optimum on random uneven pipelines.
//!
//! `cargo run --release -p planscope-planner --example yardstick` prints a line per pipeline. The
//! pipelines contain 2 to 4 ranks, 2 to 8 microbatches, 1 or 2 chunks, and long-tailed times. Means
//! and maxima follow, for the pipelines that have a proven optimum. The output is the same on all
//! machines.

use planner::cost::{PipelineCosts, UniformTimes};
use planner::exact::{Budget, Ending, Exact, search};
use planner::host::{NeverCancelled, SequentialWorkers};
use planner::random::Random;
use planner::units::{Bytes, Nanos};

/// Random pipelines.
const INSTANCES: u64 = 60;
/// Node limit per search.
const NODES: u64 = 20_000;

fn main() {
    println!(
        "{:>3} {:>2} {:>2} {:>2} {:>3} {:>9} {:>8} {:>10} {:>9} {:>9}",
        "#", "p", "v", "m", "cap", "ending", "nodes", "best ns", "ranking", "wait-free"
    );
    let mut proven = Vec::new();
    for instance in 0..INSTANCES {
        let drawn = Drawn::number(instance);
        let budget = Budget { nodes: NODES, ..Budget::default() };
        let exact = search(&drawn.costs, drawn.limit, budget, &SequentialWorkers, &NeverCancelled)
            .expect("one microbatch fits");
        let Drawn { ranks, chunks, microbatches, cap, .. } = drawn;
        let ending =
            if exact.gap() > 0.0 { format!("{:.2} %", 100.0 * exact.gap()) } else { format!("{:?}", exact.ending) };
        let over = |end: Nanos| excess(end, exact.end);
        let (ranking, wait_free) = (over(exact.heuristics.ranking), exact.heuristics.wait_free.map(over));
        let cap = cap.map_or("-".to_owned(), |cap| cap.to_string());
        let wait = wait_free.map_or("-".to_owned(), |wait_free| format!("{wait_free:.2} %"));
        println!(
            "{instance:>3} {ranks:>2} {chunks:>2} {microbatches:>2} {cap:>3} {ending:>9} {:>8} {:>10} {ranking:>7.2} % {wait:>9}",
            exact.nodes,
            exact.end.get(),
        );
        proven.push((exact.ending == Ending::Optimal, ranking, wait_free, best_heuristic_excess(&exact)));
    }
    let known: Vec<_> = proven.iter().filter(|(is_proven, ..)| *is_proven).collect();
    println!("{} of {} proven, {NODES} nodes each at most", known.len(), proven.len());
    let tell = |name: &str, values: Vec<f64>| {
        let (count, within) = (values.len(), values.iter().filter(|&&value| value <= 3.0).count());
        let (sum, maximum) = (values.iter().sum::<f64>(), values.iter().copied().fold(0.0, f64::max));
        println!(
            "{name:<12} mean {:.2} %, most {maximum:.2} %, within 3 % in {within} of {count}",
            sum / count.max(1) as f64
        );
    };
    tell("ranking", known.iter().map(|&&(_, ranking, ..)| ranking).collect());
    tell("wait-free", known.iter().filter_map(|&&(.., wait_free, _)| wait_free).collect());
    tell("swapped", known.iter().map(|&&(.., better)| better).collect());
    let behind =
        proven.iter().filter(|(_, ranking, wait_free, _)| wait_free.is_some_and(|wait_free| wait_free < *ranking));
    println!("ranking behind wait-free in {} of {}", behind.count(), proven.len());
}

/// Excess above the optimum in percent.
fn excess(end: Nanos, best: Nanos) -> f64 {
    100.0 * (end.get() as f64 / best.get() as f64 - 1.0)
}

fn best_heuristic_excess(exact: &Exact) -> f64 {
    excess(exact.heuristics.best(), exact.end)
}

/// A random pipeline.
struct Drawn {
    ranks: usize,
    chunks: usize,
    microbatches: usize,
    cap: Option<u64>,
    costs: PipelineCosts,
    limit: Bytes,
}

impl Drawn {
    /// Generates pipeline `instance`. Microbatch lengths are log-normal (deviation 0.8), stages
    /// differ by up to a fifth, and the ratio backward / forward is 1.5 to 2.5. Pipelines 2, 5, 8,
    /// ... limit the activations in flight; pipelines 3, 7, 11, ... use two chunks.
    fn number(instance: u64) -> Self {
        let mut random = Random::new(4, instance);
        let between = |random: &mut Random, min: u64, max: u64| (min + random.below(max - min + 1)) as usize;
        let (ranks, microbatches) = (between(&mut random, 2, 4), between(&mut random, 2, 8));
        let chunks = if instance % 4 == 3 { 2 } else { 1 };
        let unit = UniformTimes::default();
        let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, unit);
        let stage: Vec<f64> = (0..ranks * chunks).map(|_| 0.9 + 0.2 * random.unit()).collect();
        for microbatch in 0..microbatches {
            let length = 1e6 * libm::exp(0.8 * random.normal());
            let ratio = 1.5 + random.unit();
            for (cell, stage) in costs.flows.microbatch_cells(microbatch).zip(&stage) {
                costs.forward[cell] = Nanos::new((length * stage) as u64);
                costs.input_grad[cell] = Nanos::new((length * stage * ratio) as u64);
            }
        }
        let cap = (instance % 3 == 2).then(|| (ranks * chunks) as u64 + random.below(2));
        let limit = Bytes::new(cap.unwrap_or(u64::MAX));
        Self { ranks, chunks, microbatches, cap, costs, limit }
    }
}
