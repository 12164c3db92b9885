//! Runs planning on a blocking thread.

use std::panic::AssertUnwindSafe;

use planner::engine::PlanError;

/// Error of a planning run.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The planner panicked, or the runtime is shutting down. The panic hook logs the location and
    /// the message of a panic.
    #[error("the planner stopped unexpectedly")]
    Stopped,
}

/// Runs `work` on a blocking thread.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(RunError::Stopped))
}

/// Runs an engine and converts a panic to an error.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> Result<T, PlanError>) -> Result<T, RunError> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).map_or(Err(RunError::Stopped), |result| Ok(result?))
}
