//! Logs and profiles of the user's own machine.

use std::fmt::Write;

use harness::{TestServer, test_server};
use serde_json::{Value, json};

/// A log of Megatron-LM with twelve equal steps.
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

/// Question 24. A log of another batch has no differences but the mismatch; a log of the same job has its difference.
#[tokio::test(flavor = "multi_thread")]
async fn is_the_throughput_of_my_log_good() {
    let server = TestServer::open().await;
    let mut base = test_server::scenario();
    base["planners"] = json!(["1f1b"]);
    base["layout"]["microbatch"] = json!(1);
    base["workload"]["samples"]["text_tokens"] = json!({"kind": "constant", "value": 4096});
    let scenario = server.store(&base).await;
    assert_eq!(server.plan(&scenario).await["state"]["state"], "done");
    let outcome: Value = server.get(&api::path::outcome(&scenario)).await.json();
    let metric = |name: &str| outcome["outcome"]["results"][0]["answer"]["metrics"][name].as_f64().unwrap();
    let (step_s, tflops) = (metric("iteration_s"), metric("tflops_per_device"));
    let compared = async |log: String| -> Value {
        let imported: Value = server.post(api::path::RUN_IMPORT, log).await.json();
        let run = imported["summary"]["id"].as_str().unwrap().to_owned();
        let attach = axum::http::Request::patch(api::path::run(&run))
            .header("content-type", "application/json")
            .body(axum::body::Body::from(json!({"scenario": scenario}).to_string()))
            .unwrap();
        assert_eq!(server.send(attach).await.status, 200);
        server.get(&api::path::run_comparison(&run, None)).await.json()
    };
    let same = compared(log(1.25 * step_s, 16, tflops / 1.25)).await;
    let prediction = |compared: &Value, quantity: &str| {
        let all = compared["predictions"].as_array().unwrap().iter();
        all.clone().find(|prediction| prediction["quantity"] == quantity).map(|prediction| prediction["error"].clone())
    };
    let tflops_error = prediction(&same, "tflops_per_device").unwrap().as_f64().unwrap();
    assert!((tflops_error + 0.2).abs() < 5e-3, "a quarter slower is a fifth less throughput: {same}");
    let other = compared(log(1.25 * step_s, 64, tflops)).await;
    let checks = other["job"]["checks"].as_array().unwrap();
    let batch = checks.iter().find(|check| check["quantity"] == "global_batch").unwrap();
    assert_eq!(batch["agreement"], "different", "{batch}");
    assert!(prediction(&other, "tflops_per_device").is_none_or(|error| error.is_null()), "{other}");
}

/// Question 25. Products that `planscope measure` took on an H100 lower the residual of the device; a table of another device is
/// refused.
#[tokio::test(flavor = "multi_thread")]
async fn how_do_i_use_a_profile_of_my_own_gpu() {
    let server = TestServer::open().await;
    let measured = include_str!("../../../crates/accuracy/measurements/h100-80gb/products.csv");
    // The table with times multiplied by a factor.
    let table = |factor: f64| {
        let mut table = "kernel,m,k,n,time_us\n".to_owned();
        for columns in measured.lines().map(|line| line.split(',').collect::<Vec<_>>()) {
            if columns[0] == "forward" {
                let time_us = factor * columns[5].parse::<f64>().unwrap();
                writeln!(table, "matmul,{},{time_us}", columns[2..5].join(",")).unwrap();
            }
        }
        table
    };
    let upload = format!("{}?name=products.csv&device=h100", api::path::PROFILES);
    let reply = server.post(&upload, table(1.0)).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let profile: Value = reply.json();
    let part = &profile["parts"][0];
    assert_eq!((&part["name"], &part["fitted"]), (&json!("matrix products"), &json!(true)), "{part}");
    assert!(part["residual"].as_f64().unwrap() < 0.15, "{part}");
    // A scenario on the measured device is planned with the profile.
    let scenario = server.store(&crate::scenario("llama-3-8b", 1, 8192)).await;
    let id = profile["summary"]["id"].as_str().unwrap();
    let apply = axum::http::Request::post(format!("{}/apply", api::path::profile(id)))
        .header("content-type", "application/json")
        .body(axum::body::Body::from(json!({"scenario": scenario}).to_string()))
        .unwrap();
    let applied = server.send(apply).await;
    assert_eq!(applied.status, 201, "{}", applied.text());
    assert!(!applied.json::<Value>()["changes"].as_array().unwrap().is_empty());
    let refused = server.post(&upload, table(30.0)).await.problem();
    assert_eq!(refused.kind, "/problems/other-device");
}
