//! Purge of deleted objects. Objects are purged one at a time to keep transactions short.

use jiff::Timestamp;

use super::{StoreError, Writer};

/// SQL that purges the next object of a kind. Selection and removal use one transaction, so the
/// object cannot be restored halfway.
pub(super) struct PurgeStatements {
    /// SQL that selects an object deleted before a given time, clears its content and returns its
    /// identifier.
    pub(super) take: &'static str,
    /// SQL statements that delete dependent rows by identifier.
    pub(super) with_it: &'static [&'static str],
}

impl Writer {
    /// Purges the next object and returns its identifier, or `None` if nothing is left.
    pub(super) async fn forget_next(
        &self,
        forgetting: &PurgeStatements,
        deleted_before: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        let mut write = self.begin().await?;
        let id: Option<String> = sqlx::query_scalar(forgetting.take)
            .bind(deleted_before.as_millisecond())
            .fetch_optional(&mut *write)
            .await?;
        if let Some(id) = &id {
            for statement in forgetting.with_it {
                sqlx::query(*statement).bind(id).execute(&mut *write).await?;
            }
        }
        write.commit().await?;
        Ok(id)
    }

    /// Purges all objects and returns their number.
    pub(super) async fn forget_all(
        &self,
        forgetting: &PurgeStatements,
        deleted_before: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while self.forget_next(forgetting, deleted_before).await?.is_some() {
            forgotten += 1;
        }
        Ok(forgotten)
    }

    /// Repeats a delete statement of at most `at_once` rows until no row matches. Each repetition
    /// is a transaction.
    pub(super) async fn in_parts(&self, statement: &'static str, id: &str, at_once: i64) -> Result<(), StoreError> {
        loop {
            let mut write = self.begin().await?;
            let deleted = sqlx::query(statement).bind(id).bind(at_once).execute(&mut *write).await?.rows_affected();
            write.commit().await?;
            if deleted == 0 {
                return Ok(());
            }
        }
    }
}
