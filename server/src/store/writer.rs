//! The one connection that writes.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};

use super::usage::Quota;
use super::{MIGRATIONS, StoreError};

/// A pool of one connection: writers wait for each other here instead of failing on SQLite's lock.
#[derive(Debug, Clone)]
pub struct Writer {
    pool: SqlitePool,
    quota: Quota,
}

impl Writer {
    pub(super) async fn open(options: SqliteConnectOptions, quota: Quota) -> Result<Self, StoreError> {
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        MIGRATIONS.run(&pool).await?;
        Ok(Self { pool, quota })
    }

    /// Starts a transaction. It takes the write lock at once, so that it cannot fail half-way for another
    /// writer's sake.
    pub async fn begin(&self) -> Result<Write, StoreError> {
        let mut write = Write { connection: self.pool.acquire().await?, open: true, quota: self.quota.clone() };
        sqlx::query("BEGIN IMMEDIATE").execute(&mut *write).await?;
        Ok(write)
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    /// Whether something can be written: writes a page that says nothing.
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
/// Dropped without [`Write::commit`], because of an error or because the request was cancelled between two
/// statements, it takes its connection along: SQLite rolls back when the connection closes, and the pool opens
/// a fresh one. No transaction outlives the request that began it.
#[derive(Debug)]
pub struct Write {
    connection: PoolConnection<Sqlite>,
    open: bool,
    quota: Quota,
}

impl Write {
    /// Makes everything of the transaction lasting.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        sqlx::query("COMMIT").execute(&mut *self).await?;
        self.open = false;
        Ok(())
    }

    /// Takes back everything of the transaction, and keeps the connection.
    pub(super) async fn abandon(&mut self) -> Result<(), StoreError> {
        sqlx::query("ROLLBACK").execute(&mut **self).await?;
        self.open = false;
        Ok(())
    }

    /// How much the database may hold.
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
