use serde_json::{Value, json};

use super::*;
use planscope_core::host::{NeverCancelled, SequentialWorkers};

/// Returns the result as JSON.
pub(super) fn answered(problem: &Value) -> Value {
    let request = parse(&problem.to_string()).unwrap_or_else(|errors| panic!("{errors:?}"));
    let response =
        respond(&request.problem, &SequentialWorkers, &NeverCancelled).unwrap_or_else(|errors| panic!("{errors:?}"));
    serde_json::to_value(response).unwrap()
}

/// Returns the validation errors, formatted as "pointer: detail".
pub(super) fn validation_errors(problem: &Value) -> Vec<String> {
    let errors = match parse(&problem.to_string()) {
        Ok(request) => respond(&request.problem, &SequentialWorkers, &NeverCancelled).unwrap_err(),
        Err(errors) => errors,
    };
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn invalid_problems_are_reported() {
    for (problem, expected) in [
        (json!(3), ": a problem is a JSON object"),
        (json!({}), "/kind: is missing: one of uneven-pipeline, "),
        (json!({"kind": "knapsack"}), "/kind: \"knapsack\" is no kind: one of uneven-pipeline, "),
        (json!({"kind": 1}), "/kind: 1 is no kind; there are one of uneven-pipeline, "),
        (json!({"kind": "uneven-pipeline", "budget_s": -1}), "/budget_s: -1 is not a number of seconds from 0 to "),
        (json!({"kind": "uneven-pipeline", "budget_s": "1"}), "/budget_s: \"1\" is not a number of seconds"),
        (json!({"kind": "uneven-pipeline", "ranks": 1, "forward": [[1], ["x"]], "backward": []}), "/forward/1/0: "),
        (json!({"kind": "uneven-pipeline", "rank": 1}), ": unknown field `rank`"),
    ] {
        let errors = validation_errors(&problem);
        assert!(errors.len() == 1 && errors[0].contains(expected.trim_start_matches(": ")), "{errors:?} for {problem}");
        assert!(errors[0].starts_with(&expected[..expected.find(':').unwrap()]), "{errors:?}");
    }
    assert!(parse("{").unwrap_err()[0].detail.starts_with("not JSON"));
}

#[test]
fn a_budget_is_parsed_with_the_problem() {
    let mut problem = json!({"kind": "uneven-pipeline", "ranks": 1, "forward": [[1]], "backward": [[1]]});
    let budget = |problem: &Value| parse(&problem.to_string()).unwrap().budget;
    assert_eq!(budget(&problem), None);
    problem["budget_s"] = json!(0);
    assert_eq!(budget(&problem), Some(Seconds::ZERO));
}
