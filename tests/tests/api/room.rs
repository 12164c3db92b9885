//! Databases that hold as much as they may, or cannot be written.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use harness::{Settings, TestServer, test_server};
use planner::engine::Unobserved;
use planner::scenario::validate::NoDatasets;
use planner::sweep::{Heading, Shard, Sweep, plan_point};
use serde_json::{Value, json};

/// A database that is full as soon as it has tables.
async fn full() -> TestServer {
    TestServer::with(Settings { quota: Some(1), ..Settings::default() }).await
}

/// The same database with room for whatever comes.
async fn roomy(server: TestServer) -> TestServer {
    server.restarted(Settings::default()).await
}

#[tokio::test]
async fn full_database_rejects_new_data_and_suggests_deletions() {
    let server = full().await;
    let run = json!({"name": "a job"}).to_string();
    let log = include_str!("runs/train.log");
    for (method, path, body) in [
        ("PUT", api::path::SCENARIOS, test_server::scenario().to_string()),
        ("POST", api::path::DATASETS, "5\n7\n9\n".to_owned()),
        ("POST", api::path::RUNS, run),
        ("POST", api::path::RUN_IMPORT, log.to_owned()),
        ("POST", api::path::TRACES, r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#.to_owned()),
    ] {
        let problem = server.request(method, path, body).await.problem();
        assert_eq!((problem.status, &*problem.kind), (507, "/problems/quota-reached"), "{path}");
        assert!(problem.detail.contains("delete") && problem.detail.contains("--quota"), "{}", problem.detail);
    }
    for path in [api::path::DATASETS, api::path::SCENARIOS, api::path::RUNS, api::path::TRACES] {
        assert_eq!(server.get(path).await.json::<Value>()["total"], 0, "{path}");
    }
}

/// Rows of all points of a sweep, as `planscope sweep` writes them.
fn sweep_rows(sweep: &str) -> String {
    let sweep = Sweep::parse(sweep).unwrap();
    let mut text = Heading::new(&sweep, Shard::FULL).line();
    for point in 0..sweep.points() {
        let row = plan_point(&sweep.point(point).unwrap(), &NoDatasets, &mut Unobserved).unwrap();
        text.push('\n');
        text.push_str(&serde_json::to_string(&row).unwrap());
    }
    text + "\n"
}

/// Of a trace the packed columns are stored, not the file.
#[tokio::test]
async fn trace_is_admitted_by_its_stored_size() {
    let server = TestServer::open().await;
    let used = server.store.reader().usage().await.unwrap().used;
    let server = server.restarted(Settings { quota: Some(used + (1 << 20)), ..Settings::default() }).await;
    let file = format!(r#"[{{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}}{}]"#, " ".repeat(2 << 20));
    let request = Request::post(api::path::TRACES).header("content-length", file.len()).body(Body::from(file));
    assert_eq!(server.send(request.unwrap()).await.status, 201);
}

#[tokio::test]
async fn full_database_allows_reads_changes_and_deletions() {
    let server = TestServer::open().await;
    let scenario = server.store(&test_server::scenario()).await;
    let dataset: Value = server.post(api::path::DATASETS, "5\n7\n9\n").await.json();
    let dataset = dataset["dataset"]["id"].as_str().unwrap().to_owned();
    let opened: Value = server.post(api::path::RUNS, "{}").await.json();
    let run = opened["run"].as_str().unwrap().to_owned();
    let trace = r#"[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    assert_eq!(server.post(api::path::TRACES, trace).await.status, 201);
    let sweep = json!({
        "schema": "sweep/1", "scenario": test_server::scenario(), "axes": [{"pointer": "/cluster/nodes", "values": [0, 5000]}],
    })
    .to_string();
    let sweep_id =
        server.post(api::path::SWEEPS, sweep.clone()).await.json::<Value>()["id"].as_str().unwrap().to_owned();
    let rows = sweep_rows(&sweep);
    let first: String = rows.split_inclusive('\n').take(2).collect();
    assert_eq!(server.post(&api::path::sweep_points(&sweep_id), first.clone()).await.status, 200);
    let server = server.restarted(Settings { quota: Some(1), ..Settings::default() }).await;

    // The same again is nothing new.
    assert_eq!(server.store(&test_server::scenario()).await, scenario);
    assert_eq!(server.post(api::path::DATASETS, "5\n7\n9\n").await.status, 200);
    assert_eq!(server.post(api::path::TRACES, trace).await.status, 200);
    assert_eq!(server.post(api::path::SWEEPS, sweep).await.status, 200);
    let again = server.post(&api::path::sweep_points(&sweep_id), first).await;
    assert_eq!((again.status, &again.json::<Value>()["added"]), (200, &json!(0)));
    // One of these rows is.
    assert_eq!(server.post(&api::path::sweep_points(&sweep_id), rows).await.problem().status, 507);
    let present: Value = server.get(&api::path::sweep_points(&sweep_id)).await.json();
    assert_eq!(present["rows"].as_array().unwrap().len(), 1, "nothing of it was stored");
    let rename = Request::patch(api::path::dataset(&dataset)).header("content-type", "application/json");
    assert_eq!(server.send(rename.body(Body::from(r#"{"name": "b"}"#)).unwrap()).await.status, 200);
    assert_eq!(server.post(&api::path::keep(&scenario), "").await.status, 200);
    // What a trainer sends is new; that it ended must be known.
    let log = format!("{}?offset=0", api::path::run_log(&run));
    let token = opened["ingest_token"].as_str().unwrap();
    let send = Request::patch(log).header("authorization", format!("Bearer {token}")).body(Body::from("a line\n"));
    assert_eq!(server.send(send.unwrap()).await.problem().status, 507);
    assert_eq!(server.post(&api::path::run_finish(&run), r#"{"exit_code": 0}"#).await.status, 204);
    assert_eq!(server.post(&api::path::plan(&scenario), "").await.problem().status, 507);
    assert_eq!(server.delete(&api::path::dataset(&dataset)).await.status, 204);
    assert_eq!(server.post(&api::path::dataset_restore(&dataset), "").await.status, 200);

    let server = roomy(server).await;
    assert_eq!(server.plan(&scenario).await["state"]["state"], "done");
}

/// Something large is refused although the quota is not reached: what is deleted then makes way for it, and not before its time
/// once it is there.
#[tokio::test]
async fn deletion_makes_space_for_rejected_data() {
    let lengths = |from: u32| (from..from + 100_000).map(|length| length.to_string()).collect::<Vec<_>>().join("\n");
    let (quarter, server) = (Duration::from_mins(15), TestServer::open().await);
    let stored = async |server: &TestServer, from: u32| server.post(api::path::DATASETS, lengths(from)).await;
    let reply_id = |reply: harness::Reply| {
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json::<Value>()["dataset"]["id"].as_str().unwrap().to_owned()
    };
    let first = reply_id(stored(&server, 100_000).await);
    let used = server.store.reader().usage().await.unwrap().used;
    let quota = Some(used + 300_000);
    let server = server.restarted(Settings { quota, ..Settings::default() }).await;

    assert_eq!(stored(&server, 200_000).await.problem().status, 507);
    assert_eq!(server.delete(&api::path::dataset(&first)).await.status, 204);
    server.clock.advance(Duration::from_mins(1));
    server::forgetting::round(&server.app, false).await.unwrap();
    assert_eq!(server.get("/api/v1/datasets?deleted=true").await.json::<Value>()["total"], 1, "a slip of the hand");
    server.clock.advance(quarter);
    server::forgetting::round(&server.app, false).await.unwrap();
    let second = reply_id(stored(&server, 200_000).await);

    assert_eq!(server.delete(&api::path::dataset(&second)).await.status, 204);
    server.clock.advance(quarter);
    server::forgetting::round(&server.app, false).await.unwrap();
    assert_eq!(server.post(&api::path::dataset_restore(&second), "").await.status, 200);
}

#[tokio::test]
async fn readiness_reports_the_cause() {
    let server = TestServer::open().await;
    let ready: Value = server.get(api::path::READY).await.json();
    assert_eq!((&ready["status"], &ready["quota_bytes"]), (&json!("ready"), &Value::Null));
    assert!(ready["used_bytes"].as_u64().unwrap() > 4096, "{ready}");

    let server = server.restarted(Settings { quota: Some(1), ..Settings::default() }).await;
    let not_ready = server.get(api::path::READY).await;
    assert_eq!((not_ready.pointers(), not_ready.header("retry-after")), (vec!["/database/quota".to_owned()], "5"));
    assert_eq!(server.get(api::path::HEALTH).await.status, 200, "it lives nevertheless");

    let server = roomy(server).await;
    forbid_writing(&server).await;
    assert_eq!(server.get(api::path::READY).await.pointers(), ["/database/write"]);
}

/// SQLite refuses to write as it does in a file system that was mounted read-only.
async fn forbid_writing(server: &TestServer) {
    let mut write = server.store.writer().begin().await.unwrap();
    sqlx::query("PRAGMA query_only = ON").execute(&mut *write).await.unwrap();
    write.commit().await.unwrap();
}

#[tokio::test]
async fn read_only_database_is_reported_and_reads_continue() {
    let server = TestServer::open().await;
    let id = server.store(&test_server::scenario()).await;
    forbid_writing(&server).await;
    let problem = server.post(api::path::DATASETS, "5\n7\n9\n").await.problem();
    assert_eq!((problem.status, &*problem.kind), (503, "/problems/database-read-only"));
    assert!(problem.detail.contains("Nothing was stored"), "{}", problem.detail);
    assert_eq!(server.get(&api::path::scenario(&id)).await.status, 200);
    // The connection that failed was replaced by one that may write.
    assert_eq!(server.post(api::path::DATASETS, "5\n7\n9\n").await.status, 201);
}

#[tokio::test]
async fn full_disk_is_reported_and_recovers() {
    let server = TestServer::open().await;
    let mut write = server.store.writer().begin().await.unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *write).await.unwrap();
    let page_limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    sqlx::query(page_limit).execute(&mut *write).await.unwrap();
    write.commit().await.unwrap();
    let lengths = (1..20_000).map(|length: u32| length.to_string()).collect::<Vec<_>>().join("\n");
    let problem = server.post(api::path::DATASETS, lengths.clone()).await.problem();
    assert_eq!((problem.status, &*problem.kind), (507, "/problems/disk-full"));
    assert!(problem.detail.contains("make room"), "{}", problem.detail);
    assert_eq!(server.post(api::path::DATASETS, lengths).await.status, 201);
}

/// A trainer loses nothing: it is refused, and sends again from where the server stands.
#[tokio::test]
async fn a_log_that_met_a_full_disk_goes_on_where_it_was() {
    let log = include_str!("runs/train.log");
    let server = TestServer::open().await;
    let opened: Value = server.post(api::path::RUNS, "{}").await.json();
    let (run, token) = (opened["run"].as_str().unwrap(), opened["ingest_token"].as_str().unwrap());
    let sends = async |offset: usize, bytes: String| {
        let request = Request::patch(format!("{}?offset={offset}", api::path::run_log(run)));
        let request = request.header("authorization", format!("Bearer {token}")).body(Body::from(bytes));
        server.send(request.unwrap()).await
    };
    // In the middle of a line.
    assert_eq!(sends(0, log[..1111].to_owned()).await.status, 204);
    let mut write = server.store.writer().begin().await.unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *write).await.unwrap();
    let page_limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    sqlx::query(page_limit).execute(&mut *write).await.unwrap();
    write.commit().await.unwrap();
    let rest = format!("{}\n{}", &log[1111..], "a long line\n".repeat(20_000));
    let problem = sends(1111, rest.clone()).await.problem();
    assert_eq!((problem.status, &*problem.kind), (507, "/problems/disk-full"));
    assert_eq!(sends(1111, rest.clone()).await.status, 204);
    assert_eq!(server.get(&api::path::run_log(run)).await.text(), format!("{}{rest}", &log[..1111]));
    assert_eq!(server.post(&api::path::run_finish(run), r#"{"exit_code": 0}"#).await.status, 204);
    let detail: Value = server.get(&api::path::run(run)).await.json();
    assert_eq!((&detail["summary"]["points"], &detail["summary"]["last_step"]), (&json!(6), &json!(5)));
}

#[tokio::test]
async fn metrics_require_the_token() {
    const TOKEN: &str = "0123456789abcdef";
    let server = TestServer::with(Settings { token: Some(TOKEN), quota: Some(1 << 30), ..Settings::default() }).await;
    assert_eq!(server.get(api::path::METRICS).await.problem().status, 401);
    let ask =
        |path: &str| Request::get(path).header("authorization", format!("Bearer {TOKEN}")).body(Body::empty()).unwrap();
    for path in ["/api/v1/datasets", "/api/v1/datasets?limit=1", "/api/v1/jobs/a", "/api/v1/jobs/b", "/nothing"] {
        server.send(ask(path)).await;
    }
    server.clock.advance(Duration::from_secs(1));
    let reply = server.send(ask(api::path::METRICS)).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, "text/plain; version=0.0.4; charset=utf-8"));
    let text = reply.text();
    for line in [
        // Two with another query are one route, and so are two jobs.
        r#"planscope_http_requests_total{method="GET",route="/api/v1/datasets",status="2xx"} 2"#,
        r#"planscope_http_requests_total{method="GET",route="/api/v1/jobs/{id}",status="4xx"} 2"#,
        r#"planscope_http_requests_total{method="GET",route="/metrics",status="4xx"} 1"#,
        r#"planscope_http_requests_total{method="GET",route="other",status="4xx"} 1"#,
        r#"planscope_http_request_seconds_bucket{method="GET",route="/api/v1/datasets",le="0.001"} 2"#,
        "planscope_jobs_queued 0",
        r#"planscope_jobs_ended_total{state="failed"} 0"#,
        "planscope_database_quota_bytes 1073741824",
        "planscope_event_streams 0",
        "planscope_live_runs 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // Every sample has a type, and every line is one that Prometheus reads.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let family = name.split('{').next().unwrap();
        let histogram_name = ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end));
        let is_typed = |family: &str| text.contains(&format!("# TYPE {family} "));
        assert!(value.parse::<f64>().is_ok() && (is_typed(family) || histogram_name.is_some_and(is_typed)), "{line}");
    }
}
