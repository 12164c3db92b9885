//! Profiles: measurements are uploaded, fitted, kept, and used by scenarios that say so.

mod published;

use std::fmt::Write;
use std::time::Duration;

use harness::{TestServer, test_server};
use serde_json::{Value, json};

/// Galvatron's times of a few layers: 4 and 9 ms a layer.
const LAYERS: &str = r#"{"layernum[2]_bsz1_seq2048": 15.0, "layernum[4]_bsz1_seq2048": 23.0,
    "layernum[2]_bsz2_seq2048": 24.0, "layernum[4]_bsz2_seq2048": 42.0}"#;

/// Products at 200 TFLOP/s and 5 us.
fn products(scale: u32) -> String {
    let mut table = "kernel,m,k,n,time_us\n".to_owned();
    for m in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64] {
        let (m, k, n) = (m * 128 * scale, 4096, 4096);
        let micros = 2.0 * f64::from(m) * f64::from(k) * f64::from(n) / 200e6 + 5.0;
        writeln!(table, "matmul,{m},{k},{n},{micros:.3}").unwrap();
    }
    table
}

async fn send(server: &TestServer, method: &str, path: &str, body: &Value) -> harness::Reply {
    let request = axum::http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(axum::body::Body::from(body.to_string()))
        .unwrap();
    server.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn kernels_are_fitted_stored_and_used() {
    let server = TestServer::open().await;
    let upload = async |query: &str, body: String| server.post(&format!("{}?{query}", api::path::PROFILES), body).await;
    assert_eq!(upload("name=p.csv", products(1)).await.problem().status, 422);
    assert_eq!(upload("name=p.csv&device=abacus", products(1)).await.problem().status, 422);
    let first = upload("name=p.csv&device=a100-80gb", products(1)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let first: Value = first.json();
    assert_eq!(upload("name=p.csv&device=a100-80gb", products(1)).await.status, 200);
    let id = first["summary"]["id"].as_str().unwrap().to_owned();
    let part = &first["parts"][0];
    assert_eq!((&part["name"], &part["fitted"]), (&json!("matrix products"), &json!(true)));
    assert_eq!(part["points"].as_array().unwrap().len(), 12);
    assert_eq!(first["effect"]["cluster"]["device"]["curves"]["calibration"]["matmul"], 12);

    // A second file is fitted together with the first, whose place it takes.
    let both: Value = upload(&format!("name=q.csv&onto={id}"), products(2)).await.json();
    assert_eq!(both["summary"]["measurements"], 24);
    let (old, id) = (id, both["summary"]["id"].as_str().unwrap().to_owned());
    assert_eq!(server.get(&api::path::profile(&old)).await.status, 410);

    let change = json!({"name": "our nodes", "tags": ["b", "a", "b"], "note": "in May"});
    assert_eq!(send(&server, "PATCH", &api::path::profile(&id), &change).await.status, 200);
    let list: Value = server.get(&format!("{}?search=NODES&tag=a", api::path::PROFILES)).await.json();
    assert_eq!((&list["profiles"][0]["id"], &list["tags"]), (&json!(id), &json!(["a", "b"])));
    let none: Value = server.get(&format!("{}?tag=c", api::path::PROFILES)).await.json();
    assert_eq!(none["profiles"], json!([]));

    let scenario = server.store(&test_server::scenario()).await;
    let applied = send(&server, "POST", &api::path::profile_apply(&id), &json!({"scenario": scenario})).await;
    assert_eq!(applied.status, 201, "{applied:?}");
    let applied: Value = applied.json();
    let used: Value = server.get(&api::path::scenario(applied["scenario"].as_str().unwrap())).await.json();
    let cluster = &used["scenario"]["cluster"];
    assert_eq!((&cluster["nodes"], &used["scenario"]["profiles"]), (&json!(1), &json!([id])));
    assert!(cluster["device"]["curves"]["calibration"]["source"].as_str().unwrap().contains("our nodes"));
    let again = json!({"scenario": applied["scenario"]});
    assert_eq!(send(&server, "POST", &api::path::profile_apply(&id), &again).await.problem().status, 422);

    assert_eq!(server.delete(&api::path::profile(&id)).await.status, 204);
    assert_eq!(server.get(&api::path::profile(&id)).await.status, 410);
    assert_eq!(server.post(&api::path::profile_restore(&id), "").await.status, 200);
    assert_eq!(server.delete(&api::path::profile(&id)).await.status, 204);
    server.clock.advance(Duration::from_hours(744));
    assert_eq!(server.post(&api::path::profile_restore(&id), "").await.status, 410);
}

/// The name of the file says H200: B200 is refused with both names until it is confirmed, no device is the preset of H200, and
/// A40 has none.
#[tokio::test(flavor = "multi_thread")]
async fn file_from_another_device_must_be_confirmed() {
    let server = TestServer::open().await;
    let upload = async |query: &str| server.post(&format!("{}?{query}", api::path::PROFILES), products(1)).await;
    let rejection = upload("name=h200_run.csv&device=b200").await.problem();
    assert_eq!((rejection.status, rejection.kind.as_str()), (422, "/problems/other-device"));
    assert!(
        rejection.detail.contains("h200_run.csv was measured on H200, but it is to be fitted to B200"),
        "{}",
        rejection.detail
    );
    assert_eq!(upload("name=h200_run.csv&device=b200&confirm_device=true").await.status, 201);
    let found: Value = upload("name=h200_run.csv").await.json();
    assert_eq!(found["effect"]["cluster"]["name"], "H200");
    let unknown = upload("name=a40.csv").await.problem();
    assert!(unknown.status == 422 && unknown.detail.contains("presets: a100-80gb, a100-40gb"), "{}", unknown.detail);
}

/// An output of `planscope measure` names its device. Rows of layers are not fitted.
#[tokio::test(flavor = "multi_thread")]
async fn measurements_are_fitted_to_their_device() {
    let server = TestServer::open().await;
    let products = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64].map(|m| {
        let m = m * 128;
        let micros = 2.0 * f64::from(m) * 4096.0 * 4096.0 / 500e6 + 5.0;
        json!({"kernel": "matmul", "product": "forward", "format": "bf16", "m": m, "k": 4096, "n": 4096, "time_us": micros})
    });
    let document = json!({"format": "planscope-measurements", "version": 1, "header": {"device": "NVIDIA H100 80GB HBM3"}, "sections": [
        {"name": "products", "fitted": true, "results": products},
        {"name": "validation", "fitted": false, "results": [{"op": "layer", "tokens": 4096, "time_us": 9000.0}]},
    ]})
    .to_string();
    let upload = async |query: &str| server.post(&format!("{}?{query}", api::path::PROFILES), document.clone()).await;
    let refused = upload("name=profile.json&device=b200").await.problem();
    assert_eq!((refused.status, refused.kind.as_str()), (422, "/problems/other-device"));
    let profile: Value = upload("name=profile.json").await.json();
    assert_eq!(
        (&profile["effect"]["cluster"]["name"], &profile["summary"]["measurements"]),
        (&json!("H100"), &json!(12))
    );
    let report = profile["report"].to_string();
    assert!(report.contains("read, not fitted: 1 validation"), "{report}");
}

/// Times 30 times longer or shorter than those of the device are refused until they are confirmed. Three times longer is a
/// measurement.
#[tokio::test(flavor = "multi_thread")]
async fn measurements_far_from_the_device_must_be_confirmed() {
    let server = TestServer::open().await;
    let scaled = |factor: f64| {
        let products = products(1);
        let row = |row: &str| {
            let (product, micros) = row.rsplit_once(',').unwrap();
            micros.parse::<f64>().map_or_else(|_| row.to_owned(), |micros| format!("{product},{}", micros * factor))
        };
        products.lines().map(row).collect::<Vec<_>>().join("\n")
    };
    let upload = async |factor: f64, query: &str| {
        server.post(&format!("{}?name=p.csv&device=a100-80gb{query}", api::path::PROFILES), scaled(factor)).await
    };
    for factor in [30.0, 1.0 / 30.0] {
        let refused = upload(factor, "").await.problem();
        assert_eq!((refused.status, refused.kind.as_str()), (422, "/problems/other-device"), "{factor}");
        assert!(refused.detail.starts_with("matrix products: the median time is"), "{}", refused.detail);
        assert_eq!(upload(factor, "&confirm_device=false").await.status, 422, "{factor}");
        assert_eq!(upload(factor, "&confirm_device=true").await.status, 201, "{factor}");
    }
    assert_eq!(upload(3.0, "").await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn timed_layers_become_backbone_times() {
    let server = TestServer::open().await;
    let path = format!("{}?name=computation_profiling_bf16.json", api::path::PROFILES);
    let profile: Value = server.post(&path, LAYERS).await.json();
    let id = profile["summary"]["id"].as_str().unwrap().to_owned();
    assert_eq!(profile["effect"]["kind"], "overrides");
    let scenario = server.store(&test_server::scenario()).await;
    let applied: Value =
        send(&server, "POST", &api::path::profile_apply(&id), &json!({"scenario": scenario})).await.json();
    let used: Value = server.get(&api::path::scenario(applied["scenario"].as_str().unwrap())).await.json();
    let given = &used["scenario"]["training"]["overrides"][0];
    assert_eq!((&given["operator"], &given["phase"]), (&json!("layer"), &json!("forward")));
    assert!(given["module"].is_string() && given["table_us"][0][0] == 2048.0, "{given}");
    let mixed =
        server.post(&format!("{}?name=p.csv&device=a100-80gb&onto={id}", api::path::PROFILES), products(1)).await;
    assert_eq!(mixed.problem().status, 422);
    assert_eq!(server.post(&path, "nothing of the kind").await.problem().kind, "/problems/invalid-profile");
}

/// Three lengths at TP 1 and at TP 2, of 1e-6 l² + 0.002 l + 0.1 ms a layer, half of it at TP 2; one row is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn timed_schemes_become_time_curves() {
    let server = TestServer::open().await;
    let mut table = "tp,length,sequences,layers,time_ms\n".to_owned();
    for (tensor, length, sequences) in
        [(1, 1024, 1), (1, 4096, 1), (1, 4096, 2), (2, 1024, 1), (2, 4096, 1), (2, 8192, 1)]
    {
        let l = f64::from(length);
        let millis = (f64::from(sequences) * (1e-6 * l * l + 0.002 * l) + 0.1) / f64::from(tensor) * 4.0;
        writeln!(table, "{tensor},{length},{sequences},4,{millis}").unwrap();
    }
    table.push_str("2,16384,1,4,soon\n");
    let path = format!("{}?name=schemes.csv", api::path::PROFILES);
    let stored = server.post(&path, table.clone()).await;
    assert_eq!(stored.status, 201, "{stored:?}");
    let profile: Value = stored.json();
    assert!(profile["report"][0].as_str().unwrap().contains("first row 8, column time_ms: soon"), "{profile}");
    assert_eq!((&profile["summary"]["measurements"], profile["parts"].as_array().unwrap().len()), (&json!(6), 2));
    assert!(profile["parts"][0]["residual"].as_f64().unwrap() < 1e-6, "{profile}");
    let id = profile["summary"]["id"].as_str().unwrap().to_owned();
    let scenario = server.store(&test_server::scenario()).await;
    let applied: Value =
        send(&server, "POST", &api::path::profile_apply(&id), &json!({"scenario": scenario})).await.json();
    let used: Value = server.get(&api::path::scenario(applied["scenario"].as_str().unwrap())).await.json();
    let given = used["scenario"]["training"]["overrides"].as_array().unwrap();
    // What the model is off by stands before the timed degrees, of which the last counts.
    assert!(given.len() == 3 && given[0]["scale"].is_f64() && given[0].get("at").is_none(), "{given:?}");
    assert_eq!((&given[1]["at"], &given[2]["at"]["tensor"]), (&json!({"tensor": 1, "context": 1}), &json!(2)));
    assert_eq!(given[1]["timings_us"].as_array().unwrap().len(), 3);
    let layers = server.post(&format!("{}?name=l.json&onto={id}", api::path::PROFILES), LAYERS).await;
    assert_eq!(layers.problem().status, 422);
    let wrong = server.post(&path, "tp,length,time_ms\n1,2048,0\n").await.problem();
    assert!(wrong.detail.contains("row 2, column time_ms: 0"));
}
