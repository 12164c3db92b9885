//! The program from outside: what it prints, and how it ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

/// Runs the program with a text on its standard input.
fn planscope(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_planscope"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments closes its input unread.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

fn scenario(nodes: u32) -> String {
    serde_json::json!({
        "schema": "scenario/1",
        "model": {"preset": "llama-2-7b"},
        "cluster": {"preset": "a100-80gb", "nodes": nodes},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "uniform", "min": 100, "max": 2000},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 8,
            "context_length": 2048,
            "packing": "single"
        },
        "layout": {"tensor": 2, "pipeline": 2},
        "planners": ["1f1b", "wait_free_cyclic"],
        "iterations": 2
    })
    .to_string()
}

#[test]
fn a_scenario_is_planned_and_its_timelines_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let timelines = folder.path().join("timelines");
    let output = planscope(&["plan", "-", "--timelines", timelines.to_str().unwrap()], &scenario(1));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: planner::outcome::Outcome = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome.results.len(), 2);
    for name in ["1f1b-0", "1f1b-1", "wait_free_cyclic-0", "wait_free_cyclic-1"] {
        let file = std::fs::read(timelines.join(format!("{name}.json"))).unwrap();
        let timeline: planner::timeline::Timeline = serde_json::from_slice(&file).unwrap();
        assert_eq!(timeline.ranks, 2, "{name}");
    }
}

#[test]
fn a_wrong_scenario_is_told_field_by_field() {
    let output = planscope(&["plan", "-"], &scenario(0));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.lines().any(|line| line.starts_with("/cluster/nodes: ")), "{told}");
    assert_eq!(planscope(&["plan", "nowhere.json"], "").status.code(), Some(1));
}

#[test]
fn a_scenario_with_a_dataset_is_planned_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = folder.path().join("lengths.txt");
    std::fs::write(&lengths, "900\n1800\n120\n").unwrap();
    let arguments = ["plan", "-", "--dataset", lengths.to_str().unwrap()];
    let mut named: serde_json::Value = serde_json::from_str(&scenario(1)).unwrap();
    named["workload"]["samples"] = serde_json::json!({"kind": "dataset", "id": "unknown"});
    let refused = planscope(&arguments, &named.to_string());
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("/workload/samples/id: "), "{told}");
    let id = told.lines().find_map(|line| line.strip_prefix("dataset at hand: ")).unwrap();
    named["workload"]["samples"]["id"] = id.into();
    let output = planscope(&arguments, &named.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: planner::outcome::Outcome = serde_json::from_slice(&output.stdout).unwrap();
    assert!((outcome.workload.sample_tokens.max - 1800.0).abs() < 1e-9);
}

#[test]
fn a_server_open_to_everyone_refuses_to_start() {
    let output = planscope(&["serve", "--address", "0.0.0.0:0", "--database", "never-made.db"], "");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("PLANSCOPE_TOKEN"), "{told}");
    assert!(!std::path::Path::new("never-made.db").exists());
}

#[test]
fn the_description_of_the_api_is_printed() {
    let output = planscope(&["openapi"], "");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["paths"]["/api/v1/scenarios/{id}/plan"]["post"].is_object());
}

#[test]
fn health_is_that_of_the_running_server() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("planscope.db");
    let mut server = Command::new(env!("CARGO_BIN_EXE_planscope"))
        .args(["serve", "--address", "127.0.0.1:0", "--token", "0123456789abcdef", "--database"])
        .arg(&database)
        .env_clear()
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
    let line = said.by_ref().map(Result::unwrap).find(|line| line.contains("http://")).unwrap();
    let address: String = line.rsplit("http://").next().unwrap().chars().take_while(|c| !c.is_whitespace()).collect();
    let health = |address: &str| planscope(&["health", "--address", address, "--token", "0123456789abcdef"], "");
    let well = health(&address);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(well.status.success(), "{}", String::from_utf8_lossy(&well.stderr));
    assert!(!health(&address).status.success(), "a stopped server is not well");
}
