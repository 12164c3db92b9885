//! Sequences of different lengths.

use harness::TestServer;
use serde_json::{Value, json};

use crate::{Plans, scenario, with};

/// Lengths of a web dataset: log-normal, up to 32,768 tokens.
fn web(nodes: u32) -> Value {
    let lengths = json!({"kind": "log_normal", "median": 2000, "sigma": 1.4, "min": 64, "max": 32768});
    with(
        scenario("llama-3-8b", nodes, 32768),
        &[
            ("/workload/samples/text_tokens", lengths),
            ("/workload/global_batch", json!(128)),
            ("/training", json!({"recompute": "full"})),
        ],
    )
}

/// Question 11. Replicas wait for the one with the longest samples. Dealing samples by compute time is the change that saves most.
#[tokio::test(flavor = "multi_thread")]
async fn how_much_time_do_unequal_lengths_over_dp_cost() {
    let server = TestServer::open().await;
    let job = with(web(2), &[("/layout", json!({"tensor": 2, "pipeline": 2, "microbatch": 1}))]);
    let id = server.store(&job).await;
    let fit: Value = server.get(&api::path::fit_analysis(&id, None)).await.json();
    let first = &fit["changes"][0];
    assert_eq!(first["title"], "replicas balanced by compute time", "{first}");
    let saved = -first["difference_s"].as_f64().unwrap() / fit["base"]["iteration_s"].as_f64().unwrap();
    assert!((0.2..0.6).contains(&saved), "{saved}");
}

/// Question 12. Groups that follow the lengths of a batch are faster than one static degree of context parallelism.
#[tokio::test(flavor = "multi_thread")]
async fn is_dynamic_context_parallelism_worth_it() {
    let job = with(
        web(2),
        &[
            ("/planners", json!(["static_cp", "ulysses", "power_of_two_cp", "dhp"])),
            ("/workload/packing", json!("packed")),
        ],
    );
    let plans = Plans::of(&job).await;
    let best_static = plans.step_s("static_cp").min(plans.step_s("ulysses"));
    let gain = 1.0 - plans.step_s("dhp") / best_static;
    assert!((0.02..0.4).contains(&gain), "{gain}");
    assert!(plans.step_s("dhp") <= plans.step_s("power_of_two_cp"));
}

/// Question 13. A ring merges the results of its blocks and runs attention on short blocks, all-to-all only exchanges heads. In
/// one node all-to-all is faster; over nodes with one link the ring hides what all-to-all cannot.
#[tokio::test(flavor = "multi_thread")]
async fn is_ring_or_ulysses_faster() {
    let job = |exchange: &str| {
        with(
            scenario("llama-3-8b", 1, 65536),
            &[
                ("/training", json!({"recompute": "full", "context_parallel": 8, "context_exchange": exchange})),
                ("/layout", json!({"tensor": 1, "pipeline": 1})),
                ("/workload/global_batch", json!(4)),
            ],
        )
    };
    let (ring, ulysses) =
        (Plans::of(&job("ring")).await.step_s("1f1b"), Plans::of(&job("all_to_all")).await.step_s("1f1b"));
    assert!((1.02..1.35).contains(&(ring / ulysses)), "ring {ring}, all-to-all {ulysses}");
}
