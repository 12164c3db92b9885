//! Layers per stage that the scenario fixes.

use planner::engine::{Unobserved, plan};
use planner::outcome::{PlanOutcome, layer_counts};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, Scenario, ValidScenario, parse};
use serde_json::{Value, json};

fn scenario(stages: &Value, planners: &Value) -> Scenario {
    let document = json!({
        "schema": "scenario/1",
        "model": { "preset": "llama-3-8b" },
        "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": { "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 } },
            "global_batch": 32, "context_length": 4096, "packing": "padded"
        },
        "layout": { "tensor": 2, "pipeline": 4 },
        "layers_per_stage": stages,
        "training": { "recompute": "full" },
        "planners": planners,
        "iterations": 1
    });
    parse(&document.to_string()).unwrap()
}

/// Every planner either runs the fixed stages or states why it does not.
#[test]
fn planners_run_fixed_stages_or_state_why_not() {
    let all = json!([
        "best",
        "1f1b",
        "gpipe",
        "1f1b_parameters",
        "zb_h1",
        "wait_free_cyclic",
        "nnscaler",
        "interleaved",
        "zbv",
        "dhp",
        "hydraulis",
        "pipeweaver"
    ]);
    let four = json!([9, 9, 8, 6]);
    let valid = ValidScenario::new(scenario(&four, &all), &NoDatasets).unwrap();
    let outcome = plan(&valid, &mut Unobserved).unwrap().outcome;
    let mut planned_stages = 0;
    for result in &outcome.results {
        match &result.answer {
            PlanOutcome::Planned(planned) => {
                planned_stages += 1;
                assert_eq!(layer_counts(planned, 32), Some(vec![9, 9, 8, 6]), "{:?}", result.planner);
            }
            PlanOutcome::Infeasible { binding, .. } => {
                let reasons = ["the scenario fixes the layers", "does not apply", "interleaving needs"];
                let is_stated = reasons.iter().any(|reason| binding.starts_with(reason));
                assert!(is_stated, "{:?}: {binding}", result.planner);
            }
        }
    }
    assert_eq!(planned_stages, 7, "best, 1F1B, GPipe, equal parameters, ZB-H1, wait-free, nnScaler*");
}

/// The embedding and the output head have stages of their own: their ranks have no layer. One stage has none of them.
#[test]
fn a_stage_can_have_no_layer() {
    let stages = [0, 16, 0, 15, 1, 0, 0, 0];
    let planners = json!(["best", "1f1b", "interleaved", "zbv", "zb_h1", "wait_free_cyclic", "nnscaler"]);
    let mut scenario = scenario(&json!(stages), &planners);
    (scenario.layout.tensor, scenario.layout.pipeline) = (Some(1), Some(8));
    let plans = |scenario: Scenario| {
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let outcome = plan(&valid, &mut Unobserved).unwrap().outcome;
        let planned = outcome.results.into_iter().filter_map(|result| match result.answer {
            PlanOutcome::Planned(planned) => Some((result.planner, planned)),
            PlanOutcome::Infeasible { .. } => None,
        });
        planned.collect::<Vec<_>>()
    };
    let single = plans(scenario.clone());
    assert_eq!(single.len(), 5, "best, 1F1B, ZB-H1, wait-free, nnScaler*");
    for (planner, planned) in &single {
        assert_eq!(layer_counts(planned, 32).as_deref(), Some(&stages[..]), "{planner:?}");
        let names: Vec<&str> = planned.stages.iter().map(|stage| stage.layers.as_str()).collect();
        assert_eq!((names[0], names[2], names[7]), ("embedding", "no layers", "output head"), "{planner:?}");
        let forward: Vec<f64> = planned.stages.iter().map(|stage| stage.forward_ms).collect();
        assert!(forward[1] > 10.0 * forward[0] && forward[7] > forward[2], "{planner:?} {forward:?}");
    }
    // The same stages as chunks of four ranks.
    (scenario.layout.tensor, scenario.layout.pipeline) = (Some(2), Some(4));
    let chunked = plans(scenario);
    assert!(chunked.iter().any(|(planner, _)| *planner == PlannerKind::Interleaved));
    for (planner, planned) in &chunked {
        assert_eq!(layer_counts(planned, 32).as_deref(), Some(&stages[..]), "{planner:?}");
    }
}

/// A list of twice the ranks has two chunks a rank.
#[test]
fn more_stages_than_ranks_are_chunks() {
    let stages = json!([4, 4, 4, 4, 4, 4, 5, 3]);
    let valid = ValidScenario::new(scenario(&stages, &json!(["interleaved", "zbv", "1f1b"])), &NoDatasets).unwrap();
    let outcome = plan(&valid, &mut Unobserved).unwrap().outcome;
    let chunks: Vec<Option<u32>> = outcome
        .results
        .iter()
        .map(|result| match &result.answer {
            PlanOutcome::Planned(planned) => Some(planned.layout.chunks),
            PlanOutcome::Infeasible { .. } => None,
        })
        .collect();
    assert_eq!(chunks, [Some(2), Some(2), None]);
}

#[test]
fn contradictory_stages_are_refused() {
    let refused = |stages: &Value, change: &dyn Fn(&mut Scenario)| {
        let mut scenario = scenario(stages, &json!(["1f1b"]));
        change(&mut scenario);
        let errors = ValidScenario::new(scenario, &NoDatasets).unwrap_err();
        errors.into_iter().map(|error| format!("{}: {}", error.pointer, error.detail)).collect::<Vec<_>>().join("; ")
    };
    let nothing = |_: &mut Scenario| {};
    let free = |scenario: &mut Scenario| scenario.free = vec![planner::scenario::FreeSetting::LayersPerStage];
    for (stages, change, detail) in [
        (json!([8, 8, 8, 9]), &nothing as &dyn Fn(&mut Scenario), "the stages have 33 layers, the model has 32"),
        (json!([16, 8, 8]), &nothing, "the number of stages must be a multiple of PP 4 (4, 8, …); 3 are given"),
        (json!([8, 8, 8, 8]), &|scenario| scenario.layout.chunks = Some(2), "4 stages, but PP x VPP is 8"),
        (json!([8, 8, 8, 8]), &|scenario| scenario.layout.pipeline = None, "needs a fixed PP"),
        (json!([8, 8, 8, 8]), &free, "fixed and free at the same time; remove one"),
    ] {
        assert_eq!(refused(&stages, change), format!("/layers_per_stage: {detail}"));
    }
}

/// 1F1B on four stages with 32 microbatches, in 16 flushes of two: the bubble is 3 / (2 + 3), as in a step of two
/// microbatches, instead of 3 / 35. Dynamic orders do not apply.
#[test]
fn a_pipeline_that_is_flushed_often_is_idle() {
    let bubble = |flush: Option<u32>| {
        let mut scenario = scenario(&json!([8, 8, 8, 8]), &json!(["1f1b", "pipeweaver"]));
        (scenario.layout.microbatch, scenario.training.microbatches_per_flush) = (Some(1), flush);
        let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
        let outcome = plan(&valid, &mut Unobserved).unwrap().outcome;
        let planned: Vec<_> = outcome
            .results
            .iter()
            .filter_map(|result| match &result.answer {
                PlanOutcome::Planned(planned) => Some(planned),
                PlanOutcome::Infeasible { .. } => None,
            })
            .collect();
        assert!(planned.len() == 1 || flush.is_none());
        planned[0].metrics.bubble
    };
    let (often, once) = (bubble(Some(2)), bubble(None));
    assert!((0.57..0.66).contains(&often) && (0.07..0.25).contains(&once), "{often} {once}");
}
