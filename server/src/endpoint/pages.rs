//! Pages: a single document for all page paths, and build files for all other paths.

use axum::extract::{Query, Request, State};
use axum::http::Method;
use axum::http::header::ACCEPT;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::app::Shared;
use crate::error::{ApiError, LoggedIn, no_such_page, succeeded, unsatisfiable};

/// Query parameters of a page.
#[derive(Debug, Deserialize)]
pub(crate) struct PageOptions {
    token: Option<String>,
}

/// Serves a page. With `?token=` it logs in: the browser receives a session in an `HttpOnly`
/// cookie, and a redirect removes the token from the address.
pub(crate) async fn page(State(app): Shared, request: Parts) -> Response {
    // The page itself handles unknown query parameters.
    let options = Query::<PageOptions>::try_from_uri(&request.uri).ok();
    let token = options.and_then(|Query(options)| options.token).filter(|_| app.access.needs_token());
    let Some(token) = token else { return app.web.page().await };
    match app.access.login(&token, &request).await {
        Ok(cookies) => LoggedIn { cookies, page: request.uri.path().to_owned() }.into_response(),
        Err(error) => error.into_response(),
    }
}

/// Serves a build file. If the file does not exist, browser navigation receives an error page.
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

/// True for navigation requests from a browser.
fn is_navigation(request: &Request) -> bool {
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    request.method() == Method::GET && accepts.is_some_and(|kinds| kinds.contains("text/html"))
}
