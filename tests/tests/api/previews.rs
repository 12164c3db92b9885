//! Dataset previews: reading, merging, storing and expiry.

use std::time::Duration;

use harness::{Reply, TestServer};
use serde_json::{Value, json};

async fn preview(server: &TestServer, query: &str, file: &str) -> Reply {
    server.post(&format!("{}?preview=true{query}", api::path::DATASETS), file.to_owned()).await
}

async fn document(server: &TestServer, path: &str, body: Value) -> Reply {
    let request = axum::http::Request::post(path).header("content-type", "application/json");
    server.send(request.body(axum::body::Body::from(body.to_string())).unwrap()).await
}

async fn stored(server: &TestServer) -> usize {
    server.get(api::path::DATASETS).await.json::<Value>()["datasets"].as_array().unwrap().len()
}

#[tokio::test]
async fn preview_is_stored_once_on_request() {
    let server = TestServer::open().await;
    let reply = preview(&server, "&name=a.csv", "num_tokens\n100\n300\n").await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let seen: Value = reply.json();
    assert_eq!((&seen["name"], &seen["samples"]), (&json!("a.csv"), &json!(2)));
    assert_eq!(seen["text_tokens"]["mean"], 200.0);
    assert_eq!(seen["report"]["files"], json!(["a.csv"]));
    assert_eq!(seen["expires_at"], "2026-01-01T00:15:00Z");
    assert_eq!(stored(&server).await, 0);

    let wanted = json!({"previews": [seen["id"]], "name": "my lengths"});
    let reply = document(&server, api::path::DATASET_PREVIEWS, wanted.clone()).await;
    assert_eq!(reply.status, 201, "{reply:?}");
    let uploaded: Value = reply.json();
    assert_eq!(uploaded["dataset"]["name"], "my lengths");
    // The list shows the report later.
    assert_eq!(uploaded["dataset"]["report"], uploaded["report"]);
    assert_eq!(uploaded["report"]["source"], "column num_tokens");
    let list: Value = server.get(api::path::DATASETS).await.json();
    assert_eq!(list["datasets"][0]["report"], uploaded["report"]);
    // The preview is removed after storing.
    let again = document(&server, api::path::DATASET_PREVIEWS, wanted).await;
    assert!(again.problem().detail.contains("Choose the file again"), "{again:?}");
    assert_eq!(again.status, 404);
}

#[tokio::test]
async fn a_preview_is_removed_after_fifteen_minutes() {
    let server = TestServer::open().await;
    let seen: Value = preview(&server, "", "5\n7\n").await.json();
    server.clock.advance(Duration::from_mins(15));
    let reply = document(&server, api::path::DATASET_PREVIEWS, json!({"previews": [seen["id"]]})).await;
    assert_eq!((reply.status, stored(&server).await), (404, 0));
}

#[tokio::test]
async fn shards_become_a_single_dataset() {
    let server = TestServer::open().await;
    let mut ids = Vec::new();
    for (name, file) in [("s-0.csv", "num_tokens\n100\n200\n"), ("s-1.csv", "num_tokens\n300\n")] {
        let seen: Value = preview(&server, &format!("&name={name}"), file).await.json();
        ids.push(seen["id"].clone());
    }
    let reply = document(&server, api::path::DATASET_PREVIEWS_MERGE, json!({"previews": ids})).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let merged: Value = reply.json();
    assert_eq!((&merged["samples"], &merged["text_tokens"]["max"]), (&json!(3), &json!(300.0)));
    assert_eq!(merged["report"]["files"], json!(["s-0.csv", "s-1.csv"]));
    assert_eq!(merged["report"]["parsed"], 3);

    // Different columns are a different dataset. The error names the shard, and nothing is stored.
    let other: Value = preview(&server, "&name=other.csv", "input_ids_length,seq_len\n1,7\n2,9\n").await.json();
    let reply = document(&server, api::path::DATASET_PREVIEWS, json!({"previews": [merged["id"], other["id"]]})).await;
    assert_eq!(reply.status, 422, "{reply:?}");
    assert!(reply.problem().detail.contains("other.csv"), "{reply:?}");
    assert_eq!(stored(&server).await, 0);
    let none = document(&server, api::path::DATASET_PREVIEWS, json!({"previews": []})).await;
    assert_eq!(none.status, 400);
}

#[tokio::test]
async fn an_unclear_column_is_a_problem_with_candidates() {
    let server = TestServer::open().await;
    // Unsorted lengths. Sorted lengths look like a distribution table.
    let rows = (0..20).map(|row| format!("{row},{}\n", 100 + 10 * (7 * row % 20))).collect::<Vec<_>>().concat();
    let file = format!("alpha,beta\n{rows}");
    let reply = preview(&server, "", &file).await;
    assert_eq!(reply.status, 422, "{reply:?}");
    let problem: Value = reply.json();
    assert_eq!(problem["type"], "/problems/column-unclear");
    let candidates = problem["candidates"].as_array().unwrap();
    let names: Vec<&str> = candidates.iter().filter_map(|candidate| candidate["name"].as_str()).collect();
    assert!(names.contains(&"alpha") && names.contains(&"beta"), "{problem}");
    let beta = candidates.iter().find(|candidate| candidate["name"] == "beta").unwrap();
    assert_eq!(beta["kind"], "numbers");
    assert_eq!(beta["samples"][0], "100");
    assert_eq!(beta["preview"]["max"], 290.0);
    assert_eq!(stored(&server).await, 0);

    let reply = preview(&server, "&column=beta", &file).await;
    assert_eq!(reply.status, 202, "{}", reply.json::<Value>());
    let selected: Value = reply.json();
    assert_eq!(selected["text_tokens"]["max"], 290.0);
    let characters: Value =
        preview(&server, "&column=beta&unit=characters&characters_per_token=10", &file).await.json();
    assert_eq!(characters["text_tokens"]["max"], 29.0);

    // Rows sorted by length can each contain a sample count. The user decides.
    let sorted = "alpha,beta\n10,4\n20,3\n30,2\n40,1\n50,1\n60,1\n";
    assert_eq!(preview(&server, "&column=alpha", sorted).await.problem().kind, "/problems/column-unclear");
    let rows: Value = preview(&server, "&column=alpha&weight=", sorted).await.json();
    let counted: Value = preview(&server, "&column=alpha&weight=beta", sorted).await.json();
    assert_eq!((&rows["samples"], &counted["samples"]), (&json!(6), &json!(12)));
    for wrong in ["&unit=miles", "&characters_per_token=0", "&characters_per_token=many"] {
        assert_eq!(preview(&server, wrong, &file).await.status, 400, "{wrong}");
    }
}

/// Returns a tokenizer with a token per word.
pub(crate) fn tokenizer() -> String {
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}
    })
    .to_string()
}

#[tokio::test]
async fn tokenizer_counts_text_tokens() {
    let server = TestServer::open().await;
    let reply = server.post(api::path::TOKENIZERS, tokenizer()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let uploaded: Value = reply.json();
    // Nine words and the full stop.
    assert_eq!(uploaded["example_tokens"], 10);

    let file = "{\"text\": \"a b c\"}\n{\"text\": \"a b c d e\"}\n";
    let by_characters: Value = preview(&server, "", file).await.json();
    assert_eq!(
        by_characters["text_tokens"]["max"], 3.0,
        "nine characters are two or three tokens of four: {by_characters}"
    );
    let query = format!("&tokenizer={}", uploaded["id"].as_str().unwrap());
    let by_tokenizer: Value = preview(&server, &query, file).await.json();
    assert_eq!(by_tokenizer["text_tokens"]["max"], 5.0, "{by_tokenizer}");

    let unknown = preview(&server, "&tokenizer=abc", file).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.problem().detail.contains("tokenizer.json"), "{unknown:?}");
    let broken = server.post(api::path::TOKENIZERS, "{\"model\": 5}").await;
    assert_eq!((broken.status, broken.problem().kind.as_str()), (422, "/problems/invalid-tokenizer"));
}
