//! Logs of running jobs: bytes are stored as they came, points are read from them, and whoever watches is told.
//!
//! The bytes are the truth. A [`Reading`] holds the parser behind the last stored byte; it is made again from the stored
//! bytes whenever it is not at hand, after a restart of the server or because too many runs are read at once, and the
//! same bytes give the same rows (docs/adr/0031).

mod feeds;
mod follower;
mod import;
mod limits;
mod observed;
mod reading;
mod recent;
mod seats;

pub use follower::{Follower, Told};
pub use import::ImportError;
pub use limits::LiveLimits;
pub use seats::{NoStream, StreamSeat, UploadSeat};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use tokio::sync::watch;

use crate::client::Client;
use crate::clock::Clock;
use crate::store::{LogAddition, LogPlace, Store, StoreError};
use crate::token::Secret;
use feeds::Feeds;
use reading::{News, Reading};
use seats::{Streams, Uploads};

/// How long after the end of a run steps are those of its last moments. Steps that come later are of a job that was
/// started again, and the run is no longer ended.
const LAST_MOMENTS_MS: i64 = 60_000;
/// Bytes that are read at once where a log is read anew.
const REREAD_BYTES: usize = 1 << 20;

/// Why bytes are not taken into a log.
#[derive(Debug, thiserror::Error)]
pub enum LogRefusal {
    /// They begin behind the end of what is stored.
    #[error("bytes before these are missing: {stored} bytes of file {file} are stored; go on from there")]
    Gap {
        /// The file.
        file: u32,
        /// Its bytes.
        stored: u64,
    },
    /// They are others than those stored.
    #[error(
        "the bytes differ from those stored of file {file}: the log was rotated or written anew; send it as ?file={}", file + 1
    )]
    Diverged {
        /// The file.
        file: u32,
        /// Its bytes.
        stored: u64,
    },
    /// A later file was opened.
    #[error(
        "file {file} is closed, because a later one was opened; send the log as ?file={latest} or the one behind it"
    )]
    Closed {
        /// The file.
        file: u32,
        /// Its bytes.
        stored: u64,
        /// The last one.
        latest: u32,
    },
    /// A newer upload of the run has the place.
    #[error(
        "{stored} bytes of file {file} are stored; newer uploads of this log took the place of this one. Send a log over one connection"
    )]
    Replaced {
        /// The file.
        file: u32,
        /// Its bytes.
        stored: u64,
    },
    /// The run was imported whole.
    #[error("the log of this run was imported whole and takes no more bytes")]
    Whole,
    /// There are as many bytes as a run may have.
    #[error("the log has the {limit} bytes that a run may have; open another run")]
    Full {
        /// Most bytes.
        limit: u64,
    },
    /// There are as many files as a run may have.
    #[error("the log has the {limit} files that a run may have; open another run")]
    Files {
        /// Most files.
        limit: usize,
    },
    /// The database did not do it.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The parser stopped.
    #[error("the reading of a log stopped unexpectedly: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

impl LogRefusal {
    /// Whether nothing was stored because there was no room for it.
    fn is_want_of_room(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_want_of_room())
    }
}

/// The end of what is stored of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// The file spoken of.
    pub file: u32,
    /// Bytes stored of it.
    pub stored: u64,
}

/// Logs of running jobs.
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
    /// Nothing is read yet.
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

    /// How much is taken.
    pub fn limits(&self) -> &LiveLimits {
        &self.limits
    }

    /// What tokens of repeated requests are made with.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Ends uploads and streams, for the end of the server.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Resolves when uploads and streams are to end.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stopping.subscribe();
        async move {
            // An error means that the server is gone, which ends them too.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        }
    }

    /// A place for an upload of a run; `None` where all are taken. A run that has as many as it may gives up its oldest one.
    pub fn upload(&self, run: &str) -> Option<UploadSeat> {
        self.uploads.seat(run)
    }

    /// A place for a stream of events of a client: of runs, of a job, or of a sweep.
    ///
    /// # Errors
    /// All places of the server, or of the client, are taken.
    pub fn stream(&self, client: &Client) -> Result<StreamSeat, NoStream> {
        self.streams.seat(client)
    }

    /// Streams of events that are open, and logs that are being sent.
    pub fn open(&self) -> (usize, usize) {
        (self.streams.open(), self.uploads.open())
    }

    /// Points that were read from logs since the server started.
    pub fn points_taken(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// What happens in a run behind a row.
    pub fn follow(&self, run: &str, after: u64) -> Follower {
        let reader = self.store.reader().clone();
        Follower::new(reader, Arc::clone(&self.clock), self.feeds.get(run), run, after, self.limits.stream_rows)
    }

    /// Tells those who watch a run to look at it again.
    pub fn nudge(&self, run: &str) {
        self.feeds.get(run).tell();
    }

    /// The end of a file of a log, of the latest where none is named.
    pub async fn end_of_log(&self, run: &str, file: Option<u32>) -> Result<LogEnd, StoreError> {
        let files = self.store.reader().log_state(run).await?.files;
        let file = file.unwrap_or_else(|| latest(&files));
        Ok(LogEnd { file, stored: files.get(file as usize).copied().unwrap_or_default() })
    }

    /// Takes bytes into a log, in the latest file where none is named. Those that are stored already are compared and
    /// skipped. Writers of one run wait for each other here, so that each finds what the other left.
    pub async fn append(&self, run: &str, file: Option<u32>, offset: u64, bytes: &Bytes) -> Result<LogEnd, LogRefusal> {
        let feed = self.feeds.get(run);
        let mut slot = feed.reading().await;
        let reading = match slot.take() {
            Some(reading) => reading,
            None => self.read_again(run).await?,
        };
        let file = file.unwrap_or_else(|| latest(&reading.files));
        let place = LogPlace { file, offset };
        match self.fresh(run, &reading, place, bytes).await {
            Ok(known) if known == bytes.len() => {
                let stored = reading.files.get(file as usize).copied().unwrap_or_default();
                *slot = Some(reading);
                Ok(LogEnd { file, stored })
            }
            Ok(known) => {
                let place = LogPlace { file, offset: offset + known as u64 };
                let before = reading.clone();
                match self.take(run, reading, place, bytes.slice(known..)).await {
                    Ok(reading) => *slot = Some(reading),
                    // Whoever finds no room comes again and again; the whole log is not read for each of them. Whatever else fails
                    // leaves no reading, and the next one starts from what is stored.
                    Err(refusal) => {
                        *slot = Some(before).filter(|_| refusal.is_want_of_room());
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

    /// The run ended with this code, for this reason: what waits for its end is read as it is.
    pub async fn finish(&self, run: &str, exit_code: i32, reason: Option<&str>) -> Result<(), LogRefusal> {
        let feed = self.feeds.get(run);
        let mut slot = feed.reading().await;
        let mut reading = match slot.take() {
            Some(reading) => reading,
            None => self.read_again(run).await?,
        };
        if reading.is_whole() {
            return Err(LogRefusal::Whole);
        }
        let now = self.clock.now();
        let news = reading.ending();
        let place = LogPlace { file: 0, offset: 0 };
        let addition = addition(&reading, &news, place, &[], false, false);
        let ended = self.store.writer().end_run(run, Some(exit_code), reason, &addition, now).await;
        if ended.is_ok() {
            reading.ended_at_ms = Some(now.as_millisecond());
        }
        let stays = ended.as_ref().map_or_else(StoreError::is_want_of_room, |()| true);
        *slot = Some(reading).filter(|_| stays);
        ended?;
        drop(slot);
        feed.tell();
        Ok(())
    }

    /// How many of the bytes are stored already, as they are.
    async fn fresh(&self, run: &str, reading: &Reading, place: LogPlace, bytes: &[u8]) -> Result<usize, LogRefusal> {
        let LogPlace { file, offset } = place;
        let files = &reading.files;
        if reading.is_whole() {
            return Err(LogRefusal::Whole);
        }
        if file as usize > files.len() {
            // The place that can be gone on from: the end of the last file, behind which the next one can be opened.
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
            let place = LogPlace { file, offset: offset + compared as u64 };
            let known = self.store.reader().log_bytes(run, place, overlap - compared).await?;
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

    /// Reads bytes and stores them with what they gave.
    async fn take(
        &self,
        run: &str,
        mut reading: Reading,
        place: LogPlace,
        bytes: Bytes,
    ) -> Result<Reading, LogRefusal> {
        let now = self.clock.now();
        let before = reading.points;
        let ended = reading.ended_at_ms;
        let late = ended.is_some_and(|ended| now.as_millisecond() - ended > LAST_MOMENTS_MS);
        let content = bytes.clone();
        let (mut reading, news, stepped) = tokio::task::spawn_blocking(move || {
            let (mut news, stepped) = reading.read(place.file, &bytes);
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
            LogAddition { points_before: before, ..addition(&reading, &news, place, &content, stepped, reopened) };
        self.store.writer().add_to_log(run, &addition, now).await?;
        self.points.fetch_add(news.points.len() as u64, Ordering::Relaxed);
        reading.ended_at_ms = ended.filter(|_| !reopened);
        Ok(reading)
    }

    /// Reads a log anew from what is stored.
    async fn read_again(&self, run: &str) -> Result<Reading, LogRefusal> {
        let state = self.store.reader().log_state(run).await?;
        let mut reading = Reading::new(&state, &self.limits);
        let expected = state.points;
        if reading.is_whole() {
            return Ok(reading);
        }
        for (file, &bytes) in (0..).zip(&state.files) {
            let mut offset = 0;
            while offset < bytes {
                let place = LogPlace { file, offset };
                let piece = self.store.reader().log_bytes(run, place, REREAD_BYTES).await?;
                if piece.is_empty() {
                    let detail = format!("bytes {offset} to {bytes} of its log are missing");
                    return Err(StoreError::Damaged { what: "run", detail }.into());
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
            // Only another version of the parser reads other points from the same bytes.
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
    place: LogPlace,
    content: &'a [u8],
    stepped: bool,
    reopened: bool,
) -> LogAddition<'a> {
    LogAddition {
        place,
        content,
        points_before: reading.points,
        points: &news.points,
        early_points: news.early_points,
        open: news.open.as_ref(),
        stepped,
        reopened,
        patience_ms: reading.patience_ms(),
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

    /// A sender that is refused comes again every few seconds, and a log may have two gigabytes.
    #[tokio::test]
    async fn what_was_read_stays_at_hand_where_there_is_no_room() {
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
