//! Login and logout: browsers use sessions instead of tokens.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use harness::{Settings, TestServer};
use serde_json::{Value, json};

use super::TOKEN;

async fn server() -> TestServer {
    TestServer::with(Settings { token: Some(TOKEN), hosts: vec!["plan.example.org".to_owned()], ..Settings::default() })
        .await
}

/// Opens a page with a token. Returns status, location, and cookie with attributes.
async fn log_in(server: &TestServer, host: &str, token: &str) -> (u16, String, String) {
    let request =
        Request::get(format!("/s/abcdefghij?token={token}")).header("host", host).body(Body::empty()).unwrap();
    let reply = server.send(request).await;
    if reply.status >= 400 {
        return (reply.status, String::new(), String::new());
    }
    (reply.status, reply.header("location").to_owned(), reply.header("set-cookie").to_owned())
}

async fn status(server: &TestServer, method: &str, path: &str, cookie: &str) -> u16 {
    let pair = cookie.split(';').next().unwrap();
    let request = Request::builder().method(method).uri(path).header("cookie", pair).body(Body::empty()).unwrap();
    server.send(request).await.status
}

#[tokio::test]
async fn a_link_with_the_token_opens_a_session() {
    let server = server().await;
    let (code, location, cookie) = log_in(&server, "localhost:8080", TOKEN).await;
    assert_eq!((code, location.as_str()), (303, "/s/abcdefghij"));
    assert!(cookie.starts_with("planscope_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(TOKEN), "the cookie is not the token");
    let (_, _, other) = log_in(&server, "localhost:8080", TOKEN).await;
    assert_ne!(cookie, other, "each session has a value of its own");
    assert_eq!(status(&server, "GET", api::path::HEALTH, &cookie).await, 200);

    let (_, _, secure) = log_in(&server, "plan.example.org", TOKEN).await;
    assert!(secure.starts_with("__Host-planscope=") && secure.contains("; Secure;"), "{secure}");
    assert_eq!(status(&server, "GET", api::path::HEALTH, &secure).await, 200);

    assert_eq!(log_in(&server, "localhost:8080", "wrong").await.0, 401);
    let request = Request::get("/?token=wrong").body(Body::empty()).unwrap();
    assert_eq!(server.send(request).await.problem().status, 401);
}

#[tokio::test]
async fn a_session_ends_by_its_user_by_time_and_with_the_token() {
    let server = server().await;
    let (_, _, cookie) = log_in(&server, "localhost:8080", TOKEN).await;
    let (_, _, other) = log_in(&server, "localhost:8080", TOKEN).await;
    assert_eq!(status(&server, "DELETE", api::path::SESSION, &cookie).await, 204);
    assert_eq!(status(&server, "GET", api::path::HEALTH, &cookie).await, 401);
    assert_eq!(status(&server, "GET", api::path::HEALTH, &other).await, 200, "each session ends by itself");

    // After a restart sessions are valid. With another token they are not.
    let server = server.restarted(Settings { token: Some(TOKEN), ..Settings::default() }).await;
    assert_eq!(status(&server, "GET", api::path::HEALTH, &other).await, 200);
    let server = server.restarted(Settings { token: Some("fedcba9876543210"), ..Settings::default() }).await;
    assert_eq!(status(&server, "GET", api::path::HEALTH, &other).await, 401);
    let server = server.restarted(Settings { token: Some(TOKEN), ..Settings::default() }).await;
    assert_eq!(status(&server, "GET", api::path::HEALTH, &other).await, 200);
    server.clock.advance(Duration::from_hours(30 * 24));
    assert_eq!(status(&server, "GET", api::path::HEALTH, &other).await, 401);
}

#[tokio::test]
async fn logout_clears_browser_cookies() {
    let server = server().await;
    let (_, _, cookie) = log_in(&server, "localhost:8080", TOKEN).await;
    let pair = cookie.split(';').next().unwrap();
    let request = Request::delete(api::path::SESSION).header("cookie", pair).body(Body::empty()).unwrap();
    let reply = server.send(request).await;
    assert_eq!(reply.status, 204);
    assert!(reply.header("set-cookie").contains("Max-Age=0"), "{reply:?}");
}

#[tokio::test]
async fn session_reports_its_actor() {
    let server = server().await;
    let request = Request::get(api::path::SESSION).header("authorization", format!("Bearer {TOKEN}"));
    let session: Value = server.send(request.body(Body::empty()).unwrap()).await.json();
    assert_eq!(session, json!({"actor": "(server token)", "role": "admin", "token_needed": true}));
    let open = TestServer::open().await;
    let open_session: Value = open.get(api::path::SESSION).await.json();
    assert_eq!(open_session, json!({"actor": "(anyone)", "role": "admin", "token_needed": false}));
}

/// Repeated guesses are delayed on all paths that check a token.
#[tokio::test]
async fn wrong_tokens_are_slowed_down() {
    let server = server().await;
    let log = api::path::run_log("abcdefghij234567");
    let began = std::time::Instant::now();
    for (method, path, authorization) in [
        ("GET", api::path::HEALTH, "Bearer wrong"),
        ("GET", "/?token=wrong", ""),
        ("PATCH", log.as_str(), "Bearer wrong"),
        ("GET", api::path::HEALTH, "Bearer wrong"),
    ] {
        let request = Request::builder().method(method).uri(path).header("authorization", authorization);
        let reply = server.send(request.body(Body::empty()).unwrap()).await;
        assert!(matches!(reply.status, 401 | 403), "{method} {path}: {reply:?}");
    }
    // 20 + 40 + 80 + 160 ms. A slow machine needs more time, never less.
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
}

#[tokio::test]
async fn many_guesses_at_once_are_not_looked_at() {
    let server = server().await;
    let guess = |token: &'static str| {
        let request = Request::get(api::path::HEALTH).header("authorization", format!("Bearer {token}"));
        server.send(request.body(Body::empty()).unwrap())
    };
    assert_eq!(guess("wrong").await.status, 401);
    let replies = futures::future::join_all((0..40).map(|_| guess("wrong"))).await;
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!(count(401) + count(429), 40);
    assert!(count(429) >= 30, "eight tokens of one address are looked at or wait at once: {}", count(429));
    let limited = replies.iter().find(|reply| reply.status == 429).unwrap();
    assert_eq!(limited.problem().kind, "/problems/wrong-tokens");
    assert_eq!(limited.header("retry-after"), "5");
}

/// Finding N10 in the attack report: a link on a foreign page logs the user in under the author's
/// name.
#[tokio::test]
async fn login_links_from_other_sites_are_rejected() {
    let server = server().await;
    for (site, status) in [("cross-site", 403), ("same-site", 403), ("none", 303), ("same-origin", 303)] {
        let request = Request::get(format!("/?token={TOKEN}")).header("sec-fetch-site", site);
        let request = request.header("sec-fetch-mode", "navigate").header("sec-fetch-dest", "document");
        let reply = server.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(reply.status, status, "{site}");
        if status == 403 {
            assert_eq!(reply.problem().kind, "/problems/foreign-origin");
        }
    }
}
