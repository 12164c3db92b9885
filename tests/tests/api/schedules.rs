//! The schedule bench.

use api::planner::schedule::ScheduleKind;
use api::planner::schedule_comparison::{EntryOutcome, ScheduleResponse};
use api::schedule::ScheduleKinds;
use harness::TestServer;
use serde_json::json;

fn request_json() -> serde_json::Value {
    json!({
        "schema": "schedule/1", "ranks": 4, "microbatches": 12, "kinds": ["1f1b", "zb_h2", "dual_pipe"],
        "times": {"forward": 1, "input_grad": 1, "weight_grad": 1},
    })
}

#[tokio::test]
async fn schedules_are_generated_compared_and_sent_with_timelines() {
    let server = TestServer::open().await;
    let reply = server.request("POST", api::path::SCHEDULES, request_json().to_string()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"));
    let response: ScheduleResponse = reply.json();
    let makespans: Vec<f64> = response
        .entries
        .iter()
        .map(|entry| match &entry.outcome {
            EntryOutcome::Run(report) => {
                assert_eq!(report.timeline.makespan_ns, (report.makespan * response.unit_ns as f64) as u64);
                report.makespan
            }
            EntryOutcome::Refused(refusal) => panic!("{}", refusal.detail),
        })
        .collect();
    // 15 x 3; 12 x 3 and the way to the last rank; 12 x 3 and a bubble of (p / 2 - 1)(F&B + B - 3 W).
    assert_eq!(makespans, [45.0, 39.0, 38.0]);
}

#[tokio::test]
async fn impossible_schedules_are_entries_and_invalid_fields_are_problems() {
    let server = TestServer::open().await;
    let mut request = request_json();
    request["ranks"] = 5.into();
    request["imported"] = json!([{"name": "mine", "csv": "0F0,0B0\n1B0,1F0\n"}]);
    let response: ScheduleResponse = server.request("POST", api::path::SCHEDULES, request.to_string()).await.json();
    let reasons: Vec<&str> = response
        .entries
        .iter()
        .map(|entry| match &entry.outcome {
            EntryOutcome::Run(_) => "",
            EntryOutcome::Refused(refusal) => refusal.detail.as_str(),
        })
        .collect();
    assert_eq!(
        reasons,
        ["", "", "DualPipe needs an even number of ranks, 5 given", "deadlock: A2 1B0 waits for B2 1F0 behind A2 1B0"]
    );

    request["ranks"] = 0.into();
    request["times"]["forward"] = (-1).into();
    let reply = server.request("POST", api::path::SCHEDULES, request.to_string()).await;
    let problem = reply.problem();
    assert_eq!((problem.status, problem.kind.as_str()), (422, "/problems/invalid-question"));
    let pointers: Vec<&str> = problem.errors.iter().map(|error| error.pointer.as_str()).collect();
    assert_eq!(pointers, ["/ranks", "/times/forward"]);
    for (body, pointer) in [("{", ""), ("[]", ""), ("{\"schema\": \"scenario/1\"}", "/schema")] {
        let problem = server.request("POST", api::path::SCHEDULES, body).await.problem();
        assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, pointer), "{body}");
    }
}

/// As much as is answered at once, within seconds even where tests run unoptimised.
#[tokio::test]
async fn oversized_request_is_rejected_and_maximum_size_is_accepted() {
    let server = TestServer::open().await;
    let mut request = request_json();
    request["kinds"] = json!(["zb_h2", "wait_free_cyclic"]);
    request["microbatches"] = 12_500.into();
    let response: ScheduleResponse = server.request("POST", api::path::SCHEDULES, request.to_string()).await.json();
    assert!(response.entries.iter().all(|entry| matches!(entry.outcome, EntryOutcome::Run(_))));
    request["microbatches"] = 12_501.into();
    let problem = server.request("POST", api::path::SCHEDULES, request.to_string()).await.problem();
    assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/microbatches"));
    let large = " ".repeat((16 << 20) + 1);
    assert_eq!(server.request("POST", api::path::SCHEDULES, large).await.problem().status, 413);
}

#[tokio::test]
async fn the_kinds_are_listed_with_their_formulas() {
    let server = TestServer::open().await;
    let kinds: ScheduleKinds = server.get(api::path::SCHEDULES).await.json();
    let ids: Vec<ScheduleKind> = kinds.kinds.iter().map(|kind| kind.id).collect();
    assert_eq!(ids, ScheduleKind::ALL);
    assert_eq!(kinds.kinds[2].bubble.as_deref(), Some("(p - 1)(F + B)"));
    assert_eq!(server.request("PUT", api::path::SCHEDULES, "{}").await.problem().status, 405);
}
