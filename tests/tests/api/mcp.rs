//! Model Context Protocol over HTTP.

use axum::body::Body;
use axum::http::Request;
use harness::{Reply, Settings, TestServer};
use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef";

/// Sends a message of the protocol.
async fn send(server: &TestServer, token: Option<&str>, message: &Value) -> Reply {
    let mut request = Request::post(api::path::MCP)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    server.send(request.body(Body::from(message.to_string())).unwrap()).await
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Calls a tool and returns its text, and whether it is an error.
async fn call(server: &TestServer, tool: &str, arguments: &Value) -> (String, bool) {
    let reply = send(server, None, &request("tools/call", &json!({"name": tool, "arguments": arguments}))).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let result = reply.json::<Value>()["result"].clone();
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
    (text, result["isError"] == true)
}

const JOB: &str = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n\n\
                   [activation_checkpoint]\nmode = \"full\"\n";

#[tokio::test]
async fn tools_are_listed_and_called_without_a_session() {
    let server = TestServer::open().await;
    let client =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let reply = send(&server, None, &request("initialize", &client)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("mcp-session-id"), "", "there is no session to keep or to expire");
    let initialized: Value = reply.json();
    assert_eq!(initialized["result"]["serverInfo"]["name"], "planscope", "{initialized}");
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(&server, None, &notification).await.status, 202);

    let listed: Value = send(&server, None, &request("tools/list", &json!({}))).await.json();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let mut names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["check", "compare", "explain", "fit", "plan", "why_slow"]);

    let arguments = json!({"text": JOB, "devices": 8, "device": "h100", "tokens": 1e11, "price_per_hour": 2.5});
    let (text, is_error) = call(&server, "check", &arguments).await;
    assert!(!is_error && text.contains("s per step") && text.contains("100.00 billion tokens: "), "{text}");
    let (text, is_error) = call(&server, "explain", &json!({"term": "microbatch"})).await;
    assert!(!is_error && text.contains("microbatch: "), "{text}");
    let (text, is_error) = call(&server, "check", &json!({"text": JOB, "device": "h1000"})).await;
    assert!(is_error && text.contains("device: unknown device type"), "{text}");
    let (text, is_error) = call(&server, "check", &json!({"text": JOB, "tokens": -1.0})).await;
    assert!(is_error && text.contains("tokens: it must be greater than 0"), "{text}");
}

#[tokio::test]
async fn the_token_of_the_server_is_required() {
    let server = TestServer::with(Settings { token: Some(TOKEN), ..Settings::default() }).await;
    let list = request("tools/list", &json!({}));
    assert_eq!(send(&server, None, &list).await.problem().kind, "/problems/token-needed");
    assert_eq!(send(&server, Some("fedcba9876543210"), &list).await.status, 401);
    assert_eq!(send(&server, Some(TOKEN), &list).await.status, 200);
    // Tools store nothing, so readers call them.
    let reader = Request::post(api::path::TOKENS)
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .body(Body::from(json!({"name": "rita", "role": "reader"}).to_string()))
        .unwrap();
    let reader = server.send(reader).await.json::<Value>()["token"].as_str().unwrap().to_owned();
    assert_eq!(send(&server, Some(&reader), &list).await.status, 200);
}

#[tokio::test]
async fn refusals_are_problem_documents() {
    let server = TestServer::open().await;
    assert_eq!(server.get(api::path::MCP).await.status, 405);
    let plain = server.post(api::path::MCP, request("tools/list", &json!({})).to_string()).await.problem();
    assert!(plain.status == 400 && plain.detail.contains("text/event-stream"), "{plain:?}");
    let huge = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x".repeat(17 << 20)}});
    assert_eq!(send(&server, None, &huge).await.problem().kind, "/problems/too-large");
    let foreign =
        Request::post(api::path::MCP).header("origin", "https://example.com").header("sec-fetch-site", "cross-site");
    assert_eq!(server.send(foreign.body(Body::empty()).unwrap()).await.status, 403);
}
