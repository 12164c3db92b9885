//! Adapts and inspects responses from other layers.

use axum::http::header::{ALLOW, CONTENT_RANGE, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};

use super::ApiError;

/// Converts an error response from the router or an extractor to a problem document.
pub(crate) fn as_problem(method: &Method, response: Response) -> Response {
    let status = response.status();
    let has_document =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| !kind.as_bytes().starts_with(b"text/plain"));
    if has_document || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let error = match status {
        StatusCode::METHOD_NOT_ALLOWED => ApiError::Method(method.to_string()),
        _ if status.is_client_error() => ApiError::Malformed("the path or the query is malformed".to_owned()),
        _ => ApiError::Fault(format!("a handler answered {status}")),
    };
    let mut problem = error.into_response();
    if let Some(allowed) = response.headers().get(ALLOW) {
        problem.headers_mut().insert(ALLOW, allowed.clone());
    }
    problem
}

/// Page with instructions for building the pages.
pub(crate) fn pages_missing() -> Response {
    const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Planscope</title>\
        <h1>The pages are not built yet</h1>\
        <p>The server runs, its API answers under <a href=\"/api/v1/health\">/api/v1</a>, but the folder of the \
        built pages is not there.</p>\
        <p>Build and serve everything with <code>cargo xtask serve</code>, or say where the built pages are with \
        <code>PLANSCOPE_WEB</code>.</p></html>";
    (StatusCode::SERVICE_UNAVAILABLE, axum::response::Html(PAGE)).into_response()
}

/// Sets the status of the page document to 404.
pub(crate) fn no_such_page(mut page: Response) -> Response {
    if page.status().is_success() {
        *page.status_mut() = StatusCode::NOT_FOUND;
    }
    page
}

/// Status class of a response, for metrics.
pub(crate) fn class(response: &Response) -> &'static str {
    match response.status().as_u16() {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}

/// Returns the Content-Range header of a 416 response, which contains the total size.
pub(crate) fn unsatisfiable(response: &Response) -> Option<HeaderValue> {
    let is_rejected = response.status() == StatusCode::RANGE_NOT_SATISFIABLE;
    is_rejected.then(|| response.headers().get(CONTENT_RANGE).cloned().unwrap_or(HeaderValue::from_static("bytes */*")))
}

/// True for success and for 304.
pub(crate) fn succeeded(response: &Response) -> bool {
    response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED
}
