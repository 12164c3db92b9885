use serde_json::{Value, json};

use super::*;
use crate::scenario::validate::NoDatasets;
use crate::scenario::{FieldError, ValidScenario, parse};

/// 1,024 layers on 1,024 devices, and 262 samples per batch, each a separate sequence: 1,024 x 262
/// x 2 = 536,576 spans per planner and iteration.
pub(super) fn scenario_json(iterations: u32, planners: &[&str], layout: &Value) -> Value {
    json!({
        "schema": "scenario/1",
        "model": { "name": "m", "modules": [{
            "name": "b", "role": "backbone", "layers": 1024, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn": 4096,
            "gated": true, "mask": "causal", "norm": "rms", "bias": "none", "dropout": false, "vocab": 32000,
            "tied_embeddings": false, "learned_positions": 0
        }]},
        "cluster": { "preset": "a100-80gb", "nodes": 128 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "uniform", "min": 100, "max": 2048 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 262, "context_length": 2048, "packing": "single"
        },
        "layout": layout, "planners": planners, "seed": 1, "iterations": iterations
    })
}

fn errors(document: &Value) -> Vec<FieldError> {
    ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).err().unwrap_or_default()
}

pub(crate) fn deep() -> Value {
    json!({ "tensor": 1, "pipeline": 1024, "microbatch": 1 })
}

#[test]
fn oversized_scenarios_are_rejected_with_the_fitting_iterations() {
    for (iterations, planners, expected) in [
        (1000, &["1f1b"][..], "537 million spans (53 GB); the limit is 20 million; 37 iterations fit"),
        (38, &["1f1b"][..], "20.4 million spans (2 GB); the limit is 20 million; 37 iterations fit"),
        // Two and three directions: 5 x 268,288 spans per iteration.
        (20, &["1f1b", "zb_h1"][..], "26.8 million spans (3 GB); the limit is 20 million; 14 iterations fit"),
    ] {
        let found = errors(&scenario_json(iterations, planners, &deep()));
        assert_eq!(found, [FieldError::new("/iterations", expected.to_owned())], "{iterations} {planners:?}");
    }
    assert!(errors(&scenario_json(37, &["1f1b"], &deep())).is_empty());
}

#[test]
fn a_single_iteration_can_exceed_the_limit() {
    let mut large = scenario_json(1, &["gpipe", "1f1b", "zb_h1", "zb_h2"], &deep());
    large["workload"]["global_batch"] = json!(2048);
    // 10 x 1,024 x 2,048 spans.
    let expected = "21 million spans (3 GB); the limit is 20 million; not even one iteration fits: choose fewer planners, stages or microbatches";
    assert_eq!(errors(&large), [FieldError::new("/iterations", expected.to_owned())]);
}

#[test]
fn all_replicas_are_simulated_and_a_single_replica_is_stored() {
    let spans = layout_spans(PlannerKind::OneFOneB, 8, 100, 2);
    assert_eq!(spans, Spans { stored: 8 * 50 * 2, simulated: 8 * 100 * 2 });
    // Interleaved stages are PP x VPP. A split backward means two spans.
    assert_eq!(layout_spans(PlannerKind::InterleavedZeroBubble, 16, 10, 1).stored, 16 * 10 * 3);
    let many = Spans { stored: 1, simulated: MAX_SIMULATED + 1 };
    assert_eq!(many.excess().unwrap(), "60 million spans over all replicas; the limit is 60 million");
}

/// Planning selects the free degrees, so validation rejects no scenario that has a feasible layout.
#[test]
fn open_degrees_count_with_their_minimum() {
    assert!(errors(&scenario_json(1000, &["1f1b", "wait_free_cyclic"], &json!({}))).is_empty());
    assert!(errors(&scenario_json(1000, &["1f1b"], &json!({ "pipeline": 1024 }))).is_empty());
    let mut packed = scenario_json(1000, &["1f1b"], &deep());
    packed["workload"]["packing"] = json!("packed");
    assert!(errors(&packed).is_empty());
    // At most two samples per sequence mean at least 131 sequences.
    packed["workload"]["max_samples"] = json!(2);
    assert!(errors(&packed)[0].detail.starts_with("268 million spans"), "{:?}", errors(&packed));
}
