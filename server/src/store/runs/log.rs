//! Log bytes and the parsed points, stored in the same transaction.

use api::run::{LogReport, RunOrigin, RunPoint};
use ingest::log::LogTable;
use jiff::Timestamp;

use super::{RUN, points};
use crate::store::{Reader, StoreError, Write, Writer, hashes};

/// Chunks below this size are merged with later bytes, because trainers write a line at a time.
const SHORT_PIECE: i64 = 16 << 10;

/// Log state before an append.
#[derive(Debug, Clone)]
pub struct LogState {
    /// Source of the log.
    pub origin: RunOrigin,
    /// Bytes per file.
    pub files: Vec<u64>,
    /// Row number of the latest point that later bytes cannot change.
    pub points: u64,
    /// Later rows that exist only because the run ended.
    pub early_points: u64,
    /// End of the run, in ms since 1970.
    pub ended_at_ms: Option<i64>,
    /// User-defined patterns for log lines.
    pub table: Option<LogTable>,
}

/// Reported as missing if a different program changed the log concurrently.
const END: &str = "end of the log of run";

/// Position in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// File number, from 0.
    pub file: u32,
    /// Byte offset in the file, from 0.
    pub offset: u64,
}

/// Bytes to append to a log, with the resulting changes to the run.
#[derive(Debug, Clone, Copy)]
pub struct LogAddition<'a> {
    /// Start position: the end of the stored log.
    pub position: LogPosition,
    /// Bytes to append.
    pub content: &'a [u8],
    /// Latest complete row number before the append.
    pub points_before: u64,
    /// Newly completed points with row numbers.
    pub points: &'a [RunPoint],
    /// Points that exist only because the run ended.
    pub early_points: u64,
    /// Incomplete point, which later lines may extend.
    pub open: Option<&'a RunPoint>,
    /// True if a new step was found.
    pub stepped: bool,
    /// True if the run continues although it had ended.
    pub reopened: bool,
    /// Stall timeout in ms.
    pub stall_timeout_ms: i64,
    /// Latest step number.
    pub last_step: Option<u64>,
    /// Total steps in the training job.
    pub total_steps: Option<u64>,
    /// Median recent step time, in s.
    pub median_step_s: Option<f64>,
    /// Report on parsed and skipped lines.
    pub report: &'a LogReport,
}

impl Writer {
    /// Appends bytes and points in one transaction.
    ///
    /// # Errors
    /// The run is unknown or deleted, or the log was changed concurrently.
    pub async fn add_to_log(&self, id: &str, addition: &LogAddition<'_>, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        add(&mut write, id, addition, now).await?;
        write.commit().await
    }

    /// Appends several additions in one transaction.
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

    /// Ends a run with an exit code. The addition contains the points completed by the end, and no
    /// bytes.
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
    let LogAddition { position, content, .. } = addition;
    let bytes = count(content.len() as u64);
    let points = addition.points_before + addition.points.len() as u64;
    // The run end is stored even if the database is full.
    if !content.is_empty() {
        write.check_capacity(content.len()).await?;
    }
    // Rows that exist only because the run ended are rebuilt.
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
    .bind(addition.stall_timeout_ms)
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
        store(write, id, *position, content).await?;
    }
    points::insert(write, id, addition.points).await
}

/// Chunk: start offset, bytes and hash.
type Piece = (i64, Vec<u8>, Option<Vec<u8>>);

/// Converts a count to SQLite's integer type.
fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Appends bytes to a file and creates the file if it is new.
async fn store(write: &mut Write, id: &str, position: LogPosition, content: &[u8]) -> Result<(), StoreError> {
    let (start, bytes) = (count(position.offset), count(content.len() as u64));
    let extended = sqlx::query(
        "INSERT INTO run_file (run_id, file, bytes) VALUES (?1, ?2, ?4)
         ON CONFLICT (run_id, file) DO UPDATE SET bytes = bytes + ?4 WHERE bytes = ?3",
    )
    .bind(id)
    .bind(position.file)
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
    .bind(position.file)
    .bind(bytes)
    .bind(SHORT_PIECE)
    .fetch_optional(&mut **write)
    .await?;
    // A damaged chunk is not merged. Merging would compute a new valid hash and hide the damage.
    let is_intact =
        |(_, content, hash): &Piece| hash.as_ref().is_none_or(|hash| hashes::hash_content(content) == *hash);
    let (start, content) = match last.filter(is_intact) {
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
    .bind(position.file)
    .bind(start)
    .bind(count(content.len() as u64))
    .bind(hashes::hash_content(&content))
    .bind(content)
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Row: origin, end, deletion, points and early points.
type StateRow = (String, Option<i64>, Option<i64>, i64, i64);

impl Reader {
    /// Returns the log state before an append.
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
            table: table.map_err(|error| StoreError::Damaged { kind: RUN.kind_name(), detail: error.to_string() })?,
            origin: RunOrigin::from_id(&origin)
                .ok_or_else(|| StoreError::Damaged { kind: RUN.kind_name(), detail: "an unknown origin".to_owned() })?,
            files: files.into_iter().map(i64::unsigned_abs).collect(),
            points: (points - early).unsigned_abs(),
            early_points: early.unsigned_abs(),
            ended_at_ms,
        })
    }

    /// Returns log bytes from a position: at most `most` bytes from a single chunk. Empty at the
    /// end.
    pub async fn log_bytes(&self, id: &str, position: LogPosition, limit: usize) -> Result<Vec<u8>, StoreError> {
        let piece: Option<Vec<u8>> = sqlx::query_scalar(
            "SELECT substr(content, ?3 - start + 1, ?4) FROM run_chunk
             WHERE run_id = ?1 AND file = ?2 AND start <= ?3 ORDER BY start DESC LIMIT 1",
        )
        .bind(id)
        .bind(position.file)
        .bind(i64::try_from(position.offset).unwrap_or(i64::MAX))
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_optional(self.pool())
        .await?;
        Ok(piece.unwrap_or_default())
    }
}
