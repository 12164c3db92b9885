//! Limits on concurrent connections, and timeouts for idle clients and for clients that do not
//! read.

mod address_limit;
mod proxied;
mod reserve;
#[cfg(test)]
mod tests;
mod write_timeout;

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::access::SECURITY_HEADERS;
use crate::client::{FromPeer, Networks};
use crate::error::{ApiError, LimitError};
use address_limit::AddressLimit;
use proxied::counted;
use reserve::{RESERVE_TIME, Reserve, health_only};
use write_timeout::WriteTimeout;

/// Buffer size in bytes per connection and direction. A request head must fit, including a path of
/// up to 64 KiB. An unread response occupies this buffer and a file chunk. The hyper default is six
/// times as large.
const BUFFER: usize = 80 << 10;
/// Minimum interval between warnings about addresses at their connection limit.
const WARNING_PAUSE: Duration = Duration::from_mins(1);

/// Limits on the number and duration of connections.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    /// Concurrent connections. Beyond this limit, a small reserve accepts health checks only.
    pub(crate) places: usize,
    /// Connections per address, and concurrent requests per address behind a proxy.
    pub(crate) per_address: u32,
    /// Addresses exempt from `per_address`.
    pub(crate) unlimited: Networks,
    /// Trusted proxies.
    pub(crate) proxies: Networks,
    /// Timeout for a request head, from the start of the connection or the end of the previous
    /// request. It closes connections that send nothing or a byte per minute.
    pub(crate) head_time: Duration,
    /// Timeout for a write when the peer does not read.
    pub(crate) write_time: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            // Enough for all streams and uploads, and for many more pages than a team opens.
            places: 4096,
            // More than the pages of a single person, and few enough that only many machines
            // together can reach the total limit.
            per_address: 64,
            unlimited: Networks::default().with_loopback(),
            proxies: Networks::default(),
            head_time: Duration::from_mins(1),
            write_time: Duration::from_mins(1),
        }
    }
}

/// Accepts connections within the limits.
#[derive(Debug)]
pub(crate) struct Connections {
    listener: TcpListener,
    limits: ConnectionLimits,
    places: Arc<Semaphore>,
    addresses: AddressLimit,
    reserve: Reserve,
    warned: Option<Instant>,
}

impl Connections {
    /// Creates a listener without open connections.
    pub(crate) fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(limits.places.max(1))),
            addresses: AddressLimit::new(limits.per_address),
            reserve: Reserve::default(),
            warned: None,
            limits,
        }
    }

    /// Serves requests until `stop` completes. Then accepts no more connections, closes idle
    /// connections, and completes active requests. Dropping the future closes all connections.
    ///
    /// A connection is closed if the request head is late or the response is not read. Connections
    /// with an active request are not closed: events and logs can be silent for hours, and
    /// [`crate::arrival`] aborts slow bodies.
    pub(crate) async fn serve(mut self, router: Router, stop: impl Future<Output = ()>) {
        let ConnectionLimits { per_address, unlimited, .. } = self.limits.clone();
        let routers = Routers { health: health_only(router.clone()), full: counted(router, per_address, unlimited) };
        let proxies = Arc::new(self.limits.proxies.clone());
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(self.limits.head_time).max_buf_size(BUFFER);
        let stopping = watch::Sender::new(false);
        let mut open = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                // On resource exhaustion, `accept` retries after a delay.
                (stream, address) = Listener::accept(&mut self.listener) => {
                    let opening = Opening { protocol: &protocol, proxies: &proxies, stopping: &stopping };
                    self.take_in(stream, address, &routers, &opening, &mut open);
                }
                // Reap finished connections.
                Some(_) = open.join_next() => {}
                () = &mut stop => break,
            }
        }
        drop(self);
        stopping.send_replace(true);
        while open.join_next().await.is_some() {}
    }

    /// Serves a connection in a task. Without a free slot, only health requests are served. A
    /// connection from an address at the limit is closed.
    fn take_in(
        &mut self,
        stream: TcpStream,
        address: SocketAddr,
        routers: &Routers,
        opening: &Opening<'_>,
        open: &mut JoinSet<()>,
    ) {
        let address = address.ip().to_canonical();
        let slot = if self.limits.unlimited.contains(address) {
            None
        } else {
            let Some(slot) = self.addresses.slot(address) else { return self.warn(address) };
            Some(slot)
        };
        let stream = WriteTimeout::new(stream, self.limits.write_time);
        if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
            let attended = opening.attended(stream, address, &routers.full);
            open.spawn(async move {
                attended.await;
                drop((permit, slot));
            });
        } else {
            let attended = opening.attended(stream, address, &routers.health);
            self.reserve.take(open.spawn(async move {
                // Close the connection after the timeout.
                drop(timeout(RESERVE_TIME, attended).await);
                drop(slot);
            }));
        }
    }

    /// Warns the operator, because the address may be a proxy.
    fn warn(&mut self, address: IpAddr) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARNING_PAUSE) {
            self.warned = Some(Instant::now());
            tracing::warn!(
                %address,
                limit = self.limits.per_address,
                "an address has as many connections as one may have, and further ones are closed; \
                 name it with --trusted-proxy if it is a proxy, or raise --connections-per-address"
            );
        }
    }
}

/// Routers for normal and for reserve connections.
#[derive(Debug)]
struct Routers {
    full: Router,
    /// Serves only health and readiness.
    health: Router,
}

/// Shared parameters for new connections.
struct Opening<'a> {
    protocol: &'a http1::Builder,
    proxies: &'a Arc<Networks>,
    stopping: &'a watch::Sender<bool>,
}

impl Opening<'_> {
    /// Serves a connection with a router.
    fn attended(
        &self,
        stream: WriteTimeout<TcpStream>,
        connected: IpAddr,
        router: &Router,
    ) -> impl Future<Output = ()> + Send + use<> {
        let service = FromPeer { router: router.clone(), connected, proxies: Arc::clone(self.proxies) };
        let connection = self.protocol.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        attend(connection, self.stopping.subscribe())
    }
}

/// Builds a refusal for a request that does not reach the guard, with the security headers.
fn rejection(limit: LimitError) -> Response {
    let mut response = ApiError::from(limit).into_response();
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

type Driven = http1::Connection<TokioIo<WriteTimeout<TcpStream>>, TowerToHyperService<FromPeer>>;

/// Serves a connection. During shutdown, no further requests on the connection are accepted.
async fn attend(connection: Driven, mut stopping: watch::Receiver<bool>) {
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // An error means that the server was dropped.
        () = async { drop(stopping.wait_for(|stopping| *stopping).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
}
