//! Forgetting for good what was deleted: one thing at a time, so that nobody waits long for the writer.

use jiff::Timestamp;

use super::{StoreError, Writer};

/// How the next thing of a kind is forgotten: chosen and emptied in one transaction, so that nobody brings it back in between, and
/// nothing half-gone behind it.
pub(super) struct Forgetting {
    /// SQL that chooses one of those deleted before a time, takes what it holds, and returns its identifier.
    pub(super) take: &'static str,
    /// SQL that deletes what hangs on it, by that identifier.
    pub(super) with_it: &'static [&'static str],
}

impl Writer {
    /// Forgets the next thing and returns its identifier; none where none is left.
    pub(super) async fn forget_next(
        &self,
        forgetting: &Forgetting,
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

    /// Forgets all of them, and returns how many went.
    pub(super) async fn forget_all(
        &self,
        forgetting: &Forgetting,
        deleted_before: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while self.forget_next(forgetting, deleted_before).await?.is_some() {
            forgotten += 1;
        }
        Ok(forgotten)
    }

    /// Repeats a deletion of at most so many rows, each time in a transaction, until there are none.
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
