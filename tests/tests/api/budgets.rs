//! Cost limits per request: memory, time, and server crashes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::{Settings, TestServer, engines, test_server};
use planner::outcome::ENGINE;
use serde_json::{Value, json};
use server::jobs::Limits;

/// Returns 900 bytes that request 1,024 x 262 x 2 spans in each of 1,000 iterations.
pub(crate) fn endless() -> Value {
    json!({
        "schema": "scenario/1",
        "model": {"name": "m", "modules": [{
            "name": "b", "role": "backbone", "layers": 1024, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn": 4096,
            "gated": true, "mask": "causal", "norm": "rms", "bias": "none", "dropout": false, "vocab": 32000,
            "tied_embeddings": false, "learned_positions": 0
        }]},
        "cluster": {"preset": "a100-80gb", "nodes": 128},
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": {"kind": "uniform", "min": 100, "max": 2048},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 262, "context_length": 2048, "packing": "single"
        },
        "layout": {"tensor": 1, "pipeline": 1024, "microbatch": 1},
        "planners": ["1f1b"], "seed": 1, "iterations": 1000
    })
}

fn small_sweep() -> Value {
    json!({
        "schema": "sweep/1", "scenario": test_server::scenario(),
        "axes": [{"pointer": "/cluster/nodes", "values": [1, 0]}, {"pointer": "/seed", "values": [7, 8]}],
    })
}

pub(crate) async fn stored(server: &TestServer, written: &Value) -> String {
    let reply = server.post(api::path::SWEEPS, written.to_string()).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json::<Value>()["id"].as_str().unwrap().to_owned()
}

/// Starts a sweep, waits for its end and returns the rows.
pub(crate) async fn planned(server: &TestServer, id: &str) -> Vec<Value> {
    assert_eq!(server.post(&api::path::sweep_start(id), "").await.status, 200);
    for _ in 0..3_000 {
        let sweep: Value = server.get(&api::path::sweep(id)).await.json();
        if sweep["progress"]["state"]["state"] != "running" {
            assert_eq!(sweep["progress"]["state"]["state"], "done", "{sweep}");
            let page: Value = server.get(&api::path::sweep_points(id)).await.json();
            return page["rows"].as_array().unwrap().clone();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the sweep never came to rest");
}

/// Polls a job until it has a state.
async fn reach(server: &TestServer, job: &Value, state: &str) -> Value {
    let path = api::path::job(job["id"].as_str().unwrap());
    for _ in 0..1_000 {
        let job: Value = server.get(&path).await.json();
        if job["state"]["state"] == state {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the job is never {state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_scenario_is_rejected_everywhere() {
    let server = TestServer::open().await;
    let text = endless().to_string();
    for reply in [
        server.post(&api::path::plan_preview(0), text.clone()).await,
        server.request("PUT", api::path::SCENARIOS, text.clone()).await,
    ] {
        let problem = reply.problem();
        assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/iterations"));
        let expected = "537 million spans (53 GB); the limit is 20 million; 37 iterations fit";
        assert_eq!(problem.errors[0].detail, expected);
    }
    // In a sweep such a point has a row with the reason.
    let swept = json!({"schema": "sweep/1", "scenario": endless(), "axes": [{"pointer": "/seed", "values": [1, 2]}]});
    let id = stored(&server, &swept).await;
    for row in planned(&server, &id).await {
        assert_eq!(row["answer"]["status"], "invalid", "{row}");
        assert_eq!(row["answer"]["errors"][0]["pointer"], "/iterations", "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_that_ends_every_server_is_given_up_and_the_sweep_goes_on() {
    let server = TestServer::open().await;
    let id = stored(&server, &small_sweep()).await;
    let writer = server.store.writer();
    // Three servers crashed at point 1. The first had also begun two other points.
    writer.begin_points(&id, ENGINE, &[0, 1, 2]).await.unwrap();
    writer.begin_points(&id, ENGINE, &[1]).await.unwrap();
    writer.begin_points(&id, ENGINE, &[1]).await.unwrap();
    let server = server.restarted(Settings::default()).await;
    let rows = planned(&server, &id).await;
    let states: Vec<&Value> = rows.iter().map(|row| &row["answer"]["status"]).collect();
    assert_eq!(states, ["planned", "failed", "invalid", "invalid"]);
    let detail = rows[1]["answer"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("the server ended 3 times while it planned this point"), "{detail}");
    assert!(server.store.reader().sweep_attempts(&id, ENGINE).await.unwrap().is_empty());
    assert!(server.store.reader().wanted_sweeps().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_does_not_count_as_an_attempt() {
    let server = TestServer::open().await;
    let mut long = small_sweep();
    long["axes"][1]["values"] = (0..200).collect();
    let id = stored(&server, &long).await;
    server.post(&api::path::sweep_start(&id), "").await;
    server.app.sweeps.stop_all();
    for _ in 0..1_000 {
        let sweep: Value = server.get(&api::path::sweep(&id)).await.json();
        if sweep["progress"]["state"]["state"] != "running" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(server.store.reader().sweep_attempts(&id, ENGINE).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_planning_ends_when_its_time_is_up() {
    let gate = Arc::new(AtomicBool::new(false));
    let settings = Settings { engine: engines::gated(&gate), ..Settings::default() };
    let server = Arc::new(TestServer::with(settings).await);
    let id = server.store(&test_server::scenario()).await;
    let job: Value = server.post(&api::path::plan(&id), "").await.json();
    reach(&server, &job, "running").await;
    server.clock.advance(Duration::from_secs(601));
    let failed = reach(&server, &job, "failed").await;
    let detail = failed["state"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("planning takes longer than 600 s"), "{detail}");

    let asking = {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.post(&api::path::plan_preview(0), test_server::scenario().to_string()).await })
    };
    while !asking.is_finished() {
        server.clock.advance(Duration::from_secs(601));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let problem = asking.await.unwrap().problem();
    assert_eq!((problem.status, problem.kind.as_str()), (422, "/problems/too-long"));

    let limits = Limits { workers: 2, plan_time: Duration::ZERO, ..Limits::default() };
    let server = TestServer::open().await;
    let id = stored(&server, &small_sweep()).await;
    let server = server.restarted(Settings { limits, ..Settings::default() }).await;
    let rows = planned(&server, &id).await;
    assert_eq!(rows[0]["answer"]["status"], "failed", "{}", rows[0]);
    assert!(rows[0]["answer"]["detail"].as_str().unwrap().starts_with("planning takes longer than 0 s"), "{}", rows[0]);
    // Reading a sweep has the same time limit.
    let mut other = small_sweep();
    other["axes"][1]["values"] = json!([9]);
    assert_eq!(server.post(api::path::SWEEPS, other.to_string()).await.pointers(), ["/axes/0"]);
    let request = json!({
        "schema": "schedule/1", "ranks": 4, "microbatches": 12, "kinds": ["1f1b"],
        "times": {"forward": 1, "input_grad": 1, "weight_grad": 1},
    });
    let problem = server.post(api::path::SCHEDULES, request.to_string()).await.problem();
    assert_eq!((problem.status, problem.kind.as_str()), (422, "/problems/too-long"));
}

#[tokio::test(flavor = "multi_thread")]
async fn server_without_work_serves_stored_data_only() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = TestServer::with(Settings { engine: engines::gated(&gate), ..Settings::default() }).await;
    let id = server.store(&test_server::scenario()).await;
    let job: Value = server.post(&api::path::plan(&id), "").await.json();
    let sweep = stored(&server, &small_sweep()).await;
    reach(&server, &job, "running").await;
    server.app.jobs.stop();

    let limits = Limits { takes_work: false, ..Limits::default() };
    let server = server.restarted(Settings { limits, ..Settings::default() }).await;
    server::resumption::leave_work(&server.app).await.unwrap();
    // The job of the previous server waits and can be cancelled.
    let left: Value = server.get(&api::path::job(job["id"].as_str().unwrap())).await.json();
    assert_eq!(left["state"]["state"], "queued");
    assert_eq!(server.post(&api::path::plan(&id), "").await.status, 200);
    assert_eq!(server.delete(&api::path::job(job["id"].as_str().unwrap())).await.status, 200);
    assert!(server.store.reader().left_jobs().await.unwrap().is_empty());

    for reply in [
        server.post(&api::path::plan(&id), "").await,
        server.post(&api::path::plan_preview(0), test_server::scenario().to_string()).await,
        server.post(&api::path::sweep_start(&sweep), "").await,
    ] {
        let problem = reply.problem();
        assert_eq!((problem.status, problem.kind.as_str()), (503, "/problems/without-work"));
        assert!(problem.detail.contains("--without-work"), "{}", problem.detail);
        assert_eq!(reply.header("retry-after"), "");
    }
    assert_eq!(server.get(&api::path::scenario(&id)).await.status, 200);
    assert_eq!(server.get(&api::path::sweep(&sweep)).await.status, 200);
    assert_eq!(server.get(api::path::HEALTH).await.status, 200);
    gate.store(true, Ordering::Relaxed);
}

/// Seven bytes of such a document needed hundreds of bytes in memory.
#[tokio::test(flavor = "multi_thread")]
async fn document_with_too_many_values_is_rejected_before_parsing() {
    let server = TestServer::open().await;
    let bomb = |schema: &str, bytes: usize| {
        let head = format!("{{\"schema\":\"{schema}\",\"x\":[");
        let values = "{\"\":0},".repeat((bytes - head.len() - 3) / 7);
        format!("{head}{values}0]}}")
    };
    let scenario = bomb("scenario/1", 1 << 20);
    for (method, path, body) in [
        ("POST", api::path::plan_preview(0), scenario.clone()),
        ("PUT", api::path::SCENARIOS.to_owned(), scenario),
        ("POST", api::path::SWEEPS.to_owned(), bomb("sweep/1", 1 << 20)),
        ("POST", api::path::SCHEDULES.to_owned(), bomb("schedule/1", 16 << 20)),
    ] {
        let problem = server.request(method, &path, body).await.problem();
        assert_eq!(problem.status, 422, "{method} {path}");
        assert!(problem.detail.starts_with("more than 200000 values"), "{method} {path}: {}", problem.detail);
    }
    for (method, path) in [
        ("POST", api::path::plan_preview(0)),
        ("PUT", api::path::SCENARIOS.to_owned()),
        ("POST", api::path::SWEEPS.to_owned()),
    ] {
        let problem = server.request(method, &path, " ".repeat((1 << 20) + 1)).await.problem();
        assert_eq!(
            (problem.status, problem.detail.as_str()),
            (413, "the body is larger than 1 MiB"),
            "{method} {path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sweep_with_invalid_values_is_rejected_after_a_hundred_errors() {
    let server = TestServer::open().await;
    let values: Vec<String> = (0..100_000).map(|number| format!("x{number}")).collect();
    let written = json!({"schema": "sweep/1", "scenario": test_server::scenario(), "axes": [{"pointer": "/seed", "values": values}]});
    let problem = server.post(api::path::SWEEPS, written.to_string()).await.problem();
    assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/axes/0"));
    let detail = &problem.errors[0].detail;
    assert!(detail.starts_with("100 values give no scenario, the last of /seed"), "{detail}");
}
