//! The pool that reads.

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::StoreError;
use super::usage::Quota;

/// Connections that cannot write. SQLite in WAL mode lets them read while something is written.
#[derive(Debug, Clone)]
pub struct Reader {
    pool: SqlitePool,
    quota: Quota,
}

impl Reader {
    pub(super) async fn open(options: SqliteConnectOptions, quota: Quota) -> Result<Self, StoreError> {
        Ok(Self { pool: SqlitePoolOptions::new().max_connections(4).connect_with(options).await?, quota })
    }

    pub(super) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Bytes that the database may hold.
    pub fn quota(&self) -> Option<u64> {
        self.quota.most()
    }

    pub(super) fn limit(&self) -> &Quota {
        &self.quota
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
