//! User-supplied times, from the scenario to the plan.

use planner::engine::{Unobserved, plan};
use planner::outcome::PlanOutcome;
use planner::scenario::validate::NoDatasets;
use planner::scenario::{FieldError, PlannerKind, ValidScenario, parse};
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../../../examples/llama-2-7b-long-documents.json");
const IMAGES: &str = include_str!("../../../../examples/vlm-s-image-heavy.json");

/// Returns an example with overrides.
fn with(example: &str, overrides: Value) -> Result<ValidScenario, Vec<FieldError>> {
    let mut value: Value = serde_json::from_str(example).unwrap();
    value["training"]["overrides"] = overrides;
    parse(&value.to_string()).and_then(|scenario| ValidScenario::new(scenario, &NoDatasets))
}

#[test]
fn overrides_are_included_in_the_scenario() {
    let plain = ValidScenario::new(parse(EXAMPLE).unwrap(), &NoDatasets).unwrap();
    assert_eq!(with(EXAMPLE, json!([])).unwrap().id(), plain.id());
    assert!(!plain.scenario().canonical().contains("overrides"));
    let overrides = json!([
        { "operator": "qkv", "phase": "input_grad", "scale": 1.2 },
        { "module": "Llama-2 7B", "operator": "attention", "formula_us": "3.1 + 0.012*tokens + 2e-9*squared" },
        { "operator": "layer", "phase": "backward", "table_us": [[1024, 100.5], [2048, 210]] }
    ]);
    let given = with(EXAMPLE, overrides).unwrap();
    assert_ne!(given.id(), plain.id());
    let written = serde_json::to_string(given.scenario()).unwrap();
    let read = parse(&written).unwrap();
    assert_eq!(read, *given.scenario());
    assert_eq!(read.id(), *given.id());
}

#[test]
fn invalid_overrides_are_named_with_a_correction() {
    for (wrong, at, says) in [
        (json!({ "operator": "qvk", "scale": 2 }), "/operator", "there is no operator \"qvk\"; there are accumulate"),
        (json!({ "module": "ViT", "operator": "qkv", "scale": 2 }), "/module", "it has ViT 5B, Llama-3 8B"),
        (json!({ "operator": "qkv" }), "", "exactly one of scale, formula_us, table_us and timings_us"),
        (json!({ "operator": "qkv", "scale": 2, "formula_us": "1" }), "", "exactly one of"),
        (json!({ "operator": "qkv", "scale": 0.001 }), "/scale", "0.001 is out of range: 0.01 to 100"),
        (json!({ "operator": "qkv", "scale": 101 }), "/scale", "101 is out of range"),
        (
            json!({ "operator": "qkv", "formula_us": "3 + (2)) * tokens" }),
            "/formula_us",
            "unexpected ')' at character 8",
        ),
        (
            json!({ "operator": "qkv", "formula_us": "-3" }),
            "/formula_us",
            "gives -3 µs for ViT 5B at tokens = 1, tp = 1; times",
        ),
        (
            json!({ "operator": "qkv", "formula_us": "20000 - tokens" }),
            "/formula_us",
            "gives -111072 µs for ViT 5B at tokens = 131072",
        ),
        (json!({ "operator": "activation", "formula_us": "1 / flops" }), "/formula_us", "gives inf µs"),
        (json!({ "operator": "layer", "formula_us": "1e6 / (tp - 1)" }), "/formula_us", "gives inf µs"),
        (json!({ "operator": "qkv", "table_us": [[1, 2]] }), "/table_us", "1 points: 2 to 1024"),
        (json!({ "operator": "qkv", "table_us": [[2, 2], [1, 3]] }), "/table_us/1", "tokens must rise"),
        (json!({ "operator": "qkv", "table_us": [[2, -2], [3, 3]] }), "/table_us/0", "zero or more"),
        (json!({ "operator": "qkv", "table_us": [[2, 2, 2], [3, 3]] }), "/table_us/0", "invalid length 3"),
        (json!({ "operator": "layer", "timings_us": [[2, 1, 2], [4, 1, 4]] }), "/timings_us", "2 timings: 3 to 1024"),
        (
            json!({ "operator": "layer", "timings_us": [[2, 1, 2], [4, 1, 0], [8, 1, 9]] }),
            "/timings_us/1",
            "above zero",
        ),
        (json!({ "operator": "qkv", "timings_us": [[2, 1, 2], [4, 1, 4], [8, 1, 9]] }), "/operator", "whole layers"),
        (json!({ "operator": "qkv", "scale": 2, "at": { "tensor": 0, "context": 1 } }), "/at/tensor", "1 or more"),
        (json!({ "operator": "qkv", "scale": 2, "at": { "tensor": 1 } }), "/at/context", "is missing"),
        (json!({ "operator": "layer", "phase": "input_grad", "scale": 2 }), "/phase", "keep their shares"),
        (json!({ "operator": "layer", "phase": "sideways", "scale": 2 }), "/phase", "unknown variant"),
        (json!({ "operator": "layer", "factor": 2 }), "/factor", "unknown field"),
    ] {
        let errors = with(IMAGES, json!([{ "operator": "layer", "scale": 2 }, wrong])).unwrap_err();
        let [error] = &errors[..] else { panic!("{wrong}: {errors:?}") };
        assert_eq!(error.pointer, format!("/training/overrides/1{at}"), "{error}");
        assert!(error.detail.contains(says), "{error}");
    }
    let many = vec![json!({ "operator": "layer", "scale": 2 }); 65];
    let errors = with(EXAMPLE, json!(many)).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].to_string(), "/training/overrides: 65 overrides: at most 64");
    let both = with(EXAMPLE, json!([{ "operator": "a", "scale": 0 }, { "operator": "b", "formula_us": "(" }]));
    let pointers: Vec<String> = both.unwrap_err().into_iter().map(|error| error.pointer).collect();
    let wrong = ["0/operator", "0/scale", "1/operator", "1/formula_us"];
    assert_eq!(pointers, wrong.map(|field| format!("/training/overrides/{field}")));
}

#[test]
fn other_invalid_fields_do_not_affect_formula_checks() {
    let mut value: Value = serde_json::from_str(EXAMPLE).unwrap();
    value["training"]["overrides"] = json!([{ "operator": "qkv", "formula_us": "-1" }]);
    value["model"] = json!({ "preset": "llama-2-7b", "modules": [] });
    let errors = ValidScenario::new(parse(&value.to_string()).unwrap(), &NoDatasets).unwrap_err();
    assert_eq!(errors[0].pointer, "/model/modules");
}

/// Plans the example with overrides in a fixed layout.
fn answers(overrides: Value, planners: &[PlannerKind]) -> Vec<PlanOutcome> {
    let mut scenario = with(EXAMPLE, overrides).unwrap().scenario().clone();
    scenario.planners = planners.to_vec();
    scenario.iterations = 1;
    scenario.layout.tensor = Some(2);
    scenario.layout.pipeline = Some(4);
    let planning = plan(&ValidScenario::new(scenario, &NoDatasets).unwrap(), &mut Unobserved).unwrap();
    planning.outcome.results.into_iter().map(|result| result.answer).collect()
}

/// Iteration time under 1F1B in seconds.
fn iteration(overrides: Value) -> f64 {
    match &answers(overrides, &[PlannerKind::OneFOneB])[..] {
        [PlanOutcome::Planned(planned)] => planned.metrics.iteration_s,
        other => panic!("{other:?}"),
    }
}

/// Layers dominate the iteration. The remaining parts are embedding, output head, loss, sends and
/// optimizer.
#[test]
fn layers_that_take_twice_as_long_double_the_iteration() {
    let ratio = iteration(json!([{ "operator": "layer", "scale": 2 }])) / iteration(json!([]));
    assert!(ratio > 1.85 && ratio < 2.0, "{ratio}");
}

/// Extreme values still return a result.
#[test]
fn layers_without_time_and_layers_without_end_are_answered() {
    let short = iteration(json!([{ "operator": "layer", "formula_us": "0" }]));
    assert!(short > 0.0 && short < 0.5 * iteration(json!([])), "{short}");
    let planned = |formula: &str| {
        let given = json!([{ "operator": "layer", "formula_us": formula }]);
        let answers = answers(given, &PlannerKind::ALL);
        answers.iter().filter(|result| matches!(result, PlanOutcome::Planned(_))).count()
    };
    assert!(planned("0") >= 3, "all but those that need more memory");
    assert_eq!(planned("1e300"), 0, "what takes months is no plan");
}
