//! Raw HTTP requests that a normal client would not send.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Timeout for a response.
const PATIENCE: Duration = Duration::from_mins(2);

/// Connects to a server.
pub(crate) fn connected(origin: &str) -> TcpStream {
    let stream = TcpStream::connect(origin.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Formats a request head with the given body size.
pub(crate) fn head(method: &str, path: &str, bytes: usize) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n")
}

/// Sends a body and returns the status. The server can refuse an incomplete body.
pub(crate) fn sends(origin: &str, method: &str, path: &str, body: &[u8]) -> u16 {
    let mut stream = connected(origin);
    stream.write_all(head(method, path, body.len()).as_bytes()).unwrap();
    drop(stream.write_all(body));
    let mut status_line = [0; 12];
    stream.read_exact(&mut status_line).unwrap_or_else(|error| panic!("{method} {path}: no answer: {error}"));
    let status = std::str::from_utf8(&status_line[9..]).ok().and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("{method} {path}: {status_line:?}"))
}

/// Connections that request large responses and do not read them (attack finding 2).
pub(crate) fn unread(origin: &str, connections: usize) -> Vec<TcpStream> {
    let request = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
    let asking = (0..connections).map(|_| {
        let mut stream = connected(origin);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    asking.collect()
}

/// Connections whose bodies lack the last KiB (attack finding 4).
pub(crate) fn unended(origin: &str, connections: usize) -> Vec<TcpStream> {
    const BYTES: usize = 16 << 20;
    let body = vec![b'1'; BYTES - 1024];
    let asking = (0..connections).map(|_| {
        let mut stream = connected(origin);
        stream.write_all(head("POST", api::path::DATASETS, BYTES).as_bytes()).unwrap();
        // A body that exceeds the memory budget is refused or delayed, so the write may block.
        stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
        drop(stream.write_all(&body));
        stream
    });
    asking.collect()
}
