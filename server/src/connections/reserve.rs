//! Reserve connections for health checks on a full server.
//!
//! A supervisor restarts a server that does not respond to health checks, which aborts all
//! requests. The server therefore accepts a few extra connections, each for a short time, and
//! serves only health and readiness on them.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::CONNECTION;
use axum::middleware::{self, Next};
use axum::response::Response;
use tokio::task::AbortHandle;

use super::rejection;
use crate::error::LimitError;

/// Connections beyond the normal limit.
const RESERVE: usize = 32;
/// Timeout per reserve connection. A health check requires milliseconds.
pub(super) const RESERVE_TIME: Duration = Duration::from_secs(5);

/// Reserve connections, in order of age from oldest to newest.
#[derive(Debug, Default)]
pub(super) struct Reserve(VecDeque<AbortHandle>);

impl Reserve {
    /// Adds a connection. If the reserve is full, the oldest connection is aborted. A health check
    /// sent immediately completes long before 32 more connections arrive.
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

/// Wraps a router so it serves only health and readiness, refuses all other requests, and closes
/// the connection.
pub(super) fn health_only(router: Router) -> Router {
    router.layer(middleware::from_fn(only_health))
}

async fn only_health(request: Request, next: Next) -> Response {
    let mut response = if [api::path::HEALTH, api::path::READY].contains(&request.uri().path()) {
        next.run(request).await
    } else {
        rejection(LimitError::ConnectionsFull)
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
