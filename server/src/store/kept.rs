//! What is the same for everything that people name, pin, delete and bring back.

use api::shelf::Words;
use jiff::Timestamp;
use sqlx::sqlite::SqliteExecutor;

use super::{Kind, StoreError, Write};
use crate::clock::rfc3339;

/// A kind of thing, and where it stands. Every table has `id`, `note`, `pinned_at_ms` and `deleted_at_ms`; all but runs, whose
/// tags stand in a table of their own, `tags_json`.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptTable {
    /// What it is.
    pub(super) kind: Kind,
    /// Its table.
    pub(super) table: &'static str,
    /// The column with its name.
    pub(super) name: &'static str,
    /// SQL of whether a deleted row still has what it held, so that it can come back.
    pub(super) whole: &'static str,
}

impl KeptTable {
    /// What it is called to people.
    pub(super) const fn what(self) -> &'static str {
        self.kind.name()
    }

    /// Changes what people say of a thing that is there.
    pub(super) async fn change(
        self,
        write: &mut Write,
        id: &str,
        words: &Words,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Self { table, name, .. } = self;
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
        if changed == 1 { Ok(()) } else { Err(self.missed(id)) }
    }

    /// When a known thing was deleted, ms since 1970; nothing while it is there.
    pub(super) async fn deleted_at(self, write: &mut Write, id: &str) -> Result<Option<i64>, StoreError> {
        let query = format!("SELECT deleted_at_ms FROM {} WHERE id = ?", self.table);
        let row: Option<Option<i64>> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(query)).bind(id).fetch_optional(&mut **write).await?;
        row.ok_or_else(|| self.missed(id))
    }

    /// Refuses what is unknown or deleted.
    pub(super) async fn present(self, write: &mut Write, id: &str) -> Result<(), StoreError> {
        match self.deleted_at(write, id).await? {
            None => Ok(()),
            Some(at) => Err(self.gone(&mut **write, id, at).await),
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
        if deleted == 1 { Ok(()) } else { Err(self.missed(id)) }
    }

    /// Takes the mark of a deleted thing away, where what it held is still there; one that is not deleted stays. `further` is SQL
    /// of what is set beside the mark, with a comma in front.
    pub(super) async fn restore(self, write: &mut Write, id: &str, further: &str) -> Result<(), StoreError> {
        let Self { kind, table, whole, .. } = self;
        let Some(at) = self.deleted_at(write, id).await? else { return Ok(()) };
        let restore = format!("UPDATE {table} SET deleted_at_ms = NULL{further} WHERE id = ? AND ({whole})");
        let restored = sqlx::query(sqlx::AssertSqlSafe(restore)).bind(id).execute(&mut **write).await?.rows_affected();
        if restored == 1 {
            return Ok(());
        }
        Err(StoreError::Gone { kind, id: id.to_owned(), at: rfc3339(at), can_return: false })
    }

    /// That a thing was deleted, and whether it can come back; or why that cannot be told.
    pub(super) async fn gone<'e>(self, reader: impl SqliteExecutor<'e>, id: &str, at: i64) -> StoreError {
        let Self { kind, table, whole, .. } = self;
        let query = format!("SELECT ({whole}) FROM {table} WHERE id = ?");
        let can_return: Result<Option<bool>, sqlx::Error> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(query)).bind(id).fetch_optional(reader).await;
        match can_return {
            Ok(can_return) => {
                StoreError::Gone { kind, id: id.to_owned(), at: rfc3339(at), can_return: can_return == Some(true) }
            }
            Err(error) => error.into(),
        }
    }

    /// That there is no such thing.
    pub(super) fn missed(self, id: &str) -> StoreError {
        StoreError::missed(self.what(), id)
    }

    /// That a row of it does not parse.
    pub(super) fn damaged(self, error: &serde_json::Error) -> StoreError {
        StoreError::damaged(self.what(), error)
    }
}
