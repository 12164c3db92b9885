//! Names, notes and tags are held to the same rules, whatever they are of.

use harness::{TestServer, test_server};
use serde_json::{Value, json};

/// Galvatron's times of a few layers.
const LAYERS: &str = r#"{"layernum[2]_bsz1_seq2048": 15.0, "layernum[4]_bsz1_seq2048": 23.0,
    "layernum[2]_bsz2_seq2048": 24.0, "layernum[4]_bsz2_seq2048": 42.0}"#;

async fn sent(server: &TestServer, method: &str, path: &str, body: String) -> harness::Reply {
    let request = axum::http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(axum::body::Body::from(body))
        .unwrap();
    server.send(request).await
}

/// One thing of every kind, by its address.
async fn things(server: &TestServer) -> Vec<String> {
    let posted = async |path: &str, body: String, pointer: &str| -> String {
        let reply: Value = server.post(path, body).await.json();
        reply.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{reply}")).to_owned()
    };
    let sweep = json!({
        "schema": "sweep/1", "title": "small", "scenario": test_server::scenario(), "axes": [{"pointer": "/seed", "values": [7, 8]}],
    });
    let slice = json!([{"ph": "X", "name": "gemm", "pid": 0, "tid": 1, "ts": 0, "dur": 5}]);
    vec![
        api::path::scenario(&server.store(&test_server::scenario()).await),
        api::path::dataset(&posted(api::path::DATASETS, "5 7 9".to_owned(), "/dataset/id").await),
        api::path::sweep(&posted(api::path::SWEEPS, sweep.to_string(), "/id").await),
        api::path::run(&posted(api::path::RUNS, json!({"name": "a run"}).to_string(), "/run").await),
        api::path::trace(&posted(api::path::TRACES, slice.to_string(), "/trace/id").await),
        api::path::profile(
            &posted(&format!("{}?name=l.json", api::path::PROFILES), LAYERS.to_owned(), "/summary/id").await,
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn annotation_errors_are_equal_for_every_kind() {
    let server = TestServer::open().await;
    let many: Vec<String> = (0..33).map(|number| number.to_string()).collect();
    for path in things(&server).await {
        for (annotations, pointers) in [
            (json!({"name": "\u{200b}", "tags": ["ok", "", "x".repeat(41)]}), &["/name", "/tags/1", "/tags/2"][..]),
            (json!({"tags": many}), &["/tags"]),
        ] {
            let wrong = sent(&server, "PATCH", &path, annotations.to_string()).await;
            assert_eq!(
                (wrong.status, wrong.pointers()),
                (422, pointers.iter().map(ToString::to_string).collect()),
                "{path}"
            );
        }
        let sound = json!({"name": "x".repeat(500), "note": " told ", "tags": ["b", "a", "b", "x".repeat(40)]});
        assert_eq!(sent(&server, "PATCH", &path, sound.to_string()).await.status, 200, "{path}");
        let unknown = sent(&server, "PATCH", &path, json!({"colour": 1}).to_string()).await.problem();
        assert_eq!((unknown.status, unknown.kind.as_str()), (400, "/problems/malformed-request"), "{path}");
    }
}

/// 16 MiB and a byte more.
#[tokio::test(flavor = "multi_thread")]
async fn oversized_document_is_reported_by_size() {
    let server = TestServer::open().await;
    let large = format!("{{}}{}", " ".repeat((16 << 20) - 1));
    let mut requests: Vec<(&str, String)> = things(&server).await.into_iter().map(|path| ("PATCH", path)).collect();
    requests.push(("POST", api::path::profile_apply("any")));
    for (method, path) in requests {
        let problem = sent(&server, method, &path, large.clone()).await.problem();
        assert_eq!((problem.status, problem.kind.as_str()), (413, "/problems/too-large"), "{method} {path}");
        assert_eq!(problem.detail, "the body is larger than 16 MiB", "{method} {path}");
    }
}
