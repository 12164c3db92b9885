//! Replays an example log as a live run, so that a first visitor sees one without a training job.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::live::{Live, LogRefusal};

/// Scenario of the example job.
pub(crate) const SCENARIO: &str = include_str!("../../examples/gpt-3-175b-uniform.json");
/// Synthetic log of the example job, in the format of Megatron-LM.
const LOG: &str = include_str!("../../examples/logs/gpt-3-175b-uniform.log");
/// Maximum number of replays at the same time.
const MAX_REPLAYS: usize = 4;
/// Exit code of a replay that the stop of the server ends: SIGTERM.
const STOPPED: i32 = 143;

/// The running replays.
#[derive(Debug)]
pub struct Replays {
    permits: Arc<Semaphore>,
    interval: Duration,
}

impl Replays {
    /// Replays append one log line per `interval`.
    pub fn new(interval: Duration) -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_REPLAYS)), interval }
    }

    /// Reserves a replay. Returns the maximum number if all are running.
    pub(crate) fn reserve(&self) -> Result<OwnedSemaphorePermit, usize> {
        Arc::clone(&self.permits).try_acquire_owned().map_err(|_| MAX_REPLAYS)
    }

    /// Appends the log to an open run line by line and ends the run.
    pub(crate) async fn run(&self, live: &Live, run: &str) {
        let result = tokio::select! {
            result = append(live, run, self.interval) => match result {
                Ok(()) => live.finish(run, 0, None).await,
                Err(error) => Err(error),
            },
            () = live.stopped() => live.finish(run, STOPPED, Some("the server stopped")).await,
        };
        if let Err(error) = result {
            // A user can delete the run or end it early.
            tracing::info!(run, "a replay ended before the end of its log: {error:?}");
        }
    }
}

/// Appends the lines of the log, one per interval.
async fn append(live: &Live, run: &str, interval: Duration) -> Result<(), LogRefusal> {
    let mut offset = 0;
    for line in LOG.split_inclusive('\n') {
        let bytes = Bytes::from_static(line.as_bytes());
        offset = live.append(run, None, offset, &bytes).await?.stored;
        // The lines before the first step appear at once.
        if line.contains("iteration ") {
            tokio::time::sleep(interval).await;
        }
    }
    Ok(())
}
