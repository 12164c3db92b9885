//! Whether a database holds what it says: its structure, its references, and contents that match their addresses.

mod contents;
mod hashes;
mod schema;

use std::fmt;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

use super::{LOCK_WAIT, MIGRATIONS, StoreError, file};

/// Faults that are named; a file that is damaged throughout has more than anyone reads.
const MOST_FAULTS: usize = 1000;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it is about, for example "scenario abc...".
    pub place: String,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.detail)
    }
}

/// What looking through a database gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What is wrong, at most a thousand faults; none: the database is sound.
    pub faults: Vec<Fault>,
    /// Things that were looked at, by kind.
    pub checked: Vec<(&'static str, u64)>,
    /// Rows that an earlier version stored and that have no hash yet, so that changed bytes of them may not be found.
    pub unhashed: u64,
    /// Whether an earlier version made the tables: then their contents were not looked at.
    pub is_older: bool,
}

impl Verdict {
    fn fault(&mut self, place: impl Into<String>, detail: impl Into<String>) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(Fault { place: place.into(), detail: detail.into() });
        }
    }
}

/// Looks through a whole database, which a server may be using: all of it is seen as it was at one moment.
///
/// # Errors
/// The file cannot be read, is no database at all, or is not to be opened: see [`super::FileFault`].
pub async fn verify(database: &Path) -> Result<Verdict, StoreError> {
    let mut connection = reading(&file::existing(database)?).await?;
    sqlx::query("BEGIN").execute(&mut connection).await?;
    let mut verdict = structure(&mut connection).await?;
    if !verdict.is_older {
        contents::verify(&mut connection, &mut verdict).await;
        hashes::verify(&mut connection, &mut verdict).await;
    }
    connection.close().await?;
    Ok(verdict)
}

/// A connection that cannot write.
pub(super) async fn reading(database: &Path) -> Result<SqliteConnection, StoreError> {
    let options = SqliteConnectOptions::new().filename(database).read_only(true).busy_timeout(LOCK_WAIT);
    Ok(options.connect().await?)
}

/// Looks at pages, indices, references between tables, and at who made the tables.
pub(super) async fn structure(connection: &mut SqliteConnection) -> Result<Verdict, StoreError> {
    let mut verdict = Verdict::default();
    let said: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!("PRAGMA integrity_check({MOST_FAULTS})")))
        .fetch_all(&mut *connection)
        .await?;
    for detail in said.into_iter().filter(|said| said != "ok") {
        verdict.fault("file", detail);
    }
    let loose: Vec<(String, Option<i64>, String)> =
        sqlx::query_as("SELECT \"table\", rowid, parent FROM pragma_foreign_key_check")
            .fetch_all(&mut *connection)
            .await?;
    for (table, row, parent) in loose {
        let row = row.map_or_else(|| "a row".to_owned(), |row| format!("row {row}"));
        verdict.fault(format!("table {table}"), format!("{row} belongs to a {parent} that is not there"));
    }
    migrations(connection, &mut verdict).await?;
    Ok(verdict)
}

/// Looks whether the tables are ours, and of which version.
async fn migrations(connection: &mut SqliteConnection, verdict: &mut Verdict) -> Result<(), StoreError> {
    let is_ours: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations')")
            .fetch_one(&mut *connection)
            .await?;
    if !is_ours {
        verdict.fault("file", "it is a database, but not one of Planscope");
        verdict.is_older = true;
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
        verdict.fault(format!("migration {version}"), wrong);
    }
    verdict.is_older = count < MIGRATIONS.iter().count();
    if !verdict.is_older && verdict.faults.is_empty() {
        schema::verify(connection, verdict).await?;
    }
    Ok(())
}
