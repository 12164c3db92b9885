//! Pages: one document for every page path, files of the build for the rest.

use axum::extract::{Query, Request, State};
use axum::http::Method;
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::app::Shared;
use crate::error::{ApiError, LoggedIn, no_such_page, succeeded, unsatisfiable};

/// What a page's address may carry for the server.
#[derive(Debug, Deserialize)]
pub(crate) struct PageOptions {
    token: Option<String>,
}

/// A page. With `?token=` it logs in: the browser gets a session in a cookie that scripts cannot read, and the token goes out of the
/// address.
pub(crate) async fn page(State(app): Shared, request: Parts) -> Response {
    // A query that is not ours is the page's own business.
    let options = Query::<PageOptions>::try_from_uri(&request.uri).ok();
    let token = options.and_then(|Query(options)| options.token).filter(|_| app.access.needs_token());
    let Some(token) = token else { return app.web.page().await };
    match app.access.login(&token, &request).await {
        Ok(cookies) => LoggedIn { cookies, page: request.uri.path().to_owned() }.into_response(),
        Err(error) => error.into_response(),
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
    if reads_pages && !succeeded(&response) && unsatisfiable(&response).is_none() {
        return no_such_page(app.web.page().await);
    }
    response
}

/// Whether a browser was sent here by a link or its address bar.
fn is_navigation(request: &Request) -> bool {
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    request.method() == Method::GET && accepts.is_some_and(|kinds| kinds.contains("text/html"))
}
