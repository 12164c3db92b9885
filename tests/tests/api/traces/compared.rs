//! Traces compared with each other: before and after, and the ranks of a run.

use harness::TestServer;
use planner::trace_comparison::{Cause, RankAxis, RankReport, SegmentKind, TraceDifference, TraceTimes};
use serde_json::{Value, json};

use super::uploaded;

/// Two steps of 100 µs on a rank: `gemm` for `compute` µs, then an all-reduce that ends at 90 µs.
/// `clock` µs are added to all times.
fn rank(rank: u32, compute: u32, clock: u32) -> String {
    let mut events = Vec::new();
    for step in 0..2_u32 {
        let at = clock + step * 100;
        let slice = |cat: &str, name: &str, pid: u32, tid: u32, ts: u32, dur: u32, args: Value| json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args});
        let message = json!({"Collective name": "allreduce", "In msg nelems": 4, "Process Group Name": "0",
            "Process Group Ranks": "[0, 1, 2]", "Seq": step + 10});
        events.extend([
            slice("user_annotation", &format!("ProfilerStep#{}", step + 4), 9, 1, at, 95, json!({})),
            slice("kernel", "gemm<128>(0x7f0011223344)", 0, 7, at + 5, compute, json!({})),
            slice("kernel", "ncclDevKernel_AllReduce", 0, 8, at + 5 + compute, 85 - compute, message),
        ]);
    }
    json!({"distributedInfo": {"rank": rank}, "traceEvents": events}).to_string()
}

async fn three(server: &TestServer) -> Vec<String> {
    let mut ids = Vec::new();
    for (number, compute, clock) in [(0, 40, 1000), (1, 45, 1003), (2, 70, 500)] {
        ids.push(uploaded(server, &format!("?name=rank{number}&run=job"), rank(number, compute, clock)).await);
    }
    ids
}

#[tokio::test]
async fn the_straggler_is_named() {
    let server = TestServer::open().await;
    let ids = three(&server).await;
    let url = api::path::trace_ranks(&ids.join(","));
    let report: RankReport = server.get(&url).await.json();
    let straggler = report.straggler.as_ref().expect("rank 2");
    assert_eq!((straggler.rank, straggler.cause, straggler.excess_compute_ns), (2, Cause::SlowerKernels, 50_000));
    // Ranks 0 and 1 wait 30 and 25 µs in both steps.
    assert_eq!((report.collectives, report.wait_ns, report.clock_deviation_ns), (2, 110_000, 0));
    assert_eq!(straggler.kernels[0].name, "gemm<128>(0x…)");
    assert_eq!(report.ranks.iter().map(|rank| rank.clock_ns).collect::<Vec<_>>(), [Some(0), Some(0), Some(0)]);
    assert_eq!(report.longest[0].number, 10);
    let by_run: RankReport = server.get("/api/v1/traces/ranks?run=job").await.json();
    assert_eq!(by_run, report);

    let csv = server.get(&format!("{url}&format=csv")).await;
    assert_eq!((csv.status, csv.header("content-type")), (200, "text/csv; charset=utf-8"));
    let text = String::from_utf8(csv.body.clone()).expect("text");
    assert!(text.starts_with("rank,trace,caused_ns,late_ns,waited_ns,"), "{text}");
    assert!(text.contains("\n2,rank2,110000,50000,0,30000,2,2,"), "{text}");
    for table in ["kernels", "groups", "steps", "collectives"] {
        let csv = server.get(&format!("{url}&format=csv&table={table}")).await;
        let lines = String::from_utf8_lossy(&csv.body).lines().count();
        assert!(lines > 1, "{table}");
    }

    let axis: RankAxis = server.get(&format!("{}&step=5", api::path::trace_axis(&ids.join(",")))).await.json();
    assert_eq!((axis.step, axis.span_ns, axis.rows.len()), (Some(5), 85_000, 3));
    let last: Vec<_> = axis.rows[2].segments.iter().map(|part| (part.kind, part.start_ns, part.duration_ns)).collect();
    assert_eq!(last, [(SegmentKind::Compute, 0, 70_000), (SegmentKind::Transfer, 70_000, 15_000)]);
    assert_eq!(axis.rows[0].segments[1].kind, SegmentKind::Wait);
}

#[tokio::test]
async fn two_traces_stand_side_by_side() {
    let server = TestServer::open().await;
    let before = uploaded(&server, "?name=before", rank(0, 60, 0)).await;
    let after = uploaded(&server, "?name=after", rank(0, 40, 70_000)).await;
    let url = api::path::trace_difference(&before, &after);
    let difference: TraceDifference = server.get(&url).await.json();
    let kernels: Vec<_> =
        difference.kernels.iter().map(|row| (row.name.as_str(), row.difference_ns, row.after_count)).collect();
    assert_eq!(kernels, [("gemm<128>(0x…)", -40_000, 2), ("ncclDevKernel_AllReduce", 40_000, 2)]);
    let phase = |name: &str| {
        let row = difference.phases.iter().find(|row| row.phase == name).expect("a phase");
        (row.before_ns, row.after_ns)
    };
    assert_eq!((phase("compute"), phase("exposed_communication")), ((120_000, 80_000), (50_000, 90_000)));
    assert_eq!(difference.steps.iter().map(|step| (step.before, step.after)).collect::<Vec<_>>(), [(4, 4), (5, 5)]);
    assert_eq!((difference.before.name.as_str(), difference.after.name.as_str()), ("before", "after"));
    let csv = server.get(&format!("{url}&format=csv&table=phases")).await;
    assert!(String::from_utf8(csv.body.clone()).expect("text").contains("\ncompute,120000,80000,-40000\n"));

    let times: Vec<TraceTimes> = server.get(&api::path::trace_times(&before)).await.json();
    assert_eq!((times.len(), times[0].kernels[0].time_ns, times[0].steps.len()), (1, 120_000, 2));
}

#[tokio::test]
async fn comparisons_that_cannot_be_are_explained() {
    let server = TestServer::open().await;
    let ids = three(&server).await;
    let host = json!([super::event("op", &json!(1), &json!(1), 0.0, 5.0)]).to_string();
    let host = uploaded(&server, "?name=host", host).await;
    let again = uploaded(&server, "?name=again", rank(2, 71, 0)).await;
    let unknown = "a".repeat(52);
    for (url, status, kind, detail) in [
        (api::path::trace_ranks(&ids[0]), 422, "not-comparable", "at least two"),
        (api::path::trace_ranks(""), 422, "not-comparable", "0 rank"),
        (api::path::trace_ranks(&format!("{},{again}", ids[2])), 422, "not-comparable", "rank 2 is in"),
        (api::path::trace_ranks(&format!("{},{unknown}", ids[2])), 404, "not-found", "trace"),
        (api::path::trace_difference(&ids[0], &host), 422, "not-comparable", "no kernels"),
        (api::path::trace_times(&host), 422, "not-comparable", "no kernels"),
        (format!("{}&format=xml", api::path::trace_difference(&ids[0], &ids[1])), 400, "malformed-request", "csv"),
        (
            format!("{}&format=csv&table=ranks", api::path::trace_difference(&ids[0], &ids[1])),
            400,
            "malformed-request",
            "kernels, phases, steps",
        ),
        (format!("{}&segments=0", api::path::trace_axis(&ids.join(","))), 400, "malformed-request", "segments"),
        ("/api/v1/traces/difference?before=a".to_owned(), 400, "malformed-request", "after"),
    ] {
        let problem = server.get(&url).await.problem();
        assert_eq!(problem.status, status, "{url}: {problem:?}");
        assert!(problem.kind.ends_with(kind), "{url}: {problem:?}");
        assert!(problem.detail.contains(detail), "{url}: {problem:?}");
    }
}
