//! Planning benchmarks on 64 devices: the exhaustive static search, plus the requests that a slider
//! in the user interface sends.

#[path = "shared/threads.rs"]
mod threads;

use planner::analysis::layouts;
use planner::engine::{Unobserved, plan};
use planner::host::NeverCancelled;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};
use planner::training::LayoutRequest;
use threads::Threads;

fn main() {
    divan::main();
}

/// Llama-2 7B on 8 nodes (8 A100 per node), 256 documents per batch. All degrees are free unless
/// `fixed`.
fn scenario(planners: &[PlannerKind], fixed: bool, iterations: u32) -> ValidScenario {
    let json = include_str!("../../../examples/llama-2-7b-long-documents.json");
    let mut scenario = parse(json).expect("the example is well-formed");
    scenario.cluster.nodes = 8;
    scenario.workload.global_batch = 256;
    scenario.workload.context_length = 8192;
    if !fixed {
        scenario.layout = LayoutRequest::default();
    }
    scenario.planners = planners.to_vec();
    scenario.iterations = iterations;
    ValidScenario::new(scenario, &NoDatasets).expect("the example is valid")
}

/// Bounds all combinations (TP, PP, VPP, microbatch size) and simulates a combination unless its
/// bound is too high. A single batch is evaluated.
#[divan::bench(args = [PlannerKind::OneFOneB, PlannerKind::Interleaved, PlannerKind::Gpipe, PlannerKind::WaitFreeCyclic])]
fn exhaustive_on_64_devices(bencher: divan::Bencher<'_, '_>, kind: PlannerKind) {
    let scenario = scenario(&[kind], false, 1);
    bencher.bench(|| plan(&scenario, &mut Unobserved).expect("not cancelled"));
}

/// Three planners at fixed TP and PP on eight batches, as requested while the user drags a slider.
#[divan::bench]
fn three_planners_with_a_fixed_layout(bencher: divan::Bencher<'_, '_>) {
    let planners = [PlannerKind::OneFOneB, PlannerKind::Interleaved, PlannerKind::WaitFreeCyclic];
    let scenario = scenario(&planners, true, 8);
    bencher.bench(|| plan(&scenario, &mut Unobserved).expect("not cancelled"));
}

/// All layouts for two modules on 64 devices, searched by a single thread or by two threads. The
/// search simulates 150 candidates per placement, on the full cluster and on half the cluster.
#[divan::bench(args = [1, 2], sample_count = 3)]
fn every_layout_on_64_devices(bencher: divan::Bencher<'_, '_>, threads: usize) {
    let json = include_str!("../../../examples/heterogeneous/vlm-m-8k-many-images.json");
    let scenario = parse(json).expect("the example is well-formed");
    let scenario = ValidScenario::new(scenario, &NoDatasets).expect("the example is valid");
    bencher.bench(|| layouts(&scenario, 150, &Threads(threads), &NeverCancelled));
}
