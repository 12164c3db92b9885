//! What is answered while all places are taken.
//!
//! A server that does not answer its health check is restarted, which ends everybody's requests. So a few more connections are
//! accepted, for a short time each, on which only health and readiness are answered.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::middleware::{self, Next};
use axum::response::Response;
use tokio::task::AbortHandle;

use super::refused;
use crate::error::LimitError;

/// Connections beyond the places.
const RESERVE: usize = 32;
/// Longest time of one of them: a health check takes milliseconds.
pub(super) const RESERVE_TIME: Duration = Duration::from_secs(5);

/// The connections beyond the places, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Reserve(VecDeque<AbortHandle>);

impl Reserve {
    /// Takes a connection in. Where there are as many as there may be, the oldest one is cut: a health check that came with its
    /// connection is answered long before 32 further ones come.
    pub(super) fn take(&mut self, connection: AbortHandle) {
        self.0.retain(|connection| !connection.is_finished());
        if self.0.len() >= RESERVE
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.abort();
        }
        self.0.push_back(connection);
    }
}

/// A router that answers health and readiness as another one does, refuses everything else, and ends the connection.
pub(super) fn health_only(router: Router) -> Router {
    router.layer(middleware::from_fn(only_health))
}

async fn only_health(request: Request, next: Next) -> Response {
    let mut response = if [api::path::HEALTH, api::path::READY].contains(&request.uri().path()) {
        next.run(request).await
    } else {
        refused(LimitError::ConnectionsFull)
    };
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn only_health_and_readiness_are_answered() {
        let router = Router::new()
            .route(api::path::HEALTH, get(|| async { "well" }))
            .route(api::path::READY, get(|| async { "ready" }))
            .route("/", get(|| async { "page" }));
        for (path, status) in [(api::path::HEALTH, 200), (api::path::READY, 200), ("/", 503), ("/nothing", 503)] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = health_only(router.clone()).oneshot(request).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{path}");
            assert_eq!(response.headers()["connection"], "close", "{path}");
        }
    }

    #[tokio::test]
    async fn the_oldest_makes_way() {
        let mut reserve = Reserve::default();
        let mut open: Vec<_> = (0..=RESERVE).map(|_| tokio::spawn(std::future::pending::<()>())).collect();
        for connection in &open {
            reserve.take(connection.abort_handle());
        }
        assert!(open.remove(0).await.unwrap_err().is_cancelled());
        assert!(open.iter().all(|connection| !connection.is_finished()));
        assert_eq!(reserve.0.len(), RESERVE);
        for connection in open {
            connection.abort();
        }
    }
}
