//! Operations shared by all objects with name, pin, deletion and restore.

use api::listing::Annotations;
use jiff::Timestamp;
use sqlx::sqlite::SqliteExecutor;

use super::{Kind, StoreError, Write};
use crate::clock::rfc3339;

/// A kind of object and the SQL table. Each table has columns `id`, `note`, `pinned_at_ms` and
/// `deleted_at_ms`. All tables except `run` have `tags_json`; the tags of runs are in a separate
/// table.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectTable {
    pub(super) kind: Kind,
    pub(super) table: &'static str,
    /// Name column.
    pub(super) name: &'static str,
    /// SQL condition: the content of a deleted row still exists, so it can be restored.
    pub(super) restorable: &'static str,
}

impl ObjectTable {
    /// Returns the display name of the kind.
    pub(super) const fn kind_name(self) -> &'static str {
        self.kind.name()
    }

    /// Changes name, note, tags and pin of an object that is not deleted.
    pub(super) async fn change(
        self,
        write: &mut Write,
        id: &str,
        annotations: &Annotations,
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
            .bind(annotations.name.as_deref())
            .bind(annotations.note.as_deref())
            .bind(annotations.tags.as_ref().map(|tags| serde_json::to_string(tags).expect("texts")))
            .bind(annotations.pinned)
            .bind(now.as_millisecond())
            .bind(id)
            .execute(&mut **write)
            .await?
            .rows_affected();
        if changed == 1 { Ok(()) } else { Err(self.missed(id)) }
    }

    /// Returns the deletion time of an object in ms since 1970, or `None` if it is not deleted.
    /// Fails if the object is unknown.
    pub(super) async fn deleted_at(self, write: &mut Write, id: &str) -> Result<Option<i64>, StoreError> {
        let query = format!("SELECT deleted_at_ms FROM {} WHERE id = ?", self.table);
        let row: Option<Option<i64>> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(query)).bind(id).fetch_optional(&mut **write).await?;
        row.ok_or_else(|| self.missed(id))
    }

    /// Returns an error if the object is unknown or deleted.
    pub(super) async fn present(self, write: &mut Write, id: &str) -> Result<(), StoreError> {
        match self.deleted_at(write, id).await? {
            None => Ok(()),
            Some(at) => Err(self.gone(&mut **write, id, at).await),
        }
    }

    /// Marks an object as deleted.
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

    /// Restores a deleted object if the content still exists. An active object is unchanged.
    /// `further` is SQL for additional assignments, with a leading comma.
    pub(super) async fn restore(self, write: &mut Write, id: &str, further: &str) -> Result<(), StoreError> {
        let Self { kind, table, restorable, .. } = self;
        let Some(at) = self.deleted_at(write, id).await? else { return Ok(()) };
        let restore = format!("UPDATE {table} SET deleted_at_ms = NULL{further} WHERE id = ? AND ({restorable})");
        let restored = sqlx::query(sqlx::AssertSqlSafe(restore)).bind(id).execute(&mut **write).await?.rows_affected();
        if restored == 1 {
            return Ok(());
        }
        Err(StoreError::Gone { kind, id: id.to_owned(), at: rfc3339(at), can_return: false })
    }

    /// Returns the error for a deleted object, including whether it can be restored, or a database
    /// error.
    pub(super) async fn gone<'e>(self, reader: impl SqliteExecutor<'e>, id: &str, at: i64) -> StoreError {
        let Self { kind, table, restorable, .. } = self;
        let query = format!("SELECT ({restorable}) FROM {table} WHERE id = ?");
        let can_return: Result<Option<bool>, sqlx::Error> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(query)).bind(id).fetch_optional(reader).await;
        match can_return {
            Ok(can_return) => {
                StoreError::Gone { kind, id: id.to_owned(), at: rfc3339(at), can_return: can_return == Some(true) }
            }
            Err(error) => error.into(),
        }
    }

    /// Returns the error for an unknown object.
    pub(super) fn missed(self, id: &str) -> StoreError {
        StoreError::missed(self.kind_name(), id)
    }

    /// Returns the error for a row that cannot be parsed.
    pub(super) fn damaged(self, error: &serde_json::Error) -> StoreError {
        StoreError::damaged(self.kind_name(), error)
    }
}
