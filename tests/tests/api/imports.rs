//! Whole files: read in turn, and taken only where there is room for them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use harness::{House, Settings};
use server::imports::ImportLimits;

const LOG: &str = include_str!("runs/train.log");
/// A file of each kind.
const FILES: [(&str, &str); 2] = [(api::path::RUN_IMPORT, LOG), (api::path::DATASETS, "5\n7\n9\n")];

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

#[tokio::test]
async fn a_file_is_not_taken_before_there_is_room_for_it() {
    let house = impatient().await;
    for (path, file) in FILES {
        let room = house.app.imports.room(None, 1024).await.unwrap();
        let taken = Arc::new(AtomicBool::new(false));
        let body = |taken: Arc<AtomicBool>| {
            Body::from_stream(stream::once(async move {
                taken.store(true, Ordering::Relaxed);
                Ok::<_, io::Error>(Bytes::from_static(file.as_bytes()))
            }))
        };
        assert_eq!(house.post(path, body(Arc::clone(&taken))).await.problem().status, 503, "{path}");
        assert!(!taken.load(Ordering::Relaxed), "{path}");
        drop(room);
        assert_eq!(house.post(path, body(Arc::clone(&taken))).await.status, 201, "{path}");
    }
}
