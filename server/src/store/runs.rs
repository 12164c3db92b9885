//! Runs: opened, changed, deleted, brought back, and forgotten for good.

mod listing;
mod log;
mod points;

pub use listing::RunPulse;
pub(crate) use listing::{RUNS, state_filter};
pub use log::{LogAddition, LogPlace, LogState};

use api::run::RunOrigin;
use jiff::Timestamp;
use planner::scenario::PlannerKind;

use super::forget::Forgetting;
use super::kept::KeptTable;
use super::{Kind, StoreError, Writer, hashes};

/// What has no name is being forgotten, and an import without an end broke off.
const RUN: KeptTable = KeptTable {
    kind: Kind::Run,
    table: "run",
    name: "name",
    whole: "name <> '' AND (origin <> 'imported' OR ended_at_ms IS NOT NULL)",
};
/// Takes the name and all that is small; points and bytes go later, in parts.
const FORGETTING: Forgetting = Forgetting {
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
/// Tokens of one run that are good at once; beyond it the oldest ends.
const MOST_TOKENS: i64 = 8;
/// Pieces of a log that are deleted in one transaction, so that others write in between.
const PIECES_AT_ONCE: i64 = 256;
/// Points that are deleted in one transaction.
const POINTS_AT_ONCE: i64 = 20_000;

/// A run to be stored.
#[derive(Debug)]
pub struct RunRow {
    /// Identifier.
    pub id: String,
    /// Name to show.
    pub name: String,
    /// How its log comes.
    pub origin: RunOrigin,
    /// Scenario that it is held against.
    pub scenario: Option<String>,
    /// Planner of that scenario.
    pub planner: Option<PlannerKind>,
    /// Hash of the token that its log must carry.
    pub token: [u8; 32],
    /// What makes a repeated request the same one.
    pub key: Option<RequestKey>,
    /// Table of patterns of the user's own for the lines of its log, valid, as text.
    pub log_table: Option<String>,
}

/// What makes a repeated request the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestKey {
    /// Hash of the Idempotency-Key.
    pub key: [u8; 32],
    /// Hash of what was asked with it.
    pub asked: [u8; 32],
}

/// What came of opening a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It is new.
    New,
    /// The same request opened this one before.
    Known(String),
    /// Another request came with the same key.
    OtherRequest,
}

/// What is to be changed of a run; outer `None` leaves it, inner `None` removes it.
#[derive(Debug, Default)]
pub struct RunChanges {
    /// Name to show.
    pub name: Option<String>,
    /// Note; empty for none.
    pub note: Option<String>,
    /// All tags.
    pub tags: Option<Vec<String>>,
    /// Scenario; empty for none.
    pub scenario: Option<String>,
    /// Planner of that scenario.
    pub planner: Option<PlannerKind>,
    /// Whether it stands in front of the list.
    pub pinned: Option<bool>,
}

impl Writer {
    /// Stores a run, unless the same request stored it before. A hidden one counts as deleted until it is restored.
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
        write.room_for(0).await?;
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
        .bind(run.key.map(|key| key.asked.to_vec()))
        .execute(&mut *write)
        .await?;
        if let Some(table) = &run.log_table {
            sqlx::query("INSERT INTO run_log_table (run_id, content, sha256) VALUES (?, ?, ?)")
                .bind(&run.id)
                .bind(table)
                .bind(hashes::of_one(table))
                .execute(&mut *write)
                .await?;
        }
        admit(&mut write, &run.id, &run.token, now).await?;
        write.commit().await?;
        Ok(Opened::New)
    }

    /// What the same request made before.
    pub async fn made_before(&self, key: RequestKey) -> Result<Opened, StoreError> {
        let mut write = self.begin().await?;
        let known = opened_with(&mut write, Some(key)).await?;
        write.commit().await?;
        Ok(known)
    }

    /// Gives up an import that is not shown: it is forgotten as soon as anything is.
    pub async fn give_up_import(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        // Where it failed at its first step there is no row.
        sqlx::query(
            "UPDATE run SET deleted_at_ms = 0 WHERE id = ? AND origin = 'imported' AND deleted_at_ms IS NOT NULL",
        )
        .bind(id)
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// Gives up the imports that a server before began and did not end. Says how many.
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

    /// Shows a run that was stored hidden, unless the same request made another one meanwhile: then it is forgotten as soon as
    /// anything is.
    pub async fn show_run(&self, id: &str, key: Option<RequestKey>) -> Result<Opened, StoreError> {
        let mut write = self.begin().await?;
        let known = opened_with(&mut write, key).await?;
        let shown = if known == Opened::New {
            sqlx::query("UPDATE run SET deleted_at_ms = NULL, key_hash = ?, asked_hash = ? WHERE id = ?")
                .bind(key.map(|key| key.key.to_vec()))
                .bind(key.map(|key| key.asked.to_vec()))
                .bind(id)
                .execute(&mut *write)
                .await?
        } else {
            sqlx::query("UPDATE run SET deleted_at_ms = 0 WHERE id = ?").bind(id).execute(&mut *write).await?
        };
        if shown.rows_affected() != 1 {
            return Err(RUN.missed(id));
        }
        write.commit().await?;
        Ok(known)
    }

    /// Makes a further token good for a run. The token is made while no other can be renewed.
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

    /// Gives a run a new token; all others end.
    pub async fn renew_run_token(&self, id: &str, token: &[u8; 32], now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.present(&mut write, id).await?;
        sqlx::query("DELETE FROM run_token WHERE run_id = ?").bind(id).execute(&mut *write).await?;
        admit(&mut write, id, token, now).await?;
        write.commit().await
    }

    /// Changes what stands beside a run.
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

    /// Deletes a run. Its bytes and points stay until [`Writer::forget_runs`].
    pub async fn delete_run(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.delete(&mut write, id, now).await?;
        write.commit().await
    }

    /// Brings a deleted run back; one that is there stays. One whose bytes went is gone.
    pub async fn restore_run(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        RUN.restore(&mut write, id, "").await?;
        write.commit().await
    }

    /// Forgets for good what was deleted before a time: bytes, points and names go, the identifier stays and says when.
    /// Returns how many runs went.
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

/// What the request of that key made before; new where there is no key.
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
        Some((_, asked, None)) if asked != key.asked => Ok(Opened::OtherRequest),
        Some((id, _, None)) => Ok(Opened::Known(id)),
    }
}

/// Makes a token good for a run.
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
    .bind(MOST_TOKENS)
    .execute(&mut **write)
    .await?;
    Ok(())
}
