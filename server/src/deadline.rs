//! Time limit of a search by the clock of the machine, for commands.

use std::time::{Duration, Instant};

use planner::host::Cancellation;

/// Time limit within another cancellation check.
pub(crate) struct Deadline<'a> {
    inner: &'a dyn Cancellation,
    began: Instant,
    budget: Duration,
}

impl<'a> Deadline<'a> {
    /// Starts now.
    pub(crate) fn start(inner: &'a dyn Cancellation, budget: Duration) -> Self {
        Self { inner, began: Instant::now(), budget }
    }
}

impl Cancellation for Deadline<'_> {
    fn is_over(&self) -> bool {
        self.inner.is_over() || self.began.elapsed() >= self.budget
    }

    fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn remaining(&self) -> f64 {
        self.inner.remaining().min(self.budget.saturating_sub(self.began.elapsed()).as_secs_f64())
    }
}
