//! A planned scenario for the tests of exports.

use planner::engine::{Unobserved, plan};
use planner::outcome::{BatchSummary, PlanOutcome, Planned};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{Scenario, ValidScenario, parse};

/// Plans Llama-3 8B on four pipeline ranks. `free` names the free settings.
pub(super) fn planned(planner: &str, free: &[&str]) -> (Scenario, Planned, Vec<BatchSummary>) {
    let document = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 16, "context_length": 4096, "packing": "single"
        },
        "training": { "recompute": "full", "zero": 1 },
        "layout": { "tensor": 1, "pipeline": 4, "microbatch": 1 },
        "free": free, "planners": [planner], "iterations": 1
    });
    let scenario = ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap();
    let outcome = plan(&scenario, &mut Unobserved).unwrap().outcome;
    let result = outcome.results.into_iter().next().unwrap();
    let PlanOutcome::Planned(planned) = result.answer else { panic!("no plan: {:?}", result.answer) };
    (scenario.scenario().clone(), *planned, outcome.batches)
}
