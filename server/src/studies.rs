//! Runs studies synchronously for a client, on blocking threads and queued with planning jobs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use planner::analysis::{AnalysisError, Effort};
use planner::host::Cancellation;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::turns::{Claimant, Demand, Turns};
use crate::workers::Threads;

/// Limits on studies.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisLimits {
    /// Maximum number of studies, running and waiting.
    pub queue: usize,
    /// Time limit per study.
    pub time: Duration,
    /// Worker threads per search.
    pub threads: Threads,
}

/// Runs studies.
#[derive(Clone)]
pub struct Studies {
    clock: Arc<dyn Clock>,
    /// Slots and memory, shared with planning.
    turns: Turns,
    places: Arc<Semaphore>,
    limits: AnalysisLimits,
    closing: Arc<AtomicBool>,
}

impl fmt::Debug for Studies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Studies").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// Error of an analysis.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisRunError {
    /// Too many studies are in progress.
    #[error("{0} studies are under way already")]
    Full(usize),
    /// There is nothing to study.
    #[error(transparent)]
    None(#[from] AnalysisError),
    /// Internal error.
    #[error("a study stopped unexpectedly")]
    Panicked,
}

impl Studies {
    /// Creates a runner that shares `turns` with planning.
    pub fn new(clock: Arc<dyn Clock>, turns: Turns, limits: AnalysisLimits) -> Self {
        let places = Arc::new(Semaphore::new(limits.queue.max(1)));
        Self { clock, turns, places, limits, closing: Arc::default() }
    }

    /// Number of layouts simulated in parallel.
    pub fn at_once(&self) -> usize {
        self.limits.threads.count()
    }

    /// Runs a study for a client with a memory estimate in bytes. Dropping the future cancels it
    /// after a short delay.
    pub async fn run<T: Send + 'static>(
        &self,
        (claimant, bytes): (&Claimant, u64),
        rollouts: u32,
        compute: impl FnOnce(&Effort<'_>) -> Result<T, AnalysisError> + Send + 'static,
    ) -> Result<T, AnalysisRunError> {
        let _slot = self.places.try_acquire().map_err(|_| AnalysisRunError::Full(self.limits.queue.max(1)))?;
        let turn = self.turns.take(claimant, Demand::turn(bytes)).await;
        let asker = Asker::default();
        let (clock, limits) = (Arc::clone(&self.clock), self.limits);
        let (gone, closing) = (Arc::clone(&asker.gone), Arc::clone(&self.closing));
        let computed = tokio::task::spawn_blocking(move || {
            // Release the slot at the end of the computation, which can outlast the client briefly.
            let _turn = turn;
            let began = clock.elapsed();
            let patience = Patience { clock, began, time: limits.time, gone, closing };
            let seconds = limits.time.as_secs_f64();
            compute(&Effort { rollouts, seconds, workers: &limits.threads, cancellation: &patience })
        });
        // The panic hook has already logged location and message.
        Ok(computed.await.map_err(|_| AnalysisRunError::Panicked)??)
    }

    /// Cancels all studies during shutdown.
    pub fn cancel_all(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }
}

/// The client of a study. Dropping it cancels the study.
#[derive(Default)]
struct Asker {
    gone: Arc<AtomicBool>,
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}

/// Cancellation check and time limit of a study.
struct Patience {
    clock: Arc<dyn Clock>,
    began: Duration,
    time: Duration,
    gone: Arc<AtomicBool>,
    closing: Arc<AtomicBool>,
}

impl Cancellation for Patience {
    fn is_over(&self) -> bool {
        let is_ended = self.gone.load(Ordering::Relaxed) || self.closing.load(Ordering::Relaxed);
        is_ended || self.clock.elapsed().saturating_sub(self.began) >= self.time
    }

    fn seconds(&self) -> f64 {
        self.clock.elapsed().saturating_sub(self.began).as_secs_f64()
    }
}
