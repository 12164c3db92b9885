//! The pool that reads.

use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::StoreError;

/// Connections that cannot write. SQLite in WAL mode lets them read while something is written.
#[derive(Debug, Clone)]
pub struct Reader(SqlitePool);

impl Reader {
    pub(super) async fn open(options: SqliteConnectOptions) -> Result<Self, StoreError> {
        Ok(Self(SqlitePoolOptions::new().max_connections(4).connect_with(options).await?))
    }

    pub(super) fn pool(&self) -> &SqlitePool {
        &self.0
    }

    pub(super) async fn close(&self) {
        self.0.close().await;
    }

    /// Whether the database answers.
    pub async fn is_answering(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1 FROM scenario LIMIT 1").fetch_optional(&self.0).await?;
        Ok(())
    }
}
