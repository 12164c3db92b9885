//! DHP benchmarks: plan microbatches, rank groups, degrees for a global batch. Both degree solvers
//! are compared.

use planner::planners::dhp::{
    AllowedDegrees, DegreeRule, Effort, Exchange, GroupCost, GroupProblem, Sequence, assign_ranks, megatron_balanced,
    plan, static_degrees,
};
use planner::random::Random;

fn main() {
    divan::main();
}

/// Costs similar to an 8B model with 28 layers, hidden size 3584 and grouped-query attention, for a
/// rank with about 300 TFLOP/s.
const COST: GroupCost = GroupCost {
    a1: 4e-9 / 3.0,
    a2: 1.6e-4,
    a3: 3.5e5,
    b1: 0.05,
    b2: 0.01,
    within_node: 2e11,
    across_nodes: 1.2e10,
    ranks_per_node: 8,
    exchange: Exchange::Ring,
};

/// Log-normal lengths: long-tailed for a large deviation, nearly equal for a small deviation.
fn lengths(count: usize, deviation: f64) -> Vec<Sequence> {
    let mut random = Random::new(3, count as u64);
    let length = |random: &mut Random| (libm::exp(8.0 + deviation * random.normal()) as u64).clamp(200, 65_536);
    (0..count).map(|_| Sequence::causal(length(&mut random))).collect()
}

#[divan::bench(args = [(128, 64, 1.1), (256, 64, 1.1), (512, 64, 1.1), (512, 64, 0.2), (512, 8, 1.1), (4096, 1024, 1.1)])]
fn portfolio(bencher: divan::Bencher<'_, '_>, (count, ranks, deviation): (usize, u32, f64)) {
    bench(bencher, &lengths(count, deviation), ranks, |problem| plan(problem, Effort::Portfolio).unwrap().seconds);
}

#[divan::bench(args = [(512, 64, 1.1), (4096, 1024, 1.1)])]
fn published(bencher: divan::Bencher<'_, '_>, (count, ranks, deviation): (usize, u32, f64)) {
    bench(bencher, &lengths(count, deviation), ranks, |problem| plan(problem, Effort::Published).unwrap().seconds);
}

#[divan::bench(args = [(512, 64, 1.1), (4096, 1024, 1.1)])]
fn static_degrees_all(bencher: divan::Bencher<'_, '_>, (count, ranks, deviation): (usize, u32, f64)) {
    bench(bencher, &lengths(count, deviation), ranks, static_degrees);
}

#[divan::bench(args = [(512, 64, 1.1)])]
fn megatron(bencher: divan::Bencher<'_, '_>, (count, ranks, deviation): (usize, u32, f64)) {
    bench(bencher, &lengths(count, deviation), ranks, |problem| megatron_balanced(problem).unwrap().seconds);
}

#[divan::bench(args = [(512, 64, 1.1), (4096, 1024, 1.1)])]
fn placement(bencher: divan::Bencher<'_, '_>, (count, ranks, deviation): (usize, u32, f64)) {
    let sequences = lengths(count, deviation);
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, ranks);
    let problem = GroupProblem { sequences: &sequences, ranks, tokens_per_rank: 8192, degrees: &degrees, cost: &COST };
    let planned = plan(problem, Effort::Portfolio).unwrap();
    bencher.bench_local(|| {
        planned.microbatches.iter().map(|microbatch| assign_ranks(problem, microbatch).seconds).sum::<f64>()
    });
}

fn bench<T>(bencher: divan::Bencher<'_, '_>, sequences: &[Sequence], ranks: u32, run: impl Fn(GroupProblem<'_>) -> T) {
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, ranks);
    bencher
        .bench_local(|| run(GroupProblem { sequences, ranks, tokens_per_rank: 8192, degrees: &degrees, cost: &COST }));
}
