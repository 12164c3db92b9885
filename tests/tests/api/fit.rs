//! Memory need, changes that make a scenario fit, and the fewest devices, over HTTP.

use std::time::Duration;

use harness::{Settings, TestServer};
use serde_json::{Value, json};
use server::studies::AnalysisLimits;
use server::workers::Threads;

/// Llama-3 8B with `microbatch` sequences of 8,192 tokens. Four sequences exceed 80 GiB without recomputation.
fn scenario(training: &Value, microbatch: u32, tensor: u32) -> Value {
    json!({
        "schema": "scenario/1",
        "model": {"preset": "llama-3-8b"},
        "cluster": {"preset": "h100", "nodes": 1},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "constant", "value": 8192},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 32,
            "context_length": 8192,
            "packing": "single"
        },
        "training": training,
        "layout": {"tensor": tensor, "pipeline": 1, "microbatch": microbatch},
        "planners": ["1f1b"],
        "iterations": 1
    })
}

fn seconds(changes: &[Value]) -> Vec<f64> {
    changes.iter().map(|change| change["result"]["iteration_s"].as_f64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_draft_makes_it_fit_with_the_promised_time() {
    let server = TestServer::open().await;
    let id = server.store(&scenario(&json!({}), 4, 1)).await;
    let fit: Value = server.get(&api::path::fit_analysis(&id[..12], None)).await.json();
    assert_eq!((&fit["planner"], &fit["base"]["iteration_s"]), (&json!("1f1b"), &Value::Null));
    let limit = fit["limit_gib"].as_f64().unwrap();
    assert!(fit["base"]["peak_gib"].as_f64().unwrap() > limit, "{fit}");
    let memory = &fit["ranks"][0]["memory"];
    for term in ["weights_gib", "gradients_gib", "optimizer_gib", "activations_gib", "reserve_gib"] {
        assert!(memory[term].as_f64().unwrap() > 0.0, "{term}: {memory}");
    }
    let changes = fit["changes"].as_array().unwrap();
    assert!((1..=10).contains(&changes.len()) && seconds(changes).is_sorted(), "{fit}");
    assert!(changes.iter().all(|change| change["result"]["peak_gib"].as_f64().unwrap() <= limit));

    let mut changed: Value = server.get(&api::path::scenario(&id)).await.json::<Value>()["scenario"].clone();
    for field in changes[0]["fields"].as_array().unwrap() {
        let (parent, key) = field["pointer"].as_str().unwrap().rsplit_once('/').unwrap();
        let parent = changed.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match &field["value"] {
            Value::Null => parent.remove(key),
            value => parent.insert(key.to_owned(), value.clone()),
        };
    }
    let id = server.store(&changed).await;
    assert_eq!(server.plan(&id).await["state"]["state"], "done");
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    let answer = &outcome["outcome"]["results"][0]["answer"];
    assert_eq!(answer["metrics"]["iteration_s"], changes[0]["result"]["iteration_s"], "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_scenario_that_fits_save_time_with_the_named_planner() {
    let server = TestServer::open().await;
    let id = server.store(&scenario(&json!({"recompute": "full"}), 1, 4)).await;
    let fit: Value = server.get(&api::path::fit_analysis(&id, Some("gpipe"))).await.json();
    assert_eq!(fit["planner"], "gpipe");
    let base = fit["base"]["iteration_s"].as_f64().unwrap();
    let changes = fit["changes"].as_array().unwrap();
    assert!(!changes.is_empty(), "full recomputation is unnecessary here");
    for change in changes {
        let (after, difference) =
            (change["result"]["iteration_s"].as_f64().unwrap(), change["difference_s"].as_f64().unwrap());
        assert!(after < base && (after - base - difference).abs() < 1e-9, "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fewest_devices_are_sorted_and_have_a_time() {
    let server = TestServer::open().await;
    let id = server.store(&scenario(&json!({}), 4, 1)).await;
    let table: Value = server.get(&api::path::fewest_devices(&id)).await.json();
    let rows = table["rows"].as_array().unwrap();
    assert!(rows.len() > 5 && table["is_partial"] == false, "{table}");
    let devices: Vec<u64> = rows.iter().filter_map(|row| row["devices"].as_u64()).collect();
    assert!(devices.is_sorted() && !devices.is_empty());
    assert!(rows.iter().all(|row| row["devices"].is_null() == row["result"]["iteration_s"].is_null()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_analysed_says_why() {
    let analysis_limits = AnalysisLimits { queue: 1, time: Duration::ZERO, threads: Threads::new(1) };
    let server = TestServer::with(Settings { analysis_limits, ..Settings::default() }).await;
    let id = server.store(&scenario(&json!({}), 4, 1)).await;
    let status = async |path: &str| server.get(path).await.problem().status;
    assert_eq!(status(&api::path::fit_analysis(&id, Some("nonsense"))).await, 400);
    assert_eq!(status(&api::path::fit_analysis("aaaaaaaaaaaa", None)).await, 404);
    assert_eq!(status(&api::path::fewest_devices("aaaaaaaaaaaa")).await, 404);
    // The time is up before the scenario itself is planned.
    assert_eq!(status(&api::path::fit_analysis(&id, None)).await, 422);
    let table: Value = server.get(&api::path::fewest_devices(&id)).await.json();
    assert_eq!(table, json!({"rows": [], "types": planner::cluster::presets::clusters().len(), "is_partial": true}));
}
