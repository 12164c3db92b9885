//! Access: hosts, origins, tokens and browser headers.

mod ended;
mod record;
mod roles;
mod sessions;

use axum::body::Body;
use axum::http::Request;
use harness::{Settings, TestServer};

const TOKEN: &str = "0123456789abcdef";

async fn with_header(server: &TestServer, method: &str, path: &str, name: &str, value: &str) -> u16 {
    let request = Request::builder().method(method).uri(path).header(name, value).body(Body::empty()).unwrap();
    let reply = server.send(request).await;
    if reply.status >= 400 {
        reply.problem();
    }
    reply.status
}

#[tokio::test]
async fn other_names_are_not_ours() {
    let server = TestServer::with(Settings { hosts: vec!["plan.example.org".to_owned()], ..Settings::default() }).await;
    for (host, status) in [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:8080", 200),
        ("plan.example.org", 200),
        ("evil.com", 421),
        ("localhost.evil.com:8080", 421),
    ] {
        assert_eq!(with_header(&server, "GET", api::path::HEALTH, "host", host).await, status, "{host}");
    }
}

#[tokio::test]
async fn changes_require_the_same_origin() {
    let server = TestServer::open().await;
    let path = api::path::dataset("nothing");
    for (name, value, status) in [
        // 404 means that the request passed the guard.
        ("origin", "http://localhost:8080", 404),
        ("sec-fetch-site", "same-origin", 404),
        ("x-nothing", "a program outside a browser", 404),
        ("origin", "http://evil.com", 403),
        ("origin", "http://localhost:9999", 403),
        ("origin", "null", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
    ] {
        assert_eq!(with_header(&server, "DELETE", &path, name, value).await, status, "{name}: {value}");
    }
}

/// An image on a foreign page can start a computation like a form can.
#[tokio::test]
async fn cross_site_pages_cannot_read_the_api() {
    let server = TestServer::open().await;
    for path in [api::path::HEALTH, "/api/v1/scenarios/abcdefghij/studies/search?rollouts=100000", "/metrics"] {
        for site in ["cross-site", "same-site"] {
            let request = Request::get(path).header("sec-fetch-site", site).header("sec-fetch-mode", "no-cors");
            let reply = server.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(reply.problem().kind, "/problems/foreign-origin", "{site} {path}");
            // A link does not reach it either.
            let request = Request::get(path).header("sec-fetch-site", site).header("sec-fetch-mode", "navigate");
            let request = request.header("sec-fetch-dest", "document");
            assert_eq!(server.send(request.body(Body::empty()).unwrap()).await.status, 403, "{site} {path}");
        }
    }
    assert_eq!(with_header(&server, "GET", api::path::HEALTH, "origin", "http://evil.com").await, 403);
    assert_eq!(with_header(&server, "GET", api::path::HEALTH, "sec-fetch-site", "same-origin").await, 200);
    let link = Request::get("/runs").header("sec-fetch-site", "cross-site").header("sec-fetch-mode", "navigate");
    let link = link.header("sec-fetch-dest", "document").body(Body::empty()).unwrap();
    assert_ne!(server.send(link).await.status, 403, "a link to a page");
}

#[tokio::test]
async fn requests_must_name_this_server() {
    let server = TestServer::open().await;
    let two = Request::get(api::path::HEALTH).header("host", "localhost:8080").header("host", "localhost:8080");
    assert_eq!(server.send(two.body(Body::empty()).unwrap()).await.problem().kind, "/problems/malformed-request");
    for (address, status) in [("http://evil.com", 421), ("http://localhost:8080", 200)] {
        let request = Request::get(format!("{address}{}", api::path::HEALTH)).header("host", "localhost:8080");
        assert_eq!(server.send(request.body(Body::empty()).unwrap()).await.status, status, "{address}");
    }
}

#[tokio::test]
async fn range_beyond_the_end_is_rejected() {
    let server = TestServer::open().await;
    std::fs::create_dir_all(server.path("web/assets")).unwrap();
    std::fs::write(server.path("web/assets/a.js"), "0123456789").unwrap();
    for (range, status) in [("bytes=2-3", 206), ("bytes=10-", 416), ("bytes=99-100", 416)] {
        let request = Request::get("/assets/a.js").header("range", range).body(Body::empty()).unwrap();
        let reply = server.send(request).await;
        assert_eq!(reply.status, status, "{range}");
        if status == 416 {
            assert_eq!(reply.problem().kind, "/problems/range-not-satisfiable", "{range}");
            assert_eq!(reply.header("content-range"), "bytes */10", "{range}");
        }
    }
}

#[tokio::test]
async fn every_request_needs_a_token() {
    let server = TestServer::with(Settings { token: Some(TOKEN), ..Settings::default() }).await;
    for path in [api::path::HEALTH, api::path::DATASETS, "/api/v1/openapi.json", "/api/nothing"] {
        let reply = server.get(path).await;
        assert_eq!(reply.problem().status, 401, "{path}");
        assert_eq!(reply.header("www-authenticate"), "Bearer realm=\"planscope\"");
    }
    for (name, value, status) in [
        ("authorization", format!("Bearer {TOKEN}"), 200),
        ("authorization", format!("bearer {TOKEN}"), 200),
        // Cookies from earlier versions contained the token.
        ("cookie", format!("a=b; planscope_token={TOKEN}"), 401),
        ("authorization", format!("Bearer {}", &TOKEN[1..]), 401),
        ("authorization", format!("Basic {TOKEN}"), 401),
        ("cookie", "planscope_session=".to_owned(), 401),
        ("cookie", format!("planscope_session={TOKEN}"), 401),
    ] {
        assert_eq!(with_header(&server, "GET", api::path::HEALTH, name, &value).await, status, "{name}: {value}");
    }
}

#[tokio::test]
async fn responses_have_security_headers() {
    let server = TestServer::open().await;
    for path in ["/", api::path::HEALTH, "/nothing"] {
        let reply = server.get(path).await;
        let policy = reply.header("content-security-policy");
        assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval';"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert_eq!(reply.header("referrer-policy"), "no-referrer");
    }
    assert_eq!(server.get(api::path::HEALTH).await.header("cache-control"), "no-store");
}

/// An uploaded image can contain scripts. Number uploads reject it, and stored bytes are returned
/// as a download.
#[tokio::test]
async fn uploads_are_never_served_as_pages() {
    const PICTURE: &str = "<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
    let server = TestServer::open().await;
    for path in [api::path::DATASETS, api::path::TRACES, api::path::RUN_IMPORT, api::path::PROFILES] {
        let reply = server.post(&format!("{path}?name=a.svg"), PICTURE).await;
        assert!(matches!(reply.problem().status, 415 | 422), "{path}: {reply:?}");
    }
    let opened: serde_json::Value =
        server.post(api::path::RUNS, r#"{"name": "<img src=x onerror=alert(1)>"}"#).await.json();
    let run = opened["run"].as_str().unwrap();
    let token = opened["ingest_token"].as_str().unwrap();
    let path = api::path::run_log(run);
    let send = Request::patch(format!("{path}?offset=0")).header("authorization", format!("Bearer {token}"));
    assert_eq!(server.send(send.body(Body::from(PICTURE)).unwrap()).await.status, 204);
    let reply = server.get(&path).await;
    assert_eq!(reply.text(), PICTURE);
    assert_eq!(reply.header("content-type"), "application/octet-stream");
    assert!(reply.header("content-disposition").starts_with("attachment; filename="), "{reply:?}");
    assert_eq!(reply.header("x-content-type-options"), "nosniff");
    // User names occur only in documents that browsers do not render as pages.
    let reply = server.get(&api::path::run(run)).await;
    assert_eq!(reply.header("content-type"), "application/json");
    // A page contains nothing from the requested URL.
    let reply = server.get("/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E").await;
    assert!(!reply.text().contains("alert(1)"), "{}", reply.text());
}
