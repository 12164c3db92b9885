//! Browser sessions. The cookie contains a random value instead of the token.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};

use super::names::Names;
use crate::client::Peer;

/// Lifetime of a session.
pub(super) const LIFETIME: Duration = Duration::from_hours(30 * 24);
/// Cookie name for TLS. With this prefix, browsers accept the cookie only from this host and only
/// over TLS.
const SECURE_NAME: &str = "__Host-planscope";
/// Cookie name for plain HTTP, where browsers reject the `__Host-` prefix.
const PLAIN_NAME: &str = "planscope_session";
/// Cookie name in earlier versions. That cookie contained the token itself.
const OLD_NAME: &str = "planscope_token";
/// Maximum length in bytes. Longer values are ignored.
const MAX_VALUE: usize = 64;

/// Returns the hash that the database stores for a session opened with a named token.
pub(super) fn hash(value: &str) -> [u8; 32] {
    Sha256::digest(value).into()
}

/// Returns the hash that the database stores for a session opened with the server token. The token
/// is part of the hash: the session becomes invalid when the token changes, and the hash reveals
/// nothing about the token.
pub(super) fn hash_with(token: &[u8; 32], value: &str) -> [u8; 32] {
    Sha256::new().chain_update(token).chain_update(value).finalize().into()
}

/// Returns true if the browser reaches this server over TLS. A trusted proxy's `X-Forwarded-Proto`
/// header has priority over the configured names.
pub(super) fn is_behind_tls(names: &Names, request: &Parts, host: &str) -> bool {
    let by_proxy = request.extensions.get::<Peer>().is_some_and(|peer| peer.by_proxy);
    let forwarded = request.headers.get("x-forwarded-proto").and_then(|scheme| scheme.to_str().ok());
    match forwarded.filter(|_| by_proxy) {
        // Further proxies append a scheme. The first value is the browser's.
        Some(schemes) => schemes.split(',').next().is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https")),
        None => names.is_behind_tls(host),
    }
}

/// Returns the cookies for a new session. Also deletes the cookie from earlier versions, because it
/// contains the token.
pub(super) fn begun(value: &str, is_secure: bool) -> Vec<String> {
    let lifetime = LIFETIME.as_secs();
    let (name, secure) = if is_secure { (SECURE_NAME, " Secure;") } else { (PLAIN_NAME, "") };
    let cookie = format!("{name}={value}; Path=/; Max-Age={lifetime};{secure} HttpOnly; SameSite=Strict");
    vec![cookie, expired(OLD_NAME)]
}

/// Returns cookies that delete a session in the browser.
pub(super) fn ended() -> Vec<String> {
    [SECURE_NAME, PLAIN_NAME, OLD_NAME].map(expired).into()
}

fn expired(name: &str) -> String {
    let secure = if name == SECURE_NAME { " Secure;" } else { "" };
    format!("{name}=; Path=/; Max-Age=0;{secure} HttpOnly; SameSite=Strict")
}

/// Returns the session values in a request. The TLS cookie comes first.
pub(super) fn values(headers: &HeaderMap) -> Vec<&str> {
    let pairs: Vec<_> = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(_, value)| !value.is_empty() && value.len() <= MAX_VALUE)
        .collect();
    // At most one value per name, so a request causes at most two lookups.
    let first = |wanted| pairs.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    [SECURE_NAME, PLAIN_NAME].into_iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn cookies_are_bound_behind_tls() {
        assert_eq!(
            begun("abc", true)[0],
            "__Host-planscope=abc; Path=/; Max-Age=2592000; Secure; HttpOnly; SameSite=Strict"
        );
        assert_eq!(begun("abc", false)[0], "planscope_session=abc; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict");
        assert_eq!(begun("abc", true)[1], "planscope_token=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
        assert!(ended().iter().all(|cookie| cookie.contains("=; Path=/; Max-Age=0;")));
        assert!(ended()[0].starts_with("__Host-") && ended()[0].contains("Secure;"), "browsers refuse it otherwise");
    }

    #[test]
    fn single_value_per_name_is_looked_up() {
        let long = format!("planscope_session={}", "x".repeat(65));
        for (cookie, expected) in [
            ("a=b; planscope_session=one", &["one"][..]),
            ("planscope_session=one; __Host-planscope=two; planscope_session=three", &["two", "one"]),
            ("planscope_session=; planscope_token=0123456789abcdef", &[]),
            (long.as_str(), &[]),
        ] {
            let headers = HeaderMap::from_iter([(COOKIE, cookie.parse().unwrap())]);
            assert_eq!(values(&headers), expected, "{cookie}");
        }
    }

    #[test]
    fn the_trusted_proxy_or_the_name_says_whether_there_is_tls() {
        let names = Names::new(&["plan.example.org".to_owned()]);
        for (by_proxy, scheme, host, secure) in [
            (true, Some("https"), "localhost", true),
            (true, Some("HTTPS, http"), "localhost", true),
            (true, Some("http"), "plan.example.org", false),
            (true, None, "plan.example.org", true),
            (false, Some("https"), "localhost", false),
            (false, Some("http"), "plan.example.org", true),
            (false, None, "localhost:8080", false),
        ] {
            let request = Request::get("/");
            let request =
                scheme.into_iter().fold(request, |request, scheme| request.header("x-forwarded-proto", scheme));
            let (mut request, ()) = request.body(()).unwrap().into_parts();
            request.extensions.insert(Peer { address: [10, 0, 0, 1].into(), by_proxy });
            assert_eq!(is_behind_tls(&names, &request, host), secure, "{by_proxy} {scheme:?} {host}");
        }
    }

    #[test]
    fn server_session_ends_with_its_token() {
        let (first, other) = (Sha256::digest("one").into(), Sha256::digest("other").into());
        assert_eq!(hash_with(&first, "value"), hash_with(&first, "value"));
        assert_ne!(hash_with(&first, "value"), hash_with(&other, "value"));
        assert_ne!(hash_with(&first, "value"), hash("value"));
    }
}
