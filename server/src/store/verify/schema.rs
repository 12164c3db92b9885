//! Checks that the schema matches the migrations.
//!
//! SQLite lets a program rewrite a table's SQL text (`writable_schema`), for example to remove a
//! constraint, and the integrity check still succeeds.

use std::collections::BTreeMap;

use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;

use super::VerifyReport;
use crate::store::{MIGRATIONS, StoreError};

/// SQL texts for tables, indices, triggers and views, by kind and name.
type Schema = BTreeMap<(String, String), (String, Option<String>)>;

/// Compares the schema with a new database created by the migrations.
pub(super) async fn verify(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<(), StoreError> {
    let mut expected = expected().await?;
    for ((kind, name), found) in schema(connection).await? {
        let location = format!("{kind} {name}");
        match expected.remove(&(kind, name)) {
            None => report.fault(location, "the migrations make no such thing"),
            Some(definition) if definition != found => {
                report.fault(location, "its text in the schema is not the one that the migrations make");
            }
            Some(_) => {}
        }
    }
    for (kind, name) in expected.into_keys() {
        report.fault(format!("{kind} {name}"), "it is missing");
    }
    Ok(())
}

async fn expected() -> Result<Schema, StoreError> {
    let mut fresh = SqliteConnection::connect("sqlite::memory:").await?;
    MIGRATIONS.run(&mut fresh).await?;
    let created = schema(&mut fresh).await?;
    fresh.close().await?;
    Ok(created)
}

/// Excludes the internal tables of SQLite and sqlx.
async fn schema(connection: &mut SqliteConnection) -> Result<Schema, StoreError> {
    let rows: Vec<(String, String, String, Option<String>)> = sqlx::query_as(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema
         WHERE tbl_name <> '_sqlx_migrations' AND name NOT GLOB 'sqlite_stat*' AND name <> 'sqlite_sequence'",
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|(kind, name, table, sql)| ((kind, name), (table, sql))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::verify;
    use crate::store::Store;

    /// Finding N7 of the attack.
    #[tokio::test]
    async fn a_schema_that_was_rewritten_is_found() {
        for (change, places) in [
            ("SELECT 1", &[][..]),
            (
                "PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (length(hash) = 32)', '') WHERE name = 'token'",
                &["table token"],
            ),
            ("CREATE TABLE extra (a)", &["table extra"]),
            ("CREATE TRIGGER late AFTER INSERT ON audit BEGIN DELETE FROM audit; END", &["trigger late"]),
            ("DROP TABLE audit", &["table audit"]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.db");
            let store = Store::open(&path).await.unwrap();
            let mut write = store.writer().begin().await.unwrap();
            // This connection setting also applies inside a transaction.
            sqlx::raw_sql(change).execute(&mut *write).await.unwrap();
            write.commit().await.unwrap();
            store.close().await;
            let faults = verify(&path).await.unwrap().faults;
            let found: Vec<&str> = faults.iter().map(|fault| fault.location.as_str()).collect();
            assert!(places.iter().all(|location| found.contains(location)), "{change}: {faults:?}");
            assert_eq!(found.is_empty(), places.is_empty(), "{change}: {faults:?}");
        }
    }
}
