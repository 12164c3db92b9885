//! Who may ask: host names, the origin of changes, the token, and what browsers may do with answers.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::client;
use crate::error::ApiError;

/// Name of the cookie that carries the token.
const COOKIE_NAME: &str = "planscope_token";

/// Headers of every answer.
///
/// The policy allows scripts from here only, WebAssembly included. Styles may stand inline, because the chart
/// library positions its elements that way; images may be made by the page itself, for the export of charts.
pub const SECURITY_HEADERS: [(HeaderName, &str); 5] = [
    (
        HeaderName::from_static("content-security-policy"),
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data: blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Who may ask.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Names of this server beside the loopback ones, in lower case and without port.
    hosts: Vec<String>,
    /// Hash of the token, where one is needed.
    token: Option<[u8; 32]>,
}

impl Access {
    /// Access under these names, with this token.
    pub fn new(hosts: &[String], token: Option<&str>) -> Self {
        Self {
            hosts: hosts
                .iter()
                .map(|host| name_of(host.trim()).to_ascii_lowercase())
                // Container files leave variables empty; a request without a name is nobody's.
                .filter(|host| !host.is_empty())
                .collect(),
            token: token.map(hash),
        }
    }

    /// The cookie of whoever has the token; `None` for a wrong one, or where none is needed.
    pub(crate) fn login(&self, token: &str) -> Option<String> {
        self.admits(token).then(|| format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict"))
    }

    /// Whether a token is needed.
    pub(crate) fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Compares hashes, so that the time it takes says nothing about the token.
    fn admits(&self, token: &str) -> bool {
        self.token.is_some_and(|expected| expected == hash(token))
    }

    /// Loopback names, configured names, and any address: only a name can be pointed here by someone else.
    fn knows_host(&self, host: &str) -> bool {
        let name = name_of(host).to_ascii_lowercase();
        name == "localhost"
            || name.ends_with(".localhost")
            || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
            || self.hosts.contains(&name)
    }

    fn check(&self, request: &Request) -> Result<(), ApiError> {
        let headers = request.headers();
        let host = text(headers, &HOST)
            .or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str))
            .unwrap_or_default();
        if !self.knows_host(host) {
            return Err(ApiError::ForeignHost(host.chars().take(100).collect()));
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
            same_origin(headers, host)?;
        }
        let path = request.uri().path();
        let guarded =
            (path.starts_with("/api/") || path == api::path::METRICS) && !is_for_trainers(request.method(), path);
        if guarded && self.token.is_some() && !self.carries_token(headers) {
            return Err(ApiError::Unauthorised);
        }
        Ok(())
    }

    /// Whether a request carries the server's token; never where there is none.
    pub(crate) fn carries_token(&self, headers: &HeaderMap) -> bool {
        let bearer = bearer(headers);
        let mut cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == COOKIE_NAME)
            .map(|(_, token)| token);
        bearer.is_some_and(|token| self.admits(token)) || cookies.any(|token| self.admits(token))
    }
}

/// The token that a request bears.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    text(headers, &AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
}

/// Whether a request may carry the token of a run in place of the server's: writing a log and saying that it ended. Those
/// handlers look at tokens themselves.
fn is_for_trainers(method: &Method, path: &str) -> bool {
    let parts = path
        .strip_prefix(api::path::RUNS)
        .and_then(|path| path.strip_prefix('/'))
        .and_then(|path| path.split_once('/'));
    match parts {
        Some((_, "log")) => [Method::HEAD, Method::PATCH, Method::PUT].contains(method),
        Some((_, "finish")) => method == Method::POST,
        _ => false,
    }
}

/// Lets a request pass, or answers why not.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (mut response, cookie) = match app.access.check(&request) {
        Ok(()) => {
            let cookie = client::new_cookie(&request);
            (next.run(request).await, cookie)
        }
        Err(error) => (error.into_response(), None),
    };
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    for (name, value) in SECURITY_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Browsers say where a change comes from; programs outside a browser say nothing and pass.
fn same_origin(headers: &HeaderMap, host: &str) -> Result<(), ApiError> {
    let site = HeaderName::from_static("sec-fetch-site");
    if let Some(site) = text(headers, &site).filter(|site| !matches!(*site, "same-origin" | "none")) {
        return Err(ApiError::ForeignOrigin(format!("a {site} page")));
    }
    match headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or("an unreadable origin")) {
        Some(origin) if origin.split_once("://").map(|(_, authority)| authority) != Some(host) => {
            Err(ApiError::ForeignOrigin(origin.chars().take(100).collect()))
        }
        _ => Ok(()),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The host without its port.
fn name_of(host: &str) -> &str {
    match host.rfind(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_someone_else_could_point_here_are_refused() {
        let access = Access::new(&["plan.example.org".to_owned(), String::new()], None);
        for (host, known) in [
            ("localhost:8080", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("192.168.7.9", true),
            ("PLAN.example.org:443", true),
            ("evil.com", false),
            ("localhost.evil.com", false),
            ("127.0.0.1.evil.com", false),
            ("", false),
        ] {
            assert_eq!(access.knows_host(host), known, "{host:?}");
        }
    }
}
