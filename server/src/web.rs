//! The built pages, from a folder or embedded in the program.

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

/// File names under /assets contain a content hash, so these files never change.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// All other files can change with the next build.
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
    /// Serves the pages in a folder. The folder may be created later.
    pub fn new(folder: &Path) -> Self {
        Self { source: Source::Folder(folder.to_owned()) }
    }

    /// Serves the embedded pages.
    #[cfg(feature = "embedded-web")]
    pub fn embedded() -> Self {
        Self { source: Source::Embedded }
    }

    /// Serves the pages in `folder` if set. Otherwise serves the embedded pages if available, or
    /// those of the last build.
    pub fn find(folder: Option<&Path>) -> Self {
        #[cfg(feature = "embedded-web")]
        let without = Self::embedded;
        #[cfg(not(feature = "embedded-web"))]
        let without = || Self::new(Path::new("target/web"));
        folder.map_or_else(without, Self::new)
    }

    /// Returns the document for all pages, or build instructions.
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

    /// Returns a build file. If the browser accepts it, sends the compressed variant from the
    /// build.
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
