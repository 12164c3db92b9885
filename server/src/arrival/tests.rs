use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use futures::stream::{self, Stream, StreamExt};
use serde_json::Value;
use tower::ServiceExt;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_mins(1);
/// Equals the sender's share in the test budget.
const KIB_64: usize = 64 << 10;

fn sender() -> Sharer {
    Sharer::new([10, 0, 0, 1].into(), None)
}

/// Limits that accept any rate.
fn patient() -> BodyLimits {
    let pace = Pace { bytes_per_second: 1024, grace: LONG };
    BodyLimits {
        max_bytes: 2 * KIB_64 as u64,
        patience: MILLISECOND,
        small_bytes: 0,
        silence: LONG,
        credit: LONG,
        documents: pace,
        imports: pace,
    }
}

fn drips(bytes: usize, pause: Duration) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static {
    Box::pin(stream::iter(0..bytes).then(move |_| async move {
        tokio::time::sleep(pause).await;
        Ok(Bytes::from_static(b"x"))
    }))
}

fn piece(bytes: usize) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static {
    Box::pin(stream::once(async move { Ok(Bytes::from(vec![0; bytes])) }))
}

/// Returns the pieces received and the refusal after them.
async fn arrived(
    limits: BodyLimits,
    body: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
) -> (usize, Option<LimitError>) {
    let refusal = Arc::new(OnceLock::new());
    let reservation = Reservation::new(Arc::new(Bodies::new(limits)), BodyKind::Document, &sender());
    let arriving = Arriving::new(body, BodyKind::Document, reservation, Arc::clone(&refusal));
    let pieces: Vec<_> = arriving.into_stream().collect().await;
    (pieces.iter().filter(|piece| piece.is_ok()).count(), refusal.get().copied())
}

#[tokio::test]
async fn slow_body_is_ended_and_fast_body_is_not() {
    assert_eq!(arrived(patient(), drips(3, Duration::ZERO)).await, (3, None));
    // A byte per 50 ms is 20 bytes per second, so without grace the first byte is already late.
    let short = Pace { bytes_per_second: 1024, grace: MILLISECOND };
    let limits = BodyLimits { documents: short, ..patient() };
    let slow = Some(LimitError::BodySlow(1024));
    assert_eq!(arrived(limits, drips(100, Duration::from_millis(50))).await, (0, slow));
    // A piece with 1 KiB adds a credit of one second, enough for the following small pieces.
    let earned = piece(1024).chain(drips(2, Duration::from_millis(50)));
    assert_eq!(arrived(limits, earned).await, (3, None));
}

#[tokio::test]
async fn fast_start_does_not_allow_long_silence() {
    // 32 KiB add 32 s, but the credit limit is 1 ms.
    let limits = BodyLimits { credit: MILLISECOND, ..patient() };
    let silent = || piece(32 << 10).chain(stream::pending());
    assert_eq!(arrived(limits, silent()).await, (1, Some(LimitError::BodySlow(1024))));
    // The limit on silence applies regardless of the credit.
    let limits = BodyLimits { silence: MILLISECOND, ..patient() };
    assert_eq!(arrived(limits, silent()).await, (1, Some(LimitError::BodySilent(MILLISECOND))));
}

#[tokio::test]
async fn slow_reader_does_not_end_a_body() {
    let limits = BodyLimits { silence: Duration::from_millis(100), ..patient() };
    let reservation = Reservation::new(Arc::new(Bodies::new(limits)), BodyKind::Document, &sender());
    let arriving = Arriving::new(drips(3, MILLISECOND), BodyKind::Document, reservation, Arc::default());
    let read: Vec<_> = arriving
        .into_stream()
        .then(|bytes| async move {
            tokio::time::sleep(Duration::from_millis(150)).await;
            bytes
        })
        .collect()
        .await;
    assert!(read.len() == 3 && read.iter().all(Result::is_ok), "{read:?}");
}

#[test]
fn limits_depend_on_the_body_kind() {
    for (method, path, kind) in [
        (Method::PATCH, api::path::run_log("a"), BodyKind::Log),
        (Method::PUT, api::path::run_log("a"), BodyKind::Log),
        (Method::POST, api::path::TRACES.to_owned(), BodyKind::Trace),
        (Method::POST, api::path::RUN_IMPORT.to_owned(), BodyKind::Import),
        (Method::POST, api::path::DATASETS.to_owned(), BodyKind::Import),
        (Method::POST, api::path::PROFILES.to_owned(), BodyKind::Import),
        (Method::POST, api::path::RUNS.to_owned(), BodyKind::Document),
        (Method::PUT, api::path::SCENARIOS.to_owned(), BodyKind::Document),
        (Method::PATCH, api::path::dataset("a"), BodyKind::Document),
        (Method::POST, "/log".to_owned(), BodyKind::Document),
    ] {
        assert_eq!(BodyKind::from_request(&method, &path), kind, "{method} {path}");
    }
    let limits = BodyLimits::default();
    assert_eq!(limits.pace(BodyKind::Trace).bytes_per_second, 65_536);
    assert_eq!(limits.pace(BodyKind::Document).bytes_per_second, 16_384);
}

/// Regression test for attack findings N4 and N5: a body sent in single bytes, or a large body
/// below the minimum rate, is aborted within ten seconds. The test uses 100 ms.
#[tokio::test]
async fn a_body_that_drips_is_ended_within_ten_seconds() {
    let limits = BodyLimits::default();
    for time in [limits.silence, limits.credit, limits.documents.grace, limits.imports.grace] {
        assert_eq!(time, Duration::from_secs(10));
    }
    let short = Duration::from_millis(100);
    let pace = |pace: Pace| Pace { grace: short, ..pace };
    let limits = BodyLimits {
        silence: short,
        credit: short,
        documents: pace(limits.documents),
        imports: pace(limits.imports),
        ..limits
    };
    for (kind, first, slowest) in [
        (BodyKind::Document, 1, 16_384),
        (BodyKind::Trace, 1, 65_536),
        // The credit limit also applies to a fast start.
        (BodyKind::Import, 2 << 20, 65_536),
    ] {
        let rejection = Arc::new(OnceLock::new());
        let reservation = Reservation::new(Arc::new(Bodies::new(limits)), kind, &sender());
        let body = piece(first).chain(drips(1000, Duration::from_millis(15)));
        let came: Vec<_> = Arriving::new(body, kind, reservation, Arc::clone(&rejection)).into_stream().collect().await;
        // The first piece, at most six pieces at 15 ms intervals, and the refusal.
        assert!(came.len() <= 8, "{kind:?}: {}", came.len());
        assert_eq!(rejection.get().copied(), Some(LimitError::BodySlow(slowest)), "{kind:?}");
    }
}

/// A router that returns the number of received bytes, or 400 like the handlers.
fn counting(bodies: &Arc<Bodies>) -> Router {
    let count = async |body: Result<Bytes, axum::extract::rejection::BytesRejection>| match body {
        Ok(body) => body.len().to_string().into_response(),
        Err(error) => ApiError::body(&error, 1).into_response(),
    };
    Router::new()
        .route("/count", post(count))
        .layer(DefaultBodyLimit::max(1 << 20))
        .layer(from_fn_with_state(Arc::clone(bodies), in_time))
}

fn posted(body: Body) -> Request {
    Request::post("/count").body(body).unwrap()
}

/// Returns status and problem type.
async fn problem(response: Response) -> (u16, String) {
    let (status, closes) = (response.status().as_u16(), response.headers().get(CONNECTION).cloned());
    assert_eq!(closes.unwrap(), "close");
    let body: Value = serde_json::from_slice(&to_bytes(response.into_body(), KIB_64).await.unwrap()).unwrap();
    (status, body["type"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn rejected_body_returns_its_problem() {
    let silent = BodyLimits { silence: MILLISECOND, ..patient() };
    for (limits, bytes, status, kind) in
        [(silent, 1, 408, "/problems/body-timeout"), (patient(), KIB_64 + 1, 413, "/problems/too-large")]
    {
        let bodies = Arc::new(Bodies::new(limits));
        let body = Body::from_stream(piece(bytes).chain(stream::pending()));
        let response = counting(&bodies).oneshot(posted(body)).await.unwrap();
        assert_eq!(problem(response).await, (status, kind.to_owned()));
        assert_eq!(bodies.reserved_bytes(), 0);
    }
}

/// Regression test for attack finding 4: incomplete bodies occupy all memory for hours.
#[tokio::test]
async fn bodies_that_are_silent_at_their_end_hold_no_memory_for_long() {
    let limits = BodyLimits { silence: Duration::from_millis(300), patience: LONG, ..patient() };
    let bodies = Arc::new(Bodies::new(limits));
    // Four bodies of 16 KiB exhaust the budget. The rest are delayed.
    let attack = (0..12).map(|_| {
        let body = Body::from_stream(piece(16 << 10).chain(stream::pending()));
        tokio::spawn(counting(&bodies).oneshot(posted(body)))
    });
    let attack: Vec<_> = attack.collect();
    let honest = counting(&bodies).oneshot(posted(Body::from(vec![0; 1000]))).await.unwrap();
    assert_eq!(honest.status().as_u16(), 200);
    for request in attack {
        let response = request.await.unwrap().unwrap();
        assert_eq!(problem(response).await, (408, "/problems/body-timeout".to_owned()));
    }
    assert_eq!(bodies.reserved_bytes(), 0);
}

#[tokio::test]
async fn full_budget_rejects_a_body_until_memory_is_released() {
    let bodies = Arc::new(Bodies::new(patient()));
    let same = Sharer::from_extensions(&axum::http::Extensions::new());
    let existing = Reservation::new(Arc::clone(&bodies), BodyKind::Document, &same);
    existing.take(KIB_64).await.unwrap();
    let response = counting(&bodies).oneshot(posted(Body::from("x"))).await.unwrap();
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(problem(response).await, (503, "/problems/bodies-full".to_owned()));
    drop(existing);
    let response = counting(&bodies).oneshot(posted(Body::from(vec![0; KIB_64]))).await.unwrap();
    assert_eq!(to_bytes(response.into_body(), 100).await.unwrap(), "65536");
    assert_eq!(bodies.reserved_bytes(), 0);
}
