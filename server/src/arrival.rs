//! Rate limits and the memory budget for request bodies.

mod budget;
mod pace;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::{ApiError, LimitError};
use crate::shares::Sharer;
use pace::Arriving;

pub use budget::{Bodies, BodyLimits, Reservation};
pub use pace::Pace;

/// Kind of request body. Selects the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// A log. It is as slow as the training job and has separate limits.
    Log,
    /// A trace, written to a file as it is received.
    Trace,
    /// Any other uploaded file.
    Import,
    Document,
}

impl BodyKind {
    fn from_request(method: &Method, path: &str) -> Self {
        const IMPORTS: [&str; 5] = [
            api::path::RUN_IMPORT,
            api::path::DATASETS,
            api::path::DATASET_FOOTERS,
            api::path::TOKENIZERS,
            api::path::PROFILES,
        ];
        let is_log = path.strip_prefix(api::path::RUNS).is_some_and(|rest| rest.ends_with("/log"));
        if is_log {
            Self::Log
        } else if *method == Method::POST && path == api::path::TRACES {
            Self::Trace
        } else if *method == Method::POST && IMPORTS.contains(&path) {
            Self::Import
        } else {
            Self::Document
        }
    }
}

/// Aborts bodies that are too slow or exceed the memory budget. The response is then the problem
/// document, regardless of the handler's response to the aborted body.
pub(crate) async fn in_time(State(bodies): State<Arc<Bodies>>, request: Request, next: Next) -> Response {
    let kind = BodyKind::from_request(request.method(), request.uri().path());
    if kind == BodyKind::Log || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let refusal = Arc::new(OnceLock::new());
    let reservation = Reservation::new(Arc::clone(&bodies), kind, &Sharer::from_extensions(request.extensions()));
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(reservation.clone());
    let arriving = Arriving::new(body.into_data_stream(), kind, reservation.clone(), Arc::clone(&refusal));
    let response = next.run(Request::from_parts(parts, Body::from_stream(arriving.into_stream()))).await;
    match refusal.get() {
        Some(refusal) if !response.status().is_success() => rejection_response(*refusal),
        _ => response,
    }
}

/// Builds the refusal. The remaining body is not read.
fn rejection_response(refusal: LimitError) -> Response {
    let mut response = ApiError::from(refusal).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
