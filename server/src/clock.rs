//! Where the server learns what time it is.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

/// A clock, passed in so that tests can hold it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time of day.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment, never running backwards; for measuring.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// The machine's clock, measuring from now on.
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

/// RFC 3339 in UTC of a time as the database keeps it.
pub(crate) fn rfc3339(millis: i64) -> String {
    // Only times that a clock gave are stored; the ends of the range stand for anything damaged.
    let end = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(end).to_string()
}
