//! Links: what copying one saves, how it is undone, and which drafts stay without it.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use harness::{House, Reply, house};
use serde_json::{Value, json};

/// A scenario of its own for every number.
fn question(number: u32) -> Value {
    let mut question = house::scenario();
    question["seed"] = json!(10_000 + number);
    question
}

async fn put_as(house: &House, client: &str, scenario: &Value) -> Reply {
    let request = Request::put(api::path::SCENARIOS)
        .header("cookie", format!("theme=dark; planscope_client={client}"))
        .body(Body::from(scenario.to_string()))
        .unwrap();
    house.send(request).await
}

async fn store_as(house: &House, client: &str, scenario: &Value) -> String {
    let reply = put_as(house, client, scenario).await;
    assert!(matches!(reply.status, 200 | 201), "{reply:?}");
    reply.json::<Value>()["id"].as_str().unwrap().to_owned()
}

async fn status(house: &House, id: &str) -> u16 {
    house.get(&api::path::outcome(id)).await.status
}

async fn is_there(house: &House, id: &str) -> bool {
    // The list of engines tells without being a view.
    house.get(&api::path::engine_answers(id)).await.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_link_saves_scenario_and_outcome_until_it_is_undone() {
    let house = House::open().await;
    let id = store_as(&house, "anna", &question(0)).await;
    assert_eq!(house.plan(&id).await["state"]["state"], "done");
    let copy = json!({"title": "For Bob", "source": "link"}).to_string();
    let kept: Value = house.post(&api::path::keep(&id), copy.clone()).await.json();
    assert_eq!((&kept["kept"], &kept["source"]), (&json!(true), &json!("link")));
    let list: Value = house.get(api::path::SCENARIOS).await.json();
    assert_eq!((&list["scenarios"][0]["source"], &list["scenarios"][0]["title"]), (&json!("link"), &json!("For Bob")));
    // Two months and more drafts than are remembered later the link shows its results.
    house.clock.advance(Duration::from_hours(60 * 24));
    for number in 1..510 {
        house.clock.advance(Duration::from_secs(1));
        store_as(&house, "anna", &question(number)).await;
    }
    assert_eq!(status(&house, &id).await, 200);

    // Undone it is a draft, and out of the list.
    let undone: Value = house.delete(&api::path::keep(&id)).await.json();
    assert_eq!(undone["kept"], false);
    assert!(undone.get("source").is_none());
    let list: Value = house.get(api::path::SCENARIOS).await.json();
    assert_eq!(list["scenarios"], json!([]));
    assert_eq!(status(&house, &id).await, 200, "its link still opens");

    // What is saved by hand is no link's; copying its link changes neither that nor its title.
    house.post(&api::path::keep(&id), json!({"title": "Mine"}).to_string()).await;
    house.post(&api::path::keep(&id), copy).await;
    let kept: Value = house.get(&api::path::scenario(&id)).await.json();
    assert_eq!((&kept["kept"], &kept["scenario"]["title"]), (&json!(true), &json!("Mine")));
    assert!(kept.get("source").is_none());
    assert_eq!(house.delete(&api::path::keep("aaaaaaaaaaaa")).await.problem().status, 404);
    assert_eq!(house.post(&api::path::keep(&id), json!({"source": "rumour"}).to_string()).await.problem().status, 400);
}

#[tokio::test]
async fn a_client_evicts_no_draft_of_another() {
    let house = House::open().await;
    let annas = store_as(&house, "anna", &question(0)).await;
    let shared = store_as(&house, "anna", &question(1)).await;
    store_as(&house, "bob", &question(1)).await;
    let viewed = store_as(&house, "bob", &question(2)).await;
    let first = store_as(&house, "bob", &question(3)).await;
    // Opened by anybody, it stays for thirty days.
    assert_eq!(house.get(&api::path::scenario(&viewed)).await.status, 200);
    for number in 4..506 {
        house.clock.advance(Duration::from_secs(1));
        store_as(&house, "bob", &question(number)).await;
    }
    assert!(is_there(&house, &annas).await);
    assert!(is_there(&house, &shared).await, "anna uses it too");
    assert!(is_there(&house, &viewed).await);
    assert!(!is_there(&house, &first).await, "bob's own oldest draft made room");
    house.clock.advance(Duration::from_hours(31 * 24));
    store_as(&house, "bob", &question(506)).await;
    assert!(!is_there(&house, &viewed).await, "the view is too long ago");
    // Every client lists its own, the last used first.
    let request = Request::get(format!("{}&limit=2", api::path::DRAFTS)).header("cookie", "planscope_client=anna");
    let drafts: Value = house.send(request.body(Body::empty()).unwrap()).await.json();
    assert_eq!(drafts["scenarios"].as_array().unwrap().len(), 2, "{drafts}");
    assert_eq!(drafts["total"], 2);
}

#[tokio::test]
async fn browsers_get_an_anonymous_cookie_with_their_first_page() {
    let house = House::open().await;
    let page = || Request::get("/").header("sec-fetch-dest", "document").header("accept", "text/html");
    let first = house.send(page().body(Body::empty()).unwrap()).await;
    let cookie = first.header("set-cookie").to_owned();
    assert!(cookie.starts_with("planscope_client=") && cookie.contains("HttpOnly"), "{cookie}");
    let value = cookie.split(';').next().unwrap();
    let again = house.send(page().header("cookie", value).body(Body::empty()).unwrap()).await;
    assert_eq!(again.header("set-cookie"), "");
    assert_eq!(house.get(api::path::SCENARIOS).await.header("set-cookie"), "", "programs get none");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_identity_of_a_scenario_tells_whether_results_are_stored() {
    let house = House::open().await;
    let mut small = question(0);
    small["planners"] = json!(["1f1b"]);
    let ask = async || house.post(api::path::SCENARIO_IDENTITY, small.to_string()).await.json::<Value>();
    let unknown = ask().await;
    assert_eq!((&unknown["stored"], &unknown["planned"]), (&json!(false), &json!(false)));
    let list: Value = house.get(api::path::DRAFTS).await.json();
    assert_eq!(list["total"], 0, "asking stores nothing");
    let id = house.store(&small).await;
    assert_eq!(unknown["id"], id);
    assert_eq!(ask().await["planned"], false);
    assert_eq!(house.plan(&id).await["state"]["state"], "done");
    assert_eq!(ask().await, json!({"id": id, "stored": true, "planned": true}));
    let wrong = house.post(api::path::SCENARIO_IDENTITY, json!({"schema": "scenario/1"}).to_string()).await;
    assert_eq!(wrong.problem().status, 422);
}
