//! The OpenAPI document.

use harness::TestServer;
use serde_json::Value;

#[tokio::test]
async fn the_document_is_reviewed_whenever_it_changes() {
    let server = TestServer::open().await;
    let document: Value = server.get("/api/v1/openapi.json").await.json();
    insta::assert_snapshot!("openapi", serde_json::to_string_pretty(&document).unwrap());
}

#[tokio::test]
async fn every_error_is_described_as_a_problem() {
    let server = TestServer::open().await;
    let document: Value = server.get("/api/v1/openapi.json").await.json();
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
    // All references resolve.
    let text = document.to_string();
    for name in text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}

/// Types with the same name would share a schema. Each page has its own row schema.
#[tokio::test]
async fn point_pages_and_row_pages_have_distinct_schemas() {
    let server = TestServer::open().await;
    let document: Value = server.get("/api/v1/openapi.json").await.json();
    for (path, rows) in [("/api/v1/runs/{run}/points", "points"), ("/api/v1/sweeps/{id}/points", "rows")] {
        let schema =
            &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
        let name = schema.as_str().and_then(|schema| schema.strip_prefix("#/components/schemas/")).unwrap();
        assert!(document["components"]["schemas"][name]["properties"][rows].is_object(), "{path}: {name}");
    }
}

/// No object has this name, and it is not an identifier.
#[tokio::test]
async fn empty_responses_are_described() {
    let server = TestServer::open().await;
    let document: Value = server.get("/api/v1/openapi.json").await.json();
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let without_names: String = path
            .split_inclusive(['{', '}'])
            .filter(|part| !part.ends_with('}'))
            .map(|part| part.replace('{', "0"))
            .collect();
        for (method, operation) in item.as_object().unwrap() {
            // Paths without parameters can stream or create objects. Other tests cover them.
            if !path.contains('{') {
                continue;
            }
            let reply = server.request(&method.to_uppercase(), &without_names, "").await;
            let described = &operation["responses"][reply.status.to_string()];
            assert!(described.is_object(), "{method} {without_names}: {} {}", reply.status, reply.text());
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}
