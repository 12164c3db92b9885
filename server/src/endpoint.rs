//! Request handlers, in a file per endpoint group.

pub(crate) mod accuracy;
pub(crate) mod audit;
pub(crate) mod checks;
pub(crate) mod corrections;
pub(crate) mod datasets;
pub(crate) mod execution_plans;
pub(crate) mod exports;
pub(crate) mod gallery;
pub(crate) mod health;
pub(crate) mod job_configs;
pub(crate) mod jobs;
mod lists;
pub(crate) mod mcp;
pub(crate) mod metrics;
pub(crate) mod observations;
pub(crate) mod outcomes;
pub(crate) mod pages;
pub(crate) mod papers;
pub(crate) mod presets;
pub(crate) mod profiles;
pub(crate) mod runs;
pub(crate) mod scenarios;
pub(crate) mod schedules;
pub(crate) mod sessions;
pub(crate) mod studies;
pub(crate) mod sweeps;
pub(crate) mod tokens;
pub(crate) mod traces;
pub(crate) mod what_if;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use crate::error::ApiError;

/// True if the client accepts JSON but not the compact media type.
fn wants_json(headers: &HeaderMap, compact: &str) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("application/json") && !accept.contains(compact))
}

/// Runs a computation on a blocking thread.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::Fault(format!("a computation stopped unexpectedly: {error}")))?
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn json_is_answered_to_whoever_takes_nothing_better() {
        assert!(!wants_json(&HeaderMap::new(), "application/vnd.a"));
        for (accept, json) in [
            ("application/json", true),
            ("*/*", false),
            ("application/vnd.a", false),
            ("application/json, application/vnd.a", false),
            ("application/json, application/vnd.b", true),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(wants_json(&headers, "application/vnd.a"), json, "{accept}");
        }
    }
}
