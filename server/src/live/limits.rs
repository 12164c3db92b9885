//! How much is taken of logs, and for how long.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// How much is taken of logs, and for how long. What goes beyond is refused or waits, and costs no memory.
#[derive(Debug, Clone, Copy)]
pub struct LiveLimits {
    /// Largest request that says its size beforehand; one that streams may go on to the limit of the run.
    pub request_bytes: u64,
    /// Largest log of a run.
    pub run_bytes: u64,
    /// Most files of a log.
    pub files: usize,
    /// Longest line; longer ones are counted and left out.
    pub line_bytes: usize,
    /// Most points of a run; bytes behind them are stored and not read.
    pub points: u64,
    /// Largest whole file that is imported.
    pub import_bytes: usize,
    /// Bytes of an upload after which they are stored.
    pub piece_bytes: usize,
    /// Time after which bytes of an upload are stored, however few they are.
    pub piece_wait: Duration,
    /// Time without a byte after which an upload ends.
    pub idle: Duration,
    /// Uploads at once.
    pub uploads: usize,
    /// Uploads of the log of one run at once; a further one replaces the oldest.
    pub uploads_per_run: usize,
    /// Streams of events at once: of runs, jobs and sweeps.
    pub streams: usize,
    /// Streams of events of one client at once.
    pub streams_per_client: usize,
    /// Rows that a stream sends where it lags; those before them are left to pages.
    pub stream_rows: u64,
    /// How often a silent stream says that it lives, for proxies that cut silent ones.
    pub heartbeat: Duration,
    /// Parsers that are kept at hand; others are made again from the stored bytes.
    pub readings: usize,
    /// Time after which an unused one goes.
    pub reading_idle: Duration,
    /// Days that what was deleted can be brought back.
    pub retention_days: u32,
}

impl LiveLimits {
    /// What was deleted before this moment cannot be brought back any more.
    pub fn deleted_before(&self, now: Timestamp) -> Timestamp {
        let kept = SignedDuration::from_hours(24 * i64::from(self.retention_days));
        now.checked_sub(kept).unwrap_or(Timestamp::MIN)
    }
}

impl Default for LiveLimits {
    fn default() -> Self {
        Self {
            request_bytes: 8 << 20,
            run_bytes: 2 << 30,
            files: 1000,
            line_bytes: 64 << 10,
            points: 1_000_000,
            import_bytes: 256 << 20,
            piece_bytes: 256 << 10,
            piece_wait: Duration::from_millis(250),
            idle: Duration::from_mins(1),
            uploads: 256,
            // One on the connection that broke, and one on the next.
            uploads_per_run: 2,
            streams: 512,
            streams_per_client: 64,
            stream_rows: 1000,
            heartbeat: Duration::from_secs(15),
            readings: 256,
            reading_idle: Duration::from_mins(15),
            retention_days: 30,
        }
    }
}
