//! Import of complete log files. The format is detected from the content.

use api::run::{LogReport, RunPoint};
use axum::body::Bytes;
use ingest::log::{Limits, LogError, LogTable};

use super::observed::{self, PointConverter};
use super::recent::Recent;
use super::{Live, failure};
use crate::store::{LogAddition, LogPosition, Opened, RequestKey, RunRow, StoreError};

/// Batch sizes per transaction in bytes and points. Other writers run between transactions.
const BYTES_AT_ONCE: usize = 4 << 20;
const POINTS_AT_ONCE: usize = 5000;
/// Stored chunk size, as for uploads.
const PIECE_BYTES: usize = 256 << 10;

/// Error when a log file cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file is not a log.
    #[error("{0}")]
    Log(#[from] LogError),
    /// The database returned an error.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The parser panicked.
    #[error("the reading of a log stopped unexpectedly: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

/// Parsed file.
struct Read {
    points: Vec<RunPoint>,
    report: LogReport,
    median_step_s: Option<f64>,
}

impl Live {
    /// Imports a complete file as an ended run, including its bytes. The run is marked as deleted
    /// and cannot be restored until all data is stored. A failed import is purged soon; an import
    /// interrupted by a crash is purged after the restart. The run receives its request key last,
    /// so an interrupted import does not block a repeated request.
    ///
    /// `table` contains user-defined patterns for log lines.
    pub async fn import(
        &self,
        run: &RunRow,
        key: Option<RequestKey>,
        bytes: Bytes,
        table: Option<LogTable>,
    ) -> Result<Opened, ImportError> {
        let imported = self.import_hidden(run, key, bytes, table).await;
        if imported.is_err()
            && let Err(error) = self.store.writer().give_up_import(&run.id).await
        {
            // The run remains hidden until it is purged after a restart.
            tracing::warn!(run = run.id, "an import that failed was not given up: {error}");
        }
        imported
    }

    async fn import_hidden(
        &self,
        run: &RunRow,
        key: Option<RequestKey>,
        bytes: Bytes,
        table: Option<LogTable>,
    ) -> Result<Opened, ImportError> {
        let file = bytes.clone();
        let file_bytes = Limits::default().file_bytes.max(self.limits.import_bytes);
        let limits = Limits {
            file_bytes,
            points: usize::try_from(self.limits.points).unwrap_or(usize::MAX),
            ..Limits::default()
        };
        let failure = failure::find(&bytes);
        let read = tokio::task::spawn_blocking(move || read(&file, &limits, table.as_ref())).await??;
        let now = self.clock.now();
        let writer = self.store.writer();
        writer.open_run(run, Some(now), now).await?;
        let last = read.points.last();
        let mut addition = LogAddition {
            position: LogPosition { file: 0, offset: 0 },
            content: &[],
            points_before: 0,
            points: &[],
            early_points: 0,
            open: None,
            stepped: true,
            reopened: false,
            stall_timeout_ms: 0,
            last_step: last.map(|point| point.step),
            total_steps: read.points.iter().rev().find_map(|point| point.total_steps),
            median_step_s: read.median_step_s,
            report: &read.report,
        };
        for batch in bytes.chunks(BYTES_AT_ONCE) {
            let pieces = batch.chunks(PIECE_BYTES).map(|content| {
                let position = addition.position;
                addition.position.offset += content.len() as u64;
                LogAddition { position, content, ..addition }
            });
            let pieces: Vec<LogAddition<'_>> = pieces.collect();
            writer.add_all_to_log(&run.id, &pieces, now).await?;
        }
        for points in read.points.chunks(POINTS_AT_ONCE) {
            writer.add_to_log(&run.id, &LogAddition { points, ..addition }, now).await?;
            addition.points_before += points.len() as u64;
        }
        let (exit_code, reason) = failure.map(|failure| (failure.exit_code, failure.reason)).unzip();
        writer.end_run(&run.id, exit_code, reason.as_deref(), &addition, now).await?;
        Ok(writer.show_run(&run.id, key).await?)
    }
}

/// Returns the points of a complete log that is not stored, and the report of its import.
///
/// # Errors
/// The text is no log, or exceeds the limits.
pub(crate) fn log_points(bytes: &[u8]) -> Result<(Vec<RunPoint>, LogReport), LogError> {
    let Read { points, report, .. } = read(bytes, &Limits::default(), None)?;
    Ok((points, report))
}

fn read(bytes: &[u8], limits: &Limits, table: Option<&LogTable>) -> Result<Read, LogError> {
    let log = ingest::log::import_with(bytes, limits, table)?;
    let mut converter = PointConverter::default();
    let mut steps_s = Recent::default();
    let mut points = Vec::with_capacity(log.points.len());
    for (row, point) in (1..).zip(&log.points) {
        let run_point = converter.point(row, point);
        if let Some(step) = run_point.step_s {
            steps_s.push(step);
        }
        points.push(run_point);
        converter.advance(point);
    }
    Ok(Read { points, report: observed::report(&log.report), median_step_s: steps_s.median() })
}
