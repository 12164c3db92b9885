//! The database: every SQL statement of the server stands below this module.
//!
//! Two pools of different types stand on one file: a [`Reader`] cannot write by construction, and the one
//! connection of the [`Writer`] orders all writing.

mod audit;
mod backup;
mod datasets;
mod drafts;
mod error;
mod file;
mod forget;
mod hashes;
mod jobs;
mod kept;
mod kind;
mod outcomes;
mod passing;
mod profile_id;
mod profiles;
mod reader;
mod runs;
mod scenarios;
mod shelf;
mod sweeps;
mod tenancy;
mod tokens;
mod traces;
mod usage;
mod verify;
mod writer;

pub use backup::{CopyError, Replace, Restored, backup, restore};
pub(crate) use datasets::DATASETS;
pub use datasets::NewDataset;
pub use error::StoreError;
pub use file::FileFault;
pub use jobs::{FailedJob, LeftJob};
pub use kind::Kind;
pub use outcomes::NewOutcome;
pub use passing::remove_left;
pub(crate) use profile_id::profile_address;
pub(crate) use profiles::PROFILES;
pub use profiles::{NewProfile, ProfileContent, ProfileFile, Replaced};
pub use reader::Reader;
pub use runs::{LogAddition, LogPlace, LogState, Opened, RequestKey, RunChanges, RunPulse, RunRow};
pub(crate) use runs::{RUNS, state_filter};
pub use scenarios::Resolved;
pub(crate) use scenarios::{DRAFTS, PLANS, SCENARIOS, SHORTEST_PREFIX};
pub(crate) use shelf::{Order, Shelf, Wanted};
pub(crate) use sweeps::SWEEPS;
pub use sweeps::{KeptSweep, PlanFigures};
pub use tenancy::{Tenancy, TenancyError};
pub use tokens::{NewSession, is_current};
pub(crate) use traces::{Changed, ChunkQuery, Sent, TRACES};
use usage::Quota;
pub use usage::Usage;
pub use verify::{Fault, Verdict, verify};
pub use writer::{Write, Writer};

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

/// The migrations, embedded.
pub static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// How long a connection waits for a lock that another program holds.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Whether SQLite refused because someone else has the database.
fn is_locked(error: &sqlx::Error) -> bool {
    // 5 busy, 6 locked.
    matches!(primary_code(error), Some(5 | 6))
}

/// SQLite's code of a refusal: the low byte of the extended one.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let extended = error.as_database_error()?.code()?.parse::<u32>().ok()?;
    Some(extended & 0xff)
}

/// The database.
#[derive(Debug, Clone)]
pub struct Store {
    writer: Writer,
    reader: Reader,
}

impl Store {
    /// Opens a database file, creates it where there is none, and brings its tables up to date.
    ///
    /// # Errors
    /// A journal is there without its database, or the file has several names: see [`FileFault`].
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_within(path, None).await
    }

    /// The same for a database that may hold so many bytes: new content beyond them is refused.
    pub async fn open_within(path: &Path, quota: Option<u64>) -> Result<Self, StoreError> {
        let path = file::real_path(path)?;
        if !file::inspect(&path)? {
            file::create(&path)?;
        }
        // A connection that is opened later makes no file: the one that was open may have been deleted.
        let options = SqliteConnectOptions::new().filename(&path).foreign_keys(true).busy_timeout(LOCK_WAIT);
        let writing = options
            .clone()
            .journal_mode(SqliteJournalMode::Wal)
            // Durable against a crash of the program; a power cut may lose the last writes, never the file.
            .synchronous(SqliteSynchronous::Normal);
        let quota = Quota::of(quota);
        let writer = Writer::open(&path, writing, quota.clone()).await?;
        let reader = Reader::open(options.read_only(true), quota).await?;
        Ok(Self { writer, reader })
    }

    /// The side that writes.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The side that reads.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Whether the path leads to the files that are open, and not to others or to none.
    ///
    /// # Errors
    /// Then nothing is stored any more: it would be lost with the program.
    pub fn in_place(&self) -> Result<(), FileFault> {
        self.writer.in_place()
    }

    /// Closes every connection, leaving one file without a journal beside it.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}
