//! Planners that choose recomputation themselves.

use planner::engine::{Unobserved, plan};
use planner::outcome::PlanOutcome;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{ValidScenario, parse};
use serde_json::json;

/// Plans Llama-3 8B on four stages with nnScaler*, and returns the iteration time in s.
fn iteration_s(recompute: &str) -> f64 {
    let scenario_json = json!({
        "schema": "scenario/1",
        "model": { "preset": "llama-3-8b" },
        "cluster": { "preset": "h100", "nodes": 1 },
        "training": { "recompute": recompute },
        "workload": {
            "samples": { "kind": "drawn", "text_tokens": { "kind": "constant", "value": 8192 } },
            "global_batch": 32, "context_length": 8192, "packing": "padded"
        },
        "layout": { "tensor": 2, "pipeline": 4, "microbatch": 1 },
        "free": ["layers_per_stage"],
        "planners": ["nnscaler"],
        "iterations": 1
    });
    let scenario = ValidScenario::new(parse(&scenario_json.to_string()).unwrap(), &NoDatasets).unwrap();
    let outcome = plan(&scenario, &mut Unobserved).unwrap().outcome;
    match &outcome.results[0].answer {
        PlanOutcome::Planned(planned) => planned.metrics.iteration_s,
        PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

/// nnScaler* recomputes as few layers as fit. The recomputation of the scenario does not change its stages.
#[test]
fn stages_are_balanced_without_the_recomputation_of_the_scenario() {
    let (full, none) = (iteration_s("full"), iteration_s("none"));
    assert!((full / none - 1.0).abs() < 1e-6, "{full} {none}");
}
