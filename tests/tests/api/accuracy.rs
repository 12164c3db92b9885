//! Predictions compared with published measurements.

use api::accuracy::Accuracy;
use axum::body::Body;
use axum::http::Request;
use harness::TestServer;

#[tokio::test]
async fn the_embedded_measurements_are_answered_in_their_form() {
    let server = TestServer::open().await;
    let reply = server.get(api::path::ACCURACY).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "application/json"));
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/accuracy.json");
    let written: Accuracy = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(reply.json::<Accuracy>(), written);
}

#[tokio::test]
async fn unchanged_document_is_not_sent_again() {
    let server = TestServer::open().await;
    let first = server.get(api::path::ACCURACY).await;
    assert_eq!(first.header("cache-control"), "no-cache");
    let tag = first.header("etag").to_owned();
    assert!(tag.starts_with("W/\"") && tag.len() > 20, "{tag}");
    let ask = |tag: &str| {
        Request::get(api::path::ACCURACY).header("if-none-match", tag).body(Body::empty()).expect("a request")
    };
    let again = server.send(ask(&tag)).await;
    assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, tag.as_str()));
    let other = server.send(ask("\"another\"")).await;
    assert_eq!((other.status, &other.body), (200, &first.body));
}

#[tokio::test]
async fn nothing_can_be_changed() {
    let server = TestServer::open().await;
    for method in ["PUT", "POST", "DELETE"] {
        assert_eq!(server.request(method, api::path::ACCURACY, "{}").await.problem().status, 405, "{method}");
    }
}
