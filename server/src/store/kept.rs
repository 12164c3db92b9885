//! What is the same for everything that people name, pin, delete and bring back.

use api::shelf::Words;
use jiff::Timestamp;

use super::{StoreError, Write};
use crate::clock::rfc3339;

/// A kind of thing, and where it stands. Every table has `id`, `note`, `pinned_at_ms` and `deleted_at_ms`; all but runs, whose
/// tags stand in a table of their own, `tags_json`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// What it is called to people.
    pub(super) what: &'static str,
    /// Its table.
    pub(super) table: &'static str,
    /// The column with its name.
    pub(super) name: &'static str,
}

impl Kept {
    /// Changes what people say of a thing that is there.
    pub(super) async fn change(
        self,
        write: &mut Write,
        id: &str,
        words: &Words,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Self { what, table, name } = self;
        let update = format!(
            "UPDATE {table} SET {name} = coalesce(?1, {name}), note = iif(?2 IS NULL, note, nullif(?2, '')),
                 tags_json = coalesce(?3, tags_json),
                 pinned_at_ms = CASE ?4 WHEN 1 THEN coalesce(pinned_at_ms, ?5) WHEN 0 THEN NULL ELSE pinned_at_ms END
             WHERE id = ?6 AND deleted_at_ms IS NULL"
        );
        let changed = sqlx::query(sqlx::AssertSqlSafe(update))
            .bind(words.name.as_deref())
            .bind(words.note.as_deref())
            .bind(words.tags.as_ref().map(|tags| serde_json::to_string(tags).expect("texts")))
            .bind(words.pinned)
            .bind(now.as_millisecond())
            .bind(id)
            .execute(&mut **write)
            .await?
            .rows_affected();
        if changed == 1 { Ok(()) } else { Err(StoreError::missed(what, id)) }
    }

    /// When a known thing was deleted, ms since 1970; nothing while it is there.
    pub(super) async fn deleted_at(self, write: &mut Write, id: &str) -> Result<Option<i64>, StoreError> {
        let Self { what, table, .. } = self;
        let row: Option<Option<i64>> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT deleted_at_ms FROM {table} WHERE id = ?")))
                .bind(id)
                .fetch_optional(&mut **write)
                .await?;
        row.ok_or_else(|| StoreError::missed(what, id))
    }

    /// Refuses what is unknown or deleted.
    pub(super) async fn present(self, write: &mut Write, id: &str) -> Result<(), StoreError> {
        match self.deleted_at(write, id).await? {
            None => Ok(()),
            Some(at) => Err(self.gone(id, at, false)),
        }
    }

    /// Marks a thing that is there as deleted.
    pub(super) async fn delete(self, write: &mut Write, id: &str, now: Timestamp) -> Result<(), StoreError> {
        self.present(write, id).await?;
        let delete = format!("UPDATE {} SET deleted_at_ms = ? WHERE id = ?", self.table);
        let deleted = sqlx::query(sqlx::AssertSqlSafe(delete))
            .bind(now.as_millisecond())
            .bind(id)
            .execute(&mut **write)
            .await?
            .rows_affected();
        if deleted == 1 { Ok(()) } else { Err(StoreError::missed(self.what, id)) }
    }

    /// Takes the mark of a deleted thing away, where what it held is still there; one that is not deleted stays.
    pub(super) async fn restore(self, write: &mut Write, id: &str, is_whole: &str) -> Result<(), StoreError> {
        let Self { what, table, .. } = self;
        let Some(at) = self.deleted_at(write, id).await? else { return Ok(()) };
        let restore = format!("UPDATE {table} SET deleted_at_ms = NULL WHERE id = ? AND {is_whole}");
        let restored = sqlx::query(sqlx::AssertSqlSafe(restore)).bind(id).execute(&mut **write).await?.rows_affected();
        match restored {
            1 => Ok(()),
            0 => Err(self.gone(id, at, false)),
            _ => Err(StoreError::missed(what, id)),
        }
    }

    /// That a thing was deleted, and whether it can come back.
    pub(super) fn gone(self, id: &str, at: i64, can_return: bool) -> StoreError {
        StoreError::Gone { what: self.what, id: id.to_owned(), at: rfc3339(at), can_return }
    }

    /// That there is no such thing.
    pub(super) fn missed(self, id: &str) -> StoreError {
        StoreError::missed(self.what, id)
    }

    /// That a row of it does not parse.
    pub(super) fn damaged(self, error: &serde_json::Error) -> StoreError {
        StoreError::damaged(self.what, error)
    }
}
