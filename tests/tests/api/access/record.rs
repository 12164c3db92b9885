//! Finding N10 in the attack report: unaudited changes, and changes by readers.

use axum::body::Body;
use axum::http::Request;
use harness::{Reply, Settings, TestServer, test_server};
use serde_json::{Value, json};

use super::TOKEN;

async fn opened() -> TestServer {
    TestServer::with(Settings { token: Some(TOKEN), ..Settings::default() }).await
}

async fn ask(server: &TestServer, token: &str, method: &str, path: &str, body: impl Into<Body>) -> Reply {
    let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
    server.send(request.header("content-type", "application/json").body(body.into()).unwrap()).await
}

async fn token(server: &TestServer, name: &str, role: &str) -> String {
    let body = json!({"name": name, "role": role}).to_string();
    let created: Value = ask(server, TOKEN, "POST", api::path::TOKENS, body).await.json();
    created["token"].as_str().unwrap().to_owned()
}

/// Returns the latest audit entry: actor, method, action, type, object.
async fn latest(server: &TestServer) -> [String; 5] {
    let audit: Value = ask(server, TOKEN, "GET", api::path::AUDIT, Body::empty()).await.json();
    let line = &audit["changes"][0];
    assert!(line["at"].as_str().unwrap().starts_with("2026-01-01T"), "{line}");
    ["actor", "method", "action", "kind", "object"].map(|key| line[key].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn logins_and_logouts_are_recorded_and_failed_ones_too() {
    let server = opened().await;
    let reader = token(&server, "rita", "reader").await;
    let login = server.get(&format!("/?token={reader}")).await;
    assert_eq!(latest(&server).await, ["rita", "POST", "login", "session", "0.0.0.0"]);
    let cookie = login.header("set-cookie").split(';').next().unwrap();
    let logout = Request::delete(api::path::SESSION).header("cookie", cookie).body(Body::empty()).unwrap();
    assert_eq!(server.send(logout).await.status, 204, "readers end their sessions");
    assert_eq!(latest(&server).await, ["rita", "DELETE", "delete", "session", ""]);
    assert_eq!(server.get("/?token=wrong").await.status, 401);
    assert_eq!(latest(&server).await, ["(nobody)", "POST", "failed-login", "session", "0.0.0.0"]);
}

#[tokio::test]
async fn invalid_token_is_recorded() {
    let server = opened().await;
    assert_eq!(ask(&server, "wrong", "GET", api::path::HEALTH, Body::empty()).await.status, 401);
    assert_eq!(latest(&server).await, ["(nobody)", "POST", "failed-login", "session", "0.0.0.0"]);
}

/// Successful requests and their audit entries.
#[tokio::test]
async fn every_kind_is_recorded() {
    let server = opened().await;
    let editor = token(&server, "eddy", "editor").await;
    let stored: Value =
        ask(&server, &editor, "PUT", api::path::SCENARIOS, test_server::scenario().to_string()).await.json();
    let scenario = stored["id"].as_str().unwrap().to_owned();
    let dataset: Value = ask(&server, &editor, "POST", api::path::DATASETS, "5\n7\n9\n").await.json();
    let dataset = dataset["dataset"]["id"].as_str().unwrap().to_owned();
    let run: Value = ask(&server, &editor, "POST", api::path::RUNS, "{}").await.json();
    let run = run["run"].as_str().unwrap().to_owned();
    let trace = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    let trace: Value = ask(&server, &editor, "POST", api::path::TRACES, trace).await.json();
    let trace = trace["trace"]["id"].as_str().unwrap().to_owned();
    assert_eq!(latest(&server).await, ["eddy", "POST", "create", "trace", &trace]);
    let sweep = json!({
        "schema": "sweep/1", "scenario": test_server::scenario(), "axes": [{"pointer": "/cluster/nodes", "values": [1, 2]}],
    });
    let sweep: Value = ask(&server, &editor, "POST", api::path::SWEEPS, sweep.to_string()).await.json();
    let sweep = sweep["id"].as_str().unwrap().to_owned();
    assert_eq!(latest(&server).await, ["eddy", "POST", "create", "sweep", &sweep]);
    let tokenizer = crate::previews::tokenizer();
    let uploaded: Value = ask(&server, &editor, "POST", api::path::TOKENIZERS, tokenizer).await.json();
    assert_eq!(latest(&server).await, ["eddy", "POST", "create", "tokenizer", uploaded["id"].as_str().unwrap()]);

    let name = r#"{"name":"another"}"#;
    for (kind, path, id) in [
        ("dataset", api::path::dataset(&dataset), &dataset),
        ("run", api::path::run(&run), &run),
        ("trace", api::path::trace(&trace), &trace),
        ("sweep", api::path::sweep(&sweep), &sweep),
    ] {
        for (method, path, body, action) in [
            ("PATCH", path.clone(), name, "change"),
            ("DELETE", path.clone(), "", "delete"),
            ("POST", format!("{path}/restore"), "", "restore"),
        ] {
            let reply = ask(&server, &editor, method, &path, body).await;
            assert!(reply.status < 300, "{method} {path}: {reply:?}");
            assert_eq!(latest(&server).await, ["eddy", method, action, kind, id]);
        }
    }
    assert_eq!(ask(&server, &editor, "POST", &api::path::plan(&scenario), "").await.status, 202);
    assert_eq!(latest(&server).await, ["eddy", "POST", "plan", "scenario", &scenario]);
    assert!(ask(&server, TOKEN, "DELETE", &api::path::token("eddy"), "").await.status < 300);
    assert_eq!(latest(&server).await, ["(server token)", "DELETE", "delete", "token", "eddy"]);
}

/// A reader with tokenizers or merged previews would evict those of other users.
#[tokio::test]
async fn readers_cannot_change_stored_data() {
    let server = opened().await;
    let reader = token(&server, "rita", "reader").await;
    let document = server::router::document();
    for (route, item) in &document.paths.paths {
        let operations = [("PUT", &item.put), ("POST", &item.post), ("PATCH", &item.patch), ("DELETE", &item.delete)];
        for (method, _) in operations.into_iter().filter(|(_, operation)| operation.is_some()) {
            let path = route.replace(['{', '}'], "");
            let may = [
                ("POST", "/api/v1/what-if"),
                ("POST", api::path::JOB_CONFIGS),
                ("POST", api::path::CHECKS),
                ("POST", api::path::CHECK_CHANGES),
                ("POST", api::path::CHECK_SLOWNESS),
                ("POST", api::path::CHECK_LOG),
                ("POST", api::path::SCHEDULES),
                ("POST", api::path::SCENARIO_IDENTITY),
                ("POST", api::path::DATASET_FOOTERS),
                ("DELETE", api::path::SESSION),
            ];
            let status = ask(&server, &reader, method, &path, "{}").await.status;
            assert_eq!(status != 403, may.contains(&(method, route.as_str())), "{method} {route}: {status}");
        }
    }
}

#[tokio::test]
async fn token_names_are_distinguishable() {
    let server = opened().await;
    token(&server, "ada", "reader").await;
    for (name, status) in [
        ("Ada", 409),
        ("ADA", 409),
        ("ada ", 422),
        ("\u{430}da", 422),
        ("a\u{200b}da", 422),
        ("ada@b", 422),
        ("ada-b", 201),
    ] {
        let body = json!({"name": name, "role": "admin"}).to_string();
        assert_eq!(ask(&server, TOKEN, "POST", api::path::TOKENS, body).await.status, status, "{name:?}");
    }
}

/// A run token accepts only traces for its run.
#[tokio::test]
async fn run_token_stores_its_traces() {
    let server = opened().await;
    let open = async || {
        let run: Value = ask(&server, TOKEN, "POST", api::path::RUNS, "{}").await.json();
        (run["run"].as_str().unwrap().to_owned(), run["ingest_token"].as_str().unwrap().to_owned())
    };
    let ((run, run_token), (other, _)) = (open().await, open().await);
    let trace = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    let traces = api::path::TRACES;
    for (query, token, status) in [
        (String::new(), run_token.as_str(), 401),
        ("?run=".to_owned(), &run_token, 401),
        ("?run=%20".to_owned(), &run_token, 401),
        (format!("?run={other}"), &run_token, 403),
        (format!("?run={run}"), "wrong", 403),
        (format!("?run={run}&run={other}"), &run_token, 400),
        (format!("?run={run}"), &run_token, 201),
        (format!("?run={run}"), &run_token, 200),
    ] {
        let reply = ask(&server, token, "POST", &format!("{traces}{query}"), trace).await;
        assert_eq!(reply.status, status, "{query}: {reply:?}");
        if status == 201 {
            assert_eq!(reply.json::<Value>()["trace"]["run"], json!(run));
        }
    }
    assert_eq!(latest(&server).await[0], "(run token)");
    assert_eq!(ask(&server, &run_token, "GET", traces, Body::empty()).await.status, 401, "it reads nothing");
}
