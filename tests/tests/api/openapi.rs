//! The description of the API.

use harness::House;
use serde_json::Value;

#[tokio::test]
async fn the_document_is_reviewed_whenever_it_changes() {
    let house = House::open().await;
    let document: Value = house.get("/api/v1/openapi.json").await.json();
    insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document).unwrap());
}

#[tokio::test]
async fn every_failure_is_described_as_a_problem() {
    let house = House::open().await;
    let document: Value = house.get("/api/v1/openapi.json").await.json();
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                if !status.starts_with('2') {
                    let schema = &response["content"][api::path::PROBLEM_MEDIA_TYPE]["schema"]["$ref"];
                    assert_eq!(schema, "#/components/schemas/Problem", "{method} {path} {status}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 60, "{seen}");
    // Every reference leads somewhere.
    let text = document.to_string();
    for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}
