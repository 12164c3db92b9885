//! What is too much, too long, or too slow.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream::FuturesUnordered;
use futures::{StreamExt, stream};
use harness::{Settings, TestServer};
use server::live::LiveLimits;

use super::{LOG, Trainer, upload_log};

async fn limited(live_limits: LiveLimits) -> TestServer {
    TestServer::with(Settings { live_limits, ..Settings::default() }).await
}

fn streamed(bytes: &'static [u8]) -> Body {
    Body::from_stream(stream::iter(bytes.chunks(100).map(|piece| Ok::<_, io::Error>(Bytes::from_static(piece)))))
}

#[tokio::test]
async fn declared_size_and_streams_are_limited() {
    let server = limited(LiveLimits { request_bytes: 1000, run_bytes: 2000, ..LiveLimits::default() }).await;
    let trainer = Trainer::starts(&server).await;
    let reply = trainer.sends_to("", &LOG[..1001]).await;
    assert_eq!((reply.problem().status, reply.problem().kind.as_str()), (413, "/problems/too-large"));
    assert_eq!(trainer.sends_to("", &LOG[..1000]).await.status, 204);
    assert_eq!(trainer.sends_to("", streamed(&LOG.as_bytes()[..1900])).await.status, 204);
    let full = trainer.sends_to("", streamed(LOG.as_bytes())).await;
    assert_eq!((full.problem().status, full.problem().kind.as_str()), (413, "/problems/log-full"));
    // What is there may be sent again, and the run is whole.
    assert_eq!(trainer.sends_to("", streamed(&LOG.as_bytes()[..1900])).await.status, 204);
    let stored = server.get(&api::path::run_log(&trainer.run)).await;
    assert!(LOG.as_bytes().starts_with(&stored.body) && stored.body.len() >= 1900);
}

#[tokio::test]
async fn a_line_without_an_end_is_counted_and_costs_no_memory() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let step =
        |step: u32| format!(" iteration {step}/ 10 | elapsed time per iteration (ms): 1000.0 | lm loss: 1.0E+00 |\n");
    let log = format!("{}{}\n{}", step(1), "x".repeat(300 << 10), step(2));
    trainer.sends(0, &log).await;
    trainer.finishes(0).await;
    let detail = trainer.detail().await;
    assert_eq!((detail.summary.points, detail.report.skipped, detail.summary.bytes), (2, 1, log.len() as u64));
    // The long line is the second and begins behind the first.
    let first = format!("line 2, byte {}: the line is longer than is read", step(1).len());
    assert_eq!(detail.report.first_problem, Some(first));
}

#[tokio::test]
async fn idle_request_ends_and_received_bytes_remain() {
    let server = limited(LiveLimits { idle: Duration::from_millis(50), ..LiveLimits::default() }).await;
    let trainer = Trainer::starts(&server).await;
    let silent =
        stream::iter([Ok::<_, io::Error>(Bytes::from_static(&LOG.as_bytes()[..1234]))]).chain(stream::pending());
    let reply = trainer.sends_to("", Body::from_stream(silent)).await;
    assert_eq!((reply.status, reply.header("upload-offset")), (204, "1234"));
}

/// How long a log may be silent says nothing of other bodies.
#[tokio::test]
async fn other_bodies_have_a_minute_however_long_logs_may_be_silent() {
    let server = limited(LiveLimits { idle: Duration::from_millis(1), ..LiveLimits::default() }).await;
    let late = stream::iter(["5\n", "7\n"]).then(|line| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok::<_, io::Error>(Bytes::from_static(line.as_bytes()))
    });
    assert_eq!(server.post(api::path::DATASETS, Body::from_stream(late)).await.status, 201);
}

#[tokio::test]
async fn shutdown_ends_uploads_and_received_bytes_remain() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let mut events = server.listen(&api::path::run_events(&trainer.run), None).await;
    let open = stream::iter([Ok::<_, io::Error>(Bytes::from_static(&LOG.as_bytes()[..1600]))]).chain(stream::pending());
    let stopping = async {
        events.next_named("point").await;
        server.app.live.stop();
    };
    let (reply, ()) = tokio::join!(trainer.sends_to("", Body::from_stream(open)), stopping);
    assert_eq!((reply.problem().status, reply.header("retry-after")), (503, "5"));
    assert_eq!(trainer.detail().await.summary.bytes, 1600);
}

#[tokio::test]
async fn there_are_not_more_uploads_than_places() {
    let server = limited(LiveLimits { uploads: 1, ..LiveLimits::default() }).await;
    let trainer = Trainer::starts(&server).await;
    let mut events = server.listen(&api::path::run_events(&trainer.run), None).await;
    let (more, open) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let body =
        stream::unfold(open, |mut open| async { open.recv().await.map(|piece| (Ok::<_, io::Error>(piece), open)) });
    let others = async {
        more.send(Bytes::from_static(&LOG.as_bytes()[..1600])).unwrap();
        events.next_named("point").await;
        let rejection = trainer.sends_to("?offset=1600", "x").await;
        assert_eq!((rejection.problem().status, rejection.header("retry-after")), (429, "5"));
        drop(more);
    };
    let (reply, ()) = tokio::join!(trainer.sends_to("", Body::from_stream(body)), others);
    assert_eq!(reply.status, 204);
    assert_eq!(trainer.sends_to("?offset=1600", &LOG[1600..]).await.status, 204);
}

/// Finding 6 of the attack: uploads of one run, with its own token, take the places of all trainers.
#[tokio::test]
async fn single_run_leaves_uploads_to_others() {
    let server = limited(LiveLimits { uploads: 3, ..LiveLimits::default() }).await;
    let (greedy, other) = (Trainer::starts(&server).await, Trainer::starts(&server).await);
    let open = || {
        let piece = Ok::<_, io::Error>(Bytes::from_static(&LOG.as_bytes()[..1600]));
        Body::from_stream(stream::iter([piece]).chain(stream::pending()))
    };
    let mut attack: FuturesUnordered<_> = (0..5).map(|_| greedy.sends_to("", open())).collect();
    // The first three make way for later ones, and say how far they came.
    let replaced: Vec<_> = attack.by_ref().take(3).collect().await;
    for reply in &replaced {
        assert_eq!((reply.problem().status, &*reply.problem().kind), (409, "/problems/upload-replaced"));
        assert!(["0", "1600"].contains(&reply.header("upload-offset")), "{reply:?}");
    }
    assert_eq!(server.app.live.open().1, 2);
    assert_eq!(other.sends_to("", LOG).await.status, 204);
}

#[tokio::test]
async fn invalid_positions_are_rejected() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    for query in ["?offset=-1", "?offset=x", "?offset=18446744073709551616", "?file=-1", "?offset=0&offset=1"] {
        assert_eq!(trainer.sends_to(query, "x").await.problem().status, 400, "{query}");
    }
    // No byte at a wrong place is a gap too, so that a client learns where it stands.
    assert_eq!(trainer.sends_to("?offset=5", "").await.problem().kind, "/problems/gap");
    assert_eq!(trainer.sends_to("?offset=0", "").await.status, 204);
    assert_eq!(trainer.sends_to("?offset=18446744073709551615", "x").await.problem().kind, "/problems/gap");
}

/// Pieces smaller than lines, and pieces that hold many.
#[tokio::test]
async fn chunk_size_does_not_change_the_result() {
    let (points, _) = upload_log(LOG).await;
    for piece_bytes in [1, 50, 1 << 20] {
        let server = limited(LiveLimits { piece_bytes, ..LiveLimits::default() }).await;
        let trainer = Trainer::starts(&server).await;
        assert_eq!(trainer.sends_to("", streamed(LOG.as_bytes())).await.status, 204);
        trainer.finishes(0).await;
        assert_eq!(trainer.points().await, points, "{piece_bytes}");
    }
}
