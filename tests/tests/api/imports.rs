//! Whole files: read in turn, and taken only where there is room for them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{StreamExt, stream};
use harness::{House, Settings};
use server::arrival::BodyLimits;
use server::imports::ImportLimits;
use server::traces::TraceLimits;

const LOG: &str = include_str!("runs/train.log");
/// A file of each kind that is read in turn.
const FILES: [(&str, &str); 2] = [(api::path::RUN_IMPORT, LOG), (api::path::DATASETS, "5\n7\n9\n")];
/// Times of layers, which are fitted in turn with whoever else computes.
const PROFILE: (&str, &str) = (
    "/api/v1/profiles?name=computation_profiling_bf16.json",
    r#"{"layernum[2]_bsz1_seq2048": 15.0, "layernum[4]_bsz1_seq2048": 23.0,
        "layernum[2]_bsz2_seq2048": 24.0, "layernum[4]_bsz2_seq2048": 42.0}"#,
);

async fn impatient() -> House {
    let import_limits = ImportLimits { patience: Duration::from_millis(50), ..ImportLimits::default() };
    House::with(Settings { import_limits, ..Settings::default() }).await
}

/// Several of the largest at once would take all memory.
#[tokio::test]
async fn files_are_read_in_turn() {
    let house = impatient().await;
    for (path, file) in FILES {
        let turn = house.app.imports.turn().await.unwrap();
        let refused = house.post(path, file).await;
        assert_eq!((refused.problem().status, refused.header("retry-after")), (503, "5"), "{path}");
        assert_eq!(refused.problem().kind, "/problems/imports-full", "{path}");
        drop(turn);
        assert_eq!(house.post(path, file).await.status, 201, "{path}");
    }
}

/// A body that says when it is read.
fn body(file: &'static str, taken: &Arc<AtomicBool>) -> Body {
    let taken = Arc::clone(taken);
    Body::from_stream(stream::once(async move {
        taken.store(true, Ordering::Relaxed);
        Ok::<_, io::Error>(Bytes::from_static(file.as_bytes()))
    }))
}

/// A body that is not over.
fn unfinished(file: Vec<u8>) -> Body {
    Body::from_stream(stream::once(async { Ok::<_, io::Error>(Bytes::from(file)) }).chain(stream::pending()))
}

/// Finding 6 of the attack: files that drip hold the room of all others. They have what came of them, and documents have a
/// quarter of the room beside them.
#[tokio::test]
async fn files_have_the_room_of_the_bytes_that_came() {
    let patience = Duration::from_millis(50);
    let body_limits = BodyLimits { held_bytes: 64 << 10, patience, ..BodyLimits::default() };
    let house = House::with(Settings { body_limits, ..Settings::default() }).await;
    // One byte of a file that may have 256 MiB.
    let mut first = Box::pin(house.post(api::path::RUN_IMPORT, unfinished(vec![b'5'])));
    assert!(futures::poll!(first.as_mut()).is_pending());
    assert_eq!(house.app.bodies.held_bytes(), 1 << 10);
    let rest = unfinished(b"5\n".repeat(47 << 9));
    let mut second = Box::pin(house.post(api::path::DATASETS, rest));
    assert!(futures::poll!(second.as_mut()).is_pending());
    assert_eq!(house.app.bodies.held_bytes(), 48 << 10);
    for (path, file) in FILES.into_iter().chain([PROFILE]) {
        let refused = house.post(path, file).await;
        assert_eq!((refused.problem().status, refused.header("retry-after")), (503, "5"), "{path}");
        assert_eq!(refused.problem().kind, "/problems/bodies-full", "{path}");
    }
    house.store(&harness::house::scenario()).await;
    drop((first, second));
    assert_eq!(house.app.bodies.held_bytes(), 0);
    for (path, file) in FILES.into_iter().chain([PROFILE]) {
        assert_eq!(house.post(path, file).await.status, 201, "{path}");
    }
    assert_eq!(house.app.bodies.held_bytes(), 0);
}

/// Finding 4 of the attack: a body that came quickly is silent for hours.
#[tokio::test]
async fn a_body_that_falls_silent_is_ended() {
    let body_limits = BodyLimits { silence: Duration::from_millis(20), ..BodyLimits::default() };
    let house = House::with(Settings { body_limits, ..Settings::default() }).await;
    for (method, path) in [
        ("PUT", api::path::SCENARIOS),
        ("POST", api::path::DATASETS),
        ("POST", api::path::RUN_IMPORT),
        ("POST", api::path::TRACES),
    ] {
        let reply = house.request(method, path, unfinished(vec![b' '; 100_000])).await;
        assert_eq!((reply.problem().status, &*reply.problem().kind), (408, "/problems/body-timeout"), "{path}");
        assert_eq!((reply.header("connection"), house.app.bodies.held_bytes()), ("close", 0), "{path}");
    }
}

/// Traces come into files: twenty of the largest at once would fill the disk that the database is on.
#[tokio::test]
async fn two_traces_are_on_their_way_at_once() {
    let trace_limits = |limits: &mut TraceLimits| limits.patience = Duration::from_millis(50);
    let house = House::with(Settings { trace_limits, ..Settings::default() }).await;
    let file = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    let first = house.app.traces.place().await.unwrap();
    let second = house.app.traces.place().await.unwrap();
    let taken = Arc::new(AtomicBool::new(false));
    let refused = house.post(api::path::TRACES, body(file, &taken)).await;
    assert_eq!((refused.problem().status, refused.header("retry-after")), (503, "5"));
    assert_eq!(refused.problem().kind, "/problems/imports-full");
    assert!(!taken.load(Ordering::Relaxed));
    drop(first);
    assert_eq!(house.post(api::path::TRACES, body(file, &taken)).await.status, 201);
    drop(second);
}
