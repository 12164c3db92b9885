//! Links: saving by copying, undo, and retention of drafts.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use harness::{Reply, TestServer, test_server};
use serde_json::{Value, json};

/// Returns a different scenario per number.
fn numbered_scenario(number: u32) -> Value {
    let mut numbered = test_server::scenario();
    numbered["seed"] = json!(10_000 + number);
    numbered
}

async fn put_as(server: &TestServer, client: &str, scenario: &Value) -> Reply {
    let request = Request::put(api::path::SCENARIOS)
        .header("cookie", format!("theme=dark; planscope_client={client}"))
        .body(Body::from(scenario.to_string()))
        .unwrap();
    server.send(request).await
}

async fn store_as(server: &TestServer, client: &str, scenario: &Value) -> String {
    let reply = put_as(server, client, scenario).await;
    assert!(matches!(reply.status, 200 | 201), "{reply:?}");
    reply.json::<Value>()["id"].as_str().unwrap().to_owned()
}

async fn status(server: &TestServer, id: &str) -> u16 {
    server.get(&api::path::outcome(id)).await.status
}

async fn is_there(server: &TestServer, id: &str) -> bool {
    // The engine list returns the scenario without recording a view.
    server.get(&api::path::engine_answers(id)).await.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_link_saves_scenario_and_outcome_until_it_is_undone() {
    let server = TestServer::open().await;
    let id = store_as(&server, "anna", &numbered_scenario(0)).await;
    assert_eq!(server.plan(&id).await["state"]["state"], "done");
    let copy = json!({"title": "For Bob", "source": "link"}).to_string();
    let saved: Value = server.post(&api::path::keep(&id), copy.clone()).await.json();
    assert_eq!((&saved["kept"], &saved["source"]), (&json!(true), &json!("link")));
    let list: Value = server.get(api::path::SCENARIOS).await.json();
    assert_eq!((&list["scenarios"][0]["source"], &list["scenarios"][0]["title"]), (&json!("link"), &json!("For Bob")));
    // After two months and more drafts than the quota, the link shows its results.
    server.clock.advance(Duration::from_hours(60 * 24));
    for number in 1..510 {
        server.clock.advance(Duration::from_secs(1));
        store_as(&server, "anna", &numbered_scenario(number)).await;
    }
    assert_eq!(status(&server, &id).await, 200);

    // After undo it is a draft and not in the list.
    let undone: Value = server.delete(&api::path::keep(&id)).await.json();
    assert_eq!(undone["kept"], false);
    assert!(undone.get("source").is_none());
    let list: Value = server.get(api::path::SCENARIOS).await.json();
    assert_eq!(list["scenarios"], json!([]));
    assert_eq!(status(&server, &id).await, 200, "its link still opens");

    // A scenario saved by a user is unchanged when its link is copied, including the title.
    server.post(&api::path::keep(&id), json!({"title": "Mine"}).to_string()).await;
    server.post(&api::path::keep(&id), copy).await;
    let reloaded: Value = server.get(&api::path::scenario(&id)).await.json();
    assert_eq!((&reloaded["kept"], &reloaded["scenario"]["title"]), (&json!(true), &json!("Mine")));
    assert!(reloaded.get("source").is_none());
    assert_eq!(server.delete(&api::path::keep("aaaaaaaaaaaa")).await.problem().status, 404);
    assert_eq!(server.post(&api::path::keep(&id), json!({"source": "rumour"}).to_string()).await.problem().status, 400);
}

#[tokio::test]
async fn client_cannot_evict_drafts_from_another_client() {
    let server = TestServer::open().await;
    let annas = store_as(&server, "anna", &numbered_scenario(0)).await;
    let shared = store_as(&server, "anna", &numbered_scenario(1)).await;
    store_as(&server, "bob", &numbered_scenario(1)).await;
    let viewed = store_as(&server, "bob", &numbered_scenario(2)).await;
    let first = store_as(&server, "bob", &numbered_scenario(3)).await;
    // A viewed draft is retained for thirty days.
    assert_eq!(server.get(&api::path::scenario(&viewed)).await.status, 200);
    for number in 4..506 {
        server.clock.advance(Duration::from_secs(1));
        store_as(&server, "bob", &numbered_scenario(number)).await;
    }
    assert!(is_there(&server, &annas).await);
    assert!(is_there(&server, &shared).await, "anna uses it too");
    assert!(is_there(&server, &viewed).await);
    assert!(!is_there(&server, &first).await, "bob's own oldest draft made room");
    server.clock.advance(Duration::from_hours(31 * 24));
    store_as(&server, "bob", &numbered_scenario(506)).await;
    assert!(!is_there(&server, &viewed).await, "the view is too long ago");
    // Each client lists its drafts, the last used first.
    let request = Request::get(format!("{}&limit=2", api::path::DRAFTS)).header("cookie", "planscope_client=anna");
    let drafts: Value = server.send(request.body(Body::empty()).unwrap()).await.json();
    assert_eq!(drafts["scenarios"].as_array().unwrap().len(), 2, "{drafts}");
    assert_eq!(drafts["total"], 2);
}

#[tokio::test]
async fn browsers_get_an_anonymous_cookie_with_their_first_page() {
    let server = TestServer::open().await;
    let page = || Request::get("/").header("sec-fetch-dest", "document").header("accept", "text/html");
    let first = server.send(page().body(Body::empty()).unwrap()).await;
    let cookie = first.header("set-cookie").to_owned();
    assert!(cookie.starts_with("planscope_client=") && cookie.contains("HttpOnly"), "{cookie}");
    let value = cookie.split(';').next().unwrap();
    let again = server.send(page().header("cookie", value).body(Body::empty()).unwrap()).await;
    assert_eq!(again.header("set-cookie"), "");
    assert_eq!(server.get(api::path::SCENARIOS).await.header("set-cookie"), "", "programs get none");
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_reports_stored_results() {
    let server = TestServer::open().await;
    let mut small = numbered_scenario(0);
    small["planners"] = json!(["1f1b"]);
    let ask = async || server.post(api::path::SCENARIO_IDENTITY, small.to_string()).await.json::<Value>();
    let unknown = ask().await;
    assert_eq!((&unknown["stored"], &unknown["planned"]), (&json!(false), &json!(false)));
    let list: Value = server.get(api::path::DRAFTS).await.json();
    assert_eq!(list["total"], 0, "asking stores nothing");
    let id = server.store(&small).await;
    assert_eq!(unknown["id"], id);
    assert_eq!(ask().await["planned"], false);
    assert_eq!(server.plan(&id).await["state"]["state"], "done");
    assert_eq!(ask().await, json!({"id": id, "stored": true, "planned": true}));
    let wrong = server.post(api::path::SCENARIO_IDENTITY, json!({"schema": "scenario/1"}).to_string()).await;
    assert_eq!(wrong.problem().status, 422);
}
