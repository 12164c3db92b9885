//! The pool that reads.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};

use super::StoreError;
use super::usage::Quota;

/// Reads a little: SQLite opens the journal with the first look at the database.
pub(super) async fn look(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT 1 FROM sqlite_schema LIMIT 1").execute(connection).await?;
    Ok(())
}

/// Connections that cannot write. SQLite in WAL mode lets them read while something is written.
#[derive(Debug, Clone)]
pub struct Reader {
    pool: SqlitePool,
    quota: Quota,
}

impl Reader {
    pub(super) async fn open(options: SqliteConnectOptions, quota: Quota) -> Result<Self, StoreError> {
        // All are opened now, with the journal, and stay open, so that what is stored can be read although the file was deleted.
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
