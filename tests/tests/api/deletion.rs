//! Deleted objects state how and until when they can be restored.

use std::time::Duration;

use harness::{TestServer, test_server};
use serde_json::{Value, json};

/// Creates an object of each type. Returns its path and its restore path.
async fn create_every_kind(server: &TestServer) -> Vec<(String, String)> {
    let id = |reply: harness::Reply, pointer: &str| -> String {
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json::<Value>().pointer(pointer).and_then(Value::as_str).expect("an identifier").to_owned()
    };
    let scenario = server.store(&test_server::scenario()).await;
    let dataset = id(server.post(api::path::DATASETS, "5\n7\n9\n").await, "/dataset/id");
    let run = id(server.post(api::path::RUNS, "{}").await, "/run");
    let event = json!([{"ph": "X", "name": "gemm", "pid": 0, "tid": 1, "ts": 0.0, "dur": 10.0}]);
    let trace = id(server.post(api::path::TRACES, event.to_string()).await, "/trace/id");
    let products = |m: u32| format!("matmul,{},4096,4096,{}", m * 128, m * 22 + 5);
    let products: Vec<String> = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64].into_iter().map(products).collect();
    let table = format!("kernel,m,k,n,time_us\n{}\n", products.join("\n"));
    let upload = format!("{}?name=p.csv&device=a100-80gb", api::path::PROFILES);
    let profile = id(server.post(&upload, table).await, "/summary/id");
    let axes = json!([{"pointer": "/cluster/nodes", "values": [1, 2]}]);
    let sweep = json!({"schema": "sweep/1", "scenario": test_server::scenario(), "axes": axes});
    let sweep = id(server.post(api::path::SWEEPS, sweep.to_string()).await, "/id");
    vec![
        (api::path::scenario(&scenario), api::path::scenario_restore(&scenario)),
        (api::path::dataset(&dataset), api::path::dataset_restore(&dataset)),
        (api::path::run(&run), api::path::run_restore(&run)),
        (api::path::trace(&trace), api::path::trace_restore(&trace)),
        (api::path::profile(&profile), api::path::profile_restore(&profile)),
        (api::path::sweep(&sweep), api::path::sweep_restore(&sweep)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_deleted_names_the_path_that_brings_it_back() {
    let server = TestServer::open().await;
    for (thing, restore) in create_every_kind(&server).await {
        assert_eq!(server.delete(&thing).await.status, 204, "{thing}");
        // On GET and on a second DELETE.
        for reply in [server.get(&thing).await, server.delete(&thing).await] {
            let problem = reply.problem();
            assert_eq!(problem.status, 410, "{thing}");
            assert_eq!(problem.deleted.unwrap().restore.as_deref(), Some(&*restore), "{thing}");
        }
        assert_eq!(server.post(&restore, "").await.status, 200, "{thing}");
        assert_eq!(server.get(&thing).await.status, 200, "{thing}");
        assert_eq!(server.post(&restore, "").await.status, 200, "again is no harm: {thing}");
    }
}

/// Independent of the hourly purge.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_comes_back_when_its_days_are_over() {
    let server = TestServer::open().await;
    let things = create_every_kind(&server).await;
    for (thing, _) in &things {
        assert_eq!(server.delete(thing).await.status, 204, "{thing}");
    }
    server.clock.advance(Duration::from_hours(24 * 30));
    server::forgetting::round(&server.app, true).await.unwrap();
    let (first, _) = &things[0];
    assert!(server.get(first).await.problem().deleted.unwrap().restore.is_some(), "the last moment");
    server.clock.advance(Duration::from_secs(1));
    for (thing, restore) in things {
        for reply in [server.post(&restore, "").await, server.get(&thing).await] {
            let problem = reply.problem();
            assert_eq!((problem.status, problem.deleted.unwrap().restore), (410, None), "{thing}");
        }
    }
}
