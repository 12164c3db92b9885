//! Observed actions beside a plan.

use std::sync::Arc;

use api::trace::{ActionList, Alignment, TimeBreakdownList};
use harness::{TestServer, engines, test_server};
use planner::timeline::{SpanKind, Timeline};
use planner::trace_prediction::{KernelType, StepPart, TracePrediction};
use serde_json::{Value, json};

use super::uploaded;

/// Events of a timeline, with one process per rank; each action takes `factor` as long and `gap` ns are
/// between iterations of `repeats`.
fn events(timeline: &Timeline, factor: u64, repeats: u64) -> Vec<Value> {
    let mut events = Vec::new();
    for repeat in 0..repeats {
        let offset = repeat * (timeline.makespan_ns * factor + 1_000_000);
        for rank in 0..timeline.ranks as usize {
            for span in timeline.compute_lane(rank).chain(timeline.communication_lane(rank)) {
                let kind = SpanKind::from_index(timeline.kind[span]).expect("a kind");
                let name = match kind {
                    SpanKind::GradientSync => format!("PP:{rank}REDUCE_GRAD"),
                    SpanKind::Optimizer => "optimizer".to_owned(),
                    _ => format!("PP:{}{}{}", timeline.stage[span], kind.letter(), timeline.microbatch[span]),
                };
                let micros = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
                events.push(json!({
                    "ph": "X", "cat": "user_annotation", "name": name, "pid": rank, "tid": u8::from(!kind.is_compute_lane()),
                    "ts": micros(offset + timeline.start_ns[span] * factor), "dur": micros(timeline.duration_ns[span] * factor)
                }));
            }
        }
    }
    events
}

async fn planned(server: &TestServer) -> (String, Timeline) {
    let scenario = server.store(&test_server::scenario()).await;
    assert_eq!(server.plan(&scenario).await["state"]["state"], "done");
    let timeline: Timeline = server.get_as(&api::path::timeline(&scenario, "1f1b", 0), "application/json").await.json();
    (scenario, timeline)
}

#[tokio::test]
async fn measured_iteration_is_aligned_with_its_plan() {
    let server = TestServer::open().await;
    let (scenario, simulated) = planned(&server).await;
    let body = json!({"traceEvents": events(&simulated, 2, 3)}).to_string();
    let id = uploaded(&server, &format!("?scenario={scenario}&planner=1f1b"), body).await;

    let actions: ActionList = server.get(&api::path::trace_actions(&id)).await.json();
    assert_eq!((actions.ranks.len(), actions.iterations.len()), (simulated.ranks as usize, 3));
    assert!(
        actions
            .iterations
            .iter()
            .all(|iteration| !iteration.announced && iteration.actions == actions.iterations[0].actions)
    );

    let reply = server.get(&api::path::trace_timeline(&id, 1)).await;
    assert_eq!(reply.header("content-type"), api::path::TIMELINE_MEDIA_TYPE);
    let measured = api::timeline::decode(&reply.body).expect("a timeline");
    assert_eq!(measured.ranks, simulated.ranks);

    let optimizers = (0..simulated.len()).filter(|&span| simulated.kind[span] == SpanKind::Optimizer as u8).count();
    let alignment: Alignment = server.get(&api::path::trace_alignment(&id, 1, 0)).await.json();
    assert_eq!(alignment.planner.id(), "1f1b");
    let aligned = &alignment.aligned;
    assert_eq!((aligned.pairs.len(), aligned.only_observed), (simulated.len() - optimizers, 0));
    assert_eq!(aligned.only_simulated as usize, optimizers);
    for pair in &aligned.pairs {
        assert_eq!(pair.difference_ns.unsigned_abs(), pair.simulated_ns, "twice as slow: {pair:?}");
        assert!(pair.difference_ns >= 0);
    }
    for total in aligned.kinds.iter().filter(|total| total.simulated_ns > 0) {
        assert!((total.ratio.expect("times") - 2.0).abs() < 1e-9, "{total:?}");
    }
    // Twice as slow, seen at half the speed, is the plan.
    let path = format!("{}&speed=0.5", api::path::trace_alignment(&id, 0, 0));
    let scaled: Alignment = server.get(&path).await.json();
    assert!(scaled.aligned.pairs.iter().all(|pair| pair.difference_ns.abs() <= 1 && pair.delay_ns.abs() <= 1));

    let breakdown: TimeBreakdownList = server.get(&api::path::trace_time_breakdown(&id)).await.json();
    assert_eq!(breakdown.ranks.len(), simulated.ranks as usize);
    for rank in &breakdown.ranks {
        assert_eq!(rank.span_ns, rank.compute_ns + rank.exposed_ns + rank.idle_ns);
    }
    assert_eq!(server.get(&api::path::trace_timeline(&id, 3)).await.problem().status, 404);
    let other = format!("{}&planner=interleaved&scenario={scenario}", api::path::trace_alignment(&id, 0, 0));
    let other: Alignment = server.get(&other).await.json();
    assert!(other.aligned.only_observed > 0 || other.aligned.only_simulated > 0, "another schedule has other stages");
}

/// What is missing is told: a planner's plan, any plan, or the planning.
#[tokio::test]
async fn missing_plan_reports_the_reason() {
    // Nothing fits.
    let server = TestServer::planning_with(engines::instant(&Arc::default())).await;
    let body = json!([{"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "pid": 0, "tid": 0, "ts": 0, "dur": 9}]);
    let id = uploaded(&server, "", body.to_string()).await;
    let scenario = server.store(&test_server::scenario()).await;
    let align = async |planner: &str| {
        let path = format!("{}&scenario={scenario}{planner}", api::path::trace_alignment(&id, 0, 0));
        let problem = server.get(&path).await.problem();
        (problem.status, problem.kind, problem.detail)
    };
    let export = async || server.get(&format!("{}/megatron/1f1b", api::path::scenario(&scenario))).await.problem();
    for planner in ["", "&planner=1f1b"] {
        let (status, kind, _) = align(planner).await;
        assert_eq!((status, &*kind), (409, "/problems/not-planned"), "{planner}");
    }
    server.plan(&scenario).await;
    let (status, kind, detail) = align("").await;
    assert_eq!((status, &*kind), (409, "/problems/no-plan"), "{detail}");
    let (status, _, detail) = align("&planner=1f1b").await;
    assert!(status == 404 && detail.contains("has no plan of this scenario"), "{detail}");
    assert_eq!((export().await.status, export().await.detail), (404, detail));
}

#[tokio::test]
async fn traces_in_a_run_are_combined() {
    let server = TestServer::open().await;
    let (scenario, simulated) = planned(&server).await;
    let all = events(&simulated, 1, 1);
    let mut last = String::new();
    for rank in 0..simulated.ranks {
        // A file for every rank, as Kineto writes them: the process says nothing of the rank.
        let rank_events = all.iter().filter(|event| event["pid"] == rank).cloned().map(|mut event| {
            event["pid"] = json!(4000 + rank);
            event
        });
        let body = json!({"baseTimeNanoseconds": 1_700_000_000_000_000_000_u64, "traceEvents": rank_events.collect::<Vec<_>>()});
        last = uploaded(&server, &format!("?run=job7&rank={rank}&scenario={scenario}"), body.to_string()).await;
    }
    let actions: ActionList = server.get(&api::path::trace_actions(&last)).await.json();
    assert_eq!((actions.traces.len(), actions.iterations.len()), (simulated.ranks as usize, 1));
    assert_eq!(actions.ranks, (0..simulated.ranks).collect::<Vec<_>>());
    let alignment: Alignment =
        server.get(&format!("{}&planner=1f1b", api::path::trace_alignment(&last, 0, 0))).await.json();
    assert!(
        alignment.aligned.pairs.iter().all(|pair| pair.difference_ns == 0 && pair.delay_ns == 0),
        "{:?}",
        alignment.notes
    );
    assert_eq!(alignment.aligned.only_observed, 0);
    let breakdown: TimeBreakdownList = server.get(&api::path::trace_time_breakdown(&last)).await.json();
    assert_eq!(
        breakdown.ranks.iter().map(|entry| entry.rank).collect::<Vec<_>>(),
        (0..simulated.ranks).map(Some).collect::<Vec<_>>()
    );
}

/// Kernels of a stored trace are compared with the operators of the plan of its scenario.
#[tokio::test]
async fn kernels_are_compared_with_predicted_operators() {
    let server = TestServer::open().await;
    let (scenario, _) = planned(&server).await;
    let kernel = |name: &str, ts: u32, dur: u32| json!({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur});
    let body = json!({"traceEvents": [
        kernel("nvjet_tst_128x256", 0, 700), kernel("flash_fwd_kernel", 700, 100), kernel("my_kernel", 900, 100)
    ]});
    let id = uploaded(&server, &format!("?scenario={scenario}&planner=1f1b"), body.to_string()).await;
    let found: TracePrediction = server.get(&api::path::trace_prediction(&id)).await.json();
    assert_eq!((found.rank, found.pipeline_rank, found.steps), (0, 0, 1));
    let row = |kind: KernelType| found.kernels.iter().find(|row| row.kind == kind).unwrap();
    let products = row(KernelType::Matmul);
    assert!((products.measured_s - 7e-4).abs() < 1e-9 && products.predicted_s.is_some_and(|seconds| seconds > 0.0));
    assert_eq!((row(KernelType::Unassigned).predicted_s, found.unassigned[0].name.as_str()), (None, "my_kernel"));
    let idle = found.parts.iter().find(|part| part.part == StepPart::Idle).unwrap();
    assert!((idle.measured_s - 1e-4).abs() < 1e-9, "{idle:?}");
    // The rank of the only device can be stated.
    let path = format!("{}?rank=1", api::path::trace_prediction(&id));
    assert_eq!(server.get(&path).await.json::<TracePrediction>().rank, 1);

    let alone = uploaded(&server, "", json!([kernel("gemm", 0, 10)]).to_string()).await;
    assert_eq!(server.get(&api::path::trace_prediction(&alone)).await.problem().status, 409, "no scenario");
    let host = json!([super::event("op", &json!(1), &json!(1), 0.0, 5.0)]).to_string();
    let host = uploaded(&server, &format!("?scenario={scenario}"), host).await;
    assert_eq!(server.get(&api::path::trace_prediction(&host)).await.problem().status, 422, "no kernels");
    assert_eq!(server.get(&api::path::trace_prediction(&"a".repeat(52))).await.status, 404);
}
