//! Database access. This module contains all SQL statements of the server.
//!
//! Two pools with different types use one database file: a [`Reader`] cannot write by construction,
//! and the single connection of the [`Writer`] serializes all writes.

mod audit;
mod backup;
mod datasets;
mod drafts;
mod error;
mod file;
mod forget;
mod hashes;
mod jobs;
mod kind;
mod listing;
mod objects;
mod outcomes;
mod passing;
mod profile_id;
mod profiles;
mod reader;
mod runs;
mod scenarios;
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
pub use jobs::{FailedJob, UnfinishedJob};
pub use kind::Kind;
pub(crate) use listing::{ListDefinition, Order, Wanted};
pub use outcomes::NewOutcome;
pub use passing::remove_leftovers;
pub(crate) use profile_id::profile_address;
pub(crate) use profiles::PROFILES;
pub use profiles::{NewProfile, ProfileContent, ProfileFile, Replaced};
pub use reader::Reader;
pub use runs::{LogAddition, LogPosition, LogState, Opened, RequestKey, RunChanges, RunPulse, RunRow};
pub(crate) use runs::{RUNS, state_filter};
pub use scenarios::Resolved;
pub(crate) use scenarios::{DRAFTS, MIN_PREFIX, PLANS, SCENARIOS};
pub(crate) use sweeps::SWEEPS;
pub use sweeps::{PlanPoint, SweepRecord};
pub use tenancy::{DatabaseLock, TenancyError};
pub use tokens::{NewSession, is_current};
pub(crate) use traces::{Changed, ChunkQuery, Sent, TRACES};
use usage::Quota;
pub use usage::Usage;
pub use verify::{Fault, VerifyReport, verify};
pub use writer::{Write, Writer};

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

/// Embedded database migrations.
pub static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// Maximum wait for a database lock of a different process.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Returns true if SQLite failed because the database is locked.
fn is_locked(error: &sqlx::Error) -> bool {
    // 5 is `SQLITE_BUSY`, 6 is `SQLITE_LOCKED`.
    matches!(primary_code(error), Some(5 | 6))
}

/// Returns the primary SQLite error code: the low byte of the extended code.
fn primary_code(error: &sqlx::Error) -> Option<u32> {
    let extended = error.as_database_error()?.code()?.parse::<u32>().ok()?;
    Some(extended & 0xff)
}

/// The database, with a writer and a reader pool.
#[derive(Debug, Clone)]
pub struct Store {
    writer: Writer,
    reader: Reader,
}

impl Store {
    /// Opens a database file, creates it if it is missing, and applies migrations.
    ///
    /// # Errors
    /// A journal exists but the database is missing, or the file is hard-linked: see [`FileFault`].
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_within(path, None).await
    }

    /// Opens a database with an optional size limit in bytes. New content beyond the limit is
    /// rejected.
    pub async fn open_within(path: &Path, quota: Option<u64>) -> Result<Self, StoreError> {
        let path = file::real_path(path)?;
        if !file::inspect(&path)? {
            file::create(&path)?;
        }
        // Connections opened later must not create a file: the original may have been deleted.
        let options = SqliteConnectOptions::new().filename(&path).foreign_keys(true).busy_timeout(LOCK_WAIT);
        let writing = options
            .clone()
            .journal_mode(SqliteJournalMode::Wal)
            // Survives a crash of the process. A power failure may lose the latest writes but does
            // not corrupt the file.
            .synchronous(SqliteSynchronous::Normal);
        let quota = Quota::new(quota);
        let writer = Writer::open(&path, writing, quota.clone()).await?;
        let reader = Reader::open(options.read_only(true), quota).await?;
        Ok(Self { writer, reader })
    }

    /// Returns the writer.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Returns the reader.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Checks that the path still refers to the open files.
    ///
    /// # Errors
    /// The file was moved, deleted or replaced. Later writes are rejected to avoid data loss.
    pub fn check_file(&self) -> Result<(), FileFault> {
        self.writer.check_file()
    }

    /// Closes all connections. One file remains, and the journal is removed.
    pub async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}
