//! Planning jobs: deduplication, cancellation, limits, and planner panics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use harness::{Settings, TestServer, engines, test_server};
use serde_json::{Value, json};
use server::jobs::Limits;

fn numbered(seed: u32) -> Value {
    let mut scenario = test_server::scenario();
    scenario["seed"] = json!(seed);
    scenario
}

async fn start(server: &TestServer, scenario: &str) -> (u16, Value) {
    let reply = server.post(&api::path::plan(scenario), "").await;
    (reply.status, reply.json())
}

/// Polls a job until it has a state.
async fn reach(server: &TestServer, job: &Value, state: &str) -> Value {
    let path = api::path::job(job["id"].as_str().unwrap());
    for _ in 0..500 {
        let job: Value = server.get(&path).await.json();
        if job["state"]["state"] == state {
            return job;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the job never was {state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_scenario_is_never_planned_twice() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = TestServer::planning_with(engines::gated(&gate)).await;
    let id = server.store(&numbered(1)).await;
    let (status, job) = start(&server, &id).await;
    assert_eq!(status, 202);
    let running = reach(&server, &job, "running").await;
    assert_eq!(
        (&running["state"]["planner"], &running["state"]["phase"]),
        (&json!("1f1b"), &json!("searching layouts"))
    );
    for _ in 0..50 {
        let (status, again) = start(&server, &id[..12]).await;
        assert_eq!((status, &again["id"]), (200, &job["id"]));
    }
    gate.store(true, Ordering::Relaxed);
    reach(&server, &job, "done").await;
}

/// A returned job is stored, even if the server is killed at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_answered_a_job_that_is_not_noted() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = Arc::new(TestServer::planning_with(engines::gated(&gate)).await);
    let id = server.store(&numbered(1)).await;
    // Blocks writes.
    let transaction = server.store.writer().begin().await.unwrap();
    let asking: Vec<_> = (0..3)
        .map(|_| {
            let (server, id) = (Arc::clone(&server), id.clone());
            tokio::spawn(async move { start(&server, &id).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(asking.iter().all(|asking| !asking.is_finished()));
    transaction.commit().await.unwrap();
    let mut answers = Vec::new();
    for asking in asking {
        answers.push(asking.await.unwrap());
    }
    assert!(answers.iter().all(|(_, job)| job["id"] == answers[0].1["id"]), "{answers:?}");
    assert_eq!(answers.iter().filter(|(status, _)| *status == 202).count(), 1, "{answers:?}");
    assert_eq!(server.store.reader().left_jobs().await.unwrap().len(), 1);
    gate.store(true, Ordering::Relaxed);
}

#[tokio::test(flavor = "multi_thread")]
async fn unrecorded_job_reports_the_reason_to_waiting_clients() {
    let server = TestServer::open().await;
    let id = server.store(&numbered(1)).await;
    let server = Arc::new(server.restarted(Settings { quota: Some(1), ..Settings::default() }).await);
    let transaction = server.store.writer().begin().await.unwrap();
    let asking: Vec<_> = (0..3)
        .map(|_| {
            let (server, id) = (Arc::clone(&server), id.clone());
            tokio::spawn(async move { server.post(&api::path::plan(&id), "").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    transaction.commit().await.unwrap();
    for asking in asking {
        let problem = asking.await.unwrap().problem();
        assert_eq!((problem.status, problem.kind.as_str()), (507, "/problems/quota-reached"));
    }
}

#[tokio::test]
async fn a_stored_outcome_is_not_computed_again() {
    let calls = Arc::new(AtomicU32::new(0));
    let server = TestServer::planning_with(engines::instant(&calls)).await;
    let id = server.store(&numbered(1)).await;
    assert_eq!(server.plan(&id).await["state"]["state"], "done");
    let (status, job) = start(&server, &id).await;
    assert_eq!((status, &job["state"]["state"]), (200, &json!("done")));
    // A finished job is a normal job.
    assert_eq!(server.get(&api::path::job(job["id"].as_str().unwrap())).await.json::<Value>(), job);
    assert_eq!(server.get(&api::path::job_events(job["id"].as_str().unwrap())).await.events(), [job]);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
    assert_eq!(outcome["planning_ms"], json!([{"planner": "1f1b", "ms": 0.0}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_waiting_and_running_jobs_and_leaves_finished_ones() {
    let gate = Arc::new(AtomicBool::new(false));
    let limits = Limits { workers: 1, queue: 4, ..Limits::default() };
    let server = TestServer::with(Settings { engine: engines::gated(&gate), limits, ..Settings::default() }).await;
    let (first, second) = (server.store(&numbered(1)).await, server.store(&numbered(2)).await);
    let (_, running) = start(&server, &first).await;
    reach(&server, &running, "running").await;
    let (_, waiting) = start(&server, &second).await;

    let cancelled: Value = server.delete(&api::path::job(waiting["id"].as_str().unwrap())).await.json();
    assert_eq!(cancelled["state"]["state"], "cancelled");
    assert_eq!(server.delete(&api::path::job(running["id"].as_str().unwrap())).await.status, 200);
    reach(&server, &running, "cancelled").await;
    assert_eq!(server.get(&api::path::outcome(&first)).await.status, 404);

    // A new request gets a new job, which is not cancelled.
    gate.store(true, Ordering::Relaxed);
    let (status, again) = start(&server, &first).await;
    assert_eq!(status, 202);
    assert_ne!(again["id"], running["id"]);
    reach(&server, &again, "done").await;
    let after: Value = server.delete(&api::path::job(again["id"].as_str().unwrap())).await.json();
    assert_eq!(after["state"]["state"], "done");

    for path in [api::path::job("nothing"), api::path::job_events("nothing")] {
        assert_eq!(server.get(&path).await.problem().status, 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_says_when_to_come_back() {
    let gate = Arc::new(AtomicBool::new(false));
    let limits = Limits { workers: 1, queue: 2, ..Limits::default() };
    let server = TestServer::with(Settings { engine: engines::gated(&gate), limits, ..Settings::default() }).await;
    let (_, running) = start(&server, &server.store(&numbered(0)).await).await;
    reach(&server, &running, "running").await;
    let mut jobs = Vec::new();
    for seed in 1..=2 {
        let (status, job) = start(&server, &server.store(&numbered(seed)).await).await;
        assert_eq!((status, &job["state"]["state"]), (202, &json!("queued")));
        jobs.push(job);
    }
    let id = server.store(&numbered(3)).await;
    let reply = server.post(&api::path::plan(&id), "").await;
    assert_eq!((reply.problem().status, reply.header("retry-after")), (503, "5"));
    gate.store(true, Ordering::Relaxed);
    for job in &jobs {
        reach(&server, job, "done").await;
    }
    assert_eq!(start(&server, &id).await.0, 202);
}

#[tokio::test]
async fn a_planner_with_a_bug_fails_its_job_and_nothing_else() {
    let server = TestServer::with(Settings {
        limits: Limits { workers: 1, queue: 4, ..Limits::default() },
        engine: engines::panicking(),
        ..Settings::default()
    })
    .await;
    let id = server.store(&numbered(1)).await;
    for _ in 0..2 {
        let last = server.plan(&id).await;
        assert_eq!(last["state"]["state"], "failed");
        assert!(last["state"]["detail"].as_str().unwrap().contains("fault of Planscope"), "{last}");
    }
    assert_eq!(server.get(api::path::HEALTH).await.status, 200);
    assert_eq!(server.get(&api::path::outcome(&id)).await.status, 404);
}

/// If a server crashes while planning, the next server continues the job, with a limited number of
/// attempts.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ends_every_server_is_given_up() {
    let gate = Arc::new(AtomicBool::new(false));
    let settings = || Settings { engine: engines::gated(&gate), ..Settings::default() };
    let mut server = TestServer::with(settings()).await;
    let id = server.store(&numbered(1)).await;
    let (_, job) = start(&server, &id).await;
    for attempt in 1..=3 {
        reach(&server, &job, "running").await;
        server.app.jobs.stop();
        server = server.restarted(settings()).await;
        let taken_up = server::resumption::take_up_jobs(&server.app).await.unwrap();
        assert_eq!(taken_up, usize::from(attempt < 3), "{attempt}");
    }
    let last = reach(&server, &job, "failed").await;
    assert!(last["state"]["detail"].as_str().unwrap().contains("ended 3 times"), "{last}");
    // A new request gets a new job.
    gate.store(true, Ordering::Relaxed);
    let (status, again) = start(&server, &id).await;
    assert_eq!(status, 202);
    reach(&server, &again, "done").await;
    server = server.restarted(settings()).await;
    assert_eq!(server::resumption::take_up_jobs(&server.app).await.unwrap(), 0);
}

#[tokio::test]
async fn job_for_a_deleted_scenario_is_not_resumed() {
    let gate = Arc::new(AtomicBool::new(false));
    let settings = || Settings { engine: engines::gated(&gate), ..Settings::default() };
    let server = TestServer::with(settings()).await;
    let id = server.store(&numbered(1)).await;
    let (_, job) = start(&server, &id).await;
    server.app.jobs.stop();
    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 204);
    let server = server.restarted(settings()).await;
    assert_eq!(server::resumption::take_up_jobs(&server.app).await.unwrap(), 0);
    reach(&server, &job, "cancelled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_scenario_ends_its_job() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = TestServer::planning_with(engines::gated(&gate)).await;
    let id = server.store(&numbered(1)).await;
    let (_, job) = start(&server, &id).await;
    reach(&server, &job, "running").await;
    assert_eq!(server.delete(&api::path::scenario(&id)).await.status, 204);
    reach(&server, &job, "cancelled").await;
    assert_eq!(server.post(&api::path::plan(&id), "").await.problem().status, 410);
}

/// The stream sends the current state and all later changes.
#[tokio::test(flavor = "multi_thread")]
async fn events_report_all_job_states() {
    let gate = Arc::new(AtomicBool::new(false));
    let server = Arc::new(TestServer::planning_with(engines::gated(&gate)).await);
    let id = server.store(&numbered(1)).await;
    let (_, job) = start(&server, &id).await;
    reach(&server, &job, "running").await;
    let path = api::path::job_events(job["id"].as_str().unwrap());
    let listening = tokio::spawn({
        let server = Arc::clone(&server);
        let request = Request::get(path).header("accept-encoding", "gzip, br").body(Body::empty()).unwrap();
        async move { server.send(request).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.store(true, Ordering::Relaxed);
    let reply = listening.await.unwrap();
    // Compression would delay events.
    assert_eq!(reply.header("content-encoding"), "");
    let states: Vec<Value> = reply.events().into_iter().map(|event| event["state"]["state"].clone()).collect();
    assert_eq!(states, ["running", "done"]);
}
