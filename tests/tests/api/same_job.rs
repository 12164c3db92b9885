//! Runs and plans of different jobs, and the correction of the scenario.

use std::fmt::Write;

use harness::{TestServer, test_server};
use serde_json::{Value, json};

/// One layout on eight devices, 16 samples of 4,096 tokens, planned in moments.
fn scenario_json() -> Value {
    let mut base = test_server::scenario();
    base["planners"] = json!(["1f1b"]);
    base["layout"]["microbatch"] = json!(1);
    base["workload"]["samples"]["text_tokens"] = json!({"kind": "constant", "value": 4096});
    base
}

/// A log of Megatron-LM: twelve equal steps of a batch, with TFLOP/s.
fn log(step_s: f64, batch: u32, tflops: f64) -> String {
    let mut log = String::new();
    for step in 1..13 {
        writeln!(
            log,
            " iteration {step:8}/ 1000 | consumed samples: {:12} | elapsed time per iteration (ms): {:.1} | throughput per GPU \
             (TFLOP/s/GPU): {tflops:.1} | global batch size: {batch} | lm loss: 2.0 |",
            step * batch,
            step_s * 1e3
        )
        .unwrap();
    }
    log
}

async fn import(server: &TestServer, log: String) -> String {
    let imported: Value = server.post(api::path::RUN_IMPORT, log).await.json();
    imported["summary"]["id"].as_str().unwrap_or_else(|| panic!("{imported}")).to_owned()
}

async fn attach(server: &TestServer, run: &str, scenario: &str) {
    let request = axum::http::Request::patch(api::path::run(run))
        .header("content-type", "application/json")
        .body(axum::body::Body::from(json!({"scenario": scenario}).to_string()))
        .unwrap();
    assert_eq!(server.send(request).await.status, 200);
}

/// Time of a step of the plan, and TFLOP/s per device.
async fn planned(server: &TestServer, scenario: &str) -> (f64, f64) {
    assert_eq!(server.plan(scenario).await["state"]["state"], "done");
    let outcome: Value = server.get(&api::path::outcome(scenario)).await.json();
    let metrics = &outcome["outcome"]["results"][0]["answer"]["metrics"];
    (metrics["iteration_s"].as_f64().unwrap(), metrics["tflops_per_device"].as_f64().unwrap())
}

fn agreement(compared: &Value, quantity: &str) -> Value {
    let checks = compared["job"]["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["quantity"] == quantity);
    check.unwrap_or_else(|| panic!("{quantity}: {compared}"))["agreement"].clone()
}

async fn compared(server: &TestServer, run: &str) -> Value {
    server.get(&api::path::run_comparison(run, None)).await.json()
}

/// A run that is a fifth slower than its plan: the same work in 1.2 times the time.
#[tokio::test(flavor = "multi_thread")]
async fn run_with_the_same_job_has_differences() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let (step_s, tflops) = planned(&server, &scenario).await;
    let run = import(&server, log(1.2 * step_s, 16, tflops / 1.2)).await;
    attach(&server, &run, &scenario).await;
    let compared = compared(&server, &run).await;
    assert_eq!(agreement(&compared, "global_batch"), "same");
    assert_eq!(agreement(&compared, "flops_per_step"), "same");
    assert_eq!(agreement(&compared, "devices"), "not_checked");
    assert!(compared["job"].get("corrections").is_none());
    assert_eq!(compared["job"]["formulas"][0], "model", "{}", compared["job"]);
    assert!((compared["predictions"][0]["error"].as_f64().unwrap() - 0.2).abs() < 2e-3);
    let tflops = compared["predictions"].as_array().unwrap().iter();
    let tflops = tflops.clone().find(|prediction| prediction["quantity"] == "tflops_per_device").unwrap();
    assert!((tflops["error"].as_f64().unwrap() - (1.0 / 1.2 - 1.0)).abs() < 5e-3, "{tflops}");
    let rejection = server.post(&api::path::run_correction(&run), "").await.problem();
    assert_eq!((rejection.status, rejection.kind.as_str()), (422, "/problems/no-comparison"));
}

/// Four times the batch in four times the time: corrected in one request, which plans and attaches the corrected scenario.
#[tokio::test(flavor = "multi_thread")]
async fn another_batch_is_named_and_corrected() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let (step_s, tflops) = planned(&server, &scenario).await;
    let run = import(&server, log(4.0 * step_s, 64, tflops)).await;
    attach(&server, &run, &scenario).await;
    let before = compared(&server, &run).await;
    for quantity in ["global_batch", "flops_per_step"] {
        assert_eq!(agreement(&before, quantity), "different", "{}", before["job"]);
    }
    assert_eq!(before["job"]["corrections"], json!([{"kind": "global_batch", "samples": 64}]));
    for prediction in before["predictions"].as_array().unwrap() {
        assert!(prediction.get("error").is_none() && prediction.get("inside").is_none(), "{prediction}");
    }
    // What cannot be compared cannot be calibrated either.
    let rejection = server.post(&api::path::run_calibration(&run), "").await.problem();
    assert_eq!(rejection.status, 422);
    assert!(rejection.detail.contains("global batch size 64 in the log, 16 in the plan"), "{}", rejection.detail);

    let reply = server.post(&api::path::run_correction(&run), "").await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let correction: Value = reply.json();
    assert_eq!(correction["changes"], json!(["global batch 64"]));
    let corrected = correction["scenario"]["id"].as_str().unwrap();
    assert_eq!(correction["scenario"]["kept"], false);
    assert_eq!(correction["scenario"]["scenario"]["title"], "A small question, global batch 64");
    assert_eq!(server.plan(corrected).await["state"]["state"], "done");
    let detail: Value = server.get(&api::path::run(&run)).await.json();
    assert_eq!(detail["summary"]["scenario"], corrected);
    let after = compared(&server, &run).await;
    assert_eq!(agreement(&after, "global_batch"), "same");
    assert!(after["predictions"][0]["error"].as_f64().is_some(), "{}", after["job"]);
    // The scenario that was attached before is as it was.
    let old: Value = server.get(&api::path::scenario(&scenario)).await.json();
    assert_eq!(old["scenario"]["workload"]["global_batch"], 16);
}

/// A log of Megatron-LM that prints its arguments: 2,048 tokens in place of 4,096, on 16 devices in place of 8.
#[tokio::test(flavor = "multi_thread")]
async fn log_arguments_are_checked_and_corrected() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let (step_s, _) = planned(&server, &scenario).await;
    let head = "using world size: 16, data-parallel-size: 2\n  seq_length ............ 2048\n";
    let steps = log(step_s, 16, 100.0).replace(" throughput per GPU (TFLOP/s/GPU): 100.0 |", "");
    let run = import(&server, format!("{head}{steps}")).await;
    attach(&server, &run, &scenario).await;
    let before = compared(&server, &run).await;
    for quantity in ["tokens_per_step", "devices"] {
        assert_eq!(agreement(&before, quantity), "different", "{}", before["job"]);
    }
    let correction: Value = server.post(&api::path::run_correction(&run), "").await.json();
    assert_eq!(correction["changes"], json!(["context length 2048", "16 devices"]));
    let corrected = &correction["scenario"]["scenario"];
    assert_eq!(corrected["workload"]["samples"]["text_tokens"]["value"], 2048);
    assert_eq!(corrected["cluster"]["nodes"], 2);
    assert_eq!(server.plan(correction["scenario"]["id"].as_str().unwrap()).await["state"]["state"], "done");
    let after = compared(&server, &run).await;
    let all = after["job"]["checks"].as_array().unwrap();
    assert!(all.iter().all(|check| check["agreement"] != "different"), "{}", after["job"]);
}

/// The program starts again with sequences of 2,048: the first part is the job of the plan, the second is not, nor are both.
#[tokio::test(flavor = "multi_thread")]
async fn each_run_part_uses_its_arguments() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let (step_s, _) = planned(&server, &scenario).await;
    let start =
        |length: u32| format!("using world size: 8, data-parallel-size: 8\n  seq_length ............ {length}\n");
    let steps = log(step_s, 16, 100.0).replace(" throughput per GPU (TFLOP/s/GPU): 100.0 |", "");
    let run = import(&server, [start(4096), steps.clone(), start(2048), steps].concat()).await;
    attach(&server, &run, &scenario).await;
    for (part, expected) in [("?segment=0", "same"), ("?segment=1", "different"), ("", "different")] {
        let path = format!("{}{part}", api::path::run_comparison(&run, None));
        let compared: Value = server.get(&path).await.json();
        assert_eq!(agreement(&compared, "tokens_per_step"), expected, "{part}: {}", compared["job"]);
    }
}

/// The log of a small model against the plan of a large one: a shorter step with fewer TFLOP/s.
#[tokio::test(flavor = "multi_thread")]
async fn log_from_another_model_is_not_compared_by_speed() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let (step_s, tflops) = planned(&server, &scenario).await;
    let run = import(&server, log(0.841 * step_s, 16, 0.571 * tflops)).await;
    attach(&server, &run, &scenario).await;
    let compared = compared(&server, &run).await;
    assert_eq!(agreement(&compared, "global_batch"), "same");
    assert_eq!(agreement(&compared, "flops_per_step"), "different");
    assert!(compared["predictions"].as_array().unwrap().iter().all(|prediction| prediction.get("error").is_none()));
    assert!(compared["job"].get("corrections").is_none(), "a batch does not make it the same model");
    // Figures above the peak of the device are named by themselves.
    let run = import(&server, log(step_s, 16, 999.0)).await;
    attach(&server, &run, &scenario).await;
    let compared: Value = server.get(&api::path::run_comparison(&run, None)).await.json();
    assert_eq!(agreement(&compared, "peak_tflops"), "different");
}

/// The plan has TP 2, PP 4 and no recomputation. The log states TP 4, PP 2 and full recomputation: the same job with other times.
#[tokio::test(flavor = "multi_thread")]
async fn another_layout_has_no_differences_and_is_corrected() {
    let server = TestServer::open().await;
    let scenario = server.store(&scenario_json()).await;
    let (step_s, tflops) = planned(&server, &scenario).await;
    let head = "using world size: 8, tensor-model-parallel size: 4, pipeline-model-parallel size: 2\n  \
                recompute_granularity ............ full\n";
    let run = import(&server, format!("{head}{}", log(step_s, 16, tflops))).await;
    attach(&server, &run, &scenario).await;
    let before = compared(&server, &run).await;
    assert_eq!(agreement(&before, "layout"), "other_layout", "{}", before["job"]);
    for prediction in before["predictions"].as_array().unwrap() {
        assert!(prediction.get("error").is_none() && prediction.get("inside").is_none(), "{prediction}");
    }
    let rejection = server.post(&api::path::run_calibration(&run), "").await.problem();
    assert!(
        rejection.detail.starts_with("the plan has another layout than the run: layout TP 4"),
        "{}",
        rejection.detail
    );
    let correction: Value = server.post(&api::path::run_correction(&run), "").await.json();
    assert_eq!(correction["changes"], json!(["TP 4, PP 2, full recomputation"]));
    let corrected = correction["scenario"]["id"].as_str().unwrap();
    assert_eq!(server.plan(corrected).await["state"]["state"], "done");
    let after = compared(&server, &run).await;
    assert_eq!(agreement(&after, "layout"), "same", "{}", after["job"]);
    assert!(after["predictions"][0]["error"].as_f64().is_some(), "{}", after["job"]);
}
