//! Bodies of requests: how slowly they may come, and how much memory they take together.

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

pub use budget::{Bodies, BodyLimits, Room};
pub use pace::Pace;

/// What a body holds, as far as limits depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// A log, which comes as slowly as a job runs and has limits of its own.
    Log,
    /// A trace, which is written to a file as it comes.
    Trace,
    /// Another whole file.
    Import,
    /// A document.
    Document,
}

impl BodyKind {
    fn of(method: &Method, path: &str) -> Self {
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

/// Ends bodies that come too slowly or find no room. The answer is then the problem, whatever the handler made of the broken body.
pub(crate) async fn in_time(State(bodies): State<Arc<Bodies>>, request: Request, next: Next) -> Response {
    let kind = BodyKind::of(request.method(), request.uri().path());
    if kind == BodyKind::Log || request.body().is_end_stream() {
        return next.run(request).await;
    }
    let refusal = Arc::new(OnceLock::new());
    let room = Room::new(Arc::clone(&bodies), kind, &Sharer::of(request.extensions()));
    let (mut parts, body) = request.into_parts();
    parts.extensions.insert(room.clone());
    let arriving = Arriving::new(body.into_data_stream(), kind, room.clone(), Arc::clone(&refusal));
    let response = next.run(Request::from_parts(parts, Body::from_stream(arriving.into_stream()))).await;
    match refusal.get() {
        Some(refusal) if !response.status().is_success() => refused(*refusal),
        _ => response,
    }
}

/// The rest of the body is not waited for.
fn refused(refusal: LimitError) -> Response {
    let mut response = ApiError::from(refusal).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
