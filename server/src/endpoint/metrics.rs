//! Prometheus metrics.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Shared};
use crate::error::{ApiError, class};
use crate::metrics::MetricsSnapshot;

/// Returns metrics in the Prometheus text format. Requires the server's token if it is set.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, body = String, content_type = "text/plain; version=0.0.4"))
)]
pub(crate) async fn metrics(State(app): Shared) -> Result<Response, ApiError> {
    let (streams, uploads) = app.live.open();
    let reader = app.store.reader();
    let snapshot = MetricsSnapshot {
        jobs: app.jobs.census(),
        streams,
        uploads,
        body_bytes: app.bodies.reserved_bytes(),
        points: app.live.points_taken(),
        live_runs: reader.live_runs(app.clock.now()).await?,
        usage: reader.usage().await?,
        quota: reader.quota(),
    };
    let text =
        app.metrics.text(&snapshot).map_err(|error| ApiError::Fault(format!("metrics cannot be written: {error}")))?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// Counts a request and records the time to the response head.
pub(crate) async fn count(
    State(app): State<Arc<App>>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let began = app.clock.elapsed();
    let method = request.method().clone();
    let response = next.run(request).await;
    let took = app.clock.elapsed().saturating_sub(began);
    // The label is the matched route, so the number of routes limits the label cardinality.
    let route = path.as_ref().map_or("other", MatchedPath::as_str);
    app.metrics.request(route, &method, class(&response), took);
    response
}
