//! The handlers, one file per group of endpoints.

pub(crate) mod accuracy;
pub(crate) mod datasets;
pub(crate) mod execution_plans;
pub(crate) mod exports;
pub(crate) mod gallery;
pub(crate) mod health;
pub(crate) mod jobs;
mod lists;
pub(crate) mod metrics;
pub(crate) mod observations;
pub(crate) mod outcomes;
pub(crate) mod pages;
pub(crate) mod papers;
pub(crate) mod presets;
pub(crate) mod profiles;
pub(crate) mod rehearsals;
pub(crate) mod runs;
pub(crate) mod scenarios;
pub(crate) mod schedules;
pub(crate) mod studies;
pub(crate) mod sweeps;
pub(crate) mod traces;
pub(crate) mod what_if;

use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;

use crate::error::ApiError;

/// Bytes that a request says it has.
fn said_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Computes off the async threads.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::Fault(format!("a computation stopped unexpectedly: {error}")))?
}
