//! Traces: stored whole, seen at every zoom, held against plans.

mod bad;
mod compared;
mod planned;
mod published;

use std::time::Duration;

use api::trace::{TraceDetail, TraceList, TraceMatches, TraceSummary, TraceView, UploadedTrace};
use harness::TestServer;
use planner::scenario::PlannerKind;
use serde_json::{Value, json};

/// A complete event; times in µs.
fn event(name: &str, pid: &Value, tid: &Value, ts: f64, dur: f64) -> Value {
    json!({"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur})
}

/// Uploads a trace and gives its identifier.
async fn uploaded(server: &TestServer, query: &str, body: impl Into<axum::body::Body>) -> String {
    let reply = server.post(&format!("{}{query}", api::path::TRACES), body).await;
    assert!(matches!(reply.status, 200 | 201), "{reply:?}");
    reply.json::<UploadedTrace>().trace.id
}

async fn list(server: &TestServer, query: &str) -> TraceList {
    server.get(&format!("{}{query}", api::path::TRACES)).await.json()
}

async fn view(server: &TestServer, id: &str, query: &str) -> TraceView {
    let reply = server.get(&format!("{}/view?{query}", api::path::trace(id))).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, api::trace::VIEW_MEDIA_TYPE), "{reply:?}");
    api::trace::decode(&reply.body).expect("a view")
}

/// Two processes, nested and overlapping slices, 20,000 in all, over 200 ms: several levels.
fn many() -> (String, Vec<Value>) {
    let mut events = Vec::new();
    for index in 0..5000_u32 {
        let at = f64::from(index) * 40.0;
        let pid = json!(index % 2);
        events.push(event("outer", &pid, &json!("main"), at, 30.0));
        events.push(event("inner", &pid, &json!("main"), at + 1.0, 2.5));
        events.push(event(if index % 7 == 0 { "gemm" } else { "add" }, &pid, &json!("main"), at + 5.0, 20.25));
        events.push(event("copy", &pid, &json!(7), at, if index % 500 == 0 { 4000.0 } else { 0.5 }));
    }
    (json!({"traceEvents": events}).to_string(), events)
}

#[tokio::test]
async fn a_trace_comes_is_found_goes_and_comes_back() {
    let server = TestServer::open().await;
    let body = json!([event("gemm", &json!(0), &json!(1), 0.0, 10.0)]).to_string();
    let reply = server.post("/api/v1/traces?name=dir%2Frun.json&run=r1&rank=3", body.clone()).await;
    assert_eq!(reply.status, 201);
    let first: UploadedTrace = reply.json();
    assert_eq!(reply.header("location"), api::path::trace(&first.trace.id));
    let trace = &first.trace;
    assert_eq!((trace.name.as_str(), trace.run.as_deref(), trace.rank), ("run.json", Some("r1"), Some(3)));
    assert_eq!((trace.slices, trace.span_ns, trace.raw_bytes), (1, 10_000, body.len() as u64));
    assert!(trace.stored_bytes > 0);
    assert_eq!((first.report.events, first.report.used), (1, 1));

    // The same bytes again are the same trace, and what is said of them now holds.
    server.clock.advance(Duration::from_mins(1));
    let again = server.post("/api/v1/traces?rank=4", body.clone()).await;
    assert_eq!(again.status, 200);
    assert_eq!(again.json::<UploadedTrace>().trace.rank, Some(4));
    // Read with another unit they are another.
    assert_ne!(uploaded(&server, "?unit=ms&name=other", body.clone()).await, trace.id);

    let change = json!({"name": "step <b>7</b>", "note": "warm caches", "tags": ["h100", "Fast", "h100"]});
    let changed = server.request("PATCH", &api::path::trace(&trace.id), change.to_string()).await;
    let changed: TraceSummary = changed.json();
    assert_eq!((changed.name.as_str(), changed.note.as_deref()), ("step <b>7</b>", Some("warm caches")));
    assert_eq!(changed.tags, ["Fast", "h100"]);
    let ids = |list: TraceList| list.traces.into_iter().map(|trace| trace.id).collect::<Vec<_>>();
    for (query, found) in
        [("?search=WARM%20step", 1), ("?tag=h100", 1), ("?tag=h1", 0), ("?run=r1", 1), ("?search=zzz", 0), ("", 2)]
    {
        assert_eq!(ids(list(&server, query).await).len(), found, "{query}");
    }
    assert_eq!(list(&server, "").await.page.tags, ["Fast", "h100"]);
    let cleared =
        server.request("PATCH", &api::path::trace(&trace.id), json!({"note": "", "run": ""}).to_string()).await;
    assert_eq!((cleared.json::<TraceSummary>().note, list(&server, "?run=r1").await.traces.len()), (None, 0));

    let before = list(&server, "").await;
    assert_eq!(server.delete(&api::path::trace(&trace.id)).await.status, 204);
    let gone = server.get(&api::path::trace(&trace.id)).await;
    assert_eq!(gone.problem().status, 410);
    assert_eq!(server.delete(&api::path::trace(&trace.id)).await.status, 410);
    let after = list(&server, "").await;
    assert_eq!((after.page.stored_bytes + after.page.deleted_bytes, after.traces.len()), (before.page.stored_bytes, 1));
    assert_eq!(ids(list(&server, "?deleted=true").await), std::slice::from_ref(&trace.id));
    assert_eq!(
        server.post(&api::path::trace_restore(&trace.id), "").await.json::<TraceSummary>().tags,
        ["Fast", "h100"]
    );
    assert_eq!(view(&server, &trace.id, "").await.len(), 1);
}

/// What is said of a scenario settles the planner, too: without one it is the fastest.
#[tokio::test]
async fn a_trace_goes_back_to_the_fastest_planner() {
    let server = TestServer::open().await;
    let scenario = server.store(&harness::test_server::scenario()).await;
    let body = json!([event("gemm", &json!(0), &json!(1), 0.0, 10.0)]).to_string();
    let id = uploaded(&server, &format!("?scenario={scenario}&planner=1f1b"), body.clone()).await;
    let plan = |trace: &TraceSummary| {
        let plan = trace.plan.as_ref().expect("a scenario");
        (plan.scenario.clone(), plan.planner.map(PlannerKind::id))
    };
    let change = async |change: Value| -> TraceSummary {
        server.request("PATCH", &api::path::trace(&id), change.to_string()).await.json()
    };
    assert_eq!(plan(&change(json!({"note": "a"})).await), (scenario.clone(), Some("1f1b")));
    assert_eq!(plan(&change(json!({"scenario": scenario})).await), (scenario.clone(), None));
    assert_eq!(plan(&change(json!({"planner": "interleaved"})).await), (scenario.clone(), Some("interleaved")));
    // As does what is said with the same bytes.
    for (query, planner) in [("", Some("interleaved")), (&*format!("?scenario={scenario}"), None)] {
        let again: UploadedTrace = server.post(&format!("{}{query}", api::path::TRACES), body.clone()).await.json();
        assert_eq!(plan(&again.trace), (scenario.clone(), planner), "{query}");
    }
    assert_eq!(change(json!({"scenario": "", "planner": "1f1b"})).await.plan, None);
}

#[tokio::test]
async fn deleted_traces_end_with_their_time() {
    let server = TestServer::open().await;
    let id = uploaded(&server, "", json!([event("a", &json!(0), &json!(0), 0.0, 1.0)]).to_string()).await;
    server.delete(&api::path::trace(&id)).await;
    server.clock.advance(Duration::from_hours(30 * 24 + 1));
    server::forgetting::round(&server.app, true).await.unwrap();
    let list = list(&server, "?deleted=true").await;
    assert_eq!((list.traces.len(), list.page.deleted_bytes, list.page.retention_days), (0, 0, 30));
    assert_eq!(server.post(&api::path::trace_restore(&id), "").await.problem().status, 410);
    // The bytes can come anew.
    let again = server.post(api::path::TRACES, json!([event("a", &json!(0), &json!(0), 0.0, 1.0)]).to_string()).await;
    assert_eq!((again.status, again.json::<UploadedTrace>().trace.id), (201, id));
}

#[tokio::test]
async fn a_window_at_full_zoom_is_the_slices_themselves() {
    let server = TestServer::open().await;
    let (body, events) = many();
    let id = uploaded(&server, "", body).await;
    let detail: TraceDetail = server.get(&api::path::trace(&id)).await.json();
    assert_eq!(detail.lanes.iter().map(|lane| lane.slices).sum::<u64>(), 20_000);
    for (from_us, to_us) in [(0.0, 200.0), (39_990.0, 40_250.0), (199_900.0, 200_100.0)] {
        // 0.5 µs are two pixels, so that nothing is merged.
        let pixels = (to_us - from_us) as u32 * 4;
        let visible =
            view(&server, &id, &format!("from_ns={}&to_ns={}&pixels={pixels}", from_us * 1e3, to_us * 1e3)).await;
        assert!(visible.count.iter().all(|&count| count == 1) && visible.level == 0 && visible.merged_ns == 0);
        let mut found: Vec<(String, u64, u64)> = (0..visible.len())
            .map(|span| {
                (visible.names[visible.name[span] as usize].clone(), visible.start_ns[span], visible.extent_ns[span])
            })
            .collect();
        found.sort();
        let time = |event: &Value, key: &str| event[key].as_f64().expect("a time");
        let mut expected: Vec<(String, u64, u64)> = events
            .iter()
            .filter(|event| time(event, "ts") < to_us && time(event, "ts") + time(event, "dur") > from_us)
            .map(|event| {
                let name = event["name"].as_str().expect("a name").to_owned();
                (name, (time(event, "ts") * 1e3) as u64, (time(event, "dur") * 1e3) as u64)
            })
            .collect();
        expected.sort();
        assert!(expected.len() > 5);
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn counts_are_exact_at_every_zoom_with_few_reads() {
    let server = TestServer::open().await;
    let (body, _) = many();
    let id = uploaded(&server, "", body).await;
    let detail: TraceDetail = server.get(&api::path::trace(&id)).await.json();
    assert!(!detail.level_widths_ns.is_empty(), "{detail:?}");
    let mut levels = std::collections::BTreeSet::new();
    let active_ns: u64 = 5000 * (30_000 + 2_500 + 20_250) + 4990 * 500 + 10 * 4_000_000;
    for pixels in [1, 10, 100, 1000, 8192] {
        let full = view(&server, &id, &format!("pixels={pixels}")).await;
        assert_eq!(full.count.iter().map(|&count| u64::from(count)).sum::<u64>(), 20_000, "{pixels}");
        assert_eq!(full.busy_ns.iter().sum::<u64>(), active_ns, "{pixels}");
        // Two per pixel and row at most: five rows.
        assert!(full.len() <= pixels * 2 * 6 + 12, "{} at {pixels}", full.len());
        levels.insert(full.level);
        for lane in 0..full.lanes.len() {
            let places: Vec<_> = full.lane(lane).map(|span| (full.row[span], full.start_ns[span])).collect();
            assert!(places.is_sorted());
        }
    }
    assert!(levels.len() > 1, "{levels:?}");
    // A thousandth of the time at full zoom reads few parts of the many.
    let few = view(&server, &id, "from_ns=100000000&to_ns=100200000&pixels=1000").await;
    let all = view(&server, &id, "pixels=8192").await;
    assert!(few.chunks <= 4 && few.chunks < all.chunks, "{} of {}", few.chunks, all.chunks);
    // Some lanes of all.
    let single = view(&server, &id, "lanes=1,9-12&pixels=10").await;
    assert_eq!(single.lanes, [1]);
}

#[tokio::test]
async fn slice_details_are_complete() {
    let server = TestServer::open().await;
    let body = json!([
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 10, "dur": 5,
         "args": {"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 1024, "Group size": 8}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 7, "ts": 20, "dur": 2, "args": {"bytes": 4096}},
        {"ph": "X", "cat": "user_annotation", "name": "PP:0F3", "pid": 1, "tid": 1, "ts": 0, "dur": 30},
        {"ph": "C", "name": "memory", "pid": 0, "ts": 1, "args": {"bytes": 5}},
        {"ph": "C", "name": "memory", "pid": 0, "ts": 2, "args": {"bytes": 9}},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 5, "pid": 1, "tid": 1, "ts": 3},
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 5, "pid": 0, "tid": 7, "ts": 20, "bp": "e"}
    ]);
    let id = uploaded(&server, "", body.to_string()).await;
    let slice = |lane: u32, at: u64| {
        let path = api::path::trace_slice(&id, lane, 0, at);
        let server = &server;
        async move { server.get(&path).await }
    };
    let reduce: Value = slice(0, 12_000).await.json();
    assert_eq!(
        (&reduce["kind"], &reduce["start_ns"], &reduce["duration_ns"]),
        (&json!("communication"), &json!(10_000), &json!(5000))
    );
    assert!(reduce["message"].as_array().expect("a message").contains(&json!(["elements in", "1024"])));
    let copy: Value = slice(0, 20_000).await.json();
    assert_eq!(
        (&copy["bytes"], &copy["arrows"]),
        (&json!(4096), &json!([{"lane": 1, "row": 0, "start_ns": 0, "is_incoming": true}]))
    );
    let annotated: Value = slice(1, 5).await.json();
    assert_eq!(annotated["actions"], json!(["0F3"]));
    assert_eq!(annotated["arrows"], json!([{"lane": 0, "row": 0, "start_ns": 20_000}]));
    assert_eq!(slice(0, 19_000).await.problem().status, 404);
    let breakdown: Value = server.get(&api::path::trace_time_breakdown(&id)).await.json();
    let rank = &breakdown["ranks"][0];
    assert_eq!(
        (&rank["source"], &rank["exposed_ns"], &rank["copy_ns"], &rank["idle_ns"]),
        (&json!("kernels"), &json!(5000), &json!(2000), &json!(5000))
    );
    let counters: Value = server.get(&api::path::trace_counters(&id, 100)).await.json();
    assert_eq!(counters["series"][0]["value"], json!([5.0, 9.0]));
    assert_eq!(counters["series"][0]["time_ns"], json!([1000, 2000]));
}

#[tokio::test]
async fn names_are_found_and_walked_through() {
    let server = TestServer::open().await;
    let (body, _) = many();
    let id = uploaded(&server, "", body).await;
    let found: TraceMatches = server.get(&api::path::trace_search(&id, "GEM", 0)).await.json();
    // Every seventh of 5,000, the first among them.
    assert_eq!((found.slices, found.all_names, found.names[0].total_ns), (715, 1, 715 * 20_250));
    let mut at = 0;
    let mut walked = 0;
    while let Some(next) = server.get(&api::path::trace_search(&id, "gemm", at)).await.json::<TraceMatches>().next {
        assert_eq!((next.name.as_str(), next.start_ns), ("gemm", walked * 7 * 40_000 + 5_000));
        (at, walked) = (next.start_ns + 1, walked + 1);
        if walked == 20 {
            break;
        }
    }
    assert_eq!(walked, 20);
    let none: TraceMatches = server.get(&api::path::trace_search(&id, "nothing", 0)).await.json();
    assert_eq!((none.slices, none.next), (0, None));
    let last: TraceMatches = server.get(&api::path::trace_search(&id, "gemm", 10_000_000_000)).await.json();
    assert_eq!(last.next, None);
}
