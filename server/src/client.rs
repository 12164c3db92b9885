//! Client identification for draft quotas: browsers by an anonymous cookie, programs by address.

mod networks;

pub use networks::{Networks, NotANetwork};

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName};
use axum::response::Response;
use sha2::{Digest, Sha256};
use tower::Service;

use crate::token::Token;

/// Cookie name. The value is a random number without personal data.
const COOKIE_NAME: &str = "planscope_client";
/// Cookie lifetime in seconds: 400 days, the maximum that browsers accept.
const LIFETIME_S: u32 = 400 * 24 * 3600;
/// Maximum accepted cookie length in bytes.
const MAX_COOKIE: usize = 64;

/// A client, identified by the hash of its cookie or address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Client(String);

impl Client {
    /// Creates a client from a cookie value.
    pub fn from_cookie(value: &str) -> Self {
        Self::hashed("cookie", value)
    }

    /// Creates a client from an address.
    pub(crate) fn from_address(address: Option<IpAddr>) -> Self {
        Self::hashed("address", &address.map_or_else(String::new, |address| address.to_string()))
    }

    fn hashed(kind: &str, value: &str) -> Self {
        let digest = Sha256::digest(format!("{kind} {value}"));
        Self(data_encoding::HEXLOWER.encode(&digest[..16]))
    }

    /// The hash as 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let address = parts.extensions.get::<Peer>().map(|peer| peer.address);
        Ok(cookie(&parts.headers).map_or_else(|| Self::from_address(address), Self::from_cookie))
    }
}

/// Returns the value of the client cookie.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == COOKIE_NAME)?;
    (!value.is_empty() && value.len() <= MAX_COOKIE).then_some(value)
}

/// Creates a cookie for a browser that opens a page without one.
pub(crate) fn new_cookie(request: &Request) -> Option<String> {
    let headers = request.headers();
    let is_page = headers
        .get(HeaderName::from_static("sec-fetch-dest"))
        .is_some_and(|destination| destination.as_bytes() == b"document");
    (is_page && cookie(headers).is_none()).then(|| {
        let value = Token::draw();
        format!("{COOKIE_NAME}={}; Path=/; Max-Age={LIFETIME_S}; HttpOnly; SameSite=Lax", value.as_str())
    })
}

/// The sender of a request: the connected peer, or the client of a trusted proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// True if a trusted proxy forwarded the request. The server trusts X-Forwarded headers only in
    /// this case.
    pub(crate) by_proxy: bool,
}

/// The router for a connection. Adds the [`Peer`] to each request.
#[derive(Debug, Clone)]
pub(crate) struct FromPeer {
    pub(crate) router: Router,
    /// Remote address of the connection.
    pub(crate) connected: IpAddr,
    /// Trusted proxies.
    pub(crate) proxies: Arc<Networks>,
}

impl<B> Service<axum::http::Request<B>> for FromPeer
where
    Router: Service<axum::http::Request<B>, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = <Router as Service<axum::http::Request<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        <Router as Service<axum::http::Request<B>>>::poll_ready(&mut self.router, context)
    }

    fn call(&mut self, mut request: axum::http::Request<B>) -> Self::Future {
        let peer = self.proxies.peer(self.connected, request.headers());
        request.extensions_mut().insert(peer);
        self.router.call(request)
    }
}

/// Returns the network of an address: itself, or the /64 of an IPv6 address, which one client can have alone.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// Returns the address that a request comes from. Only requests of tests have no connection.
pub(crate) fn sender(extensions: &Extensions) -> IpAddr {
    extensions.get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address)
}

/// Returns the network that a request comes from.
pub(crate) fn sender_network(extensions: &Extensions) -> IpAddr {
    network(sender(extensions))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;

    use super::*;

    #[test]
    fn only_page_requests_without_a_cookie_get_a_cookie() {
        let page = |cookie: Option<&str>| {
            let request = Request::get("/").header("sec-fetch-dest", "document");
            let request = cookie.into_iter().fold(request, |request, cookie| request.header("cookie", cookie));
            request.body(Body::empty()).unwrap()
        };
        let header = new_cookie(&page(None)).unwrap();
        let (pair, rest) = header.split_once(';').unwrap();
        assert!(rest.contains("HttpOnly") && rest.contains("SameSite=Lax"), "{header}");
        assert_eq!(new_cookie(&page(Some(pair))), None);
        assert!(new_cookie(&page(Some("planscope_client="))).is_some());
        assert_eq!(new_cookie(&Request::get("/").body(Body::empty()).unwrap()), None, "a program");
    }

    #[test]
    fn clients_differ_by_cookie_or_address() {
        let address = |text: &str| Client::from_address(Some(text.parse().unwrap()));
        assert_eq!(Client::from_cookie("a"), Client::from_cookie("a"));
        assert_ne!(Client::from_cookie("a"), Client::from_cookie("b"));
        assert_ne!(address("10.0.0.1"), address("10.0.0.2"));
        assert_ne!(Client::from_cookie("10.0.0.1"), address("10.0.0.1"));
        assert_eq!(Client::from_address(None).as_str().len(), 32);
    }
}
