//! Connections that are open at once, and what ends those that ask for nothing or read nothing.

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

/// Bytes that are buffered of a connection in each direction. The head of a request must fit: its path may have 64 KiB. An answer that
/// nobody reads holds so much and a piece of its file; hyper's own limit is six times as large.
const BUFFER: usize = 80 << 10;
/// Time between two warnings about addresses that have all connections they may.
const WARNING_PAUSE: Duration = Duration::from_mins(1);

/// How many connections are open at once, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    /// Connections at once. A few more are accepted for health checks alone.
    pub(crate) places: usize,
    /// Connections of one address, and requests under way of one address behind a proxy.
    pub(crate) per_address: u32,
    /// Addresses without that limit.
    pub(crate) unlimited: Networks,
    /// Proxies that say for whom they ask.
    pub(crate) proxies: Networks,
    /// How long the head of a request may take, from the beginning of the connection or the end of the request before: whoever opens
    /// connections and says nothing, or a byte a minute, gives them back.
    pub(crate) head_time: Duration,
    /// How long a write may wait for the other end to read.
    pub(crate) write_time: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            // All streams and uploads, and many more pages than a team has open.
            places: 4096,
            // More than the pages of one person open, and few enough that it takes many machines to take all.
            per_address: 64,
            unlimited: Networks::default().with_loopback(),
            proxies: Networks::default(),
            head_time: Duration::from_mins(1),
            write_time: Duration::from_mins(1),
        }
    }
}

/// Accepts connections within limits.
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
    /// No connection is open yet.
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

    /// Answers until it is told to stop; then takes no more, ends connections that ask for nothing, and waits for the others.
    /// Dropped, it cuts all of them.
    ///
    /// Connections are ended whose head does not come in time, or whose answer is not read. Those with a request under way are not:
    /// events and logs may be silent for hours, and a body that comes too slowly is ended by [`crate::arrival`].
    pub(crate) async fn serve(mut self, router: Router, stop: impl Future<Output = ()>) {
        let ConnectionLimits { per_address, unlimited, .. } = self.limits.clone();
        let routers = Routers { health: health_only(router.clone()), whole: counted(router, per_address, unlimited) };
        let proxies = Arc::new(self.limits.proxies.clone());
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(self.limits.head_time).max_buf_size(BUFFER);
        let stopping = watch::Sender::new(false);
        let mut open = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                // Waits for a moment where the system has no room for a further one.
                (stream, address) = Listener::accept(&mut self.listener) => {
                    let opening = Opening { protocol: &protocol, proxies: &proxies, stopping: &stopping };
                    self.take_in(stream, address, &routers, &opening, &mut open);
                }
                // Those that have ended are let go of.
                Some(_) = open.join_next() => {}
                () = &mut stop => break,
            }
        }
        drop(self);
        stopping.send_replace(true);
        while open.join_next().await.is_some() {}
    }

    /// Answers a connection in a task: of everything where there is a place, otherwise of health alone. One of an address that has as
    /// many as it may is closed.
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
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            let attended = opening.attended(stream, address, &routers.whole);
            open.spawn(async move {
                attended.await;
                drop((place, slot));
            });
        } else {
            let attended = opening.attended(stream, address, &routers.health);
            self.reserve.take(open.spawn(async move {
                // Cut where it takes longer.
                drop(timeout(RESERVE_TIME, attended).await);
                drop(slot);
            }));
        }
    }

    /// Tells the operator, who may have a proxy there.
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

/// What answers.
#[derive(Debug)]
struct Routers {
    whole: Router,
    /// Health and readiness alone.
    health: Router,
}

/// What every connection is opened with.
struct Opening<'a> {
    protocol: &'a http1::Builder,
    proxies: &'a Arc<Networks>,
    stopping: &'a watch::Sender<bool>,
}

impl Opening<'_> {
    /// A connection that is answered by a router.
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

/// A refusal of a request that does not come as far as the guard, with the headers of every answer.
fn refused(limit: LimitError) -> Response {
    let mut response = ApiError::from(limit).into_response();
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A connection as hyper drives it.
type Driven = http1::Connection<TokioIo<WriteTimeout<TcpStream>>, TowerToHyperService<FromPeer>>;

/// Answers a connection until it ends; from the moment when the server stops on, no further request of it.
async fn attend(connection: Driven, mut stopping: watch::Receiver<bool>) {
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        // An error means that the server is gone.
        () = async { drop(stopping.wait_for(|stopping| *stopping).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
}
