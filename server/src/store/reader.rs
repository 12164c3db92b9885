//! The pool that reads.

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::StoreError;

/// Connections that cannot write. SQLite in WAL mode lets them read while something is written.
#[derive(Debug, Clone)]
pub struct Reader {
    pool: SqlitePool,
    quota: Option<u64>,
}

impl Reader {
    pub(super) async fn open(options: SqliteConnectOptions, quota: Option<u64>) -> Result<Self, StoreError> {
        Ok(Self { pool: SqlitePoolOptions::new().max_connections(4).connect_with(options).await?, quota })
    }

    pub(super) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Bytes that the database may hold.
    pub fn quota(&self) -> Option<u64> {
        self.quota
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    /// Whether the database answers.
    pub async fn is_answering(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1 FROM scenario LIMIT 1").fetch_optional(&self.pool).await?;
        Ok(())
    }
}
