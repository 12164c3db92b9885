//! Comparison of a run with its plan, and calibration.

use std::fmt::Write;

use harness::{TestServer, test_server};
use serde_json::{Value, json};

/// Returns a scenario with a fixed layout.
fn scenario_json() -> Value {
    let mut base = test_server::scenario();
    base["planners"] = json!(["1f1b"]);
    base["layout"]["microbatch"] = json!(1);
    base
}

/// Returns a Megatron-LM log: warm-up, ten steps around a time in ms, a checkpoint, a restart, and
/// optional timers.
fn log(step_ms: f64, timers: &str) -> String {
    let mut log = String::new();
    let mut line = |step: u32, time: f64| {
        writeln!(
            log,
            " iteration {step:8}/ 1000 | consumed samples: {:12} | elapsed time per iteration (ms): {time:.1} | learning rate: \
             1.0E-04 | global batch size: 16 | lm loss: 2.0 |",
            step * 16
        )
        .unwrap();
        log += timers;
    };
    line(1, 4.0 * step_ms);
    for step in 2..12 {
        line(step, step_ms * (1.0 + 0.001 * f64::from(step % 3) - 0.001));
    }
    line(12, 9.0 * step_ms);
    line(13, step_ms);
    line(10, 5.0 * step_ms);
    for step in 11..16 {
        line(step, step_ms);
    }
    log
}

async fn run_with_log(server: &TestServer, scenario: &str, log: String) -> String {
    let opened: Value =
        server.post(api::path::RUNS, json!({"name": "night", "scenario": scenario}).to_string()).await.json();
    let id = opened["run"].as_str().unwrap().to_owned();
    let request = axum::http::Request::builder()
        .method("PUT")
        .uri(api::path::run_log(&id))
        .header("authorization", format!("Bearer {}", opened["ingest_token"].as_str().unwrap()))
        .body(axum::body::Body::from(log))
        .unwrap();
    let sent = server.send(request).await;
    assert!(sent.status < 300, "{sent:?}");
    server.post(&api::path::run_finish(&id), json!({"exit_code": 0}).to_string()).await;
    id
}

async fn iteration_s(server: &TestServer, scenario: &str) -> f64 {
    assert_eq!(server.plan(scenario).await["state"]["state"], "done");
    let outcome: Value = server.get(&api::path::outcome(scenario)).await.json();
    outcome["outcome"]["results"][0]["answer"]["metrics"]["iteration_s"].as_f64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_calibrates_its_scenario_and_nothing_else() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let predicted = iteration_s(&server, &scenario).await;
    let measured = 1.2 * predicted;
    let run = run_with_log(&server, &scenario, log(measured * 1e3, "")).await;
    let compared: Value = server.get(&api::path::run_comparison(&run, None)).await.json();
    let step = &compared["predictions"][0];
    assert_eq!(step["quantity"], "step_time");
    assert!((step["band"]["value"].as_f64().unwrap() / predicted - 1.0).abs() < 1e-9);
    assert!((step["error"].as_f64().unwrap() - 0.2).abs() < 2e-3, "{step}");
    // The next steps are expected near those seen, in a band narrower than that of the prediction.
    let width = |band: &Value| band["high"].as_f64().unwrap() - band["low"].as_f64().unwrap();
    assert!((step["next"]["value"].as_f64().unwrap() / measured - 1.0).abs() < 0.01, "{step}");
    assert!(width(&step["next"]) < 0.3 * width(&step["band"]), "{step}");
    let reasons: Vec<(u64, &str)> = compared["outliers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|outlier| (outlier["step"].as_u64().unwrap(), outlier["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(reasons, [(1, "warm_up"), (12, "slow"), (10, "warm_up")]);
    assert_eq!(compared["segments"].as_array().unwrap().len(), 2);

    let created = server.post(&api::path::run_calibration(&run), "").await;
    assert_eq!(created.status, 201, "{created:?}");
    let profile: Value = created.json();
    let id = profile["summary"]["id"].as_str().unwrap().to_owned();
    assert_eq!(profile["summary"]["source"]["kind"], "run");
    // The attached scenario is unchanged.
    let before: Value = server.get(&api::path::scenario(&scenario)).await.json();
    assert!(before["scenario"]["training"].get("overrides").is_none());
    let check: Value = server.get(&api::path::profile_check(&id, &run)).await.json();
    assert!(check["after"][0]["error"].as_f64().unwrap().abs() < 0.01, "{}", check["after"][0]);
    assert!((check["before"][0]["error"].as_f64().unwrap() - 0.2).abs() < 2e-3);

    let body = json!({"scenario": scenario}).to_string();
    let apply = async || {
        let request = axum::http::Request::post(api::path::profile_apply(&id))
            .header("content-type", "application/json")
            .body(axum::body::Body::from(body.clone()))
            .unwrap();
        server.send(request).await
    };
    let applied = apply().await;
    assert_eq!(applied.status, 201, "{applied:?}");
    let calibrated = applied.json::<Value>()["scenario"].as_str().unwrap().to_owned();
    assert_ne!(calibrated, scenario);
    assert_eq!(apply().await.status, 200);
    let stored: Value = server.get(&api::path::scenario(&calibrated)).await.json();
    assert_eq!(stored["scenario"]["profiles"], json!([id]));
    let after = iteration_s(&server, &calibrated).await;
    assert!((after / measured - 1.0).abs() < 0.01, "{after} s for {measured} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_give_each_pass_its_factor() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let predicted = iteration_s(&server, &scenario).await;
    let outcome: Value = server.get(&api::path::outcome(&scenario)).await.json();
    let time = &outcome["outcome"]["results"][0]["answer"]["ranks"][3]["time"];
    let active_s =
        ["compute_s", "recompute_s", "exposed_s"].map(|part| time[part].as_f64().unwrap()).iter().sum::<f64>();
    let timers = format!(
        "time (ms) | forward-compute: {:.2} | backward-compute: {:.2} | optimizer: 3.00 | batch-generator: 1.00\n",
        active_s * 0.4e3,
        active_s * 0.8e3
    );
    let run = run_with_log(&server, &scenario, log(predicted * 1.3e3, &timers)).await;
    let compared: Value = server.get(&api::path::run_comparison(&run, Some("1f1b"))).await.json();
    let phases: Vec<&str> =
        compared["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["forward compute", "backward compute", "optimizer", "reading of batches"]);
    let predicted_s = |index: usize| compared["phases"][index]["predicted_s"].as_f64().unwrap();
    assert!((predicted_s(0) + predicted_s(1) - active_s).abs() < 1e-9 && predicted_s(1) > predicted_s(0));
    let profile: Value = server.post(&api::path::run_calibration(&run), "").await.json();
    let factors = profile["factors"].as_array().unwrap();
    for (index, measured) in [(0, active_s * 0.4), (1, active_s * 0.8)] {
        let after = factors[index]["after_s"].as_f64().unwrap();
        assert!((after / measured - 1.0).abs() < 2e-3, "{}", factors[index]);
        assert!(factors[index]["factor"].as_f64().is_some());
    }
    assert_eq!(profile["effect"]["overrides"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn incomparable_runs_report_the_reason() {
    let server = TestServer::open().await;
    let opened: Value = server.post(api::path::RUNS, json!({"name": "alone"}).to_string()).await.json();
    let unattached = opened["run"].as_str().unwrap();
    let rejection = server.get(&api::path::run_comparison(unattached, None)).await.problem();
    assert_eq!((rejection.status, rejection.kind.as_str()), (422, "/problems/no-comparison"));
    let scenario = server.store(&scenario_json()).await;
    let run = run_with_log(&server, &scenario, String::new()).await;
    assert_eq!(server.get(&api::path::run_comparison(&run, None)).await.problem().status, 409);
    iteration_s(&server, &scenario).await;
    assert_eq!(server.get(&api::path::run_comparison(&run, Some("gpipe"))).await.problem().status, 422);
    assert_eq!(server.get(&api::path::run_comparison(&run, Some("magic"))).await.problem().status, 404);
    let compared: Value = server.get(&api::path::run_comparison(&run, None)).await.json();
    assert!(compared["predictions"][0].get("measured").is_none());
    assert_eq!(server.post(&api::path::run_calibration(&run), "").await.problem().status, 422);
}
