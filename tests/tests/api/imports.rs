//! Whole files: read in turn, and taken only where there is room for them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use harness::{House, Settings};
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

#[tokio::test]
async fn a_file_is_not_taken_before_there_is_room_for_it() {
    let house = impatient().await;
    for (path, file) in FILES.into_iter().chain([PROFILE]) {
        let room = house.app.imports.room(None, 1024).await.unwrap();
        let taken = Arc::new(AtomicBool::new(false));
        assert_eq!(house.post(path, body(file, &taken)).await.problem().status, 503, "{path}");
        assert!(!taken.load(Ordering::Relaxed), "{path}");
        drop(room);
        assert_eq!(house.post(path, body(file, &taken)).await.status, 201, "{path}");
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
