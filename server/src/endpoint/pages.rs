//! Pages: one document for every page path, files of the build for the rest.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::header::ACCEPT;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::app::Shared;
use crate::error::{ApiError, LoggedIn, no_such_page, succeeded};

/// What a page's address may carry for the server.
#[derive(Debug, Deserialize)]
pub(crate) struct PageOptions {
    token: Option<String>,
}

/// A page. With `?token=` it logs in: the token moves into a cookie that scripts cannot read, and out of the
/// address.
pub(crate) async fn page(
    State(app): Shared,
    uri: Uri,
    options: Result<Query<PageOptions>, QueryRejection>,
) -> Response {
    // A query that is not ours is the page's own business.
    let token = options.ok().and_then(|Query(options)| options.token).filter(|_| app.access.needs_token());
    match token.map(|token| app.access.login(&token)) {
        None => app.web.page().await,
        Some(Some(cookie)) => LoggedIn { cookie, page: uri.path().to_owned() }.into_response(),
        Some(None) => ApiError::Unauthorised.into_response(),
    }
}

/// A file of the build, or nothing; who reads pages is told so by one.
pub(crate) async fn file(State(app): Shared, request: Request) -> Response {
    let path = request.uri().path();
    if path.starts_with("/api/") {
        return ApiError::NoRoute(path.to_owned()).into_response();
    }
    let reads_pages = !path.starts_with("/assets/") && is_navigation(&request);
    let response = app.web.file(request).await;
    if reads_pages && !succeeded(&response) {
        return no_such_page(app.web.page().await);
    }
    response
}

/// Whether a browser was sent here by a link or its address bar.
fn is_navigation(request: &Request) -> bool {
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    request.method() == Method::GET && accepts.is_some_and(|kinds| kinds.contains("text/html"))
}
