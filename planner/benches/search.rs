//! Planning on 64 devices: the exhaustive static search, and what dragging a slider asks for.

use planner::engine::{Unobserved, plan};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};
use planner::training::LayoutRequest;

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
