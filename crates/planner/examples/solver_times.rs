//! Measures the solvers of DHP and Hydraulis for the sizes in their papers, and compares greedy
//! with ideal dispatching.
//!
//! `cargo run --release -p planscope-planner --example solver_times`. The inputs are random and the
//! same on all machines. The times differ in every run.

#![allow(clippy::disallowed_methods, reason = "the example measures wall times")]

use std::time::Instant;

use planner::planners::dhp::{AllowedDegrees, DegreeRule, Effort, Exchange, GroupCost, GroupProblem, Sequence};
use planner::planners::hydraulis::{
    DispatchSettings, PackingSettings, ProposalSettings, SchemeCost, assign, dispatch, propose,
};
use planner::random::Random;

/// Runs per measurement. The median is printed.
const RUNS: usize = 5;
/// Batches for dispatching and packing, as in the paper.
const BATCHES: u64 = 10;

fn main() {
    println!("DHP, all solver steps for a batch");
    for (sequences, ranks) in [(128, 64), (256, 64), (512, 64), (512, 32), (512, 16)] {
        println!("  {sequences} sequences, {ranks} ranks: {:.2} ms", 1e3 * dhp_seconds(sequences, ranks));
    }
    println!("Hydraulis");
    for (devices, sequences, nodes) in [(64, 323, 500_000), (1024, 5167, 10_000)] {
        hydraulis(devices, sequences, nodes);
    }
}

/// Median of the seconds of several runs.
fn median(mut run: impl FnMut()) -> f64 {
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[RUNS / 2]
}

fn dhp_seconds(count: usize, ranks: u32) -> f64 {
    let cost = GroupCost {
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
    let mut random = Random::new(3, count as u64);
    let length = |random: &mut Random| (libm::exp(8.0 + 1.1 * random.normal()) as u64).clamp(200, 65_536);
    let sequences: Vec<Sequence> = (0..count).map(|_| Sequence::causal(length(&mut random))).collect();
    let degrees = AllowedDegrees::new(DegreeRule::Any, None, ranks);
    let problem = GroupProblem { sequences: &sequences, ranks, tokens_per_rank: 8192, degrees: &degrees, cost: &cost };
    median(|| {
        std::hint::black_box(planner::planners::dhp::plan(problem, Effort::Portfolio).expect("all sequences fit"));
    })
}

/// Lengths like those of the CommonCrawl-like scenarios, up to 32K tokens.
fn lengths(stream: u64, count: usize) -> Vec<u64> {
    let mut random = Random::new(1, stream);
    (0..count).map(|_| (libm::exp(5.65 + 1.25 * random.normal()) as u64).clamp(16, 32_768)).collect()
}

/// Schemes of a 32B model. Larger degrees support longer sequences and lose some throughput to communication.
fn schemes() -> Vec<SchemeCost> {
    let mut schemes = Vec::new();
    for (tp, max_len) in [(2_u32, 4000.0), (4, 14_000.0), (8, 33_000.0), (16, 66_000.0)] {
        for pp in [1_u32, 2, 4] {
            for cp in [1_u32, 2] {
                let loss = 1.0 + 0.12 * f64::from(tp.ilog2()) + 0.08 * f64::from(cp - 1);
                let share = loss / f64::from(pp * tp * cp);
                schemes.push(SchemeCost {
                    tp,
                    pp,
                    cp,
                    a: 2.4e-8 * share,
                    b: 1.2e-3 * share,
                    c: 0.02 / f64::from(pp),
                    max_len: (max_len * f64::from(cp) * (1.0 + 0.15 * f64::from(pp.ilog2()))) as u64,
                    util_len: 512 * u64::from(tp),
                });
            }
        }
    }
    schemes
}

/// Measures the parts of the planning. `nodes` limits the branch and bound for ideal dispatching.
fn hydraulis(devices: u32, sequences: usize, nodes: u64) {
    let schemes = schemes();
    let data: Vec<(u64, f64)> = lengths(0, 20_000).into_iter().map(|tokens| (tokens, 1.0)).collect();
    let mut proposal = None;
    let proposing = median(|| proposal = propose(&data, devices, &schemes, ProposalSettings::default()).ok());
    let proposal = proposal.expect("the schemes fit the devices");
    // The proposed strategy for the longest sequences with the most different schemes.
    let longest = data.iter().map(|(tokens, _)| *tokens).max().unwrap_or(0);
    let able = proposal.strategies.iter().filter(|strategy| strategy.max_len >= longest);
    let kinds = |copies: &[u32]| copies.iter().filter(|count| **count > 0).count();
    let strategy = able.max_by_key(|strategy| kinds(&strategy.copies)).expect("a strategy holds the longest sequence");
    let pipelines: Vec<SchemeCost> = strategy
        .copies
        .iter()
        .zip(&schemes)
        .flat_map(|(&count, &scheme)| std::iter::repeat_n(scheme, count as usize))
        .collect();
    println!(
        "  {devices} devices, {sequences} sequences, {} pipelines of {} schemes",
        pipelines.len(),
        kinds(&strategy.copies)
    );
    println!("    strategy proposal: {proposing:.2} s ({} strategies)", proposal.strategies.len());
    let greedy = DispatchSettings { nodes: 0, gap: 0.0, ..DispatchSettings::default() };
    let ideal = DispatchSettings { nodes, ..greedy };
    let (mut seconds, mut dispatched, mut packed) = ([0.0; 3], Vec::new(), Vec::new());
    for batch in 1..=BATCHES {
        let lengths = lengths(batch, sequences);
        let timed = |settings| {
            let began = Instant::now();
            let found = dispatch(&lengths, &pipelines, settings).expect("the strategy holds the longest sequence");
            (found, began.elapsed().as_secs_f64())
        };
        let (quick, greedy_seconds) = timed(greedy);
        let (exact, ideal_seconds) = timed(ideal);
        let began = Instant::now();
        let end = |settings| {
            assign(&lengths, &pipelines, settings, PackingSettings::default()).expect("it was dispatched").seconds
        };
        let quick_end = end(greedy);
        let packing_seconds = (began.elapsed().as_secs_f64() - greedy_seconds).max(0.0);
        for (sum, own) in seconds.iter_mut().zip([greedy_seconds, ideal_seconds, packing_seconds]) {
            *sum += own;
        }
        dispatched.push((quick.seconds / exact.seconds, quick.seconds / exact.bound));
        packed.push(quick_end / end(ideal));
    }
    let [greedy, ideal, packing] = seconds;
    println!("    {BATCHES} batches: greedy {greedy:.3} s, ideal {ideal:.2} s, packing {packing:.3} s");
    let limits = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)))
    };
    let (least, most) = limits(&mut dispatched.iter().map(|(ratio, _)| *ratio));
    let (_, bound) = limits(&mut dispatched.iter().map(|(_, bound)| *bound));
    println!("    greedy over ideal: estimate {least:.4} to {most:.4}, at most {bound:.4} of the lower bound");
    let (least, most) = limits(&mut packed.iter().copied());
    println!("    greedy over ideal after packing: {least:.4} to {most:.4}");
}
