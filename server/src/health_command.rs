//! `planscope health`: checks the server on this machine, for container health checks.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::config::HealthArguments;

/// Timeout for a healthy server.
const PATIENCE: Duration = Duration::from_secs(3);

/// Succeeds if the server reports that it is healthy.
pub fn run(arguments: &HealthArguments) -> anyhow::Result<ExitCode> {
    let address = on_this_machine(arguments.address);
    let mut stream =
        TcpStream::connect_timeout(&address, PATIENCE).with_context(|| format!("nothing answers at {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let token = arguments.token.as_deref().filter(|token| !token.is_empty());
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let path = api::path::HEALTH;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}\r\n")?;
    let mut response = String::new();
    stream.take(64 * 1024).read_to_string(&mut response)?;
    let status = response.lines().next().unwrap_or_default();
    ensure!(status.split(' ').nth(1) == Some("200"), "the server at {address} is not well: {status}");
    println!("well");
    Ok(ExitCode::SUCCESS)
}

/// Replaces an unspecified listen address by the loopback address.
pub(crate) fn on_this_machine(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
