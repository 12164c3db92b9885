//! Throughput: what it should be, and what raises it.

use api::check::SlownessRequest;
use api::path::CHECK_SLOWNESS;
use harness::TestServer;
use planner::slowness::{Measured, Relation, Slowness};
use serde_json::json;

use crate::{LLAMA_3_8B, LLAMA_3_70B_ARGUMENTS, Plans, ask, job, scenario, step_s, with};

/// Question 7. A figure is compared with the prediction in its own unit; a figure above the peak of 989 TFLOP/s is impossible.
#[tokio::test(flavor = "multi_thread")]
async fn is_296_tflops_right_for_my_job() {
    let degrees = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4";
    let configuration = job(&format!("{LLAMA_3_70B_ARGUMENTS} {degrees}"), 64);
    let server = TestServer::open().await;
    let explained = async |tflops: f64| -> Slowness {
        let measured = Measured::TflopsPerDevice(tflops);
        ask(&server, CHECK_SLOWNESS, &SlownessRequest { configuration: configuration.clone(), measured }).await
    };
    let slow = explained(296.5).await;
    assert_eq!(slow.relation, Relation::Slower);
    // 296.5 of 989 TFLOP/s.
    assert!((slow.measured_mfu - 0.2998).abs() < 1e-3 && slow.predicted_mfu > 0.36, "{slow:?}");
    assert!(
        slow.causes.iter().all(|cause| cause.explains_s > 0.0 && !cause.confirm.is_empty()) && !slow.causes.is_empty()
    );
    assert_eq!(explained(1200.0).await.relation, Relation::Impossible);
}

/// Question 18. fp8 doubles the rate of products, not of attention and memory-bound kernels. NVIDIA states 1.3 to 1.5 times the
/// throughput for Llama models of this size on H100.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_fp8_bring() {
    let degrees =
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 --micro-batch-size 1 --global-batch-size 128";
    let bf16 = format!("{LLAMA_3_8B} {degrees} --sequence-parallel");
    let gain = step_s(&job(&bf16, 8)).await / step_s(&job(&format!("{bf16} --fp8-format hybrid"), 8)).await;
    assert!((1.25..1.6).contains(&gain), "{gain}");
}

/// Question 19. Overlap hides communication: it brings more with TP 8 than with TP 2, because TP 8 communicates more.
#[tokio::test(flavor = "multi_thread")]
async fn when_does_overlap_of_tensor_parallel_communication_help() {
    let seconds = async |tensor: u32, overlap: f64| {
        let layout = json!({"tensor": tensor, "pipeline": 1, "microbatch": 1});
        let training = json!({"tensor_overlap": overlap, "recompute": "full"});
        let job = with(scenario("llama-3-8b", 1, 8192), &[("/layout", layout), ("/training", training)]);
        Plans::of(&job).await.step_s("1f1b")
    };
    let gain = async |tensor| seconds(tensor, 0.0).await / seconds(tensor, 0.8).await;
    let (two, eight) = (gain(2).await, gain(8).await);
    assert!(two > 1.01 && eight > two + 0.05 && eight < 1.6, "TP 2: {two}, TP 8: {eight}");
}
