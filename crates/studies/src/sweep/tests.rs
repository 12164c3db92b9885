use serde_json::{Value, json};

use super::*;
use planscope_plan::observer::Unobserved;
use planscope_plan::scenario::validate::NoDatasets;

fn base() -> Value {
    json!({
        "schema": "scenario/1",
        "title": "base",
        "model": {"preset": "llama-2-7b"},
        "cluster": {"preset": "a100-80gb", "nodes": 1},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "uniform", "min": 100, "max": 2000},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 8, "context_length": 2048, "packing": "single"
        },
        "layout": {"tensor": 2, "pipeline": 2},
        "planners": ["1f1b"],
        "iterations": 1
    })
}

#[test]
fn unplannable_points_are_rows() {
    // Zero nodes are invalid. 7 billion parameters with 16-bit weights, gradients and optimizer
    // states need 13 GB, which exceeds 4 devices with 1 GiB.
    let axes = json!([
        {"pointer": "/cluster/nodes", "values": [0, 1]},
        {"pointer": "/cluster/device/memory_gib", "values": [80.0, 6.0]},
    ]);
    let document = json!({"schema": "sweep/1", "scenario": base(), "axes": axes});
    let sweep = Sweep::parse(&document.to_string()).unwrap();
    let row = |index| plan_point(&sweep.point(index).unwrap(), &NoDatasets, &mut Unobserved).unwrap();
    match row(0).answer {
        PointOutcome::Invalid { errors } => assert_eq!(errors[0].pointer, "/cluster/nodes"),
        other => panic!("{other:?}"),
    }
    let planned = row(2);
    let metrics = planned.planners()[0].metrics().unwrap();
    assert!(metrics.lower_bound_s <= metrics.iteration_s);
    assert!((metrics.tokens_per_s_per_device * 8.0 - metrics.tokens_per_s).abs() < 1e-6 * metrics.tokens_per_s);
    assert!(matches!(&row(3).planners()[0], PlannerRow::Infeasible { reason, .. } if reason.contains("GiB")));
    let text = serde_json::to_string(&planned).unwrap();
    assert_eq!(serde_json::from_str::<PointRow>(&text).unwrap(), planned);
    assert_eq!(serde_json::to_string(&row(2)).unwrap(), text, "same bytes");
}
