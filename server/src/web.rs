//! The built pages: of a folder, or inside the program.

#[cfg(feature = "embedded-web")]
mod embedded;

use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE};
use axum::http::{HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use tower::ServiceExt;
use tower_http::services::ServeDir;
use tower_http::services::fs::{Backend, DefaultServeDirFallback};

use crate::error::{ApiError, pages_missing, succeeded, unsatisfiable};

/// Names under /assets carry a hash of their content, so they never change.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Everything else may change with the next build.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

/// The built pages.
#[derive(Debug, Clone)]
pub struct Web {
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Folder(PathBuf),
    #[cfg(feature = "embedded-web")]
    Embedded,
}

impl Web {
    /// The pages of a folder, which may come to be later.
    pub fn new(folder: &Path) -> Self {
        Self { source: Source::Folder(folder.to_owned()) }
    }

    /// The pages inside the program.
    #[cfg(feature = "embedded-web")]
    pub fn embedded() -> Self {
        Self { source: Source::Embedded }
    }

    /// The pages of a folder where one is named; otherwise those inside the program, if it has any, or of the build.
    pub fn find(folder: Option<&Path>) -> Self {
        #[cfg(feature = "embedded-web")]
        let without = Self::embedded;
        #[cfg(not(feature = "embedded-web"))]
        let without = || Self::new(Path::new("target/web"));
        folder.map_or_else(without, Self::new)
    }

    /// The one page that shows everything, or how to build it.
    pub(crate) async fn page(&self) -> Response {
        let page = match &self.source {
            Source::Folder(folder) => tokio::fs::read(folder.join("index.html")).await,
            #[cfg(feature = "embedded-web")]
            Source::Embedded => {
                embedded::Pages.read("index.html").map(<[u8]>::to_vec).ok_or(std::io::ErrorKind::NotFound.into())
            }
        };
        match page {
            Ok(page) => (
                [(CACHE_CONTROL, ASK_AGAIN), (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))],
                page,
            )
                .into_response(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => pages_missing(),
            Err(error) => ApiError::Fault(format!("index.html cannot be read: {error}")).into_response(),
        }
    }

    /// A file of the build. A compressed sibling made by the build is sent in its place where the browser
    /// takes it.
    pub(crate) async fn file(&self, request: Request) -> Response {
        let path = request.uri().path().to_owned();
        if !matches!(*request.method(), Method::GET | Method::HEAD) || path.ends_with('/') {
            return ApiError::NoRoute(path).into_response();
        }
        let response = match &self.source {
            Source::Folder(folder) => sent(ServeDir::new(folder), request).await,
            #[cfg(feature = "embedded-web")]
            Source::Embedded => sent(ServeDir::with_backend("", embedded::Pages), request).await,
        };
        if let Some(there) = unsatisfiable(&response) {
            let mut refusal = ApiError::Range(path).into_response();
            refusal.headers_mut().insert(CONTENT_RANGE, there);
            return refusal;
        }
        if !succeeded(&response) {
            return ApiError::NoRoute(path).into_response();
        }
        let lifetime = if path.starts_with("/assets/") { FOREVER } else { ASK_AGAIN };
        let mut response = response;
        response.headers_mut().insert(CACHE_CONTROL, lifetime);
        response
    }
}

async fn sent<B: Backend>(files: ServeDir<DefaultServeDirFallback, B>, request: Request) -> Response {
    let files = files.append_index_html_on_directories(false).precompressed_br().precompressed_gzip();
    match files.oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}
