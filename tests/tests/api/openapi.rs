//! The OpenAPI document.

use std::collections::BTreeSet;

use axum::http::Request;
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

#[tokio::test]
async fn operations_have_different_names_and_a_token() {
    let server = TestServer::open().await;
    let document: Value = server.get("/api/v1/openapi.json").await.json();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{method} {path}: {name}");
        }
    }
    assert!(names.contains("get_scenarios_id") && names.contains("post_checks"), "{names:?}");
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}

/// Every JSON body without an object in its path has an example, which the server accepts as it is.
#[tokio::test]
async fn examples_of_bodies_are_accepted() {
    let server = TestServer::open().await;
    let document: Value = server.get("/api/v1/openapi.json").await.json();
    // Bodies that name objects of the server.
    let others = ["/api/v1/datasets/previews", "/api/v1/datasets/previews/merge", "/api/v1/tokenizers"];
    let (mut sent, mut described) = (0, 0);
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let body = &operation["requestBody"]["content"]["application/json"];
            if !body.is_object() || others.contains(&path.as_str()) {
                continue;
            }
            let example = &body["example"];
            assert!(example.is_object(), "{method} {path} has no example");
            described += 1;
            if !path.contains('{') {
                let request = Request::builder().method(method.to_uppercase().as_str()).uri(path);
                let request = request.header("Content-Type", "application/json").body(example.to_string().into());
                let reply = server.send(request.unwrap()).await;
                assert!((200..300).contains(&reply.status), "{method} {path}: {} {}", reply.status, reply.text());
                sent += 1;
            }
        }
    }
    assert!(sent >= 9 && described >= 17, "{sent} {described}");
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
