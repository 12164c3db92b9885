//! Events: the rows that pages have, from where a reader left off; states by the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::run::RunPoint;
use axum::body::Body;
use axum::http::Request;
use harness::{Heard, Listener, Settings, TestServer, engines, test_server};
use serde_json::{Value, json};
use server::live::LiveLimits;

use super::{LOG, Trainer};

/// Rows of points until the last one, the open ones left out.
async fn rows(events: &mut Listener, last: u64) -> Vec<RunPoint> {
    let mut points: Vec<RunPoint> = Vec::new();
    while points.last().is_none_or(|point| point.row < last) {
        let heard = events.next_named("point").await;
        let point: RunPoint = serde_json::from_value(heard.data).unwrap();
        assert_eq!(heard.id.is_some(), !point.open);
        if !point.open {
            assert_eq!(heard.id, Some(point.row.to_string()));
            points.push(point);
        }
    }
    points
}

#[tokio::test]
async fn events_match_pages_and_resume_at_the_last_row() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let path = api::path::run_events(&trainer.run);
    let mut early = server.listen(&path, None).await;
    assert_eq!(early.next().await, Some(Heard { id: None, name: "state".to_owned(), data: json!("waiting") }));
    for start in (0..LOG.len()).step_by(100) {
        trainer.sends_to(&format!("?offset={start}"), LOG.as_bytes()[start..LOG.len().min(start + 100)].to_vec()).await;
    }
    trainer.finishes(0).await;
    let points = trainer.points().await;
    assert_eq!(rows(&mut early, 6).await, points);
    // A late reader, one with an id, one with an address, one who has it all.
    assert_eq!(rows(&mut server.listen(&path, None).await, 6).await, points);
    assert_eq!(rows(&mut server.listen(&path, Some("4")).await, 6).await, points[4..]);
    assert_eq!(rows(&mut server.listen(&format!("{path}?after=2"), None).await, 6).await, points[2..]);
    // The id goes before the address, because a browser that comes back keeps its address.
    assert_eq!(rows(&mut server.listen(&format!("{path}?after=2"), Some("5")).await, 6).await, points[5..]);
    let mut done = server.listen(&path, Some("6")).await;
    assert_eq!(done.next().await.map(|heard| heard.data), Some(json!("ended")));
    // The end of the server is the end of the stream.
    server.app.live.stop();
    assert_eq!(done.next().await, None);
}

#[tokio::test]
async fn lagging_reader_receives_a_gap() {
    let live_limits = LiveLimits { stream_rows: 2, ..LiveLimits::default() };
    let server = TestServer::with(Settings { live_limits, ..Settings::default() }).await;
    let trainer = Trainer::starts(&server).await;
    trainer.sends(0, LOG).await;
    trainer.finishes(0).await;
    let path = api::path::run_events(&trainer.run);
    let mut events = server.listen(&path, Some("1")).await;
    let gap = events.next_named("gap").await;
    assert_eq!((gap.data, gap.id.as_deref()), (json!({"after": 1, "before": 5}), Some("4")));
    assert_eq!(rows(&mut events, 6).await, trainer.points().await[4..]);
    // Two rows are no lag.
    let mut near = server.listen(&path, Some("4")).await;
    near.next_named("state").await;
    assert_eq!(near.next().await.unwrap().name, "point");
}

/// A browser that comes back has the row as it was before.
#[tokio::test]
async fn rebuilt_row_is_sent_after_reconnection() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let path = api::path::run_events(&trainer.run);
    trainer.sends(0, LOG).await;
    trainer.finishes(0).await;
    let early = trainer.points().await.split_off(4);
    // The last line goes on after the end of the run.
    trainer.sends(LOG.len(), " memory: 1 |\ntime (ms) | forward-compute: 777.0\n").await;
    let anew = trainer.points().await.split_off(4);
    assert_ne!(early, anew);
    assert_eq!(rows(&mut server.listen(&path, Some("6")).await, 6).await, anew);
    // Whoever stands elsewhere hears nothing twice.
    trainer.sends_to("?file=1", LOG.to_owned()).await;
    let last = trainer.points().await.last().unwrap().row;
    let mut later = server.listen(&path, Some(&(last - 1).to_string())).await;
    assert_eq!(later.next_named("point").await.id, Some(last.to_string()));
}

#[tokio::test]
async fn single_stream_carries_several_runs() {
    let server = TestServer::open().await;
    let (first, second) = (Trainer::starts(&server).await, Trainer::starts(&server).await);
    first.sends(0, LOG).await;
    first.finishes(0).await;
    let ids = [first.run.as_str(), "unknown", second.run.as_str()];
    let mut events = server.listen(&api::path::runs_events(&ids, &[4, 0, 0]), None).await;
    let mut heard: Vec<(String, Value, Option<String>)> = Vec::new();
    while heard.len() < 4 {
        let event = events.next().await.unwrap();
        assert_eq!(event.data["event"], event.name.as_str());
        heard.push((event.data["run"].as_str().unwrap().to_owned(), event.data["data"].clone(), event.id));
    }
    let run_events = |run: &str| heard.iter().filter(|(source, ..)| source == run).collect::<Vec<_>>();
    assert_eq!(run_events(&second.run).iter().map(|(_, data, _)| data).collect::<Vec<_>>(), [&json!("waiting")]);
    let ids: Vec<_> = run_events(&first.run).into_iter().filter_map(|(.., id)| id.as_deref()).collect();
    assert_eq!(ids, ["5,0,0", "6,0,0"]);

    // Back again with that id, the second run has begun.
    second.sends(0, &LOG[..1600]).await;
    let ids = [first.run.as_str(), "unknown", second.run.as_str()];
    let mut events = server.listen(&api::path::runs_events(&ids, &[0, 0, 0]), Some("6,0,0")).await;
    let point = events.next_named("point").await;
    assert_eq!((point.data["run"].as_str(), point.id.as_deref()), (Some(second.run.as_str()), Some("6,0,1")));
    let update: api::run::RunUpdate = serde_json::from_value(point.data).unwrap();
    assert!(matches!(update.event, api::run::RunEvent::Point(point) if point.row == 1));

    for path in ["/api/v1/runs/events?runs=", "/api/v1/runs/events?runs=unknown", "/api/v1/runs/events"] {
        let problem = server.get(path).await.problem();
        assert!(matches!(problem.status, 400 | 404), "{problem:?}");
    }
}

#[tokio::test]
async fn a_silent_run_is_stalled_until_it_speaks() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let mut events = server.listen(&api::path::run_events(&trainer.run), None).await;
    let mut states = Vec::new();
    states.push(events.next_named("state").await.data);
    // Steps every 2 to 2.5 s; nobody is missed before half a minute is over, because senders pause too.
    trainer.sends(0, &LOG[..1600]).await;
    states.push(events.next_named("state").await.data);
    server.clock.advance(Duration::from_secs(30));
    assert_eq!(trainer.detail().await.summary.state.id(), "live");
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(trainer.detail().await.summary.state.id(), "stalled");
    states.push(events.next_named("state").await.data);
    trainer.sends(1600, &LOG[1600..]).await;
    states.push(events.next_named("state").await.data);
    trainer.finishes(137).await;
    states.push(events.next_named("state").await.data);
    assert_eq!(json!(states), json!(["waiting", "live", "stalled", "live", "crashed"]));

    let listed = async |state: &str| {
        let list: Value = server.get(&format!("{}?state={state}", api::path::RUNS)).await.json();
        list["runs"].as_array().unwrap().len()
    };
    assert_eq!((listed("crashed").await, listed("live").await), (1, 0));
}

/// Slow steps have time: five times ten minutes.
#[tokio::test]
async fn patience_is_five_median_intervals() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let step =
        |step: u32| format!(" iteration {step}/ 10 | elapsed time per iteration (ms): 600000.0 | lm loss: 1.0E+00 |\n");
    trainer.sends(0, &(step(1) + &step(2) + &step(3))).await;
    server.clock.advance(Duration::from_mins(50));
    assert_eq!(trainer.detail().await.summary.state.id(), "live");
    server.clock.advance(Duration::from_secs(1));
    assert_eq!(trainer.detail().await.summary.state.id(), "stalled");
}

#[tokio::test]
async fn early_rows_are_resent_when_the_log_continues() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let cut = LOG.find("backward-compute").unwrap();
    trainer.sends(0, &LOG[..cut]).await;
    trainer.finishes(0).await;
    let mut events = server.listen(&api::path::run_events(&trainer.run), None).await;
    assert_eq!(rows(&mut events, 1).await[0].phases.len(), 1);
    trainer.sends(cut, &LOG[cut..]).await;
    // The first row once more, now with both timers.
    assert_eq!(rows(&mut events, 6).await, trainer.points().await);
}

#[tokio::test]
async fn stream_ends_when_the_run_is_deleted() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let path = api::path::run_events(&trainer.run);
    let mut events = server.listen(&path, None).await;
    events.next_named("state").await;
    assert_eq!(server.delete(&api::path::run(&trainer.run)).await.status, 204);
    assert_eq!(events.next().await, None);
    assert_eq!(server.get(&path).await.problem().status, 410);
    assert_eq!(server.get(&api::path::run_events("unknown")).await.problem().status, 404);
}

/// Finding 6 of the attack: streams of jobs and sweeps are not counted, and one client takes all.
#[tokio::test]
async fn stream_limits_apply_across_kinds_and_clients() {
    let gate = Arc::new(AtomicBool::new(false));
    let live_limits = LiveLimits { streams: 3, streams_per_client: 2, ..LiveLimits::default() };
    let server = TestServer::with(Settings { live_limits, engine: engines::gated(&gate), ..Settings::default() }).await;
    let trainer = Trainer::starts(&server).await;
    let scenario = server.store(&test_server::scenario()).await;
    let job: Value = server.post(&api::path::plan(&scenario), "").await.json();
    let sweep = json!({
        "schema": "sweep/1",
        "scenario": test_server::scenario(),
        "axes": [{"pointer": "/seed", "values": [1, 2]}],
    });
    let sweep: Value = server.post(api::path::SWEEPS, sweep.to_string()).await.json();
    let paths = [
        api::path::run_events(&trainer.run),
        api::path::runs_events(&[trainer.run.as_str()], &[0]),
        api::path::job_events(job["id"].as_str().unwrap()),
        format!("{}/events", api::path::sweep(sweep["id"].as_str().unwrap())),
    ];
    assert_eq!(server.get(&paths[3]).await.status, 200);
    assert_eq!(server.app.live.open().0, 0, "nobody plans the sweep, so that its stream has ended");

    let streams = [server.listen(&paths[0], None).await, server.listen(&paths[2], None).await];
    assert_eq!((streams[0].status, streams[1].status, server.app.live.open().0), (200, 200, 2));
    for path in &paths {
        let rejection = server.get(path).await;
        assert_eq!((rejection.problem().status, rejection.header("retry-after")), (429, "5"), "{path}");
        assert_eq!(rejection.problem().kind, "/problems/client-streams-full", "{path}");
    }
    let another = Request::get(&paths[3]).header("cookie", "planscope_client=another").body(Body::empty()).unwrap();
    assert_eq!(server.send(another).await.status, 200);
    drop(streams);
    assert_eq!(server.app.live.open().0, 0);
    gate.store(true, Ordering::Relaxed);
}

#[tokio::test]
async fn there_are_not_more_streams_than_places() {
    let live_limits = LiveLimits { streams: 1, ..LiveLimits::default() };
    let server = TestServer::with(Settings { live_limits, ..Settings::default() }).await;
    let trainer = Trainer::starts(&server).await;
    let path = api::path::run_events(&trainer.run);
    let first = server.listen(&path, None).await;
    let rejection = server.get(&path).await;
    assert_eq!((rejection.problem().status, rejection.header("retry-after")), (503, "5"));
    drop(first);
    assert_eq!(server.listen(&path, None).await.status, 200);
}
