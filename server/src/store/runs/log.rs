//! Bytes of logs, with the points that are read from them in the same transaction.

use api::run::{LogReport, RunOrigin, RunPoint};
use ingest::log::LogTable;
use jiff::Timestamp;

use super::{RUN, points};
use crate::store::{Reader, StoreError, Write, Writer, hashes};

/// Pieces shorter than this are joined with what comes next: trainers write a line at a time.
const SHORT_PIECE: i64 = 16 << 10;

/// What writing into a log starts from.
#[derive(Debug, Clone)]
pub struct LogState {
    /// How the log comes.
    pub origin: RunOrigin,
    /// Bytes of each file.
    pub files: Vec<u64>,
    /// Last row that no later byte can change.
    pub points: u64,
    /// Rows behind it, which are there because the run ended.
    pub early_points: u64,
    /// When it ended, in ms since 1970.
    pub ended_at_ms: Option<i64>,
    /// Table of patterns of the user's own for its lines.
    pub table: Option<LogTable>,
}

/// What is missed where another program writes into the same database.
const END: &str = "end of the log of run";

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPlace {
    /// File, from 0.
    pub file: u32,
    /// Byte of that file, from 0.
    pub offset: u64,
}

/// Bytes to be added to a log, and what they make of the run.
#[derive(Debug, Clone, Copy)]
pub struct LogAddition<'a> {
    /// Where they begin: at the end of what is stored.
    pub place: LogPlace,
    /// The bytes.
    pub content: &'a [u8],
    /// Last row that was complete before.
    pub points_before: u64,
    /// Points that became complete, with their rows.
    pub points: &'a [RunPoint],
    /// How many of them are there only because the run ended.
    pub early_points: u64,
    /// The point that lines may still add to.
    pub open: Option<&'a RunPoint>,
    /// Whether a step came.
    pub stepped: bool,
    /// Whether the run goes on although it had ended.
    pub reopened: bool,
    /// How long after a step the next one is missed.
    pub patience_ms: i64,
    /// Last step.
    pub last_step: Option<u64>,
    /// Steps of the whole training.
    pub total_steps: Option<u64>,
    /// Median time of the last steps, in s.
    pub median_step_s: Option<f64>,
    /// What was read so far and what was not.
    pub report: &'a LogReport,
}

impl Writer {
    /// Adds bytes and points, or nothing.
    ///
    /// # Errors
    /// The run is unknown or deleted, or someone else wrote meanwhile.
    pub async fn add_to_log(&self, id: &str, addition: &LogAddition<'_>, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        add(&mut write, id, addition, now).await?;
        write.commit().await
    }

    /// The same for several additions at once.
    pub async fn add_all_to_log(
        &self,
        id: &str,
        additions: &[LogAddition<'_>],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        for addition in additions {
            add(&mut write, id, addition, now).await?;
        }
        write.commit().await
    }

    /// The run ended with this code. The addition holds the points that its end completes, and no bytes.
    pub async fn end_run(
        &self,
        id: &str,
        exit_code: Option<i32>,
        reason: Option<&str>,
        addition: &LogAddition<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        add(&mut write, id, addition, now).await?;
        sqlx::query("UPDATE run SET ended_at_ms = ?, exit_code = ?, end_reason = ? WHERE id = ?")
            .bind(now.as_millisecond())
            .bind(exit_code)
            .bind(reason)
            .bind(id)
            .execute(&mut *write)
            .await?;
        write.commit().await
    }
}

async fn add(write: &mut Write, id: &str, addition: &LogAddition<'_>, now: Timestamp) -> Result<(), StoreError> {
    let LogAddition { place, content, .. } = addition;
    let bytes = count(content.len() as u64);
    let points = addition.points_before + addition.points.len() as u64;
    // The end of a run is noted however full the database is.
    if !content.is_empty() {
        write.room_for(content.len()).await?;
    }
    // Rows that only the end had made are made anew.
    let retaken = sqlx::query(
        "UPDATE run SET retakes = retakes + 1, retaken_row = points - early_points + 1 WHERE id = ? AND early_points > 0",
    )
    .bind(id)
    .execute(&mut **write)
    .await?;
    if retaken.rows_affected() == 1 {
        sqlx::query("DELETE FROM run_point WHERE run_id = ? AND row > ?")
            .bind(id)
            .bind(count(addition.points_before))
            .execute(&mut **write)
            .await?;
    }
    let changed = sqlx::query(
        "UPDATE run SET
             bytes = bytes + ?2, points = ?3, early_points = ?4, open_point_json = ?5, last_step = ?6, total_steps = ?7,
             median_step_s = ?8, report_json = ?9, patience_ms = ?10,
             updated_at_ms = iif(?2 > 0, ?11, updated_at_ms),
             step_at_ms = iif(?12, ?11, step_at_ms),
             exit_code = iif(?13, NULL, exit_code),
             end_reason = iif(?13, NULL, end_reason),
             ended_at_ms = iif(?13, NULL, ended_at_ms)
         WHERE id = ?1 AND points - early_points = ?14
           AND (deleted_at_ms IS NULL OR origin = 'imported')",
    )
    .bind(id)
    .bind(bytes)
    .bind(count(points))
    .bind(count(addition.early_points))
    .bind(addition.open.map(points::json))
    .bind(addition.last_step.map(count))
    .bind(addition.total_steps.map(count))
    .bind(addition.median_step_s)
    .bind(serde_json::to_string(addition.report).expect("reports have only text keys"))
    .bind(addition.patience_ms)
    .bind(now.as_millisecond())
    .bind(addition.stepped)
    .bind(addition.reopened)
    .bind(count(addition.points_before))
    .execute(&mut **write)
    .await?;
    if changed.rows_affected() != 1 {
        RUN.present(write, id).await?;
        return Err(StoreError::missed(END, id));
    }
    if !content.is_empty() {
        store(write, id, *place, content).await?;
    }
    points::insert(write, id, addition.points).await
}

/// First byte, bytes and hash of a piece.
type Piece = (i64, Vec<u8>, Option<Vec<u8>>);

/// A number as SQLite takes it.
fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Stores bytes at the end of a file, which they may open.
async fn store(write: &mut Write, id: &str, place: LogPlace, content: &[u8]) -> Result<(), StoreError> {
    let (start, bytes) = (count(place.offset), count(content.len() as u64));
    let extended = sqlx::query(
        "INSERT INTO run_file (run_id, file, bytes) VALUES (?1, ?2, ?4)
         ON CONFLICT (run_id, file) DO UPDATE SET bytes = bytes + ?4 WHERE bytes = ?3",
    )
    .bind(id)
    .bind(place.file)
    .bind(start)
    .bind(bytes)
    .execute(&mut **write)
    .await?;
    if extended.rows_affected() != 1 {
        return Err(StoreError::missed(END, id));
    }
    let last: Option<Piece> = sqlx::query_as(
        "SELECT start, content, sha256 FROM run_chunk
         WHERE run_id = ?1 AND file = ?2 AND start = (SELECT max(start) FROM run_chunk WHERE run_id = ?1 AND file = ?2)
           AND bytes + ?3 < ?4",
    )
    .bind(id)
    .bind(place.file)
    .bind(bytes)
    .bind(SHORT_PIECE)
    .fetch_optional(&mut **write)
    .await?;
    // A damaged piece stays as it is: joined, it would get a hash that says that it is whole.
    let is_whole = |(_, content, hash): &Piece| hash.as_ref().is_none_or(|hash| hashes::of_one(content) == *hash);
    let (start, content) = match last.filter(is_whole) {
        Some((start, mut joined, _)) => {
            joined.extend_from_slice(content);
            (start, joined)
        }
        None => (start, content.to_vec()),
    };
    sqlx::query(
        "INSERT INTO run_chunk (run_id, file, start, bytes, sha256, content) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (run_id, file, start) DO UPDATE SET bytes = excluded.bytes, sha256 = excluded.sha256, content = excluded.content",
    )
    .bind(id)
    .bind(place.file)
    .bind(start)
    .bind(count(content.len() as u64))
    .bind(hashes::of_one(&content))
    .bind(content)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Origin, end, deletion, points and early points of a row.
type StateRow = (String, Option<i64>, Option<i64>, i64, i64);

impl Reader {
    /// What writing into the log of a run starts from.
    pub async fn log_state(&self, id: &str) -> Result<LogState, StoreError> {
        let row: Option<StateRow> =
            sqlx::query_as("SELECT origin, ended_at_ms, deleted_at_ms, points, early_points FROM run WHERE id = ?")
                .bind(id)
                .fetch_optional(self.pool())
                .await?;
        let (origin, ended_at_ms, deleted, points, early) = row.ok_or_else(|| RUN.missed(id))?;
        if let Some(at) = deleted {
            return Err(RUN.gone(self.pool(), id, at).await);
        }
        let files: Vec<i64> = sqlx::query_scalar("SELECT bytes FROM run_file WHERE run_id = ? ORDER BY file")
            .bind(id)
            .fetch_all(self.pool())
            .await?;
        let table: Option<String> = sqlx::query_scalar("SELECT content FROM run_log_table WHERE run_id = ?")
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        let table = table.map(|table| LogTable::parse(&table)).transpose();
        Ok(LogState {
            table: table.map_err(|error| StoreError::Damaged { what: RUN.what(), detail: error.to_string() })?,
            origin: RunOrigin::from_id(&origin)
                .ok_or_else(|| StoreError::Damaged { what: RUN.what(), detail: "an unknown origin".to_owned() })?,
            files: files.into_iter().map(i64::unsigned_abs).collect(),
            points: (points - early).unsigned_abs(),
            early_points: early.unsigned_abs(),
            ended_at_ms,
        })
    }

    /// Bytes of a log from a place on: those of one stored piece, and no more than so many. Empty at the end.
    pub async fn log_bytes(&self, id: &str, place: LogPlace, most: usize) -> Result<Vec<u8>, StoreError> {
        let piece: Option<Vec<u8>> = sqlx::query_scalar(
            "SELECT substr(content, ?3 - start + 1, ?4) FROM run_chunk
             WHERE run_id = ?1 AND file = ?2 AND start <= ?3 ORDER BY start DESC LIMIT 1",
        )
        .bind(id)
        .bind(place.file)
        .bind(i64::try_from(place.offset).unwrap_or(i64::MAX))
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .fetch_optional(self.pool())
        .await?;
        Ok(piece.unwrap_or_default())
    }
}
