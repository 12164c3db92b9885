//! Pipeline schedules.

use api::planner::schedule_comparison::{EntryOutcome, ScheduleEntry, ScheduleResponse};
use harness::TestServer;
use serde_json::json;

use crate::{Plans, ask, scenario, with};

/// Question 9. Interleaving and splitting the backward shrink the bubble of 1F1B; V-Half saves memory instead of time.
#[tokio::test(flavor = "multi_thread")]
async fn which_schedule_is_fastest_1f1b_vpp_zero_bubble_or_v_half() {
    let job = with(
        scenario("llama-2-13b", 1, 4096),
        &[
            ("/layout", json!({"tensor": 2, "pipeline": 4, "microbatch": 1})),
            ("/training", json!({"recompute": "selective"})),
            ("/workload/global_batch", json!(32)),
            ("/planners", json!(["1f1b", "interleaved", "zb_h1", "zb_h2", "zbv", "v_half", "v_min"])),
        ],
    );
    let plans = Plans::of(&job).await;
    let bubble = |planner| plans.metric(planner, "bubble");
    for (smaller, larger) in [("zb_h1", "1f1b"), ("zb_h2", "zb_h1"), ("zbv", "zb_h2"), ("interleaved", "1f1b")] {
        assert!(bubble(smaller) < bubble(larger), "{smaller} {larger}");
        assert!(plans.step_s(smaller) < plans.step_s(larger), "{smaller} {larger}");
    }
    let memory = |planner| plans.metric(planner, "peak_memory_gib");
    assert!(
        memory("v_min") < memory("v_half") && memory("v_half") < memory("1f1b") && memory("zb_h2") > memory("zb_h1")
    );
}

/// Question 10. DeepSeek-V3 (Liu et al. 2024, table 2): bubble (p/2 - 1)(F&B + B - 3 W), p + 1 activations. With F 1, B 2 and W 1, the
/// bubble of eight ranks is 3 (3 + 2 - 3) = 6.
#[tokio::test]
async fn how_large_is_the_bubble_of_dualpipe_with_my_times() {
    let server = TestServer::open().await;
    let question = json!({
        "schema": "schedule/1", "ranks": 8, "microbatches": 20, "kinds": ["dual_pipe", "1f1b"],
        "times": {"forward": 1, "input_grad": 1, "weight_grad": 1}
    });
    let response: ScheduleResponse = ask(&server, api::path::SCHEDULES, &question).await;
    let figures = |entry: &ScheduleEntry| match &entry.outcome {
        EntryOutcome::Run(report) => (report.makespan, report.peak_activations.iter().copied().fold(0.0, f64::max)),
        EntryOutcome::Refused(refusal) => panic!("{}", refusal.detail),
    };
    let entries: Vec<(f64, f64)> = response.entries.iter().map(figures).collect();
    // 20 microbatches of 3 and the bubble; 1F1B has a bubble of (p - 1)(F + B) and p activations.
    assert_eq!(entries, [(66.0, 9.0), (81.0, 8.0)]);
}
