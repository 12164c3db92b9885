//! Runs: creation, changes, deletion, restore and purge.

mod listing;
mod log;
mod points;

pub use listing::RunPulse;
pub(crate) use listing::{RUNS, state_filter};
pub use log::{LogAddition, LogPosition, LogState};

use api::run::RunOrigin;
use jiff::Timestamp;
use planner::scenario::PlannerKind;

use super::forget::PurgeStatements;
use super::objects::ObjectTable;
use super::{Kind, StoreError, Writer, hashes};

/// An empty name marks a run that is being purged. An imported run that has no end is an
/// interrupted import.
const RUN: ObjectTable = ObjectTable {
    kind: Kind::Run,
    table: "run",
    name: "name",
    restorable: "name <> '' AND (origin <> 'imported' OR ended_at_ms IS NOT NULL)",
};
/// Clears the name and all small columns. Points and log bytes are deleted later, in batches.
const FORGETTING: PurgeStatements = PurgeStatements {
    take: "UPDATE run SET name = '', note = NULL, end_reason = NULL, open_point_json = NULL, points = 0, early_points = 0,
             report_json = '{}', key_hash = NULL, asked_hash = NULL, scenario_id = NULL, planner = NULL
         WHERE id = (
             SELECT id FROM run WHERE deleted_at_ms < ? AND (name <> '' OR bytes > 0)
                 -- An import that is under way counts as deleted until it is shown; one that was given up, as deleted in 1970.
                 AND (origin <> 'imported' OR ended_at_ms IS NOT NULL OR deleted_at_ms = 0)
             ORDER BY deleted_at_ms LIMIT 1)
         RETURNING id",
    with_it: &["DELETE FROM run_tag WHERE run_id = ?", "DELETE FROM run_token WHERE run_id = ?", "DELETE FROM run_log_table WHERE run_id = ?"],
};
/// Maximum number of valid tokens per run. Beyond this limit, the oldest token becomes invalid.
const MAX_TOKENS: i64 = 8;
/// Log chunks deleted per transaction, so that other writers can run in between.
const PIECES_AT_ONCE: i64 = 256;
/// Points deleted per transaction.
const POINTS_AT_ONCE: i64 = 20_000;

/// A run to be stored.
#[derive(Debug)]
pub struct RunRow {
    /// Identifier.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Source of the log.
    pub origin: RunOrigin,
    /// Scenario for comparison.
    pub scenario: Option<String>,
    /// Planner in the scenario.
    pub planner: Option<PlannerKind>,
    /// Hash of the token for log uploads.
    pub token: [u8; 32],
    /// Idempotency key of the request.
    pub key: Option<RequestKey>,
    /// Table with user-defined patterns for log lines, as validated text.
    pub log_table: Option<String>,
}

/// Identifies repeated requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestKey {
    /// Hash of the Idempotency-Key header.
    pub key: [u8; 32],
    /// Hash of the request content.
    pub request: [u8; 32],
}

/// Result of creating a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// The run was created.
    New,
    /// The same request created this run earlier.
    Known(String),
    /// The key belongs to a different request.
    OtherRequest,
}

/// Changes to a run. `None` means unchanged.
#[derive(Debug, Default)]
pub struct RunChanges {
    /// Display name.
    pub name: Option<String>,
    /// Note. An empty text removes it.
    pub note: Option<String>,
    /// Complete list of tags.
    pub tags: Option<Vec<String>>,
    /// Scenario. An empty text removes it.
    pub scenario: Option<String>,
    /// Planner in the scenario.
    pub planner: Option<PlannerKind>,
    /// Pinned at the top of the list.
    pub pinned: Option<bool>,
}

impl Writer {
    /// Stores a run, unless the same request has created a run. A hidden run is marked as deleted.
    pub async fn open_run(
        &self,
        run: &RunRow,
        hidden: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Opened, StoreError> {
        let mut write = self.begin().await?;
        match opened_with(&mut write, run.key).await? {
            Opened::New => {}
            Opened::OtherRequest => return Ok(Opened::OtherRequest),
            Opened::Known(id) => {
                write.commit().await?;
                return Ok(Opened::Known(id));
            }
        }
        write.check_capacity(0).await?;
        sqlx::query(
            "INSERT INTO run (id, name, origin, scenario_id, planner, created_at_ms, deleted_at_ms, key_hash, asked_hash,
                 report_json)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '{}')",
        )
        .bind(&run.id)
        .bind(&run.name)
        .bind(run.origin.id())
        .bind(run.scenario.as_deref())
        .bind(run.planner.map(PlannerKind::id))
        .bind(now.as_millisecond())
        .bind(hidden.map(Timestamp::as_millisecond))
        .bind(run.key.map(|key| key.key.to_vec()))
        .bind(run.key.map(|key| key.request.to_vec()))
        .execute(&mut *write)
        .await?;
        if let Some(table) = &run.log_table {
            sqlx::query("INSERT INTO run_log_table (run_id, content, sha256) VALUES (?, ?, ?)")
                .bind(&run.id)
                .bind(table)
                .bind(hashes::hash_content(table))
                .execute(&mut *write)
                .await?;
        }
        admit(&mut write, &run.id, &run.token, now).await?;
        write.commit().await?;
        Ok(Opened::New)
    }

    /// Returns the result of an earlier identical request.
    pub async fn earlier_result(&self, key: RequestKey) -> Result<Opened, StoreError> {
        let mut write = self.begin().await?;
        let known = opened_with(&mut write, Some(key)).await?;
        write.commit().await?;
        Ok(known)
    }

    /// Marks a hidden import for purging.
    pub async fn give_up_import(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        // No row exists if the import failed in the first step.
        sqlx::query(
            "UPDATE run SET deleted_at_ms = 0 WHERE id = ? AND origin = 'imported' AND deleted_at_ms IS NOT NULL",
        )
        .bind(id)
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// Marks unfinished imports from earlier servers for purging. Returns the count.
    pub async fn give_up_imports(&self) -> Result<u64, StoreError> {
        let mut write = self.begin().await?;
        let given_up = sqlx::query(
            "UPDATE run SET deleted_at_ms = 0 WHERE origin = 'imported' AND ended_at_ms IS NULL AND deleted_at_ms > 0",
        )
        .execute(&mut *write)
        .await?
        .rows_affected();
        write.commit().await?;
        Ok(given_up)
    }

    /// Shows a hidden run. If the same request created a different run in the meantime, this run is
    /// marked for purging instead.
    pub async fn show_run(&self, id: &str, key: Option<RequestKey>) -> Result<Opened, StoreError> {
        let mut write = self.begin().await?;
        let known = opened_with(&mut write, key).await?;
        let updated = if known == Opened::New {
            sqlx::query("UPDATE run SET deleted_at_ms = NULL, key_hash = ?, asked_hash = ? WHERE id = ?")
                .bind(key.map(|key| key.key.to_vec()))
                .bind(key.map(|key| key.request.to_vec()))
                .bind(id)
                .execute(&mut *write)
                .await?
        } else {
            sqlx::query("UPDATE run SET deleted_at_ms = 0 WHERE id = ?").bind(id).execute(&mut *write).await?
        };
        if updated.rows_affected() != 1 {
            return Err(RUN.missed(id));
        }
        write.commit().await?;
        Ok(known)
    }

    /// Adds a valid token to a run. The token is created inside the transaction, so no concurrent
    /// renewal is possible.
    pub async fn admit_to_run(
        &self,
        id: &str,
        token: impl FnOnce() -> [u8; 32] + Send,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.present(&mut write, id).await?;
        admit(&mut write, id, &token(), now).await?;
        write.commit().await
    }

    /// Sets a new token and invalidates all other tokens.
    pub async fn renew_run_token(&self, id: &str, token: &[u8; 32], now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.present(&mut write, id).await?;
        sqlx::query("DELETE FROM run_token WHERE run_id = ?").bind(id).execute(&mut *write).await?;
        admit(&mut write, id, token, now).await?;
        write.commit().await
    }

    /// Changes name, note, tags, pin, scenario and planner.
    pub async fn change_run(&self, id: &str, changes: &RunChanges, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.present(&mut write, id).await?;
        sqlx::query(
            "UPDATE run SET
                 name = coalesce(?1, name),
                 note = iif(?2 IS NULL, note, nullif(?2, '')),
                 -- A scenario that is named settles both: without a planner it is the fastest.
                 planner = CASE WHEN ?3 IS NULL THEN coalesce(?4, planner) WHEN ?3 <> '' THEN ?4 END,
                 scenario_id = iif(?3 IS NULL, scenario_id, nullif(?3, '')),
                 pinned_at_ms = CASE ?6 WHEN 1 THEN coalesce(pinned_at_ms, ?7) WHEN 0 THEN NULL ELSE pinned_at_ms END
             WHERE id = ?5",
        )
        .bind(changes.name.as_deref())
        .bind(changes.note.as_deref())
        .bind(changes.scenario.as_deref())
        .bind(changes.planner.map(PlannerKind::id))
        .bind(id)
        .bind(changes.pinned)
        .bind(now.as_millisecond())
        .execute(&mut *write)
        .await?;
        if let Some(tags) = &changes.tags {
            sqlx::query("DELETE FROM run_tag WHERE run_id = ?").bind(id).execute(&mut *write).await?;
            for tag in tags {
                sqlx::query("INSERT OR IGNORE INTO run_tag (run_id, tag) VALUES (?, ?)")
                    .bind(id)
                    .bind(tag)
                    .execute(&mut *write)
                    .await?;
            }
        }
        write.commit().await
    }

    /// Marks a run as deleted. [`Writer::forget_runs`] deletes log bytes and points.
    pub async fn delete_run(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.delete(&mut write, id, now).await?;
        write.commit().await
    }

    /// Restores a deleted run. An active run is unchanged. Fails if the log bytes were purged.
    pub async fn restore_run(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.restore(&mut write, id, "").await?;
        write.commit().await
    }

    /// Purges runs deleted before the given time: log bytes, points and names are deleted.
    /// Identifier and deletion time remain. Returns the count.
    pub async fn forget_runs(&self, deleted_before: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while let Some(id) = self.forget_next(&FORGETTING, deleted_before).await? {
            self.in_parts(
                "DELETE FROM run_point WHERE run_id = ?1 AND row IN (SELECT row FROM run_point WHERE run_id = ?1 LIMIT ?2)",
                &id,
                POINTS_AT_ONCE,
            )
            .await?;
            self.in_parts(
                "DELETE FROM run_chunk WHERE rowid IN (SELECT rowid FROM run_chunk WHERE run_id = ?1 LIMIT ?2)",
                &id,
                PIECES_AT_ONCE,
            )
            .await?;
            let mut write = self.begin().await?;
            sqlx::query("DELETE FROM run_file WHERE run_id = ?").bind(&id).execute(&mut *write).await?;
            sqlx::query("UPDATE run SET bytes = 0 WHERE id = ?").bind(&id).execute(&mut *write).await?;
            write.commit().await?;
            forgotten += 1;
        }
        Ok(forgotten)
    }
}

/// Returns the result of an earlier request with this key. Returns [`Opened::New`] if `key` is
/// `None`.
async fn opened_with(write: &mut super::Write, key: Option<RequestKey>) -> Result<Opened, StoreError> {
    let Some(key) = key else { return Ok(Opened::New) };
    let known: Option<(String, Vec<u8>, Option<i64>)> =
        sqlx::query_as("SELECT id, asked_hash, deleted_at_ms FROM run WHERE key_hash = ?")
            .bind(&key.key[..])
            .fetch_optional(&mut **write)
            .await?;
    match known {
        None => Ok(Opened::New),
        Some((id, _, Some(at))) => Err(RUN.gone(&mut **write, &id, at).await),
        Some((_, request, None)) if request != key.request => Ok(Opened::OtherRequest),
        Some((id, _, None)) => Ok(Opened::Known(id)),
    }
}

/// Adds a valid token to a run.
async fn admit(write: &mut super::Write, id: &str, token: &[u8; 32], now: Timestamp) -> Result<(), StoreError> {
    sqlx::query("INSERT OR IGNORE INTO run_token (run_id, token_hash, created_at_ms) VALUES (?, ?, ?)")
        .bind(id)
        .bind(&token[..])
        .bind(now.as_millisecond())
        .execute(&mut **write)
        .await?;
    sqlx::query(
        "DELETE FROM run_token WHERE run_id = ?1 AND token_hash IN (
             SELECT token_hash FROM run_token WHERE run_id = ?1 ORDER BY created_at_ms DESC LIMIT -1 OFFSET ?2)",
    )
    .bind(id)
    .bind(MAX_TOKENS)
    .execute(&mut **write)
    .await?;
    Ok(())
}
