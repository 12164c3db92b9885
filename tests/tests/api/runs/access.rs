//! Tokens of logs: one run, one token, and no word about other runs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use api::run::{RunDetail, RunList};
use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::stream;
use harness::{Settings, TestServer};
use serde_json::{Value, json};

use super::{LOG, Trainer};

const SERVER: &str = "0123456789abcdef";

/// Status and detail of writing one byte with a token.
async fn writes(server: &TestServer, run: &str, token: Option<&str>) -> (u16, String) {
    let mut request = Request::patch(format!("{}?offset=0", api::path::run_log(run)));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let reply = server.send(request.body(Body::from("x")).unwrap()).await;
    let detail = if reply.status < 300 { String::new() } else { reply.problem().detail };
    (reply.status, detail)
}

#[tokio::test]
async fn log_upload_needs_the_run_token() {
    let server = TestServer::open().await;
    let (mine, other) = (Trainer::starts(&server).await, Trainer::starts(&server).await);
    assert_eq!(mine.token.len(), 32);
    assert_eq!(writes(&server, &mine.run, Some(&mine.token)).await.0, 204);
    assert_eq!(writes(&server, &mine.run, None).await.0, 401);
    // Another run's, a made-up one, and one for a run that is not there: the same answer.
    let wrong = writes(&server, &mine.run, Some(&other.token)).await;
    assert_eq!(wrong.0, 403);
    assert_eq!(writes(&server, &mine.run, Some("x")).await, wrong);
    assert_eq!(writes(&server, "aaaaaaaaaaaaaaaa", Some(&mine.token)).await, wrong);
    assert_eq!(writes(&server, "aaaaaaaaaaaaaaaa", None).await, writes(&server, &mine.run, None).await);
    let head = Request::head(api::path::run_log(&mine.run)).header("authorization", format!("Bearer {}", other.token));
    assert_eq!(server.send(head.body(Body::empty()).unwrap()).await.status, 403);

    // A deleted run is told to those who have its token.
    server.delete(&api::path::run(&other.run)).await;
    assert_eq!(writes(&server, &other.run, Some(&other.token)).await.0, 410);
    assert_eq!(writes(&server, &other.run, Some(&mine.token)).await, wrong);

    // A page of another site never writes; curl says nothing of where it comes from.
    let request = Request::put(api::path::run_log(&mine.run))
        .header("authorization", format!("Bearer {}", mine.token))
        .header("origin", "http://evil.com")
        .body(Body::from(LOG));
    assert_eq!(server.send(request.unwrap()).await.problem().kind, "/problems/foreign-origin");
}

#[tokio::test]
async fn new_token_invalidates_the_previous_token() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let renewed: Value = server.post(&api::path::run_token(&trainer.run), "").await.json();
    let token = renewed["ingest_token"].as_str().unwrap();
    assert_eq!(renewed["run"], trainer.run.as_str());
    assert_eq!(writes(&server, &trainer.run, Some(&trainer.token)).await.0, 403);
    assert_eq!(writes(&server, &trainer.run, Some(token)).await.0, 204);
    assert_eq!(server.post(&api::path::run_token("unknown"), "").await.problem().status, 404);
}

/// A token that got into the wrong hands is renewed; the job that was started with a key asks again and must not bring it back.
#[tokio::test]
async fn a_token_that_ended_is_not_good_again_when_its_request_is_repeated() {
    let server = TestServer::open().await;
    let open = async || -> (String, String) {
        let request = Request::post(api::path::RUNS).header("idempotency-key", "job 7").body(Body::from("{}"));
        let opened: Value = server.send(request.unwrap()).await.json();
        (opened["run"].as_str().unwrap().to_owned(), opened["ingest_token"].as_str().unwrap().to_owned())
    };
    let (run, first) = open().await;
    let renewed: Value = server.post(&api::path::run_token(&run), "").await.json();
    let (same_run, further) = open().await;
    assert_eq!((&same_run, open().await), (&run, (run.clone(), further.clone())));
    assert_eq!(writes(&server, &run, Some(&first)).await.0, 403);
    for token in [&further, renewed["ingest_token"].as_str().unwrap()] {
        assert_eq!(writes(&server, &run, Some(token)).await.0, 204);
    }
}

/// A stream goes on for days.
#[tokio::test]
async fn new_token_ends_uploads_with_the_previous_token() {
    let server = TestServer::open().await;
    let trainer = Trainer::starts(&server).await;
    let mut events = server.listen(&api::path::run_events(&trainer.run), None).await;
    let (more, open) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let body =
        stream::unfold(open, |mut open| async { open.recv().await.map(|piece| (Ok::<_, io::Error>(piece), open)) });
    let others = async {
        more.send(Bytes::from_static(&LOG.as_bytes()[..1600])).unwrap();
        events.next_named("point").await;
        assert_eq!(server.post(&api::path::run_token(&trainer.run), "").await.status, 200);
        more.send(Bytes::from_static(&LOG.as_bytes()[1600..])).unwrap();
        drop(more);
    };
    let (reply, ()) = tokio::join!(trainer.sends_to("", Body::from_stream(body)), others);
    assert_eq!((reply.problem().status, reply.problem().kind.as_str()), (403, "/problems/wrong-token"));
    assert_eq!(trainer.detail().await.summary.bytes, 1600);
}

#[tokio::test]
async fn the_server_s_token_opens_everything_and_a_run_s_only_its_log() {
    let server = TestServer::with(Settings { token: Some(SERVER), ..Settings::default() }).await;
    let ask = async |method: &str, path: &str, token: Option<&str>, body: &'static str| {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        server.send(request.body(Body::from(body)).unwrap()).await
    };
    assert_eq!(ask("POST", api::path::RUNS, None, "{}").await.status, 401);
    let created: Value = ask("POST", api::path::RUNS, Some(SERVER), "{}").await.json();
    let (run, token) = (created["run"].as_str().unwrap(), created["ingest_token"].as_str().unwrap());
    let log = api::path::run_log(run);
    for (method, path, token, status) in [
        ("PATCH", &log, Some(token), 204),
        ("PATCH", &log, Some(SERVER), 204),
        ("PATCH", &log, Some("wrong"), 403),
        ("PATCH", &log, None, 401),
        ("HEAD", &log, Some(token), 200),
        // Reading is not writing.
        ("GET", &log, Some(token), 401),
        ("GET", &log, Some(SERVER), 200),
        ("GET", &api::path::run(run), Some(token), 401),
        ("DELETE", &api::path::run(run), Some(token), 401),
        ("POST", &api::path::run_token(run), Some(token), 401),
        ("POST", &api::path::run_finish(run), None, 401),
        ("POST", &api::path::run_finish(run), Some("wrong"), 403),
        ("POST", &api::path::run_finish(run), Some(token), 204),
        ("GET", &api::path::run_events("x"), Some(token), 401),
    ] {
        let body = if path.ends_with("/finish") { r#"{"exit_code": 0}"# } else { "" };
        assert_eq!(ask(method, path, token, body).await.status, status, "{method} {path} {token:?}");
    }
}

/// Everyone comes as far as the handler, and a body that is held for strangers is held a thousand times.
#[tokio::test]
async fn finish_request_is_authorised_and_limited() {
    let server = TestServer::with(Settings { token: Some(SERVER), ..Settings::default() }).await;
    let open = Request::post(api::path::RUNS).header("authorization", format!("Bearer {SERVER}"));
    let created: Value = server.send(open.body(Body::from("{}")).unwrap()).await.json();
    let (run, token) = (created["run"].as_str().unwrap(), created["ingest_token"].as_str().unwrap());
    let polls = Arc::new(AtomicU32::new(0));
    let finish = async |token: Option<&str>, bytes: usize| {
        let mut request = Request::post(api::path::run_finish(run));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let polls = Arc::clone(&polls);
        let mut text = r#"{"exit_code": 0}"#.to_owned();
        text.push_str(&" ".repeat(bytes - text.len()));
        let body = stream::once(async move {
            polls.fetch_add(1, Ordering::Relaxed);
            Ok::<_, io::Error>(Bytes::from(text))
        });
        server.send(request.body(Body::from_stream(body)).unwrap()).await
    };
    assert_eq!((finish(None, 100).await.status, finish(Some("wrong"), 100).await.status), (401, 403));
    assert_eq!(polls.load(Ordering::Relaxed), 0, "nothing of it was read");
    let large = finish(Some(token), (64 << 10) + 1).await.problem();
    assert_eq!((large.status, large.kind.as_str()), (413, "/problems/too-large"));
    assert!(large.detail.contains("64 KiB"), "{}", large.detail);
    assert_eq!(finish(Some(token), 64 << 10).await.status, 204);
}

#[tokio::test]
async fn same_file_and_key_create_a_single_run() {
    let server = TestServer::open().await;
    let import = async |key: &str, query: &str, log: &str| {
        let path = format!("{}{query}", api::path::RUN_IMPORT);
        let request = Request::post(path).header("idempotency-key", key).body(Body::from(log.to_owned()));
        server.send(request.unwrap()).await
    };
    let first = import("night 1", "?name=a.log", LOG).await;
    let again = import("night 1", "?name=a.log", LOG).await;
    assert_eq!((first.status, again.status), (201, 200));
    let (first, again): (RunDetail, RunDetail) = (first.json(), again.json());
    assert_eq!((&first.summary.id, first.summary.points), (&again.summary.id, again.summary.points));
    // Another name or another file is another request.
    for (query, log) in [("?name=b.log", LOG), ("?name=a.log", &LOG[..1000])] {
        let other = import("night 1", query, log).await;
        assert_eq!((other.status, other.problem().kind.as_str()), (422, "/problems/key-reused"), "{query}");
    }
    let list: RunList = server.get(api::path::RUNS).await.json();
    assert_eq!(list.page.total, 1);
    // What cannot be read takes no key; without one every file is a run of its own.
    assert_eq!(import("night 2", "", "no log at all").await.status, 422);
    assert_eq!(import("night 2", "?name=a.log", LOG).await.status, 201);
    assert_eq!(server.post(api::path::RUN_IMPORT, LOG).await.status, 201);
    assert_eq!(server.get(api::path::RUNS).await.json::<RunList>().page.total, 3);
    // A deleted one is not made again.
    server.delete(&api::path::run(&first.summary.id)).await;
    assert_eq!(import("night 1", "?name=a.log", LOG).await.status, 410);
}

#[tokio::test]
async fn same_request_and_key_open_a_single_run() {
    let server = TestServer::open().await;
    let open = async |server: &TestServer, key: &str, body: Value| {
        let request = Request::post(api::path::RUNS).header("idempotency-key", key).body(Body::from(body.to_string()));
        server.send(request.unwrap()).await
    };
    let first = open(&server, "job 7", json!({"name": "a"})).await;
    let again = open(&server, "job 7", json!({"name": "a"})).await;
    assert_eq!((first.status, again.status), (201, 200));
    let (first, again): (Value, Value) = (first.json(), again.json());
    assert_eq!(first, again);
    let other = open(&server, "job 7", json!({"name": "b"})).await;
    assert_eq!((other.status, other.problem().kind.as_str()), (422, "/problems/key-reused"));
    assert_ne!(open(&server, "job 8", json!({"name": "a"})).await.json::<Value>()["run"], first["run"]);
    assert_eq!(open(&server, &"x".repeat(256), json!({})).await.status, 400);

    // The secret that made the token went with the server; both tokens are good.
    let server = server.restarted(Settings::default()).await;
    let later: Value = open(&server, "job 7", json!({"name": "a"})).await.json();
    assert_eq!(later["run"], first["run"]);
    assert_ne!(later["ingest_token"], first["ingest_token"]);
    let run = first["run"].as_str().unwrap();
    for token in [&first["ingest_token"], &later["ingest_token"]] {
        assert_eq!(writes(&server, run, token.as_str()).await.0, 204);
    }
}
