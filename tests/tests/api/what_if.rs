//! Questions that are only tried out, and first looks at timelines.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::job::StoredOutcome;
use harness::{Settings, TestServer, engines, test_server};
use planner::timeline::levels::Overview;
use serde_json::{Value, json};
use server::jobs::Limits;

#[tokio::test(flavor = "multi_thread")]
async fn preview_equals_the_stored_outcome_and_is_not_stored() {
    let server = TestServer::open().await;
    let scenario = test_server::scenario();
    let reply = server.post(&api::path::plan_preview(1), scenario.to_string()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, api::path::PLAN_PREVIEW_MEDIA_TYPE));
    let preview = api::what_if::decode(&reply.body).expect("it can be read");
    assert_eq!(preview.iteration, 1);
    let outcome = preview.outcome.read().expect("it is one");
    assert_eq!(outcome.planning_ms.len(), 3);
    let id = outcome.outcome.scenario.clone();
    assert_eq!(server.get(&api::path::outcome(&id)).await.status, 404, "nothing is stored");

    assert_eq!(server.store(&scenario).await, id);
    server.plan(&id).await;
    let stored: StoredOutcome = server.get(&api::path::outcome(&id)).await.json();
    assert_eq!(stored.outcome, outcome.outcome);
    for (planner, timeline) in &preview.timelines {
        let reply = server.get(&api::path::timeline(&id, planner.id(), 1)).await;
        assert_eq!(api::timeline::decode(&reply.body).as_ref(), Ok(timeline));
    }
    assert_eq!(preview.timelines.len(), 3);
}

/// PipeWeaver's search is left out of a sketch, which says so; what has none is answered whole, and so is what is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_sketch_leaves_searches_out_and_says_so() {
    let server = TestServer::open().await;
    let sketched = async |scenario: &Value| {
        let reply = server.post(&api::path::sketch(0), scenario.to_string()).await;
        assert_eq!(reply.status, 200);
        let preview = api::what_if::decode(&reply.body).expect("it can be read");
        preview.outcome.read().expect("it is one")
    };
    let without = test_server::scenario();
    assert!(!sketched(&without).await.is_sketch, "no planner of it searches");

    let mut scenario: Value =
        serde_json::from_str(include_str!("../../../examples/pipeweaver/vlm-7b-dynamic.json")).expect("JSON");
    scenario["planners"] = json!(["1f1b", "pipeweaver"]);
    scenario["iterations"] = json!(1);
    scenario["workload"]["global_batch"] = json!(8);
    scenario["search"] = json!({ "rollouts": 4 });
    let sketch = sketched(&scenario).await;
    assert!(sketch.is_sketch);
    let id = server.store(&scenario).await;
    assert_ne!(sketch.outcome.scenario, id, "it is the answer to another question");
    server.plan(&id).await;
    let stored: StoredOutcome = server.get(&api::path::outcome(&id)).await.json();
    assert!(!stored.is_sketch);
    let iteration_s = |outcome: &StoredOutcome, planner: &str| {
        let is_requested = |result: &&planner::outcome::PlannerResult| result.planner.id() == planner;
        match &outcome.outcome.results.iter().find(is_requested).expect("an answer").answer {
            planner::outcome::PlanOutcome::Planned(planned) => planned.metrics.iteration_s,
            planner::outcome::PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
        }
    };
    assert!(iteration_s(&sketch, "pipeweaver") >= iteration_s(&stored, "pipeweaver"));
    assert!(
        (iteration_s(&sketch, "1f1b") - iteration_s(&stored, "1f1b")).abs() < f64::EPSILON,
        "nothing of it is searched"
    );
    assert_eq!(sketched(&scenario).await, stored, "what is stored is not sketched again");
    assert_eq!(server.post("/api/v1/what-if?sketch=perhaps", scenario.to_string()).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_fields_are_named_and_an_iteration_too_late_is_the_last() {
    let server = TestServer::open().await;
    let mut wrong = test_server::scenario();
    wrong["workload"]["global_batch"] = json!(0);
    let reply = server.post(&api::path::plan_preview(0), wrong.to_string()).await;
    assert_eq!((reply.status, reply.pointers()), (422, vec!["/workload/global_batch".to_owned()]));
    let reply = server.post("/api/v1/what-if?iteration=x", test_server::scenario().to_string()).await;
    assert_eq!(reply.status, 400);
    let reply = server.post(&api::path::plan_preview(99), test_server::scenario().to_string()).await;
    assert_eq!(api::what_if::decode(&reply.body).expect("it can be read").iteration, 1, "there are two");
}

#[tokio::test(flavor = "multi_thread")]
async fn planning_ends_when_the_asker_goes() {
    let gate = Arc::new(AtomicBool::new(false));
    let limits = Limits { workers: 1, queue: 4, ..Limits::default() };
    let server = TestServer::with(Settings { engine: engines::gated(&gate), limits, ..Settings::default() }).await;
    let path = api::path::plan_preview(0);
    let request = server.post(&path, test_server::scenario().to_string());
    // The asker has lost patience: dropping the question is what a closed connection does.
    assert!(tokio::time::timeout(Duration::from_millis(200), request).await.is_err());
    // The only turn is free again although the gate never opened: a job gets it.
    let id = server.store(&test_server::scenario()).await;
    let job: Value = server.post(&api::path::plan(&id), "").await.json();
    let path = api::path::job(job["id"].as_str().expect("an identifier"));
    for _ in 0..500 {
        let job: Value = server.get(&path).await.json();
        if job["state"]["state"] == "running" {
            gate.store(true, Ordering::Relaxed);
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the job never got its turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn overview_contains_all_timeline_spans() {
    let server = TestServer::open().await;
    let id = server.store(&test_server::scenario()).await;
    server.plan(&id).await;
    let timeline = server.get(&api::path::timeline(&id, "1f1b", 0)).await;
    let timeline = api::timeline::decode(&timeline.body).expect("a timeline");
    let reply = server.get(&api::path::overview(&id, "1f1b", 0)).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, api::path::OVERVIEW_MEDIA_TYPE));
    let overview = api::timeline::overview::decode(&reply.body).expect("an overview");
    assert_eq!(overview, Overview::new(&timeline));
    assert_eq!(overview.level.starts.iter().map(|&starts| u64::from(starts)).sum::<u64>(), overview.spans);
    assert_eq!(server.get(&api::path::overview(&id, "gpipe", 0)).await.status, 404);
    assert_eq!(server.get(&api::path::overview(&id, "1f1b", 9)).await.status, 404);
}
