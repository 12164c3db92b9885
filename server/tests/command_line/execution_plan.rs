//! Tests of `planscope plan --execution-plan` and `planscope simulate`.

use super::{planscope, scenario};

#[test]
fn an_execution_plan_is_written_and_simulated_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    let path = path.to_str().unwrap();
    let arguments = ["plan", "-", "--execution-plan", path, "--planner", "1f1b", "--iteration", "1"];
    let output = planscope(&arguments, &scenario(1));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: planner::outcome::Outcome = serde_json::from_slice(&output.stdout).unwrap();
    let result = outcome.results.iter().find(|result| result.planner.id() == "1f1b").unwrap();
    let planner::outcome::PlanOutcome::Planned(planned) = &result.answer else { panic!("no plan") };
    let simulated = planscope(&["simulate", path, "--json"], "");
    assert!(simulated.status.success(), "{}", String::from_utf8_lossy(&simulated.stderr));
    let replay: serde_json::Value = serde_json::from_slice(&simulated.stdout).unwrap();
    let nanoseconds = replay["iteration_ns"].as_u64().unwrap();
    assert_eq!(planner::units::Nanos::new(nanoseconds).secs().to_bits(), planned.iterations[1].iteration_s.to_bits());
    assert_eq!(replay["peak_bytes"].as_array().unwrap().len(), 2);
    let text = planscope(&["simulate", path], "");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(&format!("({nanoseconds} ns)")) && text.contains("idle: "), "{text}");

    let mut changed: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let actions = changed["runs"][0]["ranks"][1]["actions"].as_array_mut().unwrap();
    let index = actions.iter().position(|action| action["action"] == "backward_stage").unwrap();
    actions[index]["duration_ns"] = serde_json::json!(1);
    let refused = planscope(&["simulate", "-"], &changed.to_string());
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(error.contains(&format!("run 0, rank 1, action {index}: its duration is 1 ns")), "{error}");
}
