//! Success responses.

use axum::Json;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};

use crate::live::LogEnd;

/// Success response with a document.
#[derive(Debug)]
pub enum DocumentResponse<T> {
    /// The resource already exists.
    Present(T),
    /// The resource was created at the path.
    Created(String, T),
    /// The request was accepted. Its progress is available at the path.
    Accepted(String, T),
}

impl<T: serde::Serialize> IntoResponse for DocumentResponse<T> {
    fn into_response(self) -> Response {
        let (status, location, body) = match self {
            Self::Present(body) => return Json(body).into_response(),
            Self::Created(location, body) => (StatusCode::CREATED, location, body),
            Self::Accepted(location, body) => (StatusCode::ACCEPTED, location, body),
        };
        (status, [(LOCATION, location)], Json(body)).into_response()
    }
}

/// The result is prepared but not stored.
#[derive(Debug)]
pub struct Prepared<T>(pub T);

impl<T: serde::Serialize> IntoResponse for Prepared<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

/// The resource was deleted. The response has no content.
#[derive(Debug)]
pub struct Deleted;

impl IntoResponse for Deleted {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// The bytes of a log are stored, up to this end.
#[derive(Debug)]
pub struct LogStored(pub LogEnd);

impl IntoResponse for LogStored {
    fn into_response(self) -> Response {
        (StatusCode::NO_CONTENT, log_end(self.0)).into_response()
    }
}

/// End of the stored log.
#[derive(Debug)]
pub struct LogEndsAt(pub LogEnd);

impl IntoResponse for LogEndsAt {
    fn into_response(self) -> Response {
        (StatusCode::OK, log_end(self.0)).into_response()
    }
}

/// Headers with the end of a log.
pub(super) fn log_end(end: LogEnd) -> [(HeaderName, HeaderValue); 2] {
    [
        (HeaderName::from_static(api::run::UPLOAD_OFFSET), HeaderValue::from(end.stored)),
        (HeaderName::from_static(api::run::UPLOAD_FILE), HeaderValue::from(end.file)),
    ]
}

/// The client's copy is up to date.
#[derive(Debug)]
pub struct Unchanged;

impl IntoResponse for Unchanged {
    fn into_response(self) -> Response {
        StatusCode::NOT_MODIFIED.into_response()
    }
}

/// Login succeeded. Sets the cookies and redirects to the page without the token.
#[derive(Debug)]
pub struct LoggedIn {
    /// Values of the cookie headers.
    pub cookies: Vec<String>,
    /// Path of the page.
    pub page: String,
}

impl IntoResponse for LoggedIn {
    fn into_response(self) -> Response {
        (StatusCode::SEE_OTHER, cookies(self.cookies), [(LOCATION, self.page)]).into_response()
    }
}

/// The session has ended. These cookies remove it from the browser.
#[derive(Debug)]
pub struct LoggedOut(pub Vec<String>);

impl IntoResponse for LoggedOut {
    fn into_response(self) -> Response {
        (StatusCode::NO_CONTENT, cookies(self.0)).into_response()
    }
}

fn cookies(values: Vec<String>) -> AppendHeaders<Vec<(HeaderName, String)>> {
    AppendHeaders(values.into_iter().map(|value| (SET_COOKIE, value)).collect())
}
