//! The database file: migrations, tables, transactions.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use harness::TestServer;
use server::store::{NewOutcome, Store, StoreError};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).connect().await.unwrap()
}

#[tokio::test]
async fn migrations_apply_to_empty_and_existing_databases() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    for _ in 0..2 {
        Store::open(&path).await.unwrap().close().await;
    }
    let mut connection = connect(&path).await;
    let applied: i64 = sqlx::query_scalar("SELECT count(*) FROM _sqlx_migrations WHERE success")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(applied as usize, server::store::MIGRATIONS.iter().count());
    let check: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.unwrap();
    assert_eq!(check, "ok");
    connection.close().await.unwrap();
}

#[tokio::test]
async fn tables_are_strict_and_the_journal_is_written_ahead() {
    let server = TestServer::open().await;
    let mut connection = connect(&server.path("planscope.db")).await;
    let loose: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND strict = 0
         AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_sqlx_%'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(loose.is_empty(), "{loose:?}");
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await.unwrap();
    assert_eq!(mode, "wal");

    let mut write = server.store.writer().begin().await.unwrap();
    let foreign_keys: i64 = sqlx::query_scalar("PRAGMA foreign_keys").fetch_one(&mut *write).await.unwrap();
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *write).await.unwrap();
    assert_eq!((foreign_keys, synchronous), (1, 1));
    let error = sqlx::query("INSERT INTO timeline VALUES ('x', 'x', 'x', 0, x'00', NULL)")
        .execute(&mut *write)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("FOREIGN KEY"), "{error}");
}

/// A request may be dropped between any two statements.
#[tokio::test]
async fn a_cancelled_write_leaves_no_open_transaction() {
    let server = TestServer::open().await;
    let insert = "INSERT INTO scenario (id, kept, created_at_ms, used_at_ms, scenario_json) VALUES (?, 0, 0, 0, '{}')";
    for round in 0..20 {
        let mut write = server.store.writer().begin().await.unwrap();
        let insertion = sqlx::query(insert).bind("a".repeat(52)).execute(&mut *write);
        // Every other round the statement itself is abandoned, wherever it stands.
        if round % 2 == 0 {
            insertion.await.unwrap();
        } else {
            let _ = tokio::time::timeout(Duration::ZERO, insertion).await;
        }
        drop(write);
        // Or the request goes while it begins.
        let _ = tokio::time::timeout(Duration::ZERO, server.store.writer().begin()).await;
    }
    let mut write = server.store.writer().begin().await.unwrap();
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM scenario").fetch_one(&mut *write).await.unwrap();
    assert_eq!(rows, 0);
    sqlx::query(insert).bind("b".repeat(52)).execute(&mut *write).await.unwrap();
    write.commit().await.unwrap();
    let mut connection = connect(&server.path("planscope.db")).await;
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM scenario").fetch_one(&mut connection).await.unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn outcome_for_a_deleted_scenario_is_not_stored() {
    use harness::engines;
    use planner::engine::Unobserved;
    use planner::scenario::ValidScenario;
    use planner::scenario::validate::NoDatasets;

    let server = TestServer::open().await;
    let scenario = planner::scenario::parse(&harness::test_server::scenario().to_string()).unwrap();
    let valid = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let planning = engines::instant(&std::sync::Arc::default())(&valid, &mut Unobserved).unwrap();
    let now = moment();
    let outcome = NewOutcome::pack(planning, &[]);
    let error = server.store.writer().store_outcome(&outcome, now).await.unwrap_err();
    assert!(matches!(error, StoreError::Unknown { kind: "scenario", .. }), "{error}");
    assert!(!server.store.reader().is_answered(valid.id().as_str()).await.unwrap());
}

fn moment() -> jiff::Timestamp {
    jiff::Timestamp::from_str("2026-01-01T00:00:00Z").unwrap()
}
