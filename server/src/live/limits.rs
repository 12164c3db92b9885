//! Limits for live logs.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Limits for live logs. Data beyond a limit is rejected or delayed and uses no memory.
#[derive(Debug, Clone, Copy)]
pub struct LiveLimits {
    /// Maximum size in bytes of a request with a known length. Streaming requests are limited by
    /// `run_bytes` only.
    pub request_bytes: u64,
    /// Maximum log size per run in bytes.
    pub run_bytes: u64,
    /// Maximum number of files per log.
    pub files: usize,
    /// Maximum line length in bytes. Longer lines are counted and skipped.
    pub line_bytes: usize,
    /// Maximum number of points per run. Bytes beyond this are stored but not parsed.
    pub points: u64,
    /// Maximum size in bytes of an imported file.
    pub import_bytes: usize,
    /// Upload data is stored when this number of bytes has arrived.
    pub piece_bytes: usize,
    /// Upload data is stored at this interval, regardless of size.
    pub piece_wait: Duration,
    /// Idle timeout for an upload.
    pub idle: Duration,
    /// Maximum number of concurrent uploads.
    pub uploads: usize,
    /// Maximum number of concurrent uploads per run. A further upload replaces the oldest.
    pub uploads_per_run: usize,
    /// Maximum number of concurrent event streams for runs, jobs and sweeps.
    pub streams: usize,
    /// Maximum number of concurrent event streams per client.
    pub streams_per_client: usize,
    /// Maximum number of rows that a lagging stream sends. Clients request earlier rows as pages.
    pub stream_rows: u64,
    /// Interval between heartbeats in a silent stream, because some proxies close silent
    /// connections.
    pub heartbeat: Duration,
    /// Maximum number of cached parser states. Other states are rebuilt from the stored bytes.
    pub readings: usize,
    /// Idle timeout for a parser state.
    pub reading_idle: Duration,
    /// Retention of deleted data in days.
    pub retention_days: u32,
}

impl LiveLimits {
    /// Returns the time before which deleted data can no longer be restored.
    pub fn deleted_before(&self, now: Timestamp) -> Timestamp {
        let retention = SignedDuration::from_hours(24 * i64::from(self.retention_days));
        now.checked_sub(retention).unwrap_or(Timestamp::MIN)
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
            // One upload on the broken connection and one on the new connection.
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
