//! The single connection for writes.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::Mutex;

use super::file::{FileFault, OpenFile};
use super::usage::Quota;
use super::{MIGRATIONS, StoreError, reader};

/// Pool with a single connection. Writers queue here instead of failing on SQLite's lock.
#[derive(Debug, Clone)]
pub struct Writer {
    pool: SqlitePool,
    /// Unused connection that remains open, so no other connection is the last. SQLite deletes the
    /// journal when the last connection closes.
    anchor: Arc<Mutex<Option<SqliteConnection>>>,
    file: OpenFile,
    quota: Quota,
}

impl Writer {
    /// Opens the database and applies migrations.
    pub(super) async fn open(database: &Path, options: SqliteConnectOptions, quota: Quota) -> Result<Self, StoreError> {
        let lasting = SqlitePoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
        let pool = lasting.connect_with(options.clone()).await?;
        MIGRATIONS.run(&pool).await?;
        // Moves the migrated tables from the journal to the file, so that the file contains them
        // regardless of how the process exits. If the disk is full, they remain in the journal.
        if let Err(error) = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").execute(&pool).await {
            tracing::warn!("the journal of the database was not written into it: {error}");
        }
        let mut anchor = options.connect().await?;
        reader::look(&mut anchor).await?;
        let file = OpenFile::at(database)?;
        Ok(Self { pool, anchor: Arc::new(Mutex::new(Some(anchor))), file, quota })
    }

    /// Starts a transaction. Acquires the write lock immediately, so a concurrent writer cannot
    /// make it fail halfway.
    pub async fn begin(&self) -> Result<Write, StoreError> {
        self.file.check_file()?;
        let connection = self.pool.acquire().await?;
        let mut write = Write { connection, open: true, file: self.file.clone(), quota: self.quota.clone() };
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *write).await?;
        Ok(write)
    }

    /// Checks that the path still refers to the open file.
    pub(crate) fn check_file(&self) -> Result<(), FileFault> {
        self.file.check_file_and_journal()
    }

    pub(super) async fn close(&self) {
        let anchor = self.anchor.lock().await.take();
        if let Some(anchor) = anchor
            && let Err(error) = anchor.close().await
        {
            tracing::warn!("a connection was not closed: {error}");
        }
        self.pool.close().await;
    }

    /// Checks that the database is writable: changes an otherwise unused value.
    pub async fn probe(&self) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let before: i64 = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *write).await?;
        let other = sqlx::AssertSqlSafe(format!("PRAGMA user_version = {}", i64::from(before == 0)));
        sqlx::query(other).execute(&mut *write).await?;
        write.commit().await
    }
}

/// An open transaction.
///
/// If it is dropped without [`Write::commit`], because of an error or because the request was
/// cancelled between two statements, the connection is closed too. SQLite then rolls back, and the
/// pool opens a new connection. No transaction outlives its request.
#[derive(Debug)]
pub struct Write {
    connection: PoolConnection<Sqlite>,
    open: bool,
    file: OpenFile,
    quota: Quota,
}

impl Write {
    /// Commits the transaction. Rolls back and returns an error if the file was moved or replaced.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        if let Err(fault) = self.file.check_file_and_journal() {
            self.abandon().await?;
            return Err(fault.into());
        }
        sqlx::query("COMMIT").execute(&mut *self).await?;
        self.open = false;
        Ok(())
    }

    /// Rolls the transaction back and keeps the connection.
    pub(super) async fn abandon(&mut self) -> Result<(), StoreError> {
        sqlx::query("ROLLBACK").execute(&mut **self).await?;
        self.open = false;
        Ok(())
    }

    pub(super) fn quota(&self) -> &Quota {
        &self.quota
    }
}

impl Deref for Write {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for Write {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        if self.open {
            self.connection.close_on_drop();
        }
    }
}
