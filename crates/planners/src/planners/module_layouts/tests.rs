//! Tests for heterogeneous layouts on small clusters: valid plans, correct comparisons and
//! determinism.

use crate::engine::{Unobserved, plan};
use crate::planners::module_layouts::module_costs::tests as fixtures;
use planscope_cost::cost::Pricing;
use planscope_plan::outcome::{PlanOutcome, Planned};
use planscope_plan::plan::ModuleLayout;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{PlannerKind, Scenario, ValidScenario, parse};

use super::fill::{fill, wave_pieces};
use super::space::{Ground, Mode, Point, degrees, space, space_by};
use std::collections::BTreeSet;

/// One node of eight H100s, `images` per sample.
fn scenario(model: &str, images: u32, planners: &[&str]) -> Scenario {
    let scenario = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "uniform", "min": 500, "max": 3000 },
                "images": { "kind": "uniform", "min": 1, "max": images }
            },
            "global_batch": 24, "context_length": 8192, "packing": "single"
        },
        "training": { "recompute": "full" }, "planners": planners, "iterations": 2, "seed": 3
    });
    parse(&scenario.to_string()).unwrap()
}

fn planned(scenario: &Scenario) -> Vec<(PlannerKind, Result<Planned, String>)> {
    let valid = ValidScenario::new(scenario.clone(), &NoDatasets).unwrap();
    let outcome = |result: planscope_plan::outcome::PlannerResult| match result.answer {
        PlanOutcome::Planned(planned) => (result.planner, Ok(*planned)),
        PlanOutcome::Infeasible { binding, .. } => (result.planner, Err(binding)),
    };
    plan(&valid, &mut Unobserved).unwrap().outcome.results.into_iter().map(outcome).collect()
}

const ALL: [&str; 3] = ["homogeneous", "heterogeneous_colocated", "heterogeneous_non_colocated"];

/// All plans passed validation. They list the placement of each module, and respect the lower bound
/// and the memory limit.
#[test]
fn all_modes_are_planned_with_placements() {
    for model in ["vlm-s", "internvl3-2b", "omni-7b"] {
        let mut scenario = scenario(model, 12, &ALL);
        scenario.cluster.nodes = 2;
        let results = planned(&scenario);
        assert_eq!(results.len(), 3);
        for (kind, result) in results {
            let planned = result.unwrap_or_else(|binding| panic!("{model}, {kind:?}: {binding}"));
            let placement = planned.placement.as_ref().unwrap();
            assert_eq!(placement.ranks.len(), planned.ranks.len(), "{model}, {kind:?}");
            assert!(planned.metrics.gap >= 0.0 && planned.metrics.bubble > -1e-9, "{model}, {kind:?}");
            assert!(planned.metrics.peak_memory_gib <= planned.metrics.memory_limit_gib);
            let device_counts = placement.layouts.iter().map(|layout| layout.devices);
            let is_separate = kind == PlannerKind::HeterogeneousApart;
            assert!(if is_separate { device_counts.sum::<u32>() <= 16 } else { device_counts.max() == Some(16) });
            assert_eq!(
                placement.layouts.iter().any(|layout| layout.colocated),
                kind == PlannerKind::HeterogeneousColocated
            );
            if kind != PlannerKind::Homogeneous {
                assert!(planned.decisions.iter().any(|line| line.starts_with("Separate layouts")));
                assert!(!placement.boundaries.is_empty());
            }
        }
    }
}

/// Without pipelines, the single layout equals the static 1F1B layout. Times differ only by the
/// rounding of module parts to nanoseconds.
#[test]
fn a_layout_without_pipeline_matches_the_static_layout() {
    let mut scenario = scenario("internvl3-2b", 12, &["1f1b", "homogeneous"]);
    scenario.layout.pipeline = Some(1);
    scenario.layout.tensor = Some(2);
    scenario.layout.microbatch = Some(2);
    let times: Vec<f64> =
        planned(&scenario).into_iter().map(|(_, planned)| planned.unwrap().metrics.iteration_s).collect();
    assert!((times[0] - times[1]).abs() < 1e-7, "{times:?}");
}

#[test]
fn equal_scenarios_have_equal_results() {
    let scenario = scenario("vlm-s", 8, &ALL);
    assert!(planned(&scenario) == planned(&scenario));
}

/// With more memory, no planner chooses a slower point on the sizing batch. With too little memory,
/// the planner reports the rank that exceeds the limit.
#[test]
fn the_memory_limit_is_respected_and_named() {
    let mut scenario = scenario("vlm-s", 8, &ALL);
    scenario.cluster.device.memory_gib = 12.0;
    for (kind, result) in planned(&scenario) {
        let binding = result.expect_err("12 GiB hold no ViT 5B with its optimizer");
        assert!(binding.contains("; 8.0 GiB available ("), "{kind:?}: {binding}");
    }
    let single = self::scenario("llama-2-7b", 1, &["heterogeneous_colocated"]);
    let mut single = single;
    single.workload.samples = serde_json::from_value(serde_json::json!({
        "kind": "drawn", "text_tokens": { "kind": "constant", "value": 1000 }, "images": { "kind": "constant", "value": 0 }
    }))
    .unwrap();
    assert!(planned(&single).remove(0).1.unwrap_err().starts_with("does not apply"));
}

/// On eight devices, Qwen2.5 1.5B (12 heads, 2 key-value heads) allows all-to-all degrees of two or
/// four. Larger degrees are rejected.
#[test]
fn layouts_that_trade_heads_have_heads_enough() {
    let mut scenario = scenario("internvl3-2b", 4, &ALL);
    scenario.training.context_exchange = planscope_core::training::ContextExchange::AllToAll;
    for mode in [Mode::Homogeneous, Mode::Colocated, Mode::NonColocated] {
        let found = space(&Ground::from_scenario(&scenario), mode, 24);
        let trades = |point: &Point| {
            let modules = |layout: &ModuleLayout| {
                layout.modules().map(|module| (&scenario.model.modules[module], layout.clone())).collect::<Vec<_>>()
            };
            let mut all = point.modules.iter().flat_map(modules);
            all.all(|(module, layout)| module.supports_all_to_all(layout.tensor, layout.context))
        };
        assert!(!found.points.is_empty() && found.points.iter().all(trades), "{mode:?}");
        assert!(found.points.iter().any(|point| point.modules.iter().any(|layout| layout.context > 1)), "{mode:?}");
        // Modules on disjoint devices have too few devices for larger degrees.
        let has_rejection = found.illegal.iter().any(|(_, rule)| rule.contains("cannot distribute the heads"));
        assert!(has_rejection || mode == Mode::NonColocated, "{mode:?}");
    }
}

/// Every number of devices is tried for the encoder, with copies that do not divide those of the backbone. Above the
/// limit, the points with the lowest scores remain.
#[test]
fn any_split_of_the_devices_is_tried() {
    let mut scenario = scenario("vlm-s", 4, &ALL);
    scenario.cluster.nodes = 2;
    let found = space(&Ground::from_scenario(&scenario), Mode::NonColocated, 256);
    let counts: BTreeSet<u32> = found.points.iter().map(|point| point.modules[0].devices().len() as u32).collect();
    assert_eq!(counts, (1..16).collect());
    let is_uneven = |point: &Point| {
        let [encoder, backbone] = [0, 1].map(|module| point.modules[module].data);
        encoder.max(backbone) % encoder.min(backbone) != 0
    };
    assert!(found.points.iter().any(is_uneven));
    scenario.cluster.nodes = 8;
    let encoder_devices = |point: &Point| point.modules[0].devices().len() as f64;
    let mut score = |point: &Point| (encoder_devices(point) - 40.0).abs();
    let found = space_by(&Ground::from_scenario(&scenario), Mode::NonColocated, 256, &mut score);
    assert!(found.left_out > 0 && found.points.iter().all(|point| (20.0..60.0).contains(&encoder_devices(point))));
}

/// A wave has 2 and 5 instances for 3 encoder copies: pieces of 2, 2 and 3. The second microbatch has no piece on the
/// first copy.
#[test]
fn a_wave_is_divided_among_all_copies() {
    let first: Vec<_> = wave_pieces(7, 0..2, 3).collect();
    let second: Vec<_> = wave_pieces(7, 2..7, 3).collect();
    assert_eq!(first, [(0, 0..2)]);
    assert_eq!(second, [(1, 0..2), (2, 2..5)]);
}

/// All divisors are tried in addition to powers of two. Three nodes with eight devices allow CP 3,
/// 6, 12 and 24. EP may be any divisor of 60 experts.
#[test]
fn degrees_are_those_that_divide() {
    let mut scenario = scenario("internvl3-2b", 4, &ALL);
    assert_eq!(degrees(&scenario), (vec![1, 2, 4, 8], vec![1]));
    scenario.cluster.nodes = 3;
    let experts = Some(planscope_core::model::Moe::new(60, 4));
    scenario.model.modules[1].moe = experts;
    assert_eq!(degrees(&scenario), (vec![1, 2, 3, 4, 6, 8, 12, 16, 24], vec![1, 2, 3, 4, 5, 6, 10, 12, 15, 20]));
    // CP degrees over 64 are not tried.
    scenario.cluster.nodes = 16;
    assert_eq!(degrees(&scenario).0, [1, 2, 4, 8, 16, 32, 64]);
}

/// 65,536 microbatches through 64 stages.
#[test]
fn too_many_cells_are_rejected_before_pricing() {
    let mut scenario = fixtures::scenario();
    (scenario.cluster.nodes, scenario.workload.global_batch, scenario.iterations) = (8, 65_536, 1);
    let batch = fixtures::batch(&scenario);
    let module_layouts = vec![fixtures::layout(0..1, [1, 1, 32, 1], 0), fixtures::layout(1..2, [1, 1, 32, 1], 32)];
    let point = Point { mode: Mode::NonColocated, modules: module_layouts, microbatch: 1 };
    let partition = fixtures::partition(&scenario, &[32, 32]);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let Err(infeasibility) = fill(&scenario, &pricing, (&point, &partition), &batch) else { panic!("4,194,304 cells") };
    assert_eq!(infeasibility.reason, "more than 4000000 microbatches x stages");
}
