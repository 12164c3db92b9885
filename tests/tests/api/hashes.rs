//! Detection of changed bytes in stored content.

use std::path::Path;

use axum::body::Body;
use axum::http::Request;
use harness::{TestServer, test_server};
use planner::engine::Unobserved;
use planner::scenario::validate::NoDatasets;
use planner::sweep::{Heading, Shard, Sweep, plan_point};
use serde_json::{Value, json};
use server::store::verify;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

/// Content tables and columns, with the display name of a row.
const CONTENTS: [(&str, &str, &str); 16] = [
    ("run_chunk", "content", "log of run"),
    ("run_point", "point_json", "point of run"),
    ("run_log_table", "content", "table of patterns of run"),
    ("outcome", "outcome_json", "outcome of scenario"),
    ("outcome", "planning_ms_json", "outcome of scenario"),
    ("timeline", "encoded", "timeline of scenario"),
    ("trace", "report_json", "trace"),
    ("trace", "overview", "trace"),
    ("trace", "action_columns", "trace"),
    ("trace", "counter_columns", "trace"),
    ("trace_chunk", "columns", "part of trace"),
    ("trace_chunk", "details", "part of trace"),
    ("trace_names", "names", "names of trace"),
    ("profile", "content_json", "profile"),
    ("sweep_point", "row_json", "row of sweep"),
    ("dataset_report", "report_json", "report of dataset"),
];
/// Content with a hash as its address.
const ADDRESSED: [(&str, &str, &str); 4] = [
    ("scenario", "scenario_json", "scenario"),
    ("dataset", "content_json", "dataset"),
    ("sweep", "sweep_json", "sweep"),
    ("profile_file", "content", "profile"),
];

const TABLE: &str =
    "schema = \"log-table/1\"\n[[line]]\nname = \"Ours\"\npattern = '^STEP (?P<step>[0-9]+) (?P<pairs>.*)'\n";

/// Creates an object of each type.
async fn filled(server: &TestServer) {
    let scenario = server.store(&test_server::scenario()).await;
    assert_eq!(server.plan(&scenario).await["state"]["state"], "done");
    assert_eq!(server.post(api::path::DATASETS, "5\n7\n9\n").await.status, 201);

    let opened: Value = server.post(api::path::RUNS, json!({"log_table": TABLE}).to_string()).await.json();
    let (run, token) = (opened["run"].as_str().unwrap(), opened["ingest_token"].as_str().unwrap());
    let log = "STEP 1 loss=2.5\nSTEP 2 loss=2.25\nSTEP 3 loss=2.125\n";
    let send = Request::patch(format!("{}?offset=0", api::path::run_log(run)))
        .header("authorization", format!("Bearer {token}"))
        .body(Body::from(log));
    assert_eq!(server.send(send.unwrap()).await.status, 204);

    let event = |name: &str, ts: u32| json!({"ph": "X", "cat": "user_annotation", "name": name, "pid": 0, "tid": 0, "ts": ts, "dur": 5});
    let counter = |ts: u32| json!({"ph": "C", "name": "memory", "pid": 0, "ts": ts, "args": {"bytes": ts * 8}});
    let trace = json!({"traceEvents": [event("PP:0F0", 1), event("PP:0B0", 10), counter(1), counter(10)]});
    assert_eq!(server.post(api::path::TRACES, trace.to_string()).await.status, 201);

    let layers = r#"{"layernum[2]_bsz1_seq2048": 15.0, "layernum[4]_bsz1_seq2048": 23.0,
        "layernum[2]_bsz2_seq2048": 24.0, "layernum[4]_bsz2_seq2048": 42.0}"#;
    let profile = format!("{}?name=computation_profiling_bf16.json", api::path::PROFILES);
    let reply = server.post(&profile, layers).await;
    assert_eq!(reply.status, 201, "{reply:?}");

    let sweep = json!({
        "schema": "sweep/1", "scenario": test_server::scenario(), "axes": [{"pointer": "/cluster/nodes", "values": [0, 5000]}],
    })
    .to_string();
    let id = server.post(api::path::SWEEPS, sweep.clone()).await.json::<Value>()["id"].as_str().unwrap().to_owned();
    let sweep = Sweep::parse(&sweep).unwrap();
    let row = plan_point(&sweep.point(0).unwrap(), &NoDatasets, &mut Unobserved).unwrap();
    let rows = format!("{}\n{}\n", Heading::new(&sweep, Shard::FULL).line(), serde_json::to_string(&row).unwrap());
    assert_eq!(server.post(&api::path::sweep_points(&id), rows).await.status, 200);
}

async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

/// Returns content from a table with its row.
async fn content(connection: &mut SqliteConnection, table: &str, column: &str) -> (Vec<u8>, String) {
    let query = format!(
        "SELECT CAST({column} AS BLOB), typeof({column}) FROM {table} WHERE {column} IS NOT NULL
         ORDER BY length({column}) DESC LIMIT 1"
    );
    let row: Option<(Vec<u8>, String)> =
        sqlx::query_as(sqlx::AssertSqlSafe(query)).fetch_optional(connection).await.unwrap();
    row.unwrap_or_else(|| panic!("no {table} has a {column}"))
}

/// Replaces content by other content.
async fn replace(connection: &mut SqliteConnection, table: &str, column: &str, old: &[u8], new: &[u8], kind: &str) {
    let update = format!("UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE CAST({column} AS BLOB) = ?");
    let changed =
        sqlx::query(sqlx::AssertSqlSafe(update)).bind(new).bind(old).execute(connection).await.unwrap().rows_affected();
    assert!(changed >= 1, "{table} {column}");
}

/// Finding 11: changed bytes in logs were not detected.
#[tokio::test(flavor = "multi_thread")]
async fn changed_bits_are_found_with_their_location() {
    let server = TestServer::open().await;
    filled(&server).await;
    let path = server.path("planscope.db");
    let sound = verify(&path).await.unwrap();
    assert_eq!((sound.faults, sound.unhashed), (vec![], 0));

    let mut connection = connect(&path).await;
    for (table, column, label) in CONTENTS.into_iter().chain(ADDRESSED) {
        let (old, kind) = content(&mut connection, table, column).await;
        for offset in [0, old.len() / 2, old.len() - 1] {
            let mut new = old.clone();
            new[offset] ^= 1;
            replace(&mut connection, table, column, &old, &new, &kind).await;
            let report = verify(&path).await.unwrap();
            assert!(
                report.faults.iter().any(|fault| fault.location.starts_with(label)),
                "{table} {column} byte {offset}: {:?}",
                report.faults
            );
            replace(&mut connection, table, column, &new, &old, &kind).await;
        }
    }
    connection.close().await.unwrap();
    assert_eq!(verify(&path).await.unwrap().faults, vec![]);
}

/// A damaged log chunk is not joined with the next bytes, which would hide the damage.
#[tokio::test]
async fn damaged_log_chunk_stays_damaged_after_appending() {
    let server = TestServer::open().await;
    let opened: Value = server.post(api::path::RUNS, "{}").await.json();
    let (run, token) = (opened["run"].as_str().unwrap(), opened["ingest_token"].as_str().unwrap());
    let send = async |offset: usize, text: &'static str| {
        let request = Request::patch(format!("{}?offset={offset}", api::path::run_log(run)))
            .header("authorization", format!("Bearer {token}"))
            .body(Body::from(text));
        assert_eq!(server.send(request.unwrap()).await.status, 204);
    };
    send(0, "a line\n").await;
    send(7, "and another\n").await;
    let path = server.path("planscope.db");
    let mut connection = connect(&path).await;
    let pieces = "SELECT count(*) FROM run_chunk";
    let joined: i64 = sqlx::query_scalar(pieces).fetch_one(&mut connection).await.unwrap();
    assert_eq!(joined, 1);
    let damage = "UPDATE run_chunk SET content = CAST('a lime' || char(10) || 'and another' || char(10) AS BLOB)";
    sqlx::query(damage).execute(&mut connection).await.unwrap();
    send(19, "a third\n").await;
    let chunk_count: i64 = sqlx::query_scalar(pieces).fetch_one(&mut connection).await.unwrap();
    assert_eq!(chunk_count, 2);
    connection.close().await.unwrap();
    let places: Vec<String> = verify(&path).await.unwrap().faults.into_iter().map(|fault| fault.location).collect();
    assert_eq!(places, [format!("log of run {run}, file 0, start 0")]);
}
