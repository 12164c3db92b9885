//! End-to-end tests from scenario JSON to evaluated plans, on the included examples.

use planner::engine::{Cancelled, PlanError, Unobserved, plan};
use planner::outcome::{PlanOutcome, Planned, Planning};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};

const EXAMPLES: [(&str, &str); 3] = [
    ("vlm-s-image-heavy", include_str!("../../../../examples/vlm-s-image-heavy.json")),
    ("llama-2-7b-long-documents", include_str!("../../../../examples/llama-2-7b-long-documents.json")),
    ("gpt-3-175b-uniform", include_str!("../../../../examples/gpt-3-175b-uniform.json")),
];

fn valid(json: &str) -> ValidScenario {
    ValidScenario::new(parse(json).unwrap(), &NoDatasets).unwrap()
}

fn planned(planning: &Planning, kind: PlannerKind) -> &Planned {
    let result = planning.outcome.results.iter().find(|result| result.planner == kind).unwrap();
    match &result.answer {
        PlanOutcome::Planned(planned) => planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{}: {binding}", kind.id()),
    }
}

#[test]
fn every_example_is_planned_by_every_planner_within_its_bounds() {
    for (name, json) in EXAMPLES {
        let planning = plan(&valid(json), &mut Unobserved).unwrap();
        for result in &planning.outcome.results {
            // GPipe stores all 64 activations of GPT-3 175B; the example demonstrates the
            // infeasibility.
            if (name, result.planner) == ("gpt-3-175b-uniform", PlannerKind::Gpipe) {
                assert!(matches!(result.answer, PlanOutcome::Infeasible { .. }));
                continue;
            }
            let planned = planned(&planning, result.planner);
            let metrics = &planned.metrics;
            println!(
                "{name} {}: {:.3} s, bound {:.3}, MFU {:.3}, bubble {:.3}, exposed {:.3}, peak {:.1} GiB, {:?}",
                result.planner.id(),
                metrics.iteration_s,
                metrics.lower_bound_s,
                metrics.mfu,
                metrics.bubble,
                metrics.exposed_communication,
                metrics.peak_memory_gib,
                planned.layout
            );
            assert!(metrics.lower_bound_s <= metrics.iteration_s, "{name}");
            assert!(metrics.mfu > 0.05 && metrics.mfu < 0.8, "{name}: {}", metrics.mfu);
            assert!((0.0..1.0).contains(&metrics.bubble), "{name}");
            assert!(metrics.peak_memory_gib <= metrics.memory_limit_gib, "{name}");
            for iteration in &planned.iterations {
                let shares = iteration.critical_path;
                assert!((shares.compute + shares.communication + shares.optimizer - 1.0).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn the_dynamic_schedule_is_no_slower_than_1f1b_on_uneven_microbatches() {
    for (name, json) in EXAMPLES {
        let mut scenario = parse(json).unwrap();
        scenario.planners = vec![PlannerKind::OneFOneB, PlannerKind::WaitFreeCyclic];
        let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let planning = plan(&scenario, &mut Unobserved).unwrap();
        let fixed = planned(&planning, PlannerKind::OneFOneB).metrics.iteration_s;
        let dynamic = planned(&planning, PlannerKind::WaitFreeCyclic).metrics.iteration_s;
        assert!(dynamic <= fixed * 1.000_001, "{name}: {dynamic} > {fixed}");
    }
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    let scenario = valid(EXAMPLES[1].1);
    let bytes = |planning: &Planning| serde_json::to_string(&planning.outcome).unwrap();
    let (first, second) = (plan(&scenario, &mut Unobserved).unwrap(), plan(&scenario, &mut Unobserved).unwrap());
    assert_eq!(bytes(&first), bytes(&second));
    assert_eq!(first.timelines, second.timelines);
}

#[test]
fn a_model_that_cannot_fit_is_infeasible_with_the_binding_constraint() {
    let mut scenario = parse(EXAMPLES[2].1).unwrap();
    scenario.cluster.nodes = 1;
    scenario.layout = planner::training::LayoutRequest::default();
    let planning = plan(&ValidScenario::new(scenario, &NoDatasets).unwrap(), &mut Unobserved).unwrap();
    for result in &planning.outcome.results {
        let PlanOutcome::Infeasible { binding, search } = &result.answer else { panic!("175B does not fit 8 devices") };
        assert!(binding.contains("; 76.0 GiB available (TP"), "{binding}");
        assert_eq!(search.candidates, search.rejected);
    }
}

#[test]
fn cancellation_is_heard() {
    struct Impatient;
    impl planner::engine::Observer for Impatient {
        fn started(&mut self, _: PlannerKind) {}
        fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
        fn finished(&mut self, _: PlannerKind) {}
        fn cancelled(&self) -> bool {
            true
        }
    }
    assert_eq!(plan(&valid(EXAMPLES[1].1), &mut Impatient), Err(PlanError::Cancelled(Cancelled)));
}

/// Plans an example after changing some fields.
fn planned_with(example: usize, change: impl FnOnce(&mut planner::scenario::Scenario)) -> Planning {
    let mut scenario = parse(EXAMPLES[example].1).unwrap();
    change(&mut scenario);
    plan(&ValidScenario::new(scenario, &NoDatasets).unwrap(), &mut Unobserved).unwrap()
}

/// PP 8 on a node with 8 devices permits only TP 1. PP 2 on three nodes permits TP values for which
/// TP x PP divides 24.
#[test]
fn a_fixed_degree_leaves_only_divisors() {
    for (nodes, pipeline) in [(1, 8), (3, 2), (3, 3)] {
        let planning = planned_with(1, |scenario| {
            scenario.cluster.nodes = nodes;
            scenario.cluster.device.memory_gib = 400.0;
            scenario.layout = planner::training::LayoutRequest {
                pipeline: Some(pipeline),
                ..planner::training::LayoutRequest::default()
            };
            scenario.iterations = 1;
        });
        for result in &planning.outcome.results {
            if let PlanOutcome::Planned(planned) = &result.answer {
                let layout = planned.layout;
                assert_eq!(layout.tensor * layout.pipeline * layout.data, 8 * nodes, "{layout:?}");
            }
        }
    }
}

#[test]
fn the_binding_constraint_is_from_the_latest_check() {
    let planning = planned_with(1, |scenario| {
        scenario.planners = vec![PlannerKind::Interleaved];
        scenario.layout.group = Some(2);
        scenario.layout.chunks = Some(2);
        scenario.layout.microbatch = Some(1);
    });
    let PlanOutcome::Infeasible { binding, .. } = &planning.outcome.results[0].answer else {
        panic!("groups of 2 for PP 4")
    };
    assert_eq!(binding, "groups shorter than PP deadlock");
    let planning = planned_with(1, |scenario| {
        scenario.planners = vec![PlannerKind::WaitFreeCyclic];
        scenario.cluster.device.memory_gib = 16.0;
    });
    let PlanOutcome::Infeasible { binding, .. } = &planning.outcome.results[0].answer else { panic!("16 GiB") };
    assert!(binding.starts_with("rank 3 needs ") && binding.contains("; 12.0 GiB available (TP 4 · PP 4"), "{binding}");
}

/// Sums that overflow nanoseconds or bytes are reported as infeasible; they do not wrap around.
#[test]
fn absurd_sizes_are_answers() {
    let planning = planned_with(1, |scenario| {
        scenario.cluster.nodes = 1;
        scenario.cluster.devices_per_node = 1;
        scenario.cluster.device.memory_gib = 4096.0;
        scenario.layout = planner::training::LayoutRequest::default();
        scenario.training.attention = planner::training::AttentionKernel::Unfused;
        scenario.workload.context_length = 16_777_216;
        scenario.workload.global_batch = 4096;
        scenario.workload.packing = planner::workload::Packing::Padded;
        scenario.planners = vec![PlannerKind::Gpipe, PlannerKind::OneFOneB];
        scenario.iterations = 1;
    });
    assert!(planning.outcome.results.iter().all(|result| matches!(result.answer, PlanOutcome::Infeasible { .. })));
}

#[test]
fn a_free_iteration_still_has_finite_metrics() {
    let planning = planned_with(1, |scenario| {
        let module = &mut scenario.model.modules[0];
        (module.layers, module.hidden, module.heads, module.kv_heads, module.ffn) = (1, 16, 1, 1, 16);
        (module.vocab, module.learned_positions) = (0, 0);
        scenario.cluster.device.launch_us = 0.0;
        scenario.cluster.device.peak_tflops = 100_000.0;
        scenario.cluster.device.memory_gb_per_s = 100_000.0;
        scenario.layout = planner::training::LayoutRequest::default();
        scenario.workload.context_length = 1;
        scenario.planners = vec![PlannerKind::OneFOneB, PlannerKind::WaitFreeCyclic];
    });
    for result in &planning.outcome.results {
        let metrics = &planned(&planning, result.planner).metrics;
        assert!(metrics.iteration_s > 0.0 && metrics.gap.is_finite() && metrics.mfu.is_finite(), "{metrics:?}");
    }
}
