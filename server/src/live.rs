//! Live logs of running jobs: stores log bytes, parses points from them and notifies subscribers.
//!
//! The stored bytes are authoritative. A [`Reading`] contains the parser state at the end of the
//! stored bytes. If it is not in memory (because the server was restarted, or too many runs are
//! active), it is rebuilt from the stored bytes. The same bytes produce the same rows
//! (docs/adr/0031).

mod failure;
mod feeds;
mod follower;
mod import;
mod limits;
mod observed;
mod reading;
mod recent;
mod seats;

pub use follower::{FeedEvent, Follower};
pub use import::ImportError;
pub(crate) use import::log_points;
pub use limits::LiveLimits;
pub use seats::{NoStream, StreamSeat, UploadSeat};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use tokio::sync::watch;

use crate::client::Client;
use crate::clock::Clock;
use crate::store::{LogAddition, LogPosition, Store, StoreError};
use crate::token::Secret;
use feeds::Feeds;
use reading::{News, Reading};
use seats::{Streams, Uploads};

/// A step within this time after the run end still belongs to the ended run. Later steps come from
/// a restarted job and reopen the run.
const LAST_MOMENTS_MS: i64 = 60_000;
/// Read size in bytes when a stored log is parsed.
const REREAD_BYTES: usize = 1 << 20;

/// Error when bytes cannot be appended to a log.
#[derive(Debug, thiserror::Error)]
pub enum LogRefusal {
    /// The offset is beyond the end of the stored bytes.
    #[error("bytes before these are missing: {stored} bytes of file {file} are stored; go on from there")]
    Gap {
        /// File number.
        file: u32,
        /// Stored bytes in the file.
        stored: u64,
    },
    /// The bytes differ from the stored bytes.
    #[error(
        "the bytes differ from those stored of file {file}: the log was rotated or written anew; send it as ?file={}", file + 1
    )]
    Diverged {
        /// File number.
        file: u32,
        /// Stored bytes in the file.
        stored: u64,
    },
    /// A later file exists already.
    #[error(
        "file {file} is closed, because a later one was opened; send the log as ?file={latest} or the one behind it"
    )]
    Closed {
        /// File number.
        file: u32,
        /// Stored bytes in the file.
        stored: u64,
        /// Number of the latest file.
        latest: u32,
    },
    /// A newer upload has replaced this upload.
    #[error(
        "{stored} bytes of file {file} are stored; newer uploads of this log took the place of this one. Send a log over one connection"
    )]
    Replaced {
        /// File number.
        file: u32,
        /// Stored bytes in the file.
        stored: u64,
    },
    /// The log is compressed.
    #[error("the log is compressed with gzip: send its text, or import the file as a run")]
    Compressed,
    /// The run was imported from a complete file.
    #[error("the log of this run was imported whole and takes no more bytes")]
    Imported,
    /// The log has reached the size limit.
    #[error("the log has the {limit} bytes that a run may have; open another run")]
    Full {
        /// Size limit in bytes.
        limit: u64,
    },
    /// The log has reached the file limit.
    #[error("the log has the {limit} files that a run may have; open another run")]
    Files {
        /// Maximum number of files.
        limit: usize,
    },
    /// The database returned an error.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The parser panicked.
    #[error("the reading of a log stopped unexpectedly: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

impl LogRefusal {
    /// Returns true if the database was full.
    fn is_space_exhausted(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_space_exhausted())
    }
}

/// End of a stored log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// File number.
    pub file: u32,
    /// Stored bytes in the file.
    pub stored: u64,
}

/// Live logs of all runs.
#[derive(Debug)]
pub struct Live {
    store: Store,
    clock: Arc<dyn Clock>,
    limits: LiveLimits,
    feeds: Feeds,
    secret: Secret,
    uploads: Uploads,
    streams: Streams,
    points: AtomicU64,
    stopping: watch::Sender<bool>,
}

impl Live {
    /// Creates the state with empty caches.
    pub fn new(store: Store, clock: Arc<dyn Clock>, limits: LiveLimits) -> Self {
        Self {
            feeds: Feeds::new(limits.readings, limits.reading_idle),
            uploads: Uploads::new(limits.uploads, limits.uploads_per_run),
            streams: Streams::new(limits.streams, limits.streams_per_client),
            points: AtomicU64::new(0),
            stopping: watch::Sender::new(false),
            secret: Secret::draw(),
            store,
            clock,
            limits,
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &LiveLimits {
        &self.limits
    }

    /// Returns the secret that derives tokens from Idempotency-Keys.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Closes uploads and streams when the server stops.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Returns a future that resolves when the server stops.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stopping.subscribe();
        async move {
            // An error means that the sender was dropped, which also stops the server.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        }
    }

    /// Reserves an upload slot. Returns `None` if all server slots are in use. If the run has
    /// reached its limit, the oldest upload is replaced.
    pub fn upload(&self, run: &str) -> Option<UploadSeat> {
        self.uploads.seat(run)
    }

    /// Reserves a slot for an event stream of a run, job or sweep.
    ///
    /// # Errors
    /// All slots of the server or of the client are in use.
    pub fn stream(&self, client: &Client) -> Result<StreamSeat, NoStream> {
        self.streams.seat(client)
    }

    /// Returns the number of open event streams and open uploads.
    pub fn open(&self) -> (usize, usize) {
        (self.streams.open(), self.uploads.open())
    }

    /// Returns the number of points parsed since the server started.
    pub fn points_taken(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// Returns a follower that reports events beyond the given row.
    pub fn follow(&self, run: &str, after: u64) -> Follower {
        let reader = self.store.reader().clone();
        Follower::new(reader, Arc::clone(&self.clock), self.feeds.get(run), run, after, self.limits.stream_rows)
    }

    /// Notifies followers to reload the run from the database.
    pub fn nudge(&self, run: &str) {
        self.feeds.get(run).tell();
    }

    /// Returns the end of a log file. The default is the latest file.
    pub async fn log_end(&self, run: &str, file: Option<u32>) -> Result<LogEnd, StoreError> {
        let files = self.store.reader().log_state(run).await?.files;
        let file = file.unwrap_or_else(|| latest(&files));
        Ok(LogEnd { file, stored: files.get(file as usize).copied().unwrap_or_default() })
    }

    /// Appends bytes to a log file. The default is the latest file. Bytes that are already stored
    /// are compared and skipped. Writers of the same run are serialized, so each sees the result of
    /// the previous writer.
    pub async fn append(&self, run: &str, file: Option<u32>, offset: u64, bytes: &Bytes) -> Result<LogEnd, LogRefusal> {
        let feed = self.feeds.get(run);
        let mut slot = feed.reading().await;
        let reading = match slot.take() {
            Some(reading) => reading,
            None => self.read_again(run).await?,
        };
        let file = file.unwrap_or_else(|| latest(&reading.files));
        let position = LogPosition { file, offset };
        match self.fresh(run, &reading, position, bytes).await {
            Ok(known) if known == bytes.len() => {
                let stored = reading.files.get(file as usize).copied().unwrap_or_default();
                *slot = Some(reading);
                Ok(LogEnd { file, stored })
            }
            Ok(known) => {
                let position = LogPosition { file, offset: offset + known as u64 };
                let before = reading.clone();
                match self.take(run, reading, position, bytes.slice(known..)).await {
                    Ok(reading) => *slot = Some(reading),
                    // If the database is full, the client retries repeatedly, so the old state is
                    // restored to avoid parsing the full log on each retry. On any other error the
                    // state is dropped and rebuilt from the stored bytes.
                    Err(refusal) => {
                        *slot = Some(before).filter(|_| refusal.is_space_exhausted());
                        return Err(refusal);
                    }
                }
                feed.tell();
                Ok(LogEnd { file, stored: offset + bytes.len() as u64 })
            }
            Err(refusal) => {
                *slot = Some(reading);
                Err(refusal)
            }
        }
    }

    /// Ends the run with an exit code and an optional message. Incomplete points are stored in
    /// their present form.
    pub async fn finish(&self, run: &str, exit_code: i32, reason: Option<&str>) -> Result<(), LogRefusal> {
        let feed = self.feeds.get(run);
        let mut slot = feed.reading().await;
        let mut reading = match slot.take() {
            Some(reading) => reading,
            None => self.read_again(run).await?,
        };
        if reading.is_imported() {
            return Err(LogRefusal::Imported);
        }
        let now = self.clock.now();
        let news = reading.ending();
        let position = LogPosition { file: 0, offset: 0 };
        let addition = addition(&reading, &news, position, &[], false, false);
        let ended = self.store.writer().end_run(run, Some(exit_code), reason, &addition, now).await;
        if ended.is_ok() {
            reading.ended_at_ms = Some(now.as_millisecond());
        }
        let stays = ended.as_ref().map_or_else(StoreError::is_space_exhausted, |()| true);
        *slot = Some(reading).filter(|_| stays);
        ended?;
        drop(slot);
        feed.tell();
        Ok(())
    }

    /// Returns the number of leading bytes that are already stored. The error describes a gap, a
    /// difference or a reached limit.
    async fn fresh(
        &self,
        run: &str,
        reading: &Reading,
        position: LogPosition,
        bytes: &[u8],
    ) -> Result<usize, LogRefusal> {
        let LogPosition { file, offset } = position;
        let files = &reading.files;
        if reading.is_imported() {
            return Err(LogRefusal::Imported);
        }
        if file as usize > files.len() {
            // Return the end of the latest file, so the client can continue there or open a new
            // file.
            let stored = files.last().copied().unwrap_or_default();
            return Err(LogRefusal::Gap { file: latest(files), stored });
        }
        if file as usize >= self.limits.files {
            return Err(LogRefusal::Files { limit: self.limits.files });
        }
        let stored = files.get(file as usize).copied().unwrap_or_default();
        if offset > stored {
            return Err(LogRefusal::Gap { file, stored });
        }
        let overlap = usize::try_from(stored - offset).unwrap_or(usize::MAX).min(bytes.len());
        let mut compared = 0;
        while compared < overlap {
            let position = LogPosition { file, offset: offset + compared as u64 };
            let known = self.store.reader().log_bytes(run, position, overlap - compared).await?;
            if known.is_empty() || known != bytes[compared..compared + known.len()] {
                return Err(LogRefusal::Diverged { file, stored });
            }
            compared += known.len();
        }
        if overlap < bytes.len() {
            if file < latest(files) {
                return Err(LogRefusal::Closed { file, stored, latest: latest(files) });
            }
            let total = files.iter().sum::<u64>() + (bytes.len() - overlap) as u64;
            if total > self.limits.run_bytes {
                return Err(LogRefusal::Full { limit: self.limits.run_bytes });
            }
        }
        Ok(overlap)
    }

    /// Parses bytes, then stores bytes and points in one transaction.
    async fn take(
        &self,
        run: &str,
        mut reading: Reading,
        position: LogPosition,
        bytes: Bytes,
    ) -> Result<Reading, LogRefusal> {
        let now = self.clock.now();
        let before = reading.points;
        let ended = reading.ended_at_ms;
        let late = ended.is_some_and(|ended| now.as_millisecond() - ended > LAST_MOMENTS_MS);
        let content = bytes.clone();
        let (mut reading, news, stepped) = tokio::task::spawn_blocking(move || {
            let (mut news, stepped) = reading.read(position.file, &bytes);
            if ended.is_some() && !(late && stepped) {
                let mut end = reading.ending();
                news.points.append(&mut end.points);
                news = News { points: news.points, ..end };
            }
            (reading, news, stepped)
        })
        .await?;
        let reopened = ended.is_some() && late && stepped;
        let addition =
            LogAddition { points_before: before, ..addition(&reading, &news, position, &content, stepped, reopened) };
        self.store.writer().add_to_log(run, &addition, now).await?;
        self.points.fetch_add(news.points.len() as u64, Ordering::Relaxed);
        reading.ended_at_ms = ended.filter(|_| !reopened);
        Ok(reading)
    }

    /// Parses the stored log from the start.
    async fn read_again(&self, run: &str) -> Result<Reading, LogRefusal> {
        let state = self.store.reader().log_state(run).await?;
        let mut reading = Reading::new(&state, &self.limits);
        let expected = state.points;
        if reading.is_imported() {
            return Ok(reading);
        }
        for (file, &bytes) in (0..).zip(&state.files) {
            let mut offset = 0;
            while offset < bytes {
                let position = LogPosition { file, offset };
                let piece = self.store.reader().log_bytes(run, position, REREAD_BYTES).await?;
                if piece.is_empty() {
                    let detail = format!("bytes {offset} to {bytes} of its log are missing");
                    return Err(StoreError::Damaged { kind: "run", detail }.into());
                }
                offset += piece.len() as u64;
                reading = tokio::task::spawn_blocking(move || {
                    reading.read(file, &piece);
                    reading
                })
                .await?;
            }
        }
        if reading.points != expected {
            // Only a different parser version produces different points from the same bytes.
            tracing::warn!(
                run,
                expected,
                read = reading.points,
                "a log now gives another number of points; rows go on"
            );
            reading.points = expected;
        }
        Ok(reading)
    }
}

fn latest(files: &[u64]) -> u32 {
    u32::try_from(files.len().saturating_sub(1)).unwrap_or(u32::MAX)
}

fn addition<'a>(
    reading: &'a Reading,
    news: &'a News,
    position: LogPosition,
    content: &'a [u8],
    stepped: bool,
    reopened: bool,
) -> LogAddition<'a> {
    LogAddition {
        position,
        content,
        points_before: reading.points,
        points: &news.points,
        early_points: news.early_points,
        open: news.open.as_ref(),
        stepped,
        reopened,
        stall_timeout_ms: reading.stall_timeout_ms(),
        last_step: news.last_step,
        total_steps: reading.total_steps(),
        median_step_s: news.median_step_s,
        report: &news.report,
    }
}

#[cfg(test)]
mod tests {
    use api::run::RunOrigin;

    use super::*;
    use crate::clock::SystemClock;
    use crate::store::RunRow;
    use crate::token::run_id;

    /// A rejected client retries every few seconds, and a log can have 2 GB.
    #[tokio::test]
    async fn parsed_data_stays_in_memory_without_space() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("planscope.db");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let run = RunRow {
            id: run_id(),
            name: "a run".to_owned(),
            origin: RunOrigin::Live,
            scenario: None,
            planner: None,
            token: [0; 32],
            key: None,
            log_table: None,
        };
        let store = Store::open(&path).await.unwrap();
        store.writer().open_run(&run, None, clock.now()).await.unwrap();
        store.close().await;
        let store = Store::open_within(&path, Some(1)).await.unwrap();
        let live = Live::new(store.clone(), clock, LiveLimits::default());
        for _ in 0..2 {
            let refusal = live.append(&run.id, None, 0, &Bytes::from_static(b"a line\n")).await.unwrap_err();
            assert!(matches!(refusal, LogRefusal::Store(StoreError::Quota { .. })), "{refusal}");
            let feed = live.feeds.get(&run.id);
            let slot = feed.reading().await;
            assert_eq!(slot.as_ref().map(|reading| reading.files.clone()), Some(vec![]));
        }
        store.close().await;
    }
}
