//! Hydraulis benchmarks: packing, dispatch, the strategy choice per iteration, the strategy
//! proposal, and a full planner iteration.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use planner::engine::{Observer, plan};
use planner::host::BatchClock;
use planner::planners::hydraulis::{
    DispatchSettings, PackingSettings, ProposalSettings, SchemeCost, choose, dispatch, pack, propose,
};
use planner::random::Random;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};

fn main() {
    divan::main();
}

/// Long-tailed lengths, similar to text.
fn lengths(count: usize, max_length: u64) -> Vec<u64> {
    let mut random = Random::new(1, count as u64);
    (0..count).map(|_| (libm::exp(7.0 + 1.3 * random.normal()) as u64).clamp(64, max_length)).collect()
}

/// Schemes up to 64 devices. Larger degrees support longer sequences and lose some throughput to
/// communication.
fn schemes() -> Vec<SchemeCost> {
    let mut schemes = Vec::new();
    for (tp, max_len) in [(1_u32, 3000.0), (2, 7000.0), (4, 14_000.0), (8, 29_000.0), (16, 60_000.0)] {
        for pp in [1_u32, 2, 4, 8] {
            for cp in [1_u32, 2] {
                if tp * pp * cp <= 64 {
                    let loss = 1.0 + 0.12 * f64::from(tp.ilog2()) + 0.08 * f64::from(cp - 1);
                    let share = 32.0 / f64::from(pp) * loss / f64::from(tp * cp);
                    let capacity = max_len * f64::from(cp) * (1.0 + 0.15 * f64::from(pp.ilog2()));
                    schemes.push(SchemeCost {
                        tp,
                        pp,
                        cp,
                        a: 2e-11 * share,
                        b: 1e-6 * share,
                        c: 0.0005 * 32.0 / f64::from(pp),
                        max_len: capacity.min(40_000.0) as u64,
                        util_len: 512 * u64::from(tp),
                    });
                }
            }
        }
    }
    schemes
}

#[divan::bench(args = [(8192, 1), (8192, 8), (16_384, 4), (32_768, 1), (32_768, 8)])]
fn packing_128(bencher: divan::Bencher<'_, '_>, (max_len, pp): (u64, u32)) {
    let scheme = SchemeCost { tp: 1, pp, cp: 1, a: 2e-10, b: 1e-5, c: 0.01, max_len, util_len: 1024 };
    let lengths = lengths(128, max_len);
    bencher.bench_local(|| pack(&lengths, &scheme, PackingSettings::default()));
}

#[divan::bench(args = [(100, 4), (400, 16), (1300, 64)])]
fn dispatching(bencher: divan::Bencher<'_, '_>, (count, pipelines): (usize, usize)) {
    let (long, short) = (SchemeCost { tp: 8, ..schemes()[24] }, schemes()[8]);
    let short = SchemeCost { max_len: 8192, ..short };
    let pipelines: Vec<SchemeCost> = (0..pipelines).map(|index| if index % 4 == 0 { long } else { short }).collect();
    let lengths = lengths(count, long.max_len);
    bencher.bench_local(|| dispatch(&lengths, &pipelines, DispatchSettings::default()));
}

#[divan::bench(args = [64, 1024], sample_count = 5, sample_size = 1)]
fn proposal(bencher: divan::Bencher<'_, '_>, devices: u32) {
    let schemes = schemes();
    let data: Vec<(u64, f64)> = lengths(20_000, 32_768).into_iter().map(|tokens| (tokens, 1.0)).collect();
    bencher.bench_local(|| propose(&data, devices, &schemes, ProposalSettings::default()));
}

#[divan::bench(args = [(64, 100), (1024, 1300)], sample_count = 5, sample_size = 1)]
fn iteration(bencher: divan::Bencher<'_, '_>, (devices, count): (u32, usize)) {
    let schemes = schemes();
    let data: Vec<(u64, f64)> = lengths(20_000, 32_768).into_iter().map(|tokens| (tokens, 1.0)).collect();
    let proposal = propose(&data, devices, &schemes, ProposalSettings::default()).unwrap();
    let expand_copies = |copies: &Vec<u32>| {
        copies.iter().zip(&schemes).flat_map(|(&copies, &scheme)| vec![scheme; copies as usize]).collect()
    };
    let strategies: Vec<Vec<SchemeCost>> =
        proposal.strategies.iter().map(|strategy| expand_copies(&strategy.copies)).collect();
    let batch = lengths(count, 32_768);
    bencher.bench_local(|| choose(&batch, &strategies, DispatchSettings::default(), PackingSettings::default()));
}

/// Plans a batch, then blocks until the benchmark requests another batch.
struct Paced(Pace);

struct Pace {
    turns: Mutex<Receiver<()>>,
    planned: SyncSender<()>,
    is_over: AtomicBool,
}

impl BatchClock for Pace {
    fn measure(&self, _: u32, plan: &mut dyn FnMut()) {
        let ended = self.planned.send(()).is_err() || self.turns.lock().is_ok_and(|turns| turns.recv().is_err());
        self.is_over.fetch_or(ended, Ordering::Relaxed);
        plan();
    }
}

impl Observer for Paced {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }
    fn batch_clock(&self) -> &dyn BatchClock {
        &self.0
    }
}

/// Plans a batch completely: bound the strategies, assign and pack the sequences, simulate the
/// close strategies. A sample is a batch. The schemes and strategies are computed before the
/// measurement. A batch contains 161 sequences on 64 devices and 5,167 on 1,024 devices.
#[divan::bench(args = [64, 1024], sample_count = 5, sample_size = 1)]
fn full_iteration(bencher: divan::Bencher<'_, '_>, devices: u32) {
    let json = match devices {
        64 => include_str!("../../../examples/hydraulis/32b-64-common-crawl.json"),
        _ => include_str!("../../../examples/hydraulis/devices-1024.json"),
    };
    let mut scenario = parse(json).expect("the example is well-formed");
    scenario.planners = vec![PlannerKind::Hydraulis];
    scenario.iterations = 8;
    let scenario = ValidScenario::new(scenario, &NoDatasets).expect("the example is valid");
    let (turn, turns) = sync_channel(0);
    let (planned, done) = sync_channel(0);
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let mut paced = Paced(Pace { turns: Mutex::new(turns), planned, is_over: AtomicBool::new(false) });
            assert!(plan(&scenario, &mut paced).is_err(), "it is cancelled with batches left");
        });
        // Exclude the setup before the first batch from the measurement.
        done.recv().expect("the planner reaches its first batch");
        bencher.bench_local(|| {
            turn.send(()).expect("the planner waits");
            done.recv().expect("there are more batches than samples");
        });
        drop((turn, done));
    });
}
