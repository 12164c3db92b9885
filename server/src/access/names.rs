//! Host names for this server, and detection of TLS between browser and proxy.

use std::net::IpAddr;

use axum::http::header::HOST;
use axum::http::request::Parts;

use crate::error::ApiError;

/// Maximum length in characters for a foreign name in an error message.
const MAX_QUOTED: usize = 100;

/// Configured host names, in addition to the loopback names.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<Name>);

#[derive(Debug)]
struct Name {
    /// Lowercase name, port removed.
    host: String,
    /// True if browsers use plain HTTP for this name.
    is_plain: bool,
}

impl Names {
    /// Parses the configured names. The prefix `http://` means plain HTTP.
    pub(super) fn new(hosts: &[String]) -> Self {
        let names = hosts.iter().map(|host| {
            let host = host.trim().to_ascii_lowercase();
            let (is_plain, host) = match host.split_once("://") {
                Some((scheme, host)) => (scheme == "http", host),
                None => (false, host.as_str()),
            };
            Name { host: without_port(host.trim_end_matches('/')).to_owned(), is_plain }
        });
        // Container files leave variables empty. An empty name would match requests that have no
        // host.
        Self(names.filter(|name| !name.host.is_empty()).collect())
    }

    /// Returns the requested host: from an absolute URI if present, otherwise from the `Host`
    /// header. Both must be valid names, so that neither bypasses the check of the other.
    pub(super) fn host<'r>(&self, request: &'r Parts) -> Result<&'r str, ApiError> {
        let mut headers = request.headers.get_all(HOST).iter();
        let header = headers.next().map(|host| host.to_str().unwrap_or_default());
        if headers.next().is_some() {
            return Err(ApiError::Malformed("the request has two Host headers; send one".to_owned()));
        }
        let address = request.uri.authority().map(axum::http::uri::Authority::as_str);
        if let Some(foreign) = [header, address].into_iter().flatten().find(|host| !self.knows(host)) {
            return Err(ApiError::ForeignHost(foreign.chars().take(MAX_QUOTED).collect()));
        }
        address.or(header).ok_or_else(|| ApiError::ForeignHost(String::new()))
    }

    /// Returns true for loopback names, configured names and IP addresses. IP addresses are safe
    /// because DNS rebinding requires a name.
    fn knows(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        is_loopback(&name) || is_address(&name) || self.0.iter().any(|known| known.host == name)
    }

    /// Returns true if browsers reach this host over TLS. The server itself uses plain HTTP, so a
    /// configured name refers to a proxy that terminates TLS, unless it has the prefix `http://`.
    pub(super) fn is_behind_tls(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        !is_loopback(&name)
            && !is_address(&name)
            && self.0.iter().any(|known| known.host == name)
            && !self.0.iter().any(|known| known.host == name && known.is_plain)
    }
}

fn is_loopback(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn is_address(name: &str) -> bool {
    name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // A colon inside brackets is part of an IPv6 address.
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn names(hosts: &[&str]) -> Names {
        Names::new(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn foreign_names_are_rejected() {
        let names = names(&["plan.example.org", "", "http://plan.lan:8080/"]);
        for (host, known) in [
            ("localhost:8080", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("192.168.7.9", true),
            ("PLAN.example.org:443", true),
            ("plan.lan:8080", true),
            ("evil.com", false),
            ("localhost.evil.com", false),
            ("127.0.0.1.evil.com", false),
            ("localhost@evil.com", false),
            ("http", false),
            ("", false),
        ] {
            assert_eq!(names.knows(host), known, "{host:?}");
        }
    }

    #[test]
    fn operator_names_use_tls_by_default() {
        let names =
            names(&["plan.example.org", "http://plan.lan", "https://plan.example.com", "localhost", "10.0.0.7"]);
        for (host, behind) in [
            ("plan.example.org", true),
            ("Plan.Example.com:443", true),
            ("plan.lan:8080", false),
            ("localhost:8080", false),
            ("10.0.0.7", false),
            ("other.example.org", false),
        ] {
            assert_eq!(names.is_behind_tls(host), behind, "{host}");
        }
    }

    #[test]
    fn request_must_name_this_server() {
        let names = names(&["plan.example.org"]);
        let check_request = |uri: &str, hosts: &[&str]| {
            let request = hosts.iter().fold(Request::get(uri), |request, host| request.header("host", *host));
            let (request, ()) = request.body(()).unwrap().into_parts();
            names.host(&request).map(str::to_owned).map_err(|error| error.to_string())
        };
        assert_eq!(check_request("/", &["localhost:8080"]).as_deref(), Ok("localhost:8080"));
        assert_eq!(check_request("http://plan.example.org/x", &["localhost"]).as_deref(), Ok("plan.example.org"));
        assert_eq!(check_request("http://plan.example.org/x", &[]).as_deref(), Ok("plan.example.org"));
        for (uri, hosts, part) in [
            ("/", &["localhost", "localhost"][..], "two Host headers"),
            ("/", &["localhost", "evil.com"], "two Host headers"),
            ("/", &[], "\"\""),
            ("http://evil.com/", &["localhost"], "evil.com"),
            ("http://localhost@evil.com/", &["localhost"], "evil.com"),
            ("http://localhost/", &["evil.com"], "evil.com"),
        ] {
            let error = check_request(uri, hosts).unwrap_err();
            assert!(error.contains(part), "{uri} {hosts:?}: {error}");
        }
    }
}
