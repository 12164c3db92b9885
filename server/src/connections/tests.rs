use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::routing::{get, post};
use futures::{StreamExt, stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;

/// Timeout for heads and writes in the tests, and the pause for checking them.
const SHORT: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests a file that exceeds all socket buffers.
const FILE: &str = "GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";
const PAGE: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HEALTH: &str = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Test server with a short page, a large file, an event stream controlled by the test, and an
/// upload endpoint.
struct TestServer {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    says: mpsc::UnboundedSender<&'static str>,
}

fn limits() -> ConnectionLimits {
    ConnectionLimits { places: 8, head_time: SHORT, write_time: PATIENCE, ..ConnectionLimits::default() }
}

async fn server() -> TestServer {
    server_within(limits()).await
}

async fn server_within(limits: ConnectionLimits) -> TestServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (says, said) = mpsc::unbounded_channel();
    let said = Arc::new(tokio::sync::Mutex::new(Some(said)));
    let events = move || async move {
        let said: mpsc::UnboundedReceiver<&'static str> = said.lock().await.take().unwrap();
        let pieces = stream::unfold(said, |mut said| async { said.recv().await.map(|piece| (piece, said)) });
        Body::from_stream(pieces.map(Ok::<_, Infallible>))
    };
    let file = || async {
        static PIECE: [u8; 64 << 10] = [b'x'; 64 << 10];
        Body::from_stream(stream::repeat(Bytes::from_static(&PIECE)).take(1024).map(Ok::<_, Infallible>))
    };
    let router = Router::new()
        .route("/", get(|| async { "here" }))
        .route(api::path::HEALTH, get(|| async { "well" }))
        .route("/file", get(file))
        .route("/events", get(events))
        .route("/log", post(|log: Bytes| async move { log.len().to_string() }));
    let (stop, stopped) = oneshot::channel();
    let stopped = async { drop(stopped.await) };
    let served = tokio::spawn(Connections::new(listener, limits).serve(router, stopped));
    TestServer { address, stop, served, says }
}

async fn sends(server: &TestServer, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Receives data up to and including the text.
async fn read_until(stream: &mut TcpStream, text: &str) {
    let mut heard = String::new();
    while !heard.contains(text) {
        let mut piece = [0; 1024];
        let bytes = timeout(PATIENCE, stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(bytes > 0, "{text} did not come: {heard}");
        heard.push_str(std::str::from_utf8(&piece[..bytes]).unwrap());
    }
}

/// Checks that the peer closes the connection.
async fn is_ended(mut stream: TcpStream) {
    let mut rest = Vec::new();
    // A connection aborted with unread data may end with an error.
    drop(timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the connection is still open"));
}

/// Sends a request on a new connection and returns everything received until the server closes it.
async fn exchange(server: &TestServer, text: &str) -> String {
    let mut stream = sends(server, text).await;
    let mut bytes = Vec::new();
    // A connection that the server closes immediately may end with an error.
    drop(timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection is still open"));
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_full_server_answers_its_health_and_nothing_else() {
    let server = server_within(ConnectionLimits { places: 1, head_time: PATIENCE, ..limits() }).await;
    let mut only = sends(&server, PAGE).await;
    read_until(&mut only, "here").await;
    let rejection = exchange(&server, PAGE).await;
    assert!(rejection.starts_with("HTTP/1.1 503 ") && rejection.contains("/problems/connections-full"), "{rejection}");
    assert!(rejection.contains("retry-after: 5") && rejection.contains("connection: close"), "{rejection}");
    let well = exchange(&server, HEALTH).await;
    assert!(well.starts_with("HTTP/1.1 200 ") && well.contains("connection: close"), "{well}");
    drop(only);
    // The server detects the closed connection after a short delay.
    let mut again = String::new();
    while !again.ends_with("here") {
        again = exchange(&server, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    }
}

#[tokio::test]
async fn single_address_leaves_connections_to_others() {
    let limits = ConnectionLimits { per_address: 2, unlimited: Networks::default(), head_time: PATIENCE, ..limits() };
    let server = server_within(limits).await;
    let mut open = [sends(&server, PAGE).await, sends(&server, PAGE).await];
    for stream in &mut open {
        read_until(stream, "here").await;
    }
    assert_eq!(exchange(&server, HEALTH).await, "", "it is closed");
    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = other.connect(server.address).await.unwrap();
    other.write_all(PAGE.as_bytes()).await.unwrap();
    read_until(&mut other, "here").await;
}

#[tokio::test]
async fn loopback_and_proxies_have_no_address_limit() {
    let server = server_within(ConnectionLimits { per_address: 1, head_time: PATIENCE, ..limits() }).await;
    let mut open = [sends(&server, PAGE).await, sends(&server, PAGE).await];
    for stream in &mut open {
        read_until(stream, "here").await;
    }
}

/// Regression test for attack finding 2: readers request a large file repeatedly on each
/// connection, but do not read. They occupy all slots, and the server does not respond to health
/// checks.
#[tokio::test]
async fn readers_that_do_not_read_are_ended_and_health_is_answered_meanwhile() {
    // On a slow machine a reader is accepted only when the test reads. It then gets all files and ends after the head time.
    let server = server_within(ConnectionLimits { head_time: PATIENCE / 6, write_time: SHORT, ..limits() }).await;
    let mut readers = Vec::new();
    // Three times the number of slots.
    for _ in 0..24 {
        readers.push(sends(&server, &FILE.repeat(20)).await);
    }
    let well = exchange(&server, HEALTH).await;
    assert!(well.starts_with("HTTP/1.1 200 ") && well.ends_with("well"), "{well}");
    // The clients have not read any data, yet their slots become free again. A full server returns
    // 503.
    let mut page = String::new();
    while !page.ends_with("here") {
        page = exchange(&server, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
        sleep(SHORT / 10).await;
    }
    for reader in readers {
        is_ended(reader).await;
    }
}

/// Regression test for the same finding, with incomplete request heads.
#[tokio::test]
async fn health_responds_despite_incomplete_requests() {
    let server = server_within(ConnectionLimits { head_time: PATIENCE, ..limits() }).await;
    let mut heads = Vec::new();
    // More than the normal and the reserve connections.
    for _ in 0..60 {
        heads.push(sends(&server, "GET / HTTP/1.1\r\nHost: local").await);
    }
    let well = exchange(&server, HEALTH).await;
    assert!(well.starts_with("HTTP/1.1 200 ") && well.ends_with("well"), "{well}");
    assert_eq!(heads.len(), 60);
}

#[tokio::test]
async fn events_that_nobody_reads_are_ended() {
    let server = server_within(ConnectionLimits { head_time: PATIENCE, write_time: SHORT, ..limits() }).await;
    let _reader = sends(&server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let long: &'static str = Box::leak("x".repeat(64 << 10).into_boxed_str());
    // The channel closes when the response is dropped.
    let telling = async {
        while server.says.send(long).is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, telling).await.expect("the connection is still open");
}

#[tokio::test]
async fn a_reader_that_is_slow_is_not_ended() {
    let server = server_within(ConnectionLimits { head_time: PATIENCE, write_time: 10 * SHORT, ..limits() }).await;
    let mut reader = sends(&server, FILE).await;
    let mut read = 0;
    let mut piece = vec![0; 8 << 20];
    // Read 64 MiB and the head, a few MiB at a time. Each pause is shorter than the write timeout,
    // but the total time is longer.
    while read < 64 << 20 {
        sleep(SHORT).await;
        let bytes = timeout(PATIENCE, reader.read(&mut piece)).await.unwrap().unwrap();
        assert!(bytes > 0, "the connection ended at {read}");
        read += bytes;
    }
}

#[tokio::test]
async fn a_connection_that_asks_for_nothing_is_ended() {
    let server = server().await;
    let silent = sends(&server, "").await;
    let half = sends(&server, "GET / HTTP/1.1\r\nHost: local").await;
    let mut idle = sends(&server, PAGE).await;
    read_until(&mut idle, "here").await;
    tokio::join!(is_ended(silent), is_ended(half), is_ended(idle));
}

#[tokio::test]
async fn a_head_that_drips_is_ended() {
    let server = server().await;
    let mut drips = sends(&server, "GET / HTTP/1.1\r\nHost: ").await;
    // Single bytes do not extend the timeout for the head.
    let dripping = async {
        while drips.write_all(b"x").await.is_ok() {
            sleep(SHORT / 10).await;
        }
    };
    timeout(PATIENCE, dripping).await.expect("the connection is still open");
}

#[tokio::test]
async fn a_stream_and_a_slow_upload_are_not_ended() {
    let server = server().await;
    let mut events = sends(&server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let mut upload = sends(&server, "POST /log HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n").await;
    for piece in ["a", "b", "c", "d"] {
        sleep(SHORT).await;
        upload.write_all(piece.as_bytes()).await.unwrap();
    }
    read_until(&mut upload, "\r\n\r\n4").await;
    server.says.send("still there").unwrap();
    read_until(&mut events, "still there").await;
}

#[tokio::test]
async fn a_server_that_stops_waits_for_requests_under_way_and_for_nothing_else() {
    let server = server().await;
    let silent = sends(&server, "").await;
    let mut events = sends(&server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.says.send("begun").unwrap();
    read_until(&mut events, "begun").await;
    server.stop.send(()).unwrap();
    sleep(SHORT / 3).await;
    assert!(!server.served.is_finished());
    server.says.send("the end").unwrap();
    read_until(&mut events, "the end").await;
    drop(server.says);
    timeout(PATIENCE, server.served).await.unwrap().unwrap();
    tokio::join!(is_ended(silent), is_ended(events));
}

#[tokio::test]
async fn a_server_that_is_dropped_cuts_its_connections() {
    let server = server().await;
    let mut events = sends(&server, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    server.says.send("begun").unwrap();
    read_until(&mut events, "begun").await;
    server.served.abort();
    is_ended(events).await;
}
