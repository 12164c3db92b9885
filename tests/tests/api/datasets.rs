//! Uploads: storage, rejection and deletion.

use std::time::Duration;

use harness::{TestServer, test_server};
use serde_json::{Value, json};

async fn count(server: &TestServer) -> usize {
    server.get(api::path::DATASETS).await.json::<Value>()["datasets"].as_array().unwrap().len()
}

#[tokio::test]
async fn the_same_content_is_stored_once() {
    let server = TestServer::open().await;
    let first = server.post("/api/v1/datasets?name=a.txt", "5\n7\n9\n").await;
    server.clock.advance(Duration::from_mins(1));
    // Different name and format, same lengths.
    let again = server.post("/api/v1/datasets?name=b.json", "[5, 7, 9]").await;
    assert_eq!((first.status, again.status), (201, 200));
    let (first, again): (Value, Value) = (first.json(), again.json());
    assert_eq!(first["dataset"], again["dataset"]);
    assert_eq!(again["report"]["format"], "JSON list");
    assert_eq!(count(&server).await, 1);

    let columns = &first["dataset"]["text_tokens"];
    assert_eq!((&columns["mean"], &columns["median"], &columns["max"]), (&json!(7.0), &json!(7.0), &json!(9.0)));
    assert_eq!(columns["edges"].as_array().unwrap().len(), columns["counts"].as_array().unwrap().len() + 1);

    // Newest first.
    server.post(api::path::DATASETS, "1 2 3").await;
    let list: Value = server.get(api::path::DATASETS).await.json();
    assert_eq!(list["datasets"][1]["id"], first["dataset"]["id"]);
    let fetched: Value = server.get(&api::path::dataset(first["dataset"]["id"].as_str().unwrap())).await.json();
    assert_eq!(fetched, first["dataset"]);
}

#[tokio::test]
async fn histograms_and_images_are_datasets_too() {
    let server = TestServer::open().await;
    let file = json!({"schema": "hist/1", "unit": "tokens", "edges": [1, 100, 100, 500], "counts": [10, 5, 5]});
    let uploaded: Value = server.post(api::path::DATASETS, file.to_string()).await.json();
    assert_eq!((&uploaded["dataset"]["samples"], &uploaded["dataset"]["images"]), (&json!(20), &Value::Null));

    let uploaded: Value = server.post(api::path::DATASETS, "num_tokens,images\n10,0\n20,3\n").await.json();
    assert_eq!(uploaded["dataset"]["images"]["max"], 3.0);

    let uploaded: Value = server.post("/api/v1/datasets?column=b", "a,b\n1,2\n3,4\n").await.json();
    assert_eq!(uploaded["dataset"]["text_tokens"]["max"], 4.0);
    assert_eq!(uploaded["report"]["alternatives"], json!(["a"]));
}

#[tokio::test]
async fn invalid_length_files_are_rejected_and_not_stored() {
    let server = TestServer::open().await;
    for (path, file, status, expected) in [
        ("/api/v1/datasets", &b""[..], 422, "file is empty"),
        ("/api/v1/datasets", b"tokens\nmany\nfew\n", 422, "hold no length"),
        ("/api/v1/datasets", b"5\n-7\n", 422, "line 2: -7"),
        ("/api/v1/datasets", b"5\n0\n", 422, "line 2: 0"),
        ("/api/v1/datasets", b"5\n2000000000\n", 422, "line 2: 2000000000"),
        ("/api/v1/datasets?name=x.json", b"\x89PNG\r\n\x1a\nxxxx", 415, "PNG"),
        ("/api/v1/datasets?column=nope", b"a,b\n1,2\n", 422, "\"nope\""),
        ("/api/v1/datasets", b"{\"schema\":\"hist/1\",\"edges\":[1,2],\"counts\":[0]}", 422, "every count is zero"),
    ] {
        let reply = server.post(path, file.to_vec()).await;
        assert_eq!(reply.status, status, "{reply:?}");
        assert!(reply.problem().detail.contains(expected), "{reply:?}");
    }
    assert_eq!(server.post("/api/v1/datasets?name=a&name=b", "5").await.problem().status, 400);
    assert_eq!(count(&server).await, 0);
}

#[tokio::test]
async fn oversized_body_is_rejected() {
    let server = TestServer::open().await;
    // Formats that are read at once. Line formats can be larger.
    let mut json = vec![b' '; (64 << 20) + 1];
    json[0] = b'[';
    let reply = server.post(api::path::DATASETS, json).await;
    assert_eq!(reply.problem().status, 413, "{reply:?}");
    let reply = server.request("PUT", api::path::SCENARIOS, vec![b' '; (1 << 20) + 1]).await;
    assert_eq!(reply.problem().status, 413);
}

#[tokio::test]
async fn a_deleted_dataset_says_so_until_it_is_uploaded_again() {
    let server = TestServer::open().await;
    let upload = || server.post(api::path::DATASETS, "512 1024 2048");
    let id = upload().await.json::<Value>()["dataset"]["id"].as_str().unwrap().to_owned();
    let mut scenario = test_server::scenario();
    scenario["workload"]["samples"] = json!({"kind": "dataset", "id": id});
    let stored = server.store(&scenario).await;

    server.clock.advance(Duration::from_hours(1));
    assert_eq!(server.delete(&api::path::dataset(&id)).await.status, 204);
    let gone = server.get(&api::path::dataset(&id)).await;
    assert_eq!(gone.status, 410);
    assert!(gone.problem().detail.contains("2026-01-01T01:00:00Z"), "{gone:?}");
    assert_eq!(server.delete(&api::path::dataset(&id)).await.status, 410);
    assert_eq!(server.delete(&api::path::dataset("nothing")).await.problem().status, 404);
    assert_eq!(count(&server).await, 0);

    // The scenario exists but cannot be planned or stored again.
    assert_eq!(server.get(&api::path::scenario(&stored)).await.status, 200);
    assert_eq!(server.post(&api::path::plan(&stored), "").await.pointers(), ["/workload/samples/id"]);
    scenario["seed"] = json!(99);
    let reply = server.request("PUT", api::path::SCENARIOS, scenario.to_string()).await;
    assert_eq!((reply.status, reply.pointers()), (422, vec!["/workload/samples/id".to_owned()]));

    let again = upload().await;
    assert_eq!((again.status, again.json::<Value>()["dataset"]["id"].as_str().unwrap()), (201, id.as_str()));
    assert_eq!(server.get(&api::path::dataset(&id)).await.status, 200);
}

/// Plans real document and prompt lengths from PLANSCOPE_DATA.
#[tokio::test(flavor = "multi_thread")]
async fn real_lengths_are_planned_by_sequence() {
    let Some(data) = std::env::var_os("PLANSCOPE_DATA") else {
        eprintln!("skipped: PLANSCOPE_DATA is not set, so there are no real lengths");
        return;
    };
    let server = TestServer::open().await;
    let folder = std::path::Path::new(&data).join("data/lengths");
    for (file, column) in
        [("arxiv_summarization.csv", "num_total_tokens"), ("splitwise_code.csv", "num_prefill_tokens")]
    {
        let lengths = std::fs::read_to_string(folder.join(file)).unwrap();
        let rows = lengths.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
        let path = format!("{}?name={file}&column={column}", api::path::DATASETS);
        let uploaded = server.post(&path, lengths).await;
        assert_eq!(uploaded.status, 201, "{uploaded:?}");
        let uploaded: Value = uploaded.json();
        assert_eq!(uploaded["dataset"]["samples"], rows);
        let scenario = json!({
            "schema": "scenario/1", "model": {"preset": "llama-2-7b"}, "cluster": {"preset": "a800", "nodes": 1},
            "workload": {
                "samples": {"kind": "dataset", "id": uploaded["dataset"]["id"]},
                "global_batch": 48, "context_length": 16_384, "packing": "single"
            },
            "training": {"gradients": "bf16"}, "planners": ["hydraulis", "dhp"], "iterations": 2
        });
        let id = server.store(&scenario).await;
        assert_eq!(server.plan(&id).await["state"]["state"], "done");
        let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
        for result in outcome["outcome"]["results"].as_array().unwrap() {
            assert_eq!(result["answer"]["status"], "planned", "{file}: {result}");
            let iterations = result["answer"]["iterations"].as_array().unwrap();
            let field = if result["planner"] == "dhp" { "groups" } else { "strategy" };
            assert!(
                iterations.len() == 2 && iterations.iter().all(|iteration| iteration[field].is_object()),
                "{file}: {result}"
            );
        }
        let batches = outcome["planning_ms"].as_array().unwrap();
        assert!(batches.iter().all(|time| time["batches"].as_array().unwrap().len() == 2), "{batches:?}");
    }
}

/// Synthetic rows with images, video and audio.
const MEDIA: &str = include_str!("../../e2e/fixtures/media_rows.jsonl");

async fn uploaded(server: &TestServer, rule: &str) -> Value {
    let reply = server.post(&format!("/api/v1/datasets?name=media.jsonl{rule}"), MEDIA).await;
    assert!(matches!(reply.status, 200 | 201), "{reply:?}");
    reply.json()
}

/// InternVL makes 256 tokens per tile, so the backbone mean is the text mean plus 256 times the
/// tile mean.
#[tokio::test]
async fn media_are_converted_by_the_selected_rule() {
    let server = TestServer::open().await;
    let plain = uploaded(&server, "").await;
    let advice = plain["report"]["media"]["advice"].as_str().unwrap();
    assert!(advice.contains("internvl") && advice.contains("qwen2-audio"), "{advice}");
    assert_eq!(plain["dataset"]["shaped"], Value::Null);

    let tiles = uploaded(&server, "&preprocessing=internvl").await;
    let (dataset, shaped) = (&tiles["dataset"], &tiles["report"]["media"]["shaped"]);
    assert_eq!(dataset["shaped"]["preprocessing"], "internvl");
    assert_eq!((&shaped["with_items"], &shaped["without_items"]), (&json!(36), &json!(4)));
    assert_eq!(shaped["unread"], json!(["2 clips of sound"]));
    let mean = |columns: &Value| columns["mean"].as_f64().unwrap();
    let expected = mean(&dataset["text_tokens"]) + 256.0 * mean(&dataset["images"]);
    assert!((mean(&dataset["shaped"]["backbone_tokens"]) - expected).abs() < 1e-9, "{tiles}");
    assert_eq!(shaped["mean_batch"], dataset["images"]["mean"]);

    let native = uploaded(&server, "&preprocessing=qwen-vl").await;
    let ids = [&plain, &tiles, &native].map(|uploaded| uploaded["dataset"]["id"].as_str().unwrap().to_owned());
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    // The rule is stored, listed, deleted and restored.
    assert_eq!(server.get(&api::path::dataset(&ids[1])).await.json::<Value>(), *dataset);
    assert_eq!(uploaded(&server, "&preprocessing=internvl").await["dataset"], *dataset);
    server.delete(&api::path::dataset(&ids[1])).await;
    assert_eq!(
        server.post(&api::path::dataset_restore(&ids[1]), "").await.json::<Value>()["shaped"],
        dataset["shaped"]
    );
    assert_eq!(count(&server).await, 3);

    let reply = server.post("/api/v1/datasets?preprocessing=clip", MEDIA).await.problem();
    assert!(reply.status == 400 && reply.detail.contains("llava-onevision"), "{reply:?}");
    let zero = "{\"text_tokens\": 5, \"images\": [[0, 9]]}\n".repeat(3);
    let reply = server.post("/api/v1/datasets?preprocessing=internvl", zero).await.problem();
    assert!(reply.status == 422 && reply.detail.contains("line 1: images: image 1: 0 x 9 pixels"), "{reply:?}");
    let lengths: Value = server.post("/api/v1/datasets?preprocessing=internvl", "5 7 9").await.json();
    assert!(lengths["report"]["media"]["advice"].as_str().unwrap().contains("nothing to preprocess"), "{lengths}");
}

/// DFLOP plans on preprocessed samples. Audio datasets are rejected with a reason.
#[tokio::test(flavor = "multi_thread")]
async fn dflop_plans_the_converted_items() {
    let server = TestServer::open().await;
    let mut stages = Vec::new();
    for (rule, model, noted) in [
        ("internvl", "internvl3-8b", false),
        ("qwen-vl", "internvl3-8b", false),
        ("llava-onevision", "llava-ov-7b", false),
        ("internvl", "llava-ov-7b", true),
    ] {
        let dataset = uploaded(&server, &format!("&preprocessing={rule}")).await;
        let scenario = json!({
            "schema": "scenario/1", "model": {"preset": model}, "cluster": {"preset": "a100-80gb", "nodes": 1},
            "workload": {
                "samples": {"kind": "dataset", "id": dataset["dataset"]["id"]},
                "global_batch": 32, "context_length": 32_768, "packing": "packed", "max_samples": 1
            },
            "training": {"recompute": "full"}, "planners": ["1f1b", "dflop"], "iterations": 2
        });
        let id = server.store(&scenario).await;
        assert_eq!(server.plan(&id).await["state"]["state"], "done");
        let outcome: Value = server.get(&api::path::outcome(&id)).await.json();
        let workload = &outcome["outcome"]["workload"];
        let note = workload["notes"][0].as_str().unwrap_or_default();
        assert_eq!(note.contains("items of 1024 tokens in the encoder"), noted, "{rule} {model}: {note}");
        // Samples are drawn with replacement, so the maximum is at most that of the dataset.
        let max_tokens = dataset["dataset"]["shaped"]["backbone_tokens"]["max"].as_f64().unwrap();
        assert!(workload["sample_tokens"]["max"].as_f64().unwrap() <= max_tokens, "{workload}");
        let results = outcome["outcome"]["results"].as_array().unwrap();
        let dflop = results.iter().find(|result| result["planner"] == "dflop").unwrap();
        assert_eq!(dflop["answer"]["status"], "planned", "{rule} {model}: {dflop}");
        stages.push(json!([dflop["answer"]["placement"], dflop["answer"]["stages"], dflop["answer"]["metrics"]]));
    }
    for (index, stage) in stages.iter().enumerate() {
        assert!(stages[..index].iter().all(|other| other != stage), "rule {index} changes nothing");
    }

    let sound = uploaded(&server, "&preprocessing=qwen2-audio").await;
    let mut scenario = test_server::scenario();
    scenario["model"] = json!({"preset": "llava-ov-7b"});
    scenario["workload"]["samples"] = json!({"kind": "dataset", "id": sound["dataset"]["id"]});
    let reply = server.request("PUT", api::path::SCENARIOS, scenario.to_string()).await;
    assert_eq!((reply.status, reply.pointers()), (422, vec!["/workload/samples/audio_clips".to_owned()]));
}
