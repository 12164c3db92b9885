//! Databases of all earlier versions, with content, opened by this version.

use std::path::Path;

use harness::{Settings, TestServer, test_server};
use planner::outcome::ENGINE;
use serde_json::{Value, json};
use server::store::{Fault, MIGRATIONS, Store, verify};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

/// Rows stored by each version. Later versions include the earlier rows.
const ROWS: &[(i64, &str)] = &[
    (1, include_str!("migrations/0001.sql")),
    (2, include_str!("migrations/0002.sql")),
    (3, include_str!("migrations/0003.sql")),
    (4, include_str!("migrations/0004.sql")),
    (5, include_str!("migrations/0005.sql")),
    (6, include_str!("migrations/0006.sql")),
    (7, include_str!("migrations/0007.sql")),
    (8, include_str!("migrations/0008.sql")),
    (9, include_str!("migrations/0009.sql")),
    (10, include_str!("migrations/0010.sql")),
    (11, include_str!("migrations/0011.sql")),
    (12, include_str!("migrations/0012.sql")),
    (13, include_str!("migrations/0013.sql")),
    (14, include_str!("migrations/0014.sql")),
    (15, include_str!("migrations/0015.sql")),
    (16, include_str!("migrations/0016.sql")),
    (17, include_str!("migrations/0017.sql")),
];

async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).foreign_keys(true).connect().await.unwrap()
}

/// Content in the fixtures: the scenario and its identifier, a dataset and its identifier.
struct Contents {
    scenario: (String, String),
    dataset: (String, Vec<u8>),
    sweep: (String, String),
    log: String,
}

/// Stored with this version's code, so that fixtures do not change with new scenario fields.
async fn contents() -> Contents {
    let server = TestServer::open().await;
    let scenario = server.store(&test_server::scenario()).await;
    let dataset: Value = server.post(api::path::DATASETS, "5\n7\n9\n").await.json();
    let dataset = dataset["dataset"]["id"].as_str().unwrap().to_owned();
    let written = json!({
        "schema": "sweep/1", "scenario": test_server::scenario(), "axes": [{"pointer": "/cluster/nodes", "values": [1, 2]}],
    });
    let sweep: Value = server.post(api::path::SWEEPS, written.to_string()).await.json();
    let sweep = sweep["id"].as_str().unwrap().to_owned();
    let mut connection = connect(&server.path("planscope.db")).await;
    let sweep_json = sqlx::query_scalar("SELECT sweep_json FROM sweep").fetch_one(&mut connection).await.unwrap();
    let json = sqlx::query_scalar("SELECT scenario_json FROM scenario").fetch_one(&mut connection).await.unwrap();
    let content = sqlx::query_scalar("SELECT content_json FROM dataset").fetch_one(&mut connection).await.unwrap();
    Contents {
        scenario: (scenario, json),
        dataset: (dataset, content),
        sweep: (sweep, sweep_json),
        log: "a line of a log\n".to_owned(),
    }
}

/// Returns a database as a server of a version left it.
async fn create_database(version: i64, path: &Path, contents: &Contents) {
    let mut connection = connect(path).await;
    for (step, rows) in ROWS.iter().filter(|(step, _)| *step <= version) {
        MIGRATIONS.run_to(*step, &mut connection).await.unwrap();
        let hex = contents.dataset.1.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        let rows = rows
            .replace("{scenario}", &contents.scenario.0)
            .replace("{scenario_json}", &contents.scenario.1.replace('\'', "''"))
            .replace("{sweep}", &contents.sweep.0)
            .replace("{sweep_json}", &contents.sweep.1.replace('\'', "''"))
            .replace("{dataset}", &contents.dataset.0)
            .replace("{dataset_hex}", &hex)
            .replace("{log}", &contents.log)
            .replace("{log_bytes}", &contents.log.len().to_string())
            .replace("{engine}", ENGINE);
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows))
            .execute(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{step}: {error}"));
    }
    connection.close().await.unwrap();
}

/// Returns the faults of a database, and whether it has an earlier version. The fixture's profile
/// was not fitted.
async fn faults(path: &Path) -> (Vec<Fault>, bool) {
    let report = verify(path).await.unwrap();
    let faults = report.faults.into_iter().filter(|fault| !fault.location.starts_with("profile "));
    (faults.collect(), report.is_older)
}

#[test]
fn every_migration_has_its_rows() {
    let versions: Vec<i64> = MIGRATIONS.iter().map(|migration| migration.version).collect();
    let with_rows: Vec<i64> = ROWS.iter().map(|(version, _)| *version).collect();
    assert_eq!(versions, with_rows);
}

#[tokio::test]
async fn databases_from_every_version_are_migrated_with_content() {
    let contents = contents().await;
    let latest = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap();
    for &(version, _) in ROWS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("planscope.db");
        create_database(version, &path, &contents).await;
        assert_eq!(faults(&path).await, (vec![], version < latest), "version {version}");

        let server = TestServer::upon(folder, Settings::default()).await;
        // Objects from the first version have the columns of later versions.
        let scenarios: Value = server.get(api::path::SCENARIOS).await.json();
        let scenario = &scenarios["scenarios"][0];
        assert_eq!(
            (&scenario["id"], &scenario["title"]),
            (&json!(contents.scenario.0), &json!("kept")),
            "version {version}"
        );
        assert_eq!(scenario["model"], "Llama-2 7B", "version {version}: {scenario}");
        assert_eq!(scenario.get("source").is_some(), version >= 11, "version {version}: {scenario}");
        let datasets: Value = server.get(api::path::DATASETS).await.json();
        let dataset = &datasets["datasets"][0];
        assert_eq!(dataset["id"], json!(contents.dataset.0));
        assert_eq!(dataset["bytes"], json!(contents.dataset.1.len()), "version {version}");
        if version >= 2 {
            let log = server.get(&api::path::run_log("run-of-version-2")).await;
            assert_eq!(log.text(), contents.log, "version {version}");
        }
        if version >= 4 {
            let profiles: Value = server.get(api::path::PROFILES).await.json();
            assert_eq!(profiles["profiles"][0]["name"], "measured", "version {version}");
        }
        if version >= 6 {
            let run: Value = server.get(&api::path::run("run-of-version-6")).await.json();
            assert_eq!(run["summary"]["end_reason"], "it was enough", "version {version}");
        }
        if version >= 8 {
            let sweep: Value = server.get(&api::path::sweep(&contents.sweep.0)).await.json();
            assert_eq!(sweep["title"], "two sizes", "version {version}: {sweep}");
            let list: Value = server.get(api::path::SWEEPS).await.json();
            let bytes = contents.sweep.1.len() + r#"{"of":"an older engine, µ"}"#.len();
            assert_eq!(list["stored_bytes"], json!(bytes), "version {version}");
        }
        let left = server.store.reader().left_jobs().await.unwrap();
        assert_eq!(left.len(), usize::from(version >= 7), "version {version}");
        // The database is usable: objects are planned, new objects are stored.
        assert_eq!(server.plan(&contents.scenario.0).await["state"]["state"], "done", "version {version}");
        assert_eq!(faults(&server.path("planscope.db")).await, (vec![], false), "version {version}");
        // Rows from earlier versions get hashes.
        while server.store.fill_hashes().await.unwrap() > 0 {}
        let report = verify(&server.path("planscope.db")).await.unwrap();
        assert_eq!(report.unhashed, 0, "version {version}");
        assert_eq!(faults(&server.path("planscope.db")).await, (vec![], false), "version {version}");
    }
}

#[tokio::test]
async fn newer_database_is_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planscope.db");
    Store::open(&path).await.unwrap().close().await;
    let mut connection = connect(&path).await;
    sqlx::query("INSERT INTO _sqlx_migrations VALUES (9999, 'later', '2026-01-01', 1, x'00', 0)")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let error = Store::open(&path).await.unwrap_err();
    assert!(error.to_string().contains("9999"), "{error}");
}

/// Outcomes have tens of thousands of bytes, sweeps up to millions. Lists must sum their sizes
/// without reading them.
#[tokio::test]
async fn sizes_are_computed_from_stored_totals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planscope.db");
    Store::open(&path).await.unwrap().close().await;
    let mut connection = connect(&path).await;
    for (query, index) in [
        ("SELECT coalesce(sum(bytes), 0) FROM outcome", "outcome_by_size"),
        ("SELECT coalesce(sum(bytes), 0) FROM sweep", "sweep_by_size"),
        ("SELECT coalesce(sum(bytes), 0) FROM sweep WHERE deleted_at_ms IS NOT NULL", "sweep_deleted"),
        ("SELECT bytes FROM sweep INDEXED BY sweep_by_size WHERE id = 'a'", "sweep_by_size"),
    ] {
        let plan = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
        let (_, _, _, detail): (i64, i64, i64, String) = sqlx::query_as(plan).fetch_one(&mut connection).await.unwrap();
        assert!(detail.contains(&format!("COVERING INDEX {index}")), "{query}: {detail}");
    }
    connection.close().await.unwrap();
}
