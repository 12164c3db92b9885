//! Named tokens with roles, and the audit log.

use axum::body::Body;
use axum::http::Request;
use harness::{Reply, Settings, TestServer, test_server};
use serde_json::{Value, json};

use super::TOKEN;

async fn opened() -> TestServer {
    TestServer::with(Settings { token: Some(TOKEN), ..Settings::default() }).await
}

async fn ask(server: &TestServer, token: &str, method: &str, path: &str, body: Value) -> Reply {
    let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    server.send(request.body(body).unwrap()).await
}

async fn token(server: &TestServer, name: &str, role: &str) -> String {
    let reply = ask(server, TOKEN, "POST", api::path::TOKENS, json!({"name": name, "role": role})).await;
    assert_eq!((reply.status, reply.header("location")), (201, api::path::token(name).as_str()), "{reply:?}");
    reply.json::<Value>()["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn roles_limit_token_permissions() {
    let server = opened().await;
    let reader = token(&server, "rita", "reader").await;
    let editor = token(&server, "eddy", "editor").await;
    let admin = token(&server, "ada", "admin").await;
    let new = json!({"name": "x", "role": "reader"});
    for (method, path, body, expected) in [
        ("GET", api::path::SCENARIOS, Value::Null, [200, 200, 200]),
        ("GET", api::path::SESSION, Value::Null, [200, 200, 200]),
        ("POST", api::path::TOKENIZERS, Value::Null, [403, 422, 422]),
        ("POST", api::path::SCENARIO_IDENTITY, test_server::scenario(), [200, 200, 200]),
        ("POST", api::path::CHECKS, json!({"text": "no configuration"}), [422, 422, 422]),
        ("PUT", api::path::SCENARIOS, test_server::scenario(), [403, 201, 200]),
        ("DELETE", "/api/v1/datasets/nothing", Value::Null, [403, 404, 404]),
        ("PATCH", "/api/v1/runs/nothing/log", Value::Null, [403, 404, 404]),
        ("GET", api::path::TOKENS, Value::Null, [403, 403, 200]),
        ("POST", api::path::TOKENS, new, [403, 403, 201]),
        ("DELETE", "/api/v1/tokens/nobody", Value::Null, [403, 403, 404]),
        ("GET", api::path::AUDIT, Value::Null, [403, 403, 200]),
    ] {
        for (token, expected) in [&reader, &editor, &admin].into_iter().zip(expected) {
            let reply = ask(&server, token, method, path, body.clone()).await;
            assert_eq!(reply.status, expected, "{method} {path}: {reply:?}");
            if expected == 403 {
                assert_eq!(reply.problem().kind, "/problems/not-allowed", "{method} {path}");
            }
        }
    }
    let rejection = ask(&server, &reader, "PUT", api::path::SCENARIOS, test_server::scenario()).await;
    let detail = rejection.problem().detail;
    assert!(detail.contains("rita has the role reader") && detail.contains("role editor"), "{detail}");
}

#[tokio::test]
async fn a_revoked_token_is_good_for_nothing_at_once() {
    let server = opened().await;
    let editor = token(&server, "eddy", "editor").await;
    let login = server.get(&format!("/?token={editor}")).await;
    let cookie = login.header("set-cookie").split(';').next().unwrap().to_owned();
    let session = |path: &'static str| {
        let request = Request::get(path).header("cookie", cookie.as_str()).body(Body::empty()).unwrap();
        server.send(request)
    };
    assert_eq!(session(api::path::SESSION).await.json::<Value>()["actor"], "eddy");
    assert_eq!(ask(&server, TOKEN, "DELETE", &api::path::token("eddy"), Value::Null).await.status, 204);
    assert_eq!(ask(&server, &editor, "GET", api::path::HEALTH, Value::Null).await.status, 401);
    assert_eq!(session(api::path::HEALTH).await.status, 401, "its sessions end with it");
    let again = ask(&server, TOKEN, "POST", api::path::TOKENS, json!({"name": "eddy", "role": "admin"})).await;
    assert_eq!(again.problem().kind, "/problems/token-exists");
    let list: Value = ask(&server, TOKEN, "GET", api::path::TOKENS, Value::Null).await.json();
    assert_eq!(list["tokens"][0]["revoked_at"], "2026-01-01T00:00:00Z", "{list}");
    assert!(!list.to_string().contains(&editor));
}

/// `planscope token revoke` writes to the database.
#[tokio::test]
async fn a_token_that_the_command_line_revokes_ends_within_seconds() {
    let server = opened().await;
    let editor = token(&server, "eddy", "editor").await;
    assert_eq!(ask(&server, &editor, "GET", api::path::HEALTH, Value::Null).await.status, 200);
    server.store.writer().revoke_token("eddy", jiff::Timestamp::UNIX_EPOCH).await.unwrap();
    server.clock.advance(std::time::Duration::from_secs(5));
    assert_eq!(ask(&server, &editor, "GET", api::path::HEALTH, Value::Null).await.status, 401);
}

#[tokio::test]
async fn invalid_token_names_and_roles_are_rejected() {
    let server = opened().await;
    for (body, status) in [
        (json!({"name": "", "role": "reader"}), 422),
        (json!({"name": "a/b", "role": "reader"}), 422),
        (json!({"name": "x".repeat(61), "role": "reader"}), 422),
        (json!({"name": "..", "role": "reader"}), 422),
        (json!({"name": "ada", "role": "owner"}), 400),
        (json!({"name": "ada"}), 400),
    ] {
        assert_eq!(ask(&server, TOKEN, "POST", api::path::TOKENS, body.clone()).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn every_change_is_recorded_with_its_author() {
    let server = opened().await;
    let editor = token(&server, "eddy", "editor").await;
    let stored: Value = ask(&server, &editor, "PUT", api::path::SCENARIOS, test_server::scenario()).await.json();
    let id = stored["id"].as_str().unwrap();
    ask(&server, &editor, "POST", api::path::SCENARIO_IDENTITY, test_server::scenario()).await;
    ask(&server, &editor, "DELETE", "/api/v1/datasets/nothing", Value::Null).await;
    let run: Value = ask(&server, &editor, "POST", api::path::RUNS, json!({"name": "a"})).await.json();
    let (run, run_token) = (run["run"].as_str().unwrap(), run["ingest_token"].as_str().unwrap());
    let log = Request::patch(format!("{}?offset=0", api::path::run_log(run)))
        .header("authorization", format!("Bearer {run_token}"));
    assert_eq!(server.send(log.body(Body::from("a line\n")).unwrap()).await.status, 204);
    assert_eq!(ask(&server, run_token, "POST", &api::path::run_finish(run), json!({"exit_code": 0})).await.status, 204);
    assert_eq!(ask(&server, &editor, "DELETE", &api::path::run(run), Value::Null).await.status, 204);

    let audit: Value = ask(&server, TOKEN, "GET", &format!("{}?limit=3", api::path::AUDIT), Value::Null).await.json();
    let actions = |audit: &Value| -> Vec<String> {
        let changes = audit["changes"].as_array().unwrap().iter();
        changes
            .map(|change| {
                ["actor", "method", "action", "kind", "object"].map(|key| change[key].as_str().unwrap()).join(" ")
            })
            .collect()
    };
    assert_eq!(
        actions(&audit),
        [
            format!("eddy DELETE delete run {run}"),
            format!("(run token) POST finish run {run}"),
            format!("eddy POST create run {run}"),
        ]
    );
    let next = audit["next"].as_u64().unwrap();
    let path = format!("{}?after={next}", api::path::AUDIT);
    let audit: Value = ask(&server, TOKEN, "GET", &path, Value::Null).await.json();
    assert_eq!(
        actions(&audit),
        [format!("eddy PUT create scenario {id}"), "(server token) POST create token eddy".to_owned()]
    );
    assert!(audit.get("next").is_none(), "{audit}");
}
