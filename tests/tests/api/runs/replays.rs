//! Live runs that replay the example log.

use std::time::Duration;

use api::run::RunDetail;
use harness::{Settings, TestServer};
use serde_json::Value;

async fn replay(server: &TestServer) -> RunDetail {
    let reply = server.post(api::path::RUN_REPLAY, "").await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let detail: RunDetail = reply.json();
    assert_eq!(reply.header("location"), api::path::run(&detail.summary.id));
    detail
}

async fn detail(server: &TestServer, run: &str) -> RunDetail {
    server.get(&api::path::run(run)).await.json()
}

/// The log has 120 steps and is the same job as its scenario. Its median step is about 2 % above the predicted one.
#[tokio::test(flavor = "multi_thread")]
async fn replay_matches_the_job_in_its_plan() {
    let server = TestServer::open().await;
    let run = replay(&server).await.summary;
    let scenario = run.scenario.clone().expect("the scenario of the example");
    assert_eq!(server.plan(&scenario).await["state"]["state"], "done");
    let mut summary = detail(&server, &run.id).await.summary;
    while summary.state.id() != "ended" {
        tokio::time::sleep(Duration::from_millis(10)).await;
        summary = detail(&server, &run.id).await.summary;
    }
    assert_eq!((summary.points, summary.last_step, summary.total_steps), (120, Some(120), Some(120)));
    let compared: Value = server.get(&api::path::run_comparison(&run.id, None)).await.json();
    let checks = compared["job"]["checks"].as_array().expect("checks");
    assert!(checks.iter().all(|check| check["agreement"] != "different"), "{}", compared["job"]);
    for quantity in ["global_batch", "tokens_per_step", "devices", "flops_per_step"] {
        let agrees = checks.iter().any(|check| check["quantity"] == quantity && check["agreement"] == "same");
        assert!(agrees, "{quantity}: {}", compared["job"]);
    }
    let prediction =
        compared["predictions"].as_array().expect("predictions").iter().find(|entry| entry["quantity"] == "step_time");
    let error = prediction.expect("a step time")["error"].as_f64().expect("an error");
    assert!((0.01..0.05).contains(&error.abs()), "{error}");
}

#[tokio::test]
async fn five_replays_are_too_many_and_a_stopped_server_ends_them() {
    let server = TestServer::with(Settings { replay_interval: Duration::from_hours(1), ..Settings::default() }).await;
    let first = replay(&server).await.summary.id;
    for _ in 1..4 {
        replay(&server).await;
    }
    let rejection = server.post(api::path::RUN_REPLAY, "").await.problem();
    assert_eq!((rejection.status, rejection.kind.as_str()), (503, "/problems/replays-full"));
    server.app.live.stop();
    let mut summary = detail(&server, &first).await.summary;
    while summary.state.id() != "crashed" {
        tokio::time::sleep(Duration::from_millis(10)).await;
        summary = detail(&server, &first).await.summary;
    }
    assert_eq!((summary.exit_code, summary.end_reason.as_deref()), (Some(143), Some("the server stopped")));
}
