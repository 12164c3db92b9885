//! Layer tuning benchmarks: generate candidates for a stage pair; choose candidates for all pairs
//! of a rank.

use planner::planners::pipeweaver::layer_tuning::{
    Event, LayerOption, PairCost, Settings, Solver, TuningProblem, candidates, solve,
};
use planner::random::Random;
use planner::units::{Bytes, Nanos};

fn main() {
    divan::main();
}

/// `count` layers, `kinds` different layer types. Layer options: no recomputation, partial or full
/// recomputation, offloading.
fn layers(count: usize, kinds: usize) -> Vec<Vec<LayerOption>> {
    let mut random = Random::new(5, kinds as u64);
    let kinds: Vec<Vec<LayerOption>> = (0..kinds)
        .map(|_| {
            let time = 20_000_000 + random.below(20_000_000);
            let memory = 1_000_000_000 + random.below(2_000_000_000);
            let option = |slower: u64, smaller: u64| LayerOption {
                time: Nanos::new(time + time * slower / 1000),
                memory: Bytes::new(memory * smaller / 1000),
            };
            vec![option(0, 1000), option(31, 613), option(327, 59), option(112, 291)]
        })
        .collect();
    (0..count).map(|layer| kinds[layer * kinds.len() / count].clone()).collect()
}

#[divan::bench(args = [(16, 1), (32, 1), (16, 3), (32, 3), (32, 32)])]
fn stage_candidates(bencher: divan::Bencher<'_, '_>, (count, kinds): (usize, usize)) {
    let layers = layers(count, kinds);
    bencher.bench(|| candidates(&layers, 5));
}

/// A 1F1B rank: `depth` pairs in flight, uneven microbatches, five candidates per pair. The memory
/// limit is `percent` % relative to the minimum-time choice.
fn rank(pairs: usize, depth: usize, percent: u64) -> TuningProblem {
    let mut random = Random::new(9, percent);
    let costs: Vec<Vec<PairCost>> = (0..pairs)
        .map(|_| {
            let scale = 400 + random.below(1200);
            let option = |time: u64, memory: u64| LayerOption {
                time: Nanos::new(time * scale),
                memory: Bytes::new(memory * scale),
            };
            let layer = vec![option(20_000, 900_000), option(20_700, 560_000), option(26_600, 50_000)];
            candidates(&vec![layer; 8], 5).iter().map(PairCost::from).collect()
        })
        .collect();
    let mut order: Vec<Event> = (0..depth as u32).map(Event::Hold).collect();
    for pair in depth as u32..pairs as u32 {
        order.extend([Event::Release(pair - depth as u32), Event::Hold(pair)]);
    }
    order.extend((pairs - depth..pairs).map(|pair| Event::Release(pair as u32)));
    let problem = |limit: u64| {
        TuningProblem::new(costs.clone(), &order, Bytes::ZERO, Bytes::new(limit)).expect("every pair has its place")
    };
    let fastest: Vec<u8> = costs.iter().map(|costs| costs.len() as u8 - 1).collect();
    problem(problem(0).peak(&fastest).0.get() / 100 * percent)
}

/// Pairs, pairs in flight, and memory limit in percent relative to the minimum-time choice.
const RANKS: [(usize, usize, u64); 6] =
    [(64, 8, 60), (64, 8, 25), (96, 4, 40), (128, 16, 60), (128, 16, 25), (128, 2, 40)];

/// Gap 5 %, the value in the paper and in the planner.
#[divan::bench(args = RANKS)]
fn a_rank_within_5_percent(bencher: divan::Bencher<'_, '_>, (pairs, depth, percent): (usize, usize, u64)) {
    let problem = rank(pairs, depth, percent);
    bencher.bench(|| solve(&problem, &Settings::default()));
}

/// Greedy changes and the Lagrangian bound only.
#[divan::bench(args = RANKS)]
fn a_rank_as_near_as_the_bound_comes(bencher: divan::Bencher<'_, '_>, (pairs, depth, percent): (usize, usize, u64)) {
    let problem = rank(pairs, depth, percent);
    let settings = Settings { gap: 0.0, solver: Solver::Lagrangian, ..Settings::default() };
    bencher.bench(|| solve(&problem, &settings));
}

/// Branch and bound to 0.5 % gap.
#[divan::bench(args = RANKS)]
fn a_rank_within_half_a_percent(bencher: divan::Bencher<'_, '_>, (pairs, depth, percent): (usize, usize, u64)) {
    let problem = rank(pairs, depth, percent);
    let settings = Settings { gap: 0.005, solver: Solver::BranchAndBound, ..Settings::default() };
    bencher.bench(|| solve(&problem, &settings));
}
