//! The built pages.

use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use tower::ServiceExt;
use tower_http::services::ServeDir;

use crate::error::{ApiError, pages_missing, succeeded};

/// Names under /assets carry a hash of their content, so they never change.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Everything else may change with the next build.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

/// The folder of the built pages.
#[derive(Debug, Clone)]
pub struct Web {
    folder: PathBuf,
}

impl Web {
    /// The pages of a folder, which may come to be later.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The one page that shows everything, or how to build it.
    pub(crate) async fn page(&self) -> Response {
        match tokio::fs::read(self.folder.join("index.html")).await {
            Ok(page) => (
                [(CACHE_CONTROL, ASK_AGAIN), (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))],
                page,
            )
                .into_response(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => pages_missing(),
            Err(error) => ApiError::Fault(format!("index.html cannot be read: {error}")).into_response(),
        }
    }

    /// A file of the folder. A compressed sibling made by the build is sent in its place where the browser
    /// takes it.
    pub(crate) async fn file(&self, request: Request) -> Response {
        let path = request.uri().path().to_owned();
        if !matches!(*request.method(), Method::GET | Method::HEAD) || path.ends_with('/') {
            return ApiError::NoRoute(path).into_response();
        }
        let files =
            ServeDir::new(&self.folder).append_index_html_on_directories(false).precompressed_br().precompressed_gzip();
        let response = match files.oneshot(request).await {
            Ok(response) => response.map(Body::new),
            Err(never) => match never {},
        };
        if !succeeded(&response) {
            return ApiError::NoRoute(path).into_response();
        }
        let lifetime = if path.starts_with("/assets/") { FOREVER } else { ASK_AGAIN };
        let mut response = response;
        response.headers_mut().insert(CACHE_CONTROL, lifetime);
        response
    }
}
