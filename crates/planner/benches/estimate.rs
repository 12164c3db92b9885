//! Benchmarks for the estimate, for a large job in the event engine, and for
//! re-simulation inside a search.

use planner::cluster::{Cluster, presets::cluster};
use planner::cost::{PipelineCosts, UniformTimes};
use planner::engine::{Unobserved, plan};
use planner::estimate::{Configuration, estimate};
use planner::model::presets::model;
use planner::outcome::Layout;
use planner::random::Random;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{ValidScenario, parse};
use planner::schedule::{Action, one_f_one_b};
use planner::simulate::Simulation;
use planner::training::Training;
use planner::units::Nanos;

fn main() {
    divan::main();
}

/// 1000 configurations on 64 devices: two models, varied TP, PP, VPP and microbatch size.
fn configurations() -> Vec<Configuration> {
    let mut all = Vec::new();
    for id in ["gpt-3-175b", "llama-2-7b"] {
        for tensor in [1, 2, 4, 8] {
            for pipeline in [1, 2, 4, 8] {
                for chunks in [1, 2] {
                    for microbatch in [1, 2, 4, 8] {
                        for sequence_length in [1024, 2048, 4096, 8192] {
                            let data = 64 / tensor / pipeline;
                            if pipeline == 1 && chunks > 1 {
                                continue;
                            }
                            all.push(Configuration {
                                model: model(id).expect("a preset"),
                                cluster: Cluster { nodes: 8, ..cluster("a100-80gb").expect("a preset") },
                                training: Training::default(),
                                layout: Layout { tensor, pipeline, data, chunks, microbatch, group: None },
                                layers_per_stage: Vec::new(),
                                global_batch: 8 * data * microbatch,
                                sequence_length,
                                items: 0,
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

/// Single-threaded configurations per second.
#[divan::bench]
fn estimates(bencher: divan::Bencher<'_, '_>) {
    let configurations = configurations();
    let count = divan::counter::ItemsCount::new(configurations.len());
    bencher.counter(count).bench(|| {
        configurations.iter().map(|configuration| estimate(configuration).map_or(0.0, |e| e.mfu)).sum::<f64>()
    });
}

/// ViT 22B + GPT-3 175B on 16,384 devices at DP 128, TP 8, PP 16. Measures sampling, layout,
/// schedule, event engine, validation, timeline, memory.
#[divan::bench]
fn sixteen_thousand_devices(bencher: divan::Bencher<'_, '_>) {
    let json = r#"{
        "schema": "scenario/1",
        "model": { "preset": "vlm-xl" },
        "cluster": { "preset": "h100", "nodes": 2048 },
        "workload": {
            "samples": { "kind": "drawn", "text_tokens": { "kind": "constant", "value": 2048 },
                         "images": { "kind": "constant", "value": 8 } },
            "global_batch": 2048, "context_length": 4096, "packing": "single"
        },
        "training": { "recompute": "full" },
        "layout": { "tensor": 8, "pipeline": 16, "microbatch": 1 },
        "planners": ["1f1b"],
        "iterations": 1
    }"#;
    let scenario =
        parse(json).and_then(|scenario| ValidScenario::new(scenario, &NoDatasets)).expect("a valid scenario");
    bencher.bench(|| plan(&scenario, &mut Unobserved).expect("a plan"));
}

/// Swaps two neighbouring microbatches in the later half of a rank's order and swaps them back, as
/// a local search does thousands of times. Items are the actions that the engine reverts and
/// simulates again.
#[divan::bench(args = [(8, 64), (16, 256), (64, 256)])]
fn resimulated(bencher: divan::Bencher<'_, '_>, (ranks, microbatches): (usize, usize)) {
    let millisecond = Nanos::new(1_000_000);
    let times = UniformTimes {
        forward: millisecond,
        input_grad: millisecond,
        weight_grad: millisecond,
        communication: Nanos::new(50_000),
    };
    let costs = PipelineCosts::uniform(ranks, 1, microbatches, times);
    let schedule = one_f_one_b(ranks, microbatches);
    let mut random = Random::new(1, 0);
    let moves: Vec<(usize, usize, Vec<Action>)> = (0..200)
        .map(|_| {
            let rank = random.below(ranks as u64) as usize;
            let order = &schedule.orders[rank];
            let from = order.len() / 2 + random.below(order.len() as u64 / 2 - 2) as usize;
            let mut tail = order[from..].to_vec();
            // Swap only actions that have the same kind, so that a forward never passes its
            // backward.
            if tail.len() > 2 && tail[0].kind == tail[2].kind {
                tail.swap(0, 2);
            }
            (rank, from, tail)
        })
        .collect();
    let mut simulation = Simulation::new(&schedule, &costs);
    simulation.run().expect("1F1B runs");
    let mut undone = 0;
    for (rank, from, tail) in &moves {
        undone += simulation.change(*rank, *from, tail);
        let _ = simulation.run();
        undone += simulation.change(*rank, *from, &schedule.orders[*rank][*from..]);
        simulation.run().expect("1F1B runs");
    }
    bencher.counter(divan::counter::ItemsCount::new(undone)).bench_local(|| {
        let mut ends = 0;
        for (rank, from, tail) in &moves {
            simulation.change(*rank, *from, tail);
            let _ = simulation.run();
            ends += simulation.makespan().get();
            simulation.change(*rank, *from, &schedule.orders[*rank][*from..]);
            let _ = simulation.run();
        }
        ends
    });
}
