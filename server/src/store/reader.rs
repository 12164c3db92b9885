//! Pool of read-only connections.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};

use super::StoreError;
use super::usage::Quota;

/// Runs a small query, because SQLite opens the journal on first use.
pub(super) async fn look(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT 1 FROM sqlite_schema LIMIT 1").execute(connection).await?;
    Ok(())
}

/// Pool of read-only connections. In WAL mode they work during a write.
#[derive(Debug, Clone)]
pub struct Reader {
    pool: SqlitePool,
    quota: Quota,
}

impl Reader {
    pub(super) async fn open(options: SqliteConnectOptions, quota: Quota) -> Result<Self, StoreError> {
        // All connections are opened now, together with the journal, and remain open. Stored data
        // is therefore available even if the file is deleted.
        let lasting = SqlitePoolOptions::new()
            .min_connections(4)
            .max_connections(4)
            .idle_timeout(None)
            .max_lifetime(None)
            .after_connect(|connection, _| Box::pin(look(connection)));
        Ok(Self { pool: lasting.connect_with(options).await?, quota })
    }

    pub(super) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Returns the size limit in bytes.
    pub fn quota(&self) -> Option<u64> {
        self.quota.limit()
    }

    pub(super) fn limit(&self) -> &Quota {
        &self.quota
    }

    pub(crate) async fn close(&self) {
        self.pool.close().await;
    }

    /// Checks that the database responds to a query.
    pub async fn is_answering(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1 FROM scenario LIMIT 1").fetch_optional(&self.pool).await?;
        Ok(())
    }
}
