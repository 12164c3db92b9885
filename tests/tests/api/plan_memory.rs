//! Memory limits for planning, and jobs that crash servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::{Settings, TestServer, engines, test_server};
use planner::outcome::ENGINE;
use serde_json::{Value, json};
use server::jobs::Limits;
use server::workers::Threads;

use crate::budgets::{endless, planned, stored};

/// An iteration has 536,576 spans with 168 bytes and 262 samples with 400 bytes. Iterations
/// evaluated at the same time need 64 more bytes per span.
fn deep(iterations: u32) -> Value {
    let mut scenario = endless();
    scenario["iterations"] = json!(iterations);
    scenario
}

fn with_memory(mebibytes: u64) -> Settings {
    let limits = Limits {
        workers: 2,
        queue: 4,
        search_threads: Threads::new(2),
        plan_memory: mebibytes << 20,
        ..Limits::default()
    };
    Settings { limits, ..Settings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_exceeding_all_memory_is_rejected_with_the_limit() {
    let server = TestServer::with(with_memory(300)).await;
    // 16 MiB, 4 x 86 MiB, and 4 x 33 MiB on two threads.
    let expected = "planning takes 492 MiB; the limit is 300 MiB; 2 iterations fit";
    let id = server.store(&deep(4)).await;
    for reply in [
        server.post(&api::path::plan_preview(0), deep(4).to_string()).await,
        server.post(&api::path::plan(&id), "").await,
    ] {
        let problem = reply.problem();
        assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/iterations"));
        assert_eq!(problem.errors[0].detail, expected);
    }
    // In a sweep such a point has a row.
    let swept = json!({"schema": "sweep/1", "scenario": deep(4), "axes": [{"pointer": "/seed", "values": [1, 2]}]});
    let id = stored(&server, &swept).await;
    // On one thread two iterations are evaluated at the same time.
    let expected = "planning takes 427 MiB; the limit is 300 MiB; 2 iterations fit";
    for row in planned(&server, &id).await {
        assert_eq!(row["answer"]["errors"][0]["detail"], expected, "{row}");
    }
}

/// A sweep turn has 64 MiB at first. This point needs 135 MiB.
#[tokio::test(flavor = "multi_thread")]
async fn large_point_gets_a_larger_turn() {
    let server = TestServer::with(with_memory(300)).await;
    let swept = json!({"schema": "sweep/1", "scenario": deep(1), "axes": [{"pointer": "/seed", "values": [1, 2]}]});
    let id = stored(&server, &swept).await;
    for row in planned(&server, &id).await {
        assert_eq!(row["answer"]["status"], "planned", "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_given_up_keeps_its_reason() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = TestServer::with(Settings { engine: engines::gated(&gate), ..Settings::default() }).await;
    let id = server.store(&test_server::scenario()).await;
    server.post(&api::path::keep(&id), "").await;
    let job: Value = server.post(&api::path::plan(&id), "").await.json();
    let job = job["id"].as_str().unwrap().to_owned();
    server.app.jobs.stop();
    for _ in 0..3 {
        server.store.writer().begin_job(&job).await.unwrap();
    }
    let mut server = server;
    // The server that stops planning the job, and the next one.
    for _ in 0..2 {
        server = server.restarted(Settings::default()).await;
        assert_eq!(server::resumption::take_up_jobs(&server.app).await.unwrap(), 0);
        let left: Value = server.get(&api::path::job(&job)).await.json();
        let detail = left["state"]["detail"].as_str().unwrap();
        assert!(detail.contains("times while it planned this scenario"), "{left}");
        let list: Value = server.get(api::path::SCENARIOS).await.json();
        assert_eq!(list["scenarios"][0]["failure"], detail, "{list}");
    }
    // Planning it again clears the reason.
    server.plan(&id).await;
    let list: Value = server.get(api::path::SCENARIOS).await.json();
    assert_eq!(list["scenarios"][0]["failure"], Value::Null, "{list}");
    gate.store(true, Ordering::Relaxed);
}

async fn at_rest(server: &TestServer, id: &str) -> Value {
    for _ in 0..1_000 {
        let sweep: Value = server.get(&api::path::sweep(id)).await.json();
        if sweep["progress"]["state"]["state"] != "running" {
            return sweep;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the sweep never came to rest");
}

/// Nine servers crashed at three of five points.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_whose_third_point_ends_servers_is_given_up() {
    let server = TestServer::open().await;
    let swept = json!({
        "schema": "sweep/1", "scenario": test_server::scenario(), "axes": [{"pointer": "/seed", "values": [1, 2, 3, 4, 5]}],
    });
    let id = stored(&server, &swept).await;
    let writer = server.store.writer();
    writer.mark_for_planning(&id, Some(server.app.clock.now())).await.unwrap();
    for _ in 0..3 {
        writer.begin_points(&id, ENGINE, &[0, 1, 2]).await.unwrap();
    }
    let server = server.restarted(Settings::default()).await;
    assert_eq!(server.store.reader().wanted_sweeps().await.unwrap(), [id.as_str()]);
    server.post(&api::path::sweep_start(&id), "").await;
    let sweep = at_rest(&server, &id).await;
    let detail = sweep["progress"]["state"]["detail"].as_str().unwrap();
    assert!(detail.starts_with("given up: the server ended while it planned"), "{sweep}");
    assert!(server.store.reader().wanted_sweeps().await.unwrap().is_empty());
    // The next server and the list have the reason too.
    let server = server.restarted(Settings::default()).await;
    let again: Value = server.get(&api::path::sweep(&id)).await.json();
    assert_eq!(again["progress"]["state"]["detail"], detail);
    let list: Value = server.get(api::path::SWEEPS).await.json();
    assert_eq!(list["sweeps"][0]["failure"], detail, "{list}");
    // A new start plans the other points.
    let rows = planned(&server, &id).await;
    let states: Vec<&Value> = rows.iter().map(|row| &row["answer"]["status"]).collect();
    assert_eq!(states, ["failed", "failed", "failed", "planned", "planned"]);
}

/// A client has two workers and six waiting requests. The next worker is for another client.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_eight_questions_at_once() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = Arc::new(TestServer::with(Settings { engine: engines::gated(&gate), ..Settings::default() }).await);
    let mut requests = Vec::new();
    for seed in 0..9 {
        let server = Arc::clone(&server);
        let mut scenario = test_server::scenario();
        scenario["seed"] = json!(seed);
        requests.push(tokio::spawn(async move {
            server.post(&api::path::plan_preview(0), scenario.to_string()).await.status
        }));
    }
    while !requests.iter().any(tokio::task::JoinHandle::is_finished) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    gate.store(true, Ordering::Relaxed);
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(request.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 200, 503]);
}
