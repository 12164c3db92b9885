//! Request limit per address behind a trusted proxy.
//!
//! Connections from a proxy are not limited, because a proxy needs many. Requests are counted per
//! client address instead. Otherwise a single client could occupy all slots through the proxy.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::address_limit::{AddressLimit, AddressSlot};
use super::rejection;
use crate::client::{Networks, Peer};
use crate::error::LimitError;

/// The limit and the exempt addresses.
#[derive(Debug)]
struct Counting {
    addresses: AddressLimit,
    limit: u32,
    unlimited: Networks,
}

/// Wraps a router to refuse proxied requests if the client address is at the request limit.
pub(super) fn counted(router: Router, limit: u32, unlimited: Networks) -> Router {
    let counting = Arc::new(Counting { addresses: AddressLimit::new(limit), limit, unlimited });
    router.layer(middleware::from_fn_with_state(counting, count))
}

async fn count(State(counting): State<Arc<Counting>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().filter(|peer| peer.by_proxy);
    let Some(address) = peer.map(|peer| peer.address).filter(|address| !counting.unlimited.contains(*address)) else {
        return next.run(request).await;
    };
    match counting.addresses.slot(address) {
        Some(slot) => next.run(request).await.map(|body| Body::new(Counted { body, _slot: slot })),
        None => rejection(LimitError::AddressRequests(counting.limit)),
    }
}

/// A response body that occupies a slot until it is sent.
struct Counted {
    body: Body,
    _slot: AddressSlot,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use futures::stream;
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn a_client_leaves_requests_behind_a_proxy_to_others() {
        let open = || async { Body::from_stream(stream::pending::<Result<Bytes, axum::Error>>()) };
        let router = Router::new().route("/", get(open)).route("/short", get(|| async { "short" }));
        let unlimited = Networks::parse(&["10.0.0.0/8".to_owned()]).unwrap();
        let router = counted(router, 2, unlimited);
        let asks = async |path: &str, address: &str, by_proxy: bool| {
            let mut request = Request::get(path).body(Body::empty()).unwrap();
            request.extensions_mut().insert(Peer { address: address.parse().unwrap(), by_proxy });
            router.clone().oneshot(request).await.unwrap()
        };
        let status = |response: &Response| response.status().as_u16();
        let first = asks("/", "203.0.113.9", true).await;
        let _second = asks("/", "203.0.113.9", true).await;
        let rejection = asks("/short", "203.0.113.9", true).await;
        assert_eq!((status(&rejection), rejection.headers()["retry-after"] == "5"), (429, true));
        // The limit does not affect other addresses, direct clients or exempt addresses.
        for (address, by_proxy) in [("203.0.113.10", true), ("203.0.113.9", false), ("10.0.0.1", true)] {
            assert_eq!(status(&asks("/short", address, by_proxy).await), 200, "{address}");
        }
        drop(first);
        let again = asks("/short", "203.0.113.9", true).await;
        assert_eq!((status(&again), again.headers()["content-length"] == "5"), (200, true));
    }
}
