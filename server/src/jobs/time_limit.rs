//! Time limit for a computation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use planner::host::Cancellation;

use crate::clock::Clock;

/// Time limit, measured from the start of the turn.
#[derive(Debug, Clone)]
pub(crate) struct TimeLimit {
    clock: Arc<dyn Clock>,
    began: Duration,
    limit: Duration,
}

impl TimeLimit {
    /// Starts now.
    pub(crate) fn start(clock: Arc<dyn Clock>, limit: Duration) -> Self {
        Self { began: clock.elapsed(), clock, limit }
    }

    /// Returns true when the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.clock.elapsed().saturating_sub(self.began) >= self.limit
    }
}

/// Client with a pending request. Dropping it sets the flag from [`Asker::gone`].
#[derive(Debug, Default)]
pub(crate) struct Asker(Arc<AtomicBool>);

impl Asker {
    /// Returns a flag that is set when the client disconnects.
    pub(crate) fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Returns a cancellation check for this client and the given time limit.
    pub(crate) fn patience(&self, limit: TimeLimit) -> Patience {
        Patience { gone: self.gone(), limit }
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Cancellation check: true when the client disconnects or the time limit is reached.
#[derive(Debug)]
pub(crate) struct Patience {
    gone: Arc<AtomicBool>,
    limit: TimeLimit,
}

impl Cancellation for Patience {
    fn is_over(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || self.limit.is_over()
    }

    fn seconds(&self) -> f64 {
        self.limit.clock.elapsed().saturating_sub(self.limit.began).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use jiff::Timestamp;

    use super::*;

    #[derive(Debug, Default)]
    struct Seconds(AtomicU64);

    impl Clock for Seconds {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn patience_ends_with_the_time_or_with_the_asker() {
        let clock = Arc::new(Seconds(AtomicU64::new(7)));
        let limit = || TimeLimit::start(Arc::clone(&clock) as Arc<dyn Clock>, Duration::from_secs(10));
        let asker = Asker::default();
        let patience = asker.patience(limit());
        clock.0.store(16, Ordering::Relaxed);
        assert!(!patience.is_over());
        assert!((patience.seconds() - 9.0).abs() < f64::EPSILON);
        clock.0.store(17, Ordering::Relaxed);
        assert!(patience.is_over());
        let patience = asker.patience(limit());
        assert!(!patience.is_over());
        drop(asker);
        assert!(patience.is_over());
    }
}
