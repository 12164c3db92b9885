//! Planning on 64 devices: the exhaustive static search, and what dragging a slider asks for.

#[path = "shared/threads.rs"]
mod threads;

use planner::engine::{Unobserved, plan};
use planner::host::Unwatched;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};
use planner::study::layouts;
use planner::training::LayoutRequest;
use threads::Threads;

fn main() {
    divan::main();
}

/// Llama-2 7B on 8 nodes of 8 A100, 256 documents a batch; all degrees open unless `fixed`.
fn scenario(planners: &[PlannerKind], fixed: bool, iterations: u32) -> ValidScenario {
    let json = include_str!("../../examples/llama-2-7b-long-documents.json");
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

/// TP x PP x VPP x microbatch, every combination bounded, simulated unless its bound loses; one judged batch.
#[divan::bench(args = [PlannerKind::OneFOneB, PlannerKind::Interleaved, PlannerKind::Gpipe, PlannerKind::WaitFreeCyclic])]
fn exhaustive_on_64_devices(bencher: divan::Bencher<'_, '_>, kind: PlannerKind) {
    let scenario = scenario(&[kind], false, 1);
    bencher.bench(|| plan(&scenario, &mut Unobserved).expect("not cancelled"));
}

/// Three planners with TP and PP fixed over eight batches: what dragging a slider asks for.
#[divan::bench]
fn three_planners_with_a_fixed_layout(bencher: divan::Bencher<'_, '_>) {
    let planners = [PlannerKind::OneFOneB, PlannerKind::Interleaved, PlannerKind::WaitFreeCyclic];
    let scenario = scenario(&planners, true, 8);
    bencher.bench(|| plan(&scenario, &mut Unobserved).expect("not cancelled"));
}

/// Every layout of two modules on 64 devices, on one thread and on two: 150 points of each freedom are simulated on the whole
/// cluster and on half of it.
#[divan::bench(args = [1, 2], sample_count = 3)]
fn every_layout_on_64_devices(bencher: divan::Bencher<'_, '_>, threads: usize) {
    let json = include_str!("../../examples/heterogeneous/vlm-m-8k-many-images.json");
    let scenario = parse(json).expect("the example is well-formed");
    let scenario = ValidScenario::new(scenario, &NoDatasets).expect("the example is valid");
    bencher.bench(|| layouts(&scenario, 150, &Threads(threads), &Unwatched));
}
