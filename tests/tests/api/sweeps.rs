//! Sweeps: stored once, planned point by point, taken in from elsewhere, looked at.

use std::time::Duration;

use harness::{Settings, TestServer, test_server};
use planner::engine::Unobserved;
use planner::scenario::validate::NoDatasets;
use planner::sweep::{Heading, Shard, Sweep, plan_point};
use serde_json::{Value, json};
use server::store::verify;

/// Four points of one small scenario: no node is no scenario.
fn written() -> Value {
    json!({
        "schema": "sweep/1", "title": "small", "scenario": test_server::scenario(),
        "axes": [{"pointer": "/cluster/nodes", "title": "nodes", "values": [1, 0]}, {"pointer": "/seed", "values": [7, 8]}],
    })
}

/// What `planscope sweep` writes of a share.
fn sheet(written: &Value, shard: &str) -> String {
    let sweep = Sweep::parse(&written.to_string()).unwrap();
    let shard: Shard = shard.parse().unwrap();
    let mut text = Heading::new(&sweep, shard).line();
    for point in shard.points(sweep.points()) {
        let row = plan_point(&sweep.point(point).unwrap(), &NoDatasets, &mut Unobserved).unwrap();
        text.push('\n');
        text.push_str(&serde_json::to_string(&row).unwrap());
    }
    text.push('\n');
    text
}

async fn stored(server: &TestServer, written: &Value) -> String {
    let reply = server.post(api::path::SWEEPS, written.to_string()).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json::<Value>()["id"].as_str().unwrap().to_owned()
}

/// Waits until a sweep is not running.
async fn rest(server: &TestServer, id: &str) -> Value {
    for _ in 0..3_000 {
        let sweep: Value = server.get(&api::path::sweep(id)).await.json();
        if sweep["progress"]["state"]["state"] != "running" {
            return sweep;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the sweep is still running");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_is_planned_and_every_point_has_its_row() {
    let server = TestServer::open().await;
    let id = stored(&server, &written()).await;
    assert_eq!(server.post(api::path::SWEEPS, written().to_string()).await.status, 200, "the same sweep");
    let list: Value = server.get(api::path::SWEEPS).await.json();
    assert_eq!((&list["sweeps"][0]["title"], &list["sweeps"][0]["points"]), (&json!("small"), &json!(4)));
    assert_eq!(server.post(&api::path::sweep_start(&id), "").await.status, 200);
    let sweep = rest(&server, &id).await;
    assert_eq!(sweep["progress"]["state"]["state"], "done");
    assert_eq!((&sweep["progress"]["done"], &sweep["progress"]["without_plan"]), (&json!(4), &json!(2)));
    let file = server.get(&api::path::sweep_file(&id)).await;
    assert_eq!(file.text(), sheet(&written(), "1/1"), "the same bytes as without a server");

    let picture: Value = server.get(&api::path::sweep_picture(&id, "x=0&y=1&planner=1f1b&metric=mfu")).await.json();
    let cells = &picture["layers"][0]["cells"];
    assert!(cells[0][0]["value"].as_f64().is_some_and(|percent| percent > 0.0 && percent < 100.0), "{picture}");
    assert!(cells[1][1]["reason"].as_str().unwrap().starts_with("nodes: 0 is out of range"), "{picture}");
    assert_eq!(cells[1][0]["point"], 1);
    let front: Value = server.get(&api::path::sweep_front(&id)).await.json();
    assert!(front["optimal"].as_u64().unwrap() >= 1 && front["plans"][0]["optimal"] == true, "{front}");

    let opened = server.post(&api::path::sweep_scenario(&id, 1), "").await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let opened: Value = opened.json();
    assert_eq!(
        (&opened["scenario"]["seed"], &opened["scenario"]["title"]),
        (&json!(8), &json!("small: nodes 1, seed 8"))
    );
    assert_eq!(server.post(&api::path::sweep_scenario(&id, 2), "").await.status, 422);
    assert_eq!(server.post(&api::path::sweep_scenario(&id, 4), "").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_are_stored_once_and_missing_points_are_listed() {
    let server = TestServer::open().await;
    let id = stored(&server, &written()).await;
    let second = sheet(&written(), "2/2");
    for added in [2, 0] {
        let reply = server.post(&api::path::sweep_points(&id), second.clone()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let gathered: Value = reply.json();
        assert_eq!((&gathered["added"], &gathered["missing"]), (&json!(added), &json!([[0, 0], [2, 2]])));
    }
    let page: Value = server.get(&api::path::sweep_points(&id)).await.json();
    assert_eq!((&page["rows"][0]["index"], &page["rows"][1]["index"]), (&json!(1), &json!(3)));
    // A start plans only what is missing.
    server.post(&api::path::sweep_start(&id), "").await;
    rest(&server, &id).await;
    assert_eq!(server.get(&api::path::sweep_file(&id)).await.text(), sheet(&written(), "1/1"));

    let mut other = written();
    other["axes"][1]["values"] = json!([7, 9]);
    let line = |text: &str, number: usize| text.lines().nth(number).unwrap().to_owned();
    let heading = line(&second, 0);
    for (text, expected) in [
        (sheet(&other, "1/1"), "line 1: belongs to the sweep"),
        (format!("{heading}\n{}", line(&sheet(&other, "1/1"), 2)), "line 2: no row of this sweep: point 1"),
        (
            format!("{heading}\n{}", line(&sheet(&written(), "1/1"), 1)),
            "line 2: no row of this sweep: point 0 is none of shard 2/2",
        ),
        (
            format!("{heading}\n{}", line(&second, 1).replace("planscope 0", "planscope 9")),
            "line 2: was made by planscope 9",
        ),
        (String::new(), "line 1"),
    ] {
        let reply = server.post(&api::path::sweep_points(&id), text).await;
        assert_eq!(reply.status, 422, "{expected}");
        assert!(reply.text().contains(expected), "{expected}: {}", reply.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_goes_on_and_a_deleted_sweep_comes_back() {
    let server = TestServer::open().await;
    let mut long = written();
    long["axes"][1]["values"] = (0..200).collect();
    let id = stored(&server, &long).await;
    server.post(&api::path::sweep_start(&id), "").await;
    server.app.sweeps.stop_all();
    rest(&server, &id).await;
    assert_eq!(server.store.reader().wanted_sweeps().await.unwrap(), std::slice::from_ref(&id));
    let server = server.restarted(Settings::default()).await;
    server.post(&api::path::sweep_cancel(&id), "").await;
    assert!(server.store.reader().wanted_sweeps().await.unwrap().is_empty());

    assert_eq!(server.delete(&api::path::sweep(&id)).await.status, 204);
    assert_eq!(server.get(&api::path::sweep(&id)).await.status, 410);
    assert_eq!(server.post(&api::path::sweep_restore(&id), "").await.status, 200);
    assert_eq!(server.get(&api::path::sweep(&id)).await.status, 200);
}

/// Rows are counted as they come, so that a list need not read them.
#[tokio::test]
async fn a_list_says_how_large_a_sweep_is() {
    let server = TestServer::open().await;
    let mut titled = written();
    titled["title"] = json!("small µ");
    let id = stored(&server, &titled).await;
    let listed = async |query: &str| {
        let list: Value = server.get(&format!("{}{query}", api::path::SWEEPS)).await.json();
        let bytes =
            list["sweeps"].as_array().unwrap().iter().map(|sweep| sweep["bytes"].as_u64().unwrap()).sum::<u64>();
        (bytes, list["stored_bytes"].as_u64().unwrap(), list["deleted_bytes"].as_u64().unwrap())
    };
    let empty = listed("").await.0;
    let rows = sheet(&titled, "1/2");
    let added: usize = rows.lines().skip(1).map(str::len).sum();
    for _ in 0..2 {
        server.post(&api::path::sweep_points(&id), rows.clone()).await;
        let bytes = empty + added as u64;
        assert_eq!(listed("").await, (bytes, bytes, 0));
        assert_eq!(verify(&server.path("planscope.db")).await.unwrap().faults, []);
        // Deleted and stored again it has its rows.
        server.delete(&api::path::sweep(&id)).await;
        assert_eq!(listed("?deleted=true").await, (bytes, bytes, bytes));
        assert_eq!(stored(&server, &titled).await, id);
    }
    server.delete(&api::path::sweep(&id)).await;
    server.clock.advance(Duration::from_hours(24 * 30 + 1));
    server::forgetting::round(&server.app, true).await.unwrap();
    assert_eq!(listed("").await, (0, 0, 0));
    assert_eq!(stored(&server, &titled).await, id);
    assert_eq!(listed("").await, (empty, empty, 0));
}

/// An axis may name a dataset by its identifier alone, and one that is deleted is no reason to give its points up.
#[tokio::test(flavor = "multi_thread")]
async fn points_wait_for_datasets_that_are_deleted() {
    let server = TestServer::open().await;
    let mut datasets = Vec::new();
    for lengths in ["512\n1024\n2048\n", "256\n700\n"] {
        let uploaded: Value = server.post(api::path::DATASETS, lengths).await.json();
        datasets.push(uploaded["dataset"]["id"].as_str().unwrap().to_owned());
    }
    let mut over = written();
    over["scenario"]["workload"]["samples"] = json!({"kind": "dataset", "id": datasets[0]});
    over["axes"] = json!([{"pointer": "/workload/samples/id", "values": datasets}]);
    let id = stored(&server, &over).await;

    server.delete(&api::path::dataset(&datasets[1])).await;
    let rejection = server.post(&api::path::sweep_start(&id), "").await.problem();
    assert_eq!((rejection.status, rejection.kind.as_str()), (422, "/problems/invalid-question"));
    assert!(rejection.detail.contains("point 1") && rejection.detail.contains(&datasets[1]), "{}", rejection.detail);
    assert!(server.store.reader().wanted_sweeps().await.unwrap().is_empty());
    assert_eq!(rest(&server, &id).await["progress"]["done"], 0);

    server.post(&api::path::dataset_restore(&datasets[1]), "").await;
    assert_eq!(server.post(&api::path::sweep_start(&id), "").await.status, 200);
    let progress = rest(&server, &id).await["progress"].clone();
    assert_eq!((&progress["done"], &progress["without_plan"]), (&json!(2), &json!(0)));
    // Where all rows are there nothing is needed any more.
    server.delete(&api::path::dataset(&datasets[0])).await;
    assert_eq!(server.post(&api::path::sweep_start(&id), "").await.status, 200);
}

#[tokio::test]
async fn invalid_sweep_fields_are_reported() {
    let server = TestServer::open().await;
    let mut wrong = written();
    wrong["axes"][0]["pointer"] = "/cluster/node".into();
    let reply = server.post(api::path::SWEEPS, wrong.to_string()).await;
    assert_eq!((reply.status, &reply.json::<Value>()["errors"][0]["pointer"]), (422, &json!("/axes/0")));
    assert_eq!(server.get(&api::path::sweep("short")).await.status, 400);
    assert_eq!(server.get(&api::path::sweep(&"a".repeat(52))).await.status, 404);
    let id = stored(&server, &written()).await;
    for (query, status) in [("x=9", 422), ("y=0", 422), ("at=a", 400), ("planner=none", 404), ("metric=none", 400)] {
        assert_eq!(server.get(&api::path::sweep_picture(&id, query)).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn sweep_suggestions_match_the_scenario() {
    let server = TestServer::open().await;
    let scenario = server.store(&test_server::scenario()).await;
    let found: Value = server.get(&api::path::scenario_sweeps(&scenario)).await.json();
    assert_eq!(found["fields"][0]["pointer"], "/cluster/nodes");
    for suggestion in found["studies"].as_array().unwrap() {
        let reply = server.post(api::path::SWEEPS, suggestion["sweep"].to_string()).await;
        assert_eq!(reply.status, 201, "{suggestion}");
    }
}
