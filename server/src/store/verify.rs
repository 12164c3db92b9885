//! Database verification: structure, references, and match between content and addresses.

mod contents;
mod hashes;
mod schema;

use std::fmt;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

use super::{LOCK_WAIT, MIGRATIONS, StoreError, file};

/// Maximum number of reported faults, because a badly damaged file can have millions.
const MAX_FAULTS: usize = 1000;

/// A fault in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Location, for example "scenario abc...".
    pub location: String,
    /// Description.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.detail)
    }
}

/// Verification result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Faults, at most 1000. Empty if the database is sound.
    pub faults: Vec<Fault>,
    /// Checked items by kind.
    pub checked: Vec<(&'static str, u64)>,
    /// Rows from earlier versions that have no hash yet. Changed bytes in these rows may go
    /// undetected.
    pub unhashed: u64,
    /// True if the schema comes from an earlier version. Contents are not checked in this case.
    pub is_older: bool,
}

impl VerifyReport {
    fn fault(&mut self, location: impl Into<String>, detail: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault { location: location.into(), detail: detail.into() });
        }
    }
}

/// Verifies a complete database, even while a server uses it. All checks use the same snapshot.
///
/// # Errors
/// The file is unreadable, is not a database, or cannot be opened: see [`super::FileFault`].
pub async fn verify(database: &Path) -> Result<VerifyReport, StoreError> {
    let mut connection = reading(&file::existing(database)?).await?;
    sqlx::query("BEGIN").execute(&mut connection).await?;
    let mut report = structure(&mut connection).await?;
    if !report.is_older {
        contents::verify(&mut connection, &mut report).await;
        hashes::verify(&mut connection, &mut report).await;
    }
    connection.close().await?;
    Ok(report)
}

/// Opens a read-only connection.
pub(super) async fn reading(database: &Path) -> Result<SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new().filename(database).read_only(true).busy_timeout(LOCK_WAIT);
    Ok(options.connect().await?)
}

/// Checks pages, indices, references between tables, and the schema version.
pub(super) async fn structure(connection: &mut SqliteConnection) -> Result<VerifyReport, StoreError> {
    let mut report = VerifyReport::default();
    let said: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("PRAGMA integrity_check({MAX_FAULTS})")))
        .fetch_all(&mut *connection)
        .await?;
    for detail in said.into_iter().filter(|said| said != "ok") {
        report.fault("file", detail);
    }
    let loose: Vec<(String, Option<i64>, String)> =
        sqlx::query_as("SELECT \"table\", rowid, parent FROM pragma_foreign_key_check")
            .fetch_all(&mut *connection)
            .await?;
    for (table, row, parent) in loose {
        let row = row.map_or_else(|| "a row".to_owned(), |row| format!("row {row}"));
        report.fault(format!("table {table}"), format!("{row} belongs to a {parent} that is not there"));
    }
    migrations(connection, &mut report).await?;
    Ok(report)
}

/// Checks that the tables belong to Planscope, and their version.
async fn migrations(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<(), StoreError> {
    let is_ours: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations')")
            .fetch_one(&mut *connection)
            .await?;
    if !is_ours {
        report.fault("file", "it is a database, but not one of Planscope");
        report.is_older = true;
        return Ok(());
    }
    let applied: Vec<(i64, bool, Vec<u8>)> =
        sqlx::query_as("SELECT version, success, checksum FROM _sqlx_migrations ORDER BY version")
            .fetch_all(&mut *connection)
            .await?;
    let count = applied.len();
    for (version, success, checksum) in applied {
        let wrong = match MIGRATIONS.iter().find(|known| known.version == version) {
            None => "a newer Planscope made it; this one cannot read what it changed",
            Some(known) if *known.checksum != *checksum => "it was another one than this program's",
            Some(_) if !success => "it broke off in the middle",
            Some(_) => continue,
        };
        report.fault(format!("migration {version}"), wrong);
    }
    report.is_older = count < MIGRATIONS.iter().count();
    if !report.is_older && report.faults.is_empty() {
        schema::verify(connection, report).await?;
    }
    Ok(())
}
