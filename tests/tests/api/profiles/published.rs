//! Profiles as their authors published them, in the folder that PLANSCOPE_DATA names: uploaded, fitted, put into a scenario,
//! planned with.

use std::path::{Path, PathBuf};

use harness::{TestServer, test_server};
use serde_json::{Value, json};

use super::send;

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("PLANSCOPE_DATA").map(|folder| Path::new(&folder).join("data"));
    if folder.is_none() {
        eprintln!("skipped: PLANSCOPE_DATA is not set");
    }
    folder
}

async fn upload(server: &TestServer, file: &Path, query: &str) -> Value {
    let name = file.file_name().unwrap().to_string_lossy();
    let bytes = std::fs::read(file).expect("a published profile");
    let reply = server.post(&format!("{}?name={name}&{query}", api::path::PROFILES), bytes).await;
    assert_eq!(reply.status, 201, "{name}: {reply:?}");
    reply.json()
}

/// Mean time of an iteration by 1F1B, in s.
async fn planned_s(server: &TestServer, scenario: &str) -> f64 {
    assert_eq!(server.plan(scenario).await["state"]["state"], "done");
    let outcome: Value = server.get(&api::path::outcome(scenario)).await.json();
    let results = outcome["outcome"]["results"].as_array().unwrap().clone();
    let result = results.iter().find(|result| result["planner"] == "1f1b").unwrap();
    result["answer"]["metrics"]["iteration_s"].as_f64().expect("a plan")
}

/// The scenario with the profile, by its identifier, and as it is.
async fn applied(server: &TestServer, profile: &Value, scenario: &str) -> (String, Value) {
    let path = api::path::profile_apply(profile["summary"]["id"].as_str().unwrap());
    let reply = send(server, "POST", &path, &json!({"scenario": scenario})).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let id = reply.json::<Value>()["scenario"].as_str().unwrap().to_owned();
    let stored: Value = server.get(&api::path::scenario(&id)).await.json();
    (id, stored["scenario"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn published_layer_timings_are_used() {
    let Some(data) = data() else { return };
    let server = TestServer::open().await;
    let file = data.join("profiles/computation_profiling_bf16_llama2-7b_all.json");
    let profile = upload(&server, &file, "").await;
    assert_eq!(profile["effect"]["kind"], "overrides");
    let before = server.store(&test_server::scenario()).await;
    let (after, scenario) = applied(&server, &profile, &before).await;
    assert_eq!(scenario["profiles"], json!([profile["summary"]["id"]]));
    let given = &scenario["training"]["overrides"][0];
    assert!(given["table_us"].as_array().is_some_and(|table| !table.is_empty()), "{given}");
    let (simulated, measured) = (planned_s(&server, &before).await, planned_s(&server, &after).await);
    eprintln!("Llama-2 7B: {simulated:.3} s by the model, {measured:.3} s with measured layers");
    // They were measured on other devices; within a factor of four they are of the same layers.
    assert!((simulated - measured).abs() > 1e-9 && (0.25..4.0).contains(&(measured / simulated)));
}

#[tokio::test(flavor = "multi_thread")]
async fn published_operator_timings_are_used() {
    let Some(data) = data() else { return };
    let server = TestServer::open().await;
    let mut files: Vec<PathBuf> = std::fs::read_dir(data.join("operators"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("compute_a100"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 3);
    let mut query = "device=a100-80gb".to_owned();
    let mut read = Vec::new();
    let mut profile = Value::Null;
    for file in &files {
        profile = upload(&server, file, &query).await;
        query = format!("onto={}", profile["summary"]["id"].as_str().unwrap());
        read.push(profile["summary"]["measurements"].as_u64().unwrap());
    }
    // Each file is fitted with those before it.
    assert!(read.windows(2).all(|pair| pair[0] < pair[1]), "{read:?}");
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy();
        let is_reported =
            profile["report"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains(&*name));
        assert!(is_reported, "{name} is not told of: {}", profile["report"]);
    }
    let products = &profile["parts"][0];
    assert_eq!((&products["name"], &products["fitted"]), (&json!("matrix products"), &json!(true)));
    let before = server.store(&test_server::scenario()).await;
    let (after, scenario) = applied(&server, &profile, &before).await;
    assert!(scenario["cluster"]["device"]["curves"]["calibration"]["matmul"].as_u64().unwrap() > 0);
    let (preset, fitted) = (planned_s(&server, &before).await, planned_s(&server, &after).await);
    eprintln!("A100: {preset:.4} s with the preset, {fitted:.4} s with {read:?} measurements");
    // The preset was fitted to these files and to others, in two steps.
    assert!((fitted / preset - 1.0).abs() < 0.1, "{preset} {fitted}");
}
