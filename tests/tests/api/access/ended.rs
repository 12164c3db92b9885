//! Finding N8 in the attack report: open requests of a revoked token or an ended session continue.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::Request;
use futures::stream::{self, StreamExt};
use harness::{Settings, TestServer};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::TOKEN;

async fn opened() -> TestServer {
    TestServer::with(Settings { token: Some(TOKEN), ..Settings::default() }).await
}

fn with(name: &str, value: &str, method: &str, path: &str, body: Body) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("host", "localhost:8080");
    request.header(name, value).header("content-type", "application/json").body(body).unwrap()
}

async fn ask(server: &TestServer, token: &str, method: &str, path: &str, body: Value) -> Value {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let reply = server.send(with("authorization", &format!("Bearer {token}"), method, path, body)).await;
    assert!(reply.status < 300, "{method} {path}: {reply:?}");
    if reply.status == 204 { Value::Null } else { reply.json() }
}

/// A body with a line that does not end.
fn unfinished() -> Body {
    Body::from_stream(stream::once(async { Ok::<_, io::Error>(Bytes::from("a line\n")) }).chain(stream::pending()))
}

/// Opens the event stream of a run and waits for the first event.
async fn watching(server: &TestServer, name: &str, value: &str, run: &str) -> Body {
    let request = with(name, value, "GET", &api::path::run_events(run), Body::empty());
    let response = server.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    body
}

/// Returns whether a stream ends, and whether it ends normally.
async fn is_over(body: &mut Body) -> bool {
    tokio::time::timeout(Duration::from_secs(20), async {
        while let Some(frame) = body.frame().await {
            frame.unwrap();
        }
    })
    .await
    .is_ok()
}

#[tokio::test]
async fn a_revoked_token_ends_its_streams_and_uploads() {
    let server = opened().await;
    let editor = ask(&server, TOKEN, "POST", api::path::TOKENS, json!({"name": "eddy", "role": "editor"})).await;
    let editor = format!("Bearer {}", editor["token"].as_str().unwrap());
    let run = ask(&server, TOKEN, "POST", api::path::RUNS, json!({"name": "a"})).await;
    let run = run["run"].as_str().unwrap();
    let mut stream = watching(&server, "authorization", &editor, run).await;
    let authorization = format!("Bearer {TOKEN}");
    let mut other = watching(&server, "authorization", &authorization, run).await;
    let log = format!("{}?offset=0", api::path::run_log(run));
    let uploads = [("PATCH", log.as_str()), ("POST", api::path::TRACES), ("PUT", api::path::SCENARIOS)];
    let uploads = uploads.map(|(method, path)| {
        let request = with("authorization", &editor, method, path, unfinished());
        tokio::spawn(server.router.clone().oneshot(request))
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    ask(&server, TOKEN, "DELETE", &api::path::token("eddy"), Value::Null).await;
    assert!(is_over(&mut stream).await);
    for upload in uploads {
        let response = tokio::time::timeout(Duration::from_secs(8), upload).await.expect("it ends").unwrap().unwrap();
        assert_eq!(response.status().as_u16(), 401);
    }
    // Earlier bytes are stored, and other requests continue.
    let request = with("authorization", &authorization, "GET", &api::path::run_log(run), Body::empty());
    assert_eq!(server.send(request).await.text(), "a line\n");
    let next = tokio::time::timeout(Duration::from_millis(100), async { while other.frame().await.is_some() {} });
    assert!(next.await.is_err(), "the stream of another token goes on");
}

/// `planscope token revoke` writes to the database. The server checks it every five seconds.
#[tokio::test]
async fn a_token_that_the_command_line_revokes_ends_its_streams() {
    let server = opened().await;
    let reader = ask(&server, TOKEN, "POST", api::path::TOKENS, json!({"name": "rita", "role": "reader"})).await;
    let reader = format!("Bearer {}", reader["token"].as_str().unwrap());
    let run = ask(&server, TOKEN, "POST", api::path::RUNS, json!({"name": "a"})).await;
    let mut stream = watching(&server, "authorization", &reader, run["run"].as_str().unwrap()).await;
    server.store.writer().revoke_token("rita", jiff::Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(is_over(&mut stream).await);
}

#[tokio::test]
async fn a_session_that_is_logged_out_ends_its_streams() {
    let server = opened().await;
    let run = ask(&server, TOKEN, "POST", api::path::RUNS, json!({"name": "a"})).await;
    let run = run["run"].as_str().unwrap();
    let login = server.get(&format!("/?token={TOKEN}")).await;
    let cookie = login.header("set-cookie").split(';').next().unwrap().to_owned();
    let mut stream = watching(&server, "cookie", &cookie, run).await;
    let logout = server.send(with("cookie", &cookie, "DELETE", api::path::SESSION, Body::empty())).await;
    assert_eq!(logout.status, 204);
    assert!(is_over(&mut stream).await);
}
