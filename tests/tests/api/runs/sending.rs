//! Pieces of a log: sent again, torn, with gaps, from two sides, and over a restart of the server.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use harness::{Settings, TestServer};
use server::live::LiveLimits;

use super::{LOG, Trainer, upload_log};

fn diverged_kind() -> String {
    format!("/problems/{}", api::run::DIVERGED)
}

#[tokio::test]
async fn sending_again_changes_nothing() {
    let (points, detail) = upload_log(LOG).await;
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    // The whole file every time, as `curl -T train.log URL` does, while it grows.
    for end in [100, 900, 900, 1500, LOG.len(), LOG.len()] {
        let reply = trainer.asks("PUT", &api::path::run_log(&trainer.run), &LOG[..end]).await;
        assert_eq!((reply.status, reply.header("upload-offset")), (204, end.to_string().as_str()), "{reply:?}");
    }
    // A part that is there already, and one that is half there.
    assert_eq!(trainer.sends(300, &LOG[300..700]).await, LOG.len() as u64);
    trainer.finishes(0).await;
    assert_eq!(trainer.points().await, points);
    let again = trainer.detail().await;
    assert_eq!((again.report, again.files), (detail.report, detail.files));
}

#[tokio::test]
async fn gaps_and_conflicts_are_rejected_and_a_second_file_continues() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    trainer.sends(0, &LOG[..1000]).await;

    let gap = trainer.sends_to("?offset=1001", "x").await;
    assert_eq!((gap.status, gap.header("upload-offset"), gap.header("upload-file")), (409, "1000", "0"));
    assert_eq!(gap.problem().kind, "/problems/gap");

    // Rotated: the file begins anew with other bytes.
    let rotated = "another beginning\n";
    let diverged = trainer.sends_to("?offset=0", rotated).await;
    assert_eq!((diverged.status, diverged.header("upload-offset")), (409, "1000"));
    assert_eq!(diverged.problem().kind, diverged_kind());
    // The same where it is longer than what is stored.
    let longer = format!("{rotated}{LOG}");
    assert_eq!(trainer.sends_to("?offset=0", longer).await.problem().kind, diverged_kind());
    // Nothing of it was kept.
    assert_eq!(trainer.detail().await.summary.bytes, 1000);

    // Whoever names a file too far on is told the end of the last one, and not to try the same again.
    let far = trainer.sends_to("?file=9&offset=7", "x").await;
    assert_eq!(far.problem().kind, "/problems/gap");
    let (file, stored) = (far.header("upload-file").to_owned(), far.header("upload-offset").to_owned());
    assert_eq!(trainer.sends_to(&format!("?file={file}&offset={stored}"), "").await.status, 204);
    assert_eq!(trainer.sends_to("?file=2&offset=0", "x").await.problem().kind, "/problems/gap");
    let second = trainer.sends_to("?file=1&offset=0", LOG[1000..].to_owned()).await;
    assert_eq!((second.status, second.header("upload-file")), (204, "1"), "{second:?}");
    // The first one is closed, but what it has may still be sent again.
    assert_eq!(trainer.sends_to("?file=0&offset=0", LOG[..1000].to_owned()).await.status, 204);
    assert_eq!(trainer.sends_to("?file=0&offset=0", LOG[..1001].to_owned()).await.problem().kind, diverged_kind());
    // Without a number the latest is meant.
    let end = trainer.asks("HEAD", &api::path::run_log(&trainer.run), "").await;
    assert_eq!(
        (end.header("upload-file"), end.header("upload-offset")),
        ("1", (LOG.len() - 1000).to_string().as_str())
    );
    trainer.finishes(0).await;

    // The line that the cut went through has two halves now; everything else is as in one file.
    let files: Vec<(u32, u64)> = trainer.detail().await.files.iter().map(|file| (file.file, file.bytes)).collect();
    assert_eq!(files, [(0, 1000), (1, LOG.len() as u64 - 1000)]);
    let halves = format!("{}\n{}", &LOG[..1000], &LOG[1000..]);
    assert_eq!(trainer.points().await, upload_log(&halves).await.0);
    let first = server.get(&format!("{}?file=0", api::path::run_log(&trainer.run))).await;
    assert_eq!(first.text(), &LOG[..1000]);
}

/// The parser is gone after a restart and when too many runs are read at once; the stored bytes make it again.
#[tokio::test]
async fn restart_within_a_line_changes_no_row() {
    let (points, detail) = upload_log(LOG).await;
    for cut in [1, 333, 777, 1111, 1500, LOG.len() - 5] {
        let server = TestServer::open().await;
        let trainer = Trainer::starts(&server).await;
        trainer.sends(0, &LOG[..cut]).await;
        let before = trainer.page(0, 5000).await;
        let (run, token) = (trainer.run, trainer.token);
        let server = server.restarted(Settings::default()).await;
        let trainer = Trainer { server: &server, run, token };
        assert_eq!(trainer.page(0, 5000).await, before, "{cut}");
        let end = trainer.asks("HEAD", &api::path::run_log(&trainer.run), "").await;
        assert_eq!(end.header("upload-offset"), cut.to_string());
        trainer.sends(cut, &LOG[cut..]).await;
        trainer.finishes(0).await;
        assert_eq!(trainer.points().await, points, "{cut}");
        assert_eq!(trainer.detail().await.report, detail.report, "{cut}");
    }
}

#[tokio::test]
async fn more_runs_than_parsers_are_read_all_the_same() {
    let (points, _) = upload_log(LOG).await;
    let live_limits = LiveLimits { readings: 1, ..LiveLimits::default() };
    let server = TestServer::with(Settings { live_limits, ..Settings::default() }).await;
    let trainers = [Trainer::starts(&server).await, Trainer::starts(&server).await, Trainer::starts(&server).await];
    for start in (0..LOG.len()).step_by(211) {
        for trainer in &trainers {
            let end = (start + 211).min(LOG.len());
            assert_eq!(
                trainer.sends_to(&format!("?offset={start}"), LOG.as_bytes()[start..end].to_vec()).await.status,
                204
            );
        }
    }
    for trainer in &trainers {
        trainer.finishes(0).await;
        assert_eq!(trainer.points().await, points);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_write_at_once_wait_for_each_other() {
    let live_limits = LiveLimits { uploads_per_run: 3, ..LiveLimits::default() };
    let server = TestServer::with(Settings { live_limits, ..Settings::default() }).await;
    let trainer = Trainer::starts(&server).await;
    let trainer = &trainer;
    let send = async |step: usize| {
        let mut rejections = 0;
        let mut offset = 0;
        while offset < LOG.len() {
            let end = (offset + step).min(LOG.len());
            let reply = trainer.sends_to(&format!("?offset={offset}"), LOG.as_bytes()[offset..end].to_vec()).await;
            match reply.status {
                204 => offset = end,
                _ => rejections += 1,
            }
            assert!(rejections < 3, "{reply:?}");
        }
    };
    tokio::join!(send(37), send(101), send(64));
    trainer.finishes(0).await;
    assert_eq!(trainer.points().await, upload_log(LOG).await.0);
    assert_eq!(trainer.detail().await.summary.bytes, LOG.len() as u64);
}

/// A connection that breaks has delivered what came before.
#[tokio::test]
async fn bytes_before_a_disconnect_are_stored() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let pieces = [
        Ok(Bytes::from_static(&LOG.as_bytes()[..700])),
        Ok(Bytes::from_static(&LOG.as_bytes()[700..1300])),
        Err(io::Error::other("the trainer's node is gone")),
    ];
    let reply = trainer.sends_to("?offset=0", Body::from_stream(stream::iter(pieces))).await;
    assert_eq!(reply.problem().status, 400);
    assert_eq!(trainer.detail().await.summary.bytes, 1300);
    trainer.sends(1300, &LOG[1300..]).await;
    trainer.finishes(0).await;
    assert_eq!(trainer.points().await, upload_log(LOG).await.0);
}

/// A trainer prints for hours; nobody waits for its end.
#[tokio::test]
async fn bytes_are_stored_and_reported_during_a_request() {
    let live_limits = LiveLimits { piece_wait: Duration::from_millis(20), ..LiveLimits::default() };
    let server = TestServer::with(Settings { live_limits, ..Settings::default() }).await;
    let trainer = Trainer::starts(&server).await;
    let mut events = server.listen(&api::path::run_events(&trainer.run), None).await;
    let (lines, body) = tokio::sync::mpsc::unbounded_channel::<&'static str>();
    let body =
        stream::unfold(body, |mut body| async { body.recv().await.map(|line| (Ok::<_, io::Error>(line), body)) });
    let sending = trainer.sends_to("?offset=0", Body::from_stream(body));
    let watching = async {
        let mut sent = String::new();
        for line in LOG.split_inclusive('\n') {
            lines.send(line).unwrap();
            sent.push_str(line);
            // A point is told as soon as its first line is there, before the request ends.
            if line.contains("lm loss: 1.05") {
                let heard = events.next_named("point").await;
                assert_eq!((heard.id, &heard.data["row"], &heard.data["open"]), (None, &1.into(), &true.into()));
            }
        }
        drop(lines);
    };
    let (reply, ()) = tokio::join!(sending, watching);
    assert_eq!((reply.status, reply.header("upload-offset")), (204, LOG.len().to_string().as_str()));
    trainer.finishes(0).await;
    assert_eq!(trainer.points().await, upload_log(LOG).await.0);
}

/// The last bytes of a job often come after its end was told.
#[tokio::test]
async fn bytes_after_the_end_are_read_as_if_they_had_come_before() {
    let (points, detail) = upload_log(LOG).await;
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    // In the middle of the timers of the first step.
    let cut = LOG.find("backward-compute").unwrap();
    trainer.sends(0, &LOG[..cut]).await;
    trainer.finishes(0).await;
    let early = trainer.points().await;
    assert_eq!((early.len(), early[0].phases.len(), early[0].open), (1, 1, false), "{early:?}");

    server.clock.advance(Duration::from_secs(5));
    let mut offset = cut;
    for end in [cut + 40, 1400, LOG.len()] {
        trainer.sends(offset, &LOG[offset..end]).await;
        offset = end;
        // It stays ended, and no point is left open.
        let page = trainer.page(0, 5000).await;
        assert_eq!((trainer.detail().await.summary.state.id(), page.open), ("ended", None));
    }
    assert_eq!(trainer.points().await, points);
    assert_eq!(trainer.detail().await.report, detail.report);
}

#[tokio::test]
async fn steps_after_the_end_belong_to_a_restarted_job() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    trainer.sends(0, &LOG[..1000]).await;
    trainer.finishes(1).await;
    let summary = trainer.detail().await.summary;
    assert_eq!((summary.state.id(), summary.exit_code), ("crashed", Some(1)));
    server.clock.advance(Duration::from_secs(61));
    trainer.sends(1000, &LOG[1000..]).await;
    let summary = trainer.detail().await.summary;
    assert_eq!((summary.state.id(), summary.exit_code), ("live", None));
    trainer.finishes(0).await;
    assert_eq!(trainer.points().await, upload_log(LOG).await.0);
}
