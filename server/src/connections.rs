//! Connections that are open at once, and what ends those that ask for nothing.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::client::{FromPeer, Peer};

/// How long the head of a request may take, from the beginning of the connection or the end of the request before: whoever opens
/// connections and says nothing, or a byte a minute, gives them back.
pub(crate) const HEAD_TIME: Duration = Duration::from_mins(1);

/// Takes no more connections than there are places; further ones wait in the operating system, and cost nothing here.
#[derive(Debug)]
pub(crate) struct Connections {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

/// A connection with its place.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl Connections {
    /// Takes at most so many at once.
    pub(crate) fn new(listener: TcpListener, most: usize) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(most.max(1))) }
    }

    /// Answers until it is told to stop; then takes no more, ends connections that ask for nothing, and waits for the others.
    /// Dropped, it cuts all of them.
    ///
    /// Connections are ended whose head does not come in time. Those with a request under way are not: events and logs may be
    /// silent for hours, and a body that comes too slowly is ended by [`crate::arrival`].
    pub(crate) async fn serve(mut self, router: Router, head_time: Duration, stop: impl Future<Output = ()>) {
        let mut protocol = http1::Builder::new();
        protocol.timer(TokioTimer::new()).header_read_timeout(head_time);
        let stopping = watch::Sender::new(false);
        let mut open = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                (stream, address) = self.accept() => {
                    let peer = Peer(address.ip());
                    let service = TowerToHyperService::new(FromPeer { router: router.clone(), peer });
                    let connection = protocol.serve_connection(TokioIo::new(stream), service);
                    open.spawn(attend(connection, stopping.subscribe()));
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

    /// The next connection, as soon as there is a place for it.
    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("places are never closed");
        // Waits for a moment where the system has no room for a further one.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Connection { stream, _place: place }, address)
    }
}

/// A connection as hyper drives it.
type Driven = http1::Connection<TokioIo<Connection>, TowerToHyperService<FromPeer>>;

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

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::{Body, Bytes};
    use axum::routing::{get, post};
    use futures::{StreamExt, stream};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::JoinHandle;
    use tokio::time::{sleep, timeout};

    use super::*;

    /// Head times of the tests, and how long is waited for what takes one of them.
    const SHORT: Duration = Duration::from_millis(300);
    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_place_is_taken_until_its_connection_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut connections = Connections::new(listener, 1);
        let _clients = (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
        let (first, _) = connections.accept().await;
        // Nothing that passes could make it ready: there is no place.
        assert!(futures::poll!(Box::pin(connections.accept())).is_pending());
        drop(first);
        connections.accept().await;
    }

    /// A server with a short page, a stream of what a test says, and a place for uploads.
    struct House {
        address: SocketAddr,
        stop: oneshot::Sender<()>,
        served: JoinHandle<()>,
        says: mpsc::UnboundedSender<&'static str>,
    }

    async fn house() -> House {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (says, said) = mpsc::unbounded_channel();
        let said = Arc::new(tokio::sync::Mutex::new(Some(said)));
        let events = move || async move {
            let said: mpsc::UnboundedReceiver<&'static str> = said.lock().await.take().unwrap();
            let pieces = stream::unfold(said, |mut said| async { said.recv().await.map(|piece| (piece, said)) });
            Body::from_stream(pieces.map(Ok::<_, Infallible>))
        };
        let router = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/events", get(events))
            .route("/log", post(|log: Bytes| async move { log.len().to_string() }));
        let (stop, stopped) = oneshot::channel();
        let stopped = async { drop(stopped.await) };
        let served = tokio::spawn(Connections::new(listener, 8).serve(router, SHORT, stopped));
        House { address, stop, served, says }
    }

    async fn sends(house: &House, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(house.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Reads until a text has come.
    async fn hears(stream: &mut TcpStream, text: &str) {
        let mut heard = String::new();
        while !heard.contains(text) {
            let mut piece = [0; 1024];
            let bytes = timeout(PATIENCE, stream.read(&mut piece)).await.unwrap().unwrap();
            assert!(bytes > 0, "{text} did not come: {heard}");
            heard.push_str(std::str::from_utf8(&piece[..bytes]).unwrap());
        }
    }

    /// Reads until the other side ends the connection.
    async fn is_ended(mut stream: TcpStream) {
        let mut rest = Vec::new();
        // Cut in the middle of what nobody has read, it may end with an error.
        drop(timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the connection is still open"));
    }

    #[tokio::test]
    async fn a_connection_that_asks_for_nothing_is_ended() {
        let house = house().await;
        let silent = sends(&house, "").await;
        let half = sends(&house, "GET / HTTP/1.1\r\nHost: local").await;
        let mut idle = sends(&house, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        hears(&mut idle, "here").await;
        tokio::join!(is_ended(silent), is_ended(half), is_ended(idle));
    }

    #[tokio::test]
    async fn a_head_that_drips_is_ended() {
        let house = house().await;
        let mut drips = sends(&house, "GET / HTTP/1.1\r\nHost: ").await;
        // A byte now and then is no head either.
        let dripping = async {
            while drips.write_all(b"x").await.is_ok() {
                sleep(SHORT / 10).await;
            }
        };
        timeout(PATIENCE, dripping).await.expect("the connection is still open");
    }

    #[tokio::test]
    async fn a_stream_and_a_slow_upload_are_not_ended() {
        let house = house().await;
        let mut events = sends(&house, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let mut upload = sends(&house, "POST /log HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n").await;
        for piece in ["a", "b", "c", "d"] {
            sleep(SHORT).await;
            upload.write_all(piece.as_bytes()).await.unwrap();
        }
        hears(&mut upload, "\r\n\r\n4").await;
        house.says.send("still there").unwrap();
        hears(&mut events, "still there").await;
    }

    #[tokio::test]
    async fn a_server_that_stops_waits_for_requests_under_way_and_for_nothing_else() {
        let house = house().await;
        let silent = sends(&house, "").await;
        let mut events = sends(&house, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        house.says.send("begun").unwrap();
        hears(&mut events, "begun").await;
        house.stop.send(()).unwrap();
        sleep(SHORT / 3).await;
        assert!(!house.served.is_finished());
        house.says.send("the end").unwrap();
        hears(&mut events, "the end").await;
        drop(house.says);
        timeout(PATIENCE, house.served).await.unwrap().unwrap();
        tokio::join!(is_ended(silent), is_ended(events));
    }

    #[tokio::test]
    async fn a_server_that_is_dropped_cuts_its_connections() {
        let house = house().await;
        let mut events = sends(&house, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        house.says.send("begun").unwrap();
        hears(&mut events, "begun").await;
        house.served.abort();
        is_ended(events).await;
    }
}
