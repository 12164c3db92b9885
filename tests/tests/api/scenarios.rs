//! Scenarios: identity, wrong fields, prefixes, drafts.

use std::time::Duration;

use harness::{TestServer, test_server};
use serde_json::{Value, json};

#[tokio::test]
async fn every_wrong_field_is_named_and_nothing_is_stored() {
    let server = TestServer::open().await;
    for (change, pointers) in [
        (json!({"cluster": {"nodes": 0}}), &["/cluster/nodes"][..]),
        (json!({"cluster": {"devices_per_node": 0}}), &["/cluster/devices_per_node"]),
        (json!({"layout": {"tensor": 7}}), &["/layout/tensor"]),
        (json!({"cluster": {"nodes": 64}, "layout": {"tensor": 1, "pipeline": 64}}), &["/layout/pipeline"]),
        (json!({"cluster": {"device": {"peak_tflops": 1e-300}}}), &["/cluster/device/peak_tflops"]),
        (json!({"cluster": {"inter_node": {"gb_per_s": -1.0}}}), &["/cluster/inter_node/gb_per_s"]),
        (
            json!({"workload": {"global_batch": 0, "context_length": 0}}),
            &["/workload/global_batch", "/workload/context_length"],
        ),
        (json!({"planners": []}), &["/planners"]),
        (json!({"planners": ["1f1b", "magic"]}), &["/planners/1"]),
        (json!({"iterations": 0, "model": {"modules": []}}), &["/model/modules", "/iterations"]),
        (json!({"seed": -1}), &["/seed"]),
        (json!({"model": {"preset": "gpt-9"}}), &["/model/preset"]),
        (json!({"workload": {"samples": {"id": "unknown"}}}), &["/workload/samples"]),
        (json!({"workload": {"samples": {"text_tokens": {"values": []}}}}), &["/workload/samples/text_tokens/values"]),
        (json!({"schema": "scenario/99"}), &["/schema"]),
    ] {
        let mut scenario = test_server::scenario();
        lay_over(&mut scenario, &change);
        let reply = server.request("PUT", api::path::SCENARIOS, scenario.to_string()).await;
        assert_eq!(reply.status, 422, "{change}: {reply:?}");
        let named = reply.pointers();
        for pointer in pointers {
            assert!(named.iter().any(|name| name.starts_with(pointer)), "{change}: {named:?}");
        }
    }
    for body in ["", "{", "[]", "nonsense", "{\"schema\": 1}"] {
        let reply = server.request("PUT", api::path::SCENARIOS, body).await;
        assert_eq!(reply.problem().kind, "/problems/invalid-scenario", "{body}");
    }
    let rows: i64 = harness_count(&server, "SELECT count(*) FROM scenario").await;
    assert_eq!(rows, 0);
}

#[tokio::test]
async fn equivalent_scenarios_are_stored_once() {
    let server = TestServer::open().await;
    let scenario = test_server::scenario();
    let first = server.request("PUT", api::path::SCENARIOS, scenario.to_string()).await;
    assert_eq!(first.status, 201);
    let first: Value = first.json();
    assert_eq!(first["scenario"]["model"]["modules"][0]["layers"], 32, "the preset is filled in");

    // Defaults written out and a new title do not make it another question; a draft takes the title.
    let mut same = scenario.clone();
    same["training"] = json!({"recompute": "none"});
    same["title"] = json!("Another\u{202e} name\n");
    let again = server.request("PUT", api::path::SCENARIOS, same.to_string()).await;
    assert_eq!(again.status, 200);
    let again: Value = again.json();
    assert_eq!((&again["id"], &again["scenario"]["title"]), (&first["id"], &json!("Another name")));

    // A kept one keeps its title.
    let id = first["id"].as_str().unwrap();
    server.post(&api::path::keep(id), "").await;
    let third: Value = server.request("PUT", api::path::SCENARIOS, scenario.to_string()).await.json();
    assert_eq!((&third["scenario"]["title"], &third["kept"]), (&json!("Another name"), &json!(true)));

    let mut other = scenario;
    other["seed"] = json!(4);
    assert_ne!(server.store(&other).await, id);

    // What the server gives back is the same question again.
    let given = server.get(&api::path::scenario(id)).await.json::<Value>()["scenario"].clone();
    assert_eq!(server.store(&given).await, id);
}

#[tokio::test]
async fn prefix_lookup_is_unique_or_explains_why_not() {
    let server = TestServer::open().await;
    let id = server.store(&test_server::scenario()).await;
    for (name, status) in [
        (id.as_str(), 200),
        (&id[..10], 200),
        (&id[..20].to_uppercase(), 200),
        (&id[..9], 400),
        ("a", 400),
        (":id", 400),
        ("..%2F..%2Fetc", 400),
        ("%00%ff", 400),
        ("aaaaaaaaaaaa", 404),
        (&format!("{id}a"), 400),
    ] {
        let reply = server.get(&api::path::scenario(name)).await;
        assert_eq!(reply.status, status, "{name}: {reply:?}");
        if status != 200 {
            reply.problem();
        }
    }

    // Two identifiers with fifteen characters in common, planted because chance never makes them.
    for last in ["a", "b"] {
        let planted = format!("{}{}", "q".repeat(15), last.repeat(37));
        let mut write = server.store.writer().begin().await.unwrap();
        sqlx::query("INSERT INTO scenario (id, kept, created_at_ms, used_at_ms, scenario_json) SELECT ?, 0, 0, 0, scenario_json FROM scenario WHERE id = ?")
            .bind(planted)
            .bind(&id)
            .execute(&mut *write)
            .await
            .unwrap();
        write.commit().await.unwrap();
    }
    let reply = server.get(&api::path::scenario(&"q".repeat(12))).await;
    assert_eq!(reply.problem().status, 300);
    assert!(reply.problem().detail.contains("qqqa") && reply.problem().detail.contains("qqqb"), "{reply:?}");
    let found: Value = server.get(&api::path::scenario(&format!("{}b", "q".repeat(15)))).await.json();
    assert_eq!(found["short"], format!("{}b", "q".repeat(15)));
}

#[tokio::test]
async fn old_drafts_expire_and_saved_or_used_drafts_remain() {
    let server = TestServer::open().await;
    let saved = server.store(&test_server::scenario()).await;
    server.post(&api::path::keep(&saved), "").await;
    let mut drafts = Vec::new();
    for seed in 0..503 {
        server.clock.advance(Duration::from_secs(1));
        let mut scenario = test_server::scenario();
        scenario["seed"] = json!(1000 + seed);
        drafts.push(server.store(&scenario).await);
        // The first two are what a run and a trace are held against.
        if seed == 1 {
            let run = json!({"scenario": drafts[0]}).to_string();
            assert_eq!(server.post(api::path::RUNS, run).await.status, 201);
            let events = json!([{"ph": "X", "name": "gemm", "pid": 0, "tid": 1, "ts": 0.0, "dur": 10.0}]).to_string();
            let upload = format!("{}?scenario={}", api::path::TRACES, drafts[1]);
            assert_eq!(server.post(&upload, events).await.status, 201);
        }
    }
    for (id, status) in [(&drafts[0], 200), (&drafts[1], 200), (&drafts[2], 404), (&drafts[3], 200), (&saved, 200)] {
        assert_eq!(server.get(&api::path::scenario(id)).await.status, status);
    }
    assert_eq!(harness_count(&server, "SELECT count(*) FROM scenario WHERE kept = 0").await, 502);
    // Drafts do not stand in the list.
    let list: Value = server.get(api::path::SCENARIOS).await.json();
    assert_eq!(list["scenarios"].as_array().unwrap().len(), 1);
    assert_eq!(list["scenarios"][0]["best"], Value::Null);
}

#[tokio::test]
async fn keeping_answers_for_wrong_bodies_and_unknown_scenarios() {
    let server = TestServer::open().await;
    let id = server.store(&test_server::scenario()).await;
    assert_eq!(server.post(&api::path::keep(&id), "{\"title\": 5}").await.problem().status, 400);
    assert_eq!(server.post(&api::path::keep("aaaaaaaaaaaa"), "").await.problem().status, 404);
    assert_eq!(server.get(&api::path::outcome(&id)).await.problem().status, 404);
    let saved: Value = server.post(&api::path::keep(&id), "{}").await.json();
    assert_eq!(saved["scenario"]["title"], "A small question");
}

#[tokio::test]
async fn catalogues_contain_scenario_presets() {
    let server = TestServer::open().await;
    let presets: Value = server.get(api::path::PRESETS).await.json();
    for (kind, id) in [("models", "llama-2-7b"), ("clusters", "a100-80gb"), ("planners", "wait_free_cyclic")] {
        assert!(presets[kind].as_array().unwrap().iter().any(|option| option["id"] == id), "{kind}");
    }
    assert_eq!(presets["models"][0]["parameters"], 6_738_415_616_u64);
    assert!(!presets["samples"].as_array().unwrap().is_empty());
    let gallery: Value = server.get(api::path::GALLERY).await.json();
    let entries = gallery["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 122);
    for entry in entries {
        server.store(&entry["scenario"]).await;
    }
}

#[tokio::test]
async fn paper_setup_includes_published_values() {
    let server = TestServer::open().await;
    let gallery: Value = server.get(api::path::GALLERY).await.json();
    let entries = gallery["entries"].as_array().unwrap();
    let set_up = entries.iter().find(|entry| entry["paper"]["title"].as_str().is_some()).unwrap();
    let id = server.store(&set_up["scenario"]).await;
    let cited: Value = server.get(&api::path::scenario_papers(&id)).await.json();
    assert_eq!(cited["slug"], set_up["slug"]);
    let values = cited["cited"][0]["set"]["figures"].as_array().unwrap();
    assert!(values.iter().any(|figure| figure["ours"].is_number()), "{values:?}");

    // Edited, it is a scenario of nobody's paper.
    let mut edited = set_up["scenario"].clone();
    edited["seed"] = json!(987);
    let id = server.store(&edited).await;
    let cited: Value = server.get(&api::path::scenario_papers(&id)).await.json();
    assert_eq!(cited, json!({"cited": []}));
}

async fn harness_count(server: &TestServer, query: &'static str) -> i64 {
    let mut write = server.store.writer().begin().await.unwrap();
    sqlx::query_scalar(query).fetch_one(&mut *write).await.unwrap()
}

/// Lays the fields of a change over a document.
fn lay_over(base: &mut Value, change: &Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                lay_over(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, change) => *base = change.clone(),
    }
}
