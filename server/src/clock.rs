//! Source of the current time.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

/// A clock. Tests replace it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Current wall-clock time.
    fn now(&self) -> Timestamp;
    /// Monotonic time since a fixed instant, for measurements.
    fn elapsed(&self) -> Duration;
}

/// The system clock.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// Starts the monotonic time at zero.
    pub fn start() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Formats a database timestamp in milliseconds as RFC 3339 in UTC.
pub(crate) fn rfc3339(millis: i64) -> String {
    // Stored times are always in range. A damaged value maps to the nearest limit.
    let end = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(end).to_string()
}
