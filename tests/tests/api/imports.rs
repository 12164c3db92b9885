//! File imports: sequential reading and memory limits.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{StreamExt, stream};
use harness::{Settings, TestServer};
use server::arrival::BodyLimits;
use server::imports::ImportLimits;
use server::shares::Sharer;
use server::traces::TraceLimits;

const LOG: &str = include_str!("runs/train.log");
/// A file for each importer.
const FILES: [(&str, &str); 2] = [(api::path::RUN_IMPORT, LOG), (api::path::DATASETS, "5\n7\n9\n")];
/// Layer times, which are fitted in turn with other computations.
const PROFILE: (&str, &str) = (
    "/api/v1/profiles?name=computation_profiling_bf16.json",
    r#"{"layernum[2]_bsz1_seq2048": 15.0, "layernum[4]_bsz1_seq2048": 23.0,
        "layernum[2]_bsz2_seq2048": 24.0, "layernum[4]_bsz2_seq2048": 42.0}"#,
);

async fn impatient() -> TestServer {
    let import_limits = ImportLimits { patience: Duration::from_millis(50), ..ImportLimits::default() };
    TestServer::with(Settings { import_limits, ..Settings::default() }).await
}

/// Several maximum-size files at once would exhaust the memory.
#[tokio::test]
async fn files_are_read_in_turn() {
    let server = impatient().await;
    for (path, file) in FILES {
        let turn = server.app.imports.turn().await.unwrap();
        let rejection = server.post(path, file).await;
        assert_eq!((rejection.problem().status, rejection.header("retry-after")), (503, "5"), "{path}");
        assert_eq!(rejection.problem().kind, "/problems/imports-full", "{path}");
        drop(turn);
        assert_eq!(server.post(path, file).await.status, 201, "{path}");
    }
}

/// Returns a body that does not end.
fn unfinished(file: Vec<u8>) -> Body {
    Body::from_stream(stream::once(async { Ok::<_, io::Error>(Bytes::from(file)) }).chain(stream::pending()))
}

/// Finding 6 in the attack report: slow uploads reserve memory for other uploads. An upload now
/// reserves only received bytes, a sender at most half of the memory, and small documents have
/// separate memory.
#[tokio::test]
async fn uploads_reserve_received_bytes_only() {
    let patience = Duration::from_millis(50);
    let body_limits = BodyLimits { max_bytes: 64 << 10, patience, small_bytes: 1, ..BodyLimits::default() };
    let server = TestServer::with(Settings { body_limits, ..Settings::default() }).await;
    // A byte of a file that can have 256 MiB.
    let mut first = Box::pin(server.post(api::path::RUN_IMPORT, unfinished(vec![b'5'])));
    assert!(futures::poll!(first.as_mut()).is_pending());
    assert_eq!(server.app.bodies.reserved_bytes(), 1 << 10);
    let rest = unfinished(b"5\n".repeat(32 << 9));
    let mut second = Box::pin(server.post(api::path::DATASETS, rest));
    assert!(futures::poll!(second.as_mut()).is_pending());
    assert_eq!(server.app.bodies.reserved_bytes(), 33 << 10);
    for (path, file) in FILES.into_iter().chain([PROFILE]) {
        let rejection = server.post(path, file).await;
        assert_eq!((rejection.problem().status, rejection.header("retry-after")), (503, "5"), "{path}");
        assert_eq!(rejection.problem().kind, "/problems/bodies-full", "{path}");
    }
    drop((first, second));
    assert_eq!(server.app.bodies.reserved_bytes(), 0);
    for (path, file) in FILES.into_iter().chain([PROFILE]) {
        assert_eq!(server.post(path, file).await.status, 201, "{path}");
    }
    assert_eq!(server.app.bodies.reserved_bytes(), 0);
}

/// Finding 4 in the attack report: a body stops sending for hours.
#[tokio::test]
async fn a_body_that_falls_silent_is_ended() {
    let body_limits = BodyLimits { silence: Duration::from_millis(20), ..BodyLimits::default() };
    let server = TestServer::with(Settings { body_limits, ..Settings::default() }).await;
    for (method, path) in [
        ("PUT", api::path::SCENARIOS),
        ("POST", api::path::DATASETS),
        ("POST", api::path::RUN_IMPORT),
        ("POST", api::path::TRACES),
    ] {
        let reply = server.request(method, path, unfinished(vec![b' '; 100_000])).await;
        assert_eq!((reply.problem().status, &*reply.problem().kind), (408, "/problems/body-timeout"), "{path}");
        assert_eq!((reply.header("connection"), server.app.bodies.reserved_bytes()), ("close", 0), "{path}");
    }
}

/// Traces are written to files. Twenty maximum-size traces would fill the disk. A sender has two of
/// three slots.
#[tokio::test]
async fn few_traces_are_on_their_way_at_once() {
    let trace_limits = |limits: &mut TraceLimits| limits.patience = Duration::from_millis(50);
    let server = TestServer::with(Settings { trace_limits, ..Settings::default() }).await;
    let sharer = |last: u8| Sharer::new([10, 0, 0, last].into(), None);
    let first = server.app.traces.acquire_slot(&sharer(1)).await.unwrap();
    let second = server.app.traces.acquire_slot(&sharer(1)).await.unwrap();
    assert!(server.app.traces.acquire_slot(&sharer(1)).await.is_err());
    assert_eq!(server.post(api::path::TRACES, TRACE).await.status, 201, "another sender has a place");
    let third = server.app.traces.acquire_slot(&sharer(2)).await.unwrap();
    let rejection = server.post(api::path::TRACES, OTHER_TRACE).await;
    assert_eq!((rejection.problem().status, rejection.header("retry-after")), (503, "5"));
    assert_eq!(rejection.problem().kind, "/problems/imports-full");
    drop(first);
    assert_eq!(server.post(api::path::TRACES, OTHER_TRACE).await.status, 201);
    drop((second, third));
}

const TRACE: &str = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#;
const OTHER_TRACE: &str = r#"[{"ph":"X","name":"b","ts":1,"dur":2,"pid":1,"tid":1}]"#;

/// Finding N4 in the attack report: two slow connections hold all slots, so that other traces wait
/// for half a minute.
#[tokio::test]
async fn slow_trace_upload_takes_no_slot() {
    let trace_limits = |limits: &mut TraceLimits| {
        limits.patience = Duration::from_millis(50);
        limits.on_their_way = 1;
    };
    let server = TestServer::with(Settings { trace_limits, ..Settings::default() }).await;
    let mut drips: Vec<_> = [1, 100, 1 << 20].map(|bytes| unfinished(vec![b' '; bytes])).into();
    let mut drips: Vec<_> = drips.drain(..).map(|body| Box::pin(server.post(api::path::TRACES, body))).collect();
    for drip in &mut drips {
        // Long enough for the received bytes to be written.
        assert!(tokio::time::timeout(Duration::from_millis(100), drip.as_mut()).await.is_err());
    }
    assert_eq!(server.post(api::path::TRACES, TRACE).await.status, 201);
    // After its first MiB a trace has a slot.
    let mut large = Box::pin(server.post(api::path::TRACES, unfinished(vec![b' '; (1 << 20) + 1])));
    assert!(tokio::time::timeout(Duration::from_millis(500), large.as_mut()).await.is_err());
    assert_eq!(server.post(api::path::TRACES, OTHER_TRACE).await.status, 503);
}
