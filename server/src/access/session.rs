//! Sessions of browsers: a random value of their own in a cookie, not the token that opened them.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use sha2::{Digest, Sha256};

use super::names::Names;
use crate::client::Peer;

/// How long a session lasts.
pub(super) const LIFETIME: Duration = Duration::from_hours(30 * 24);
/// Name of the cookie behind TLS: with this prefix browsers take it from this host alone, by TLS alone.
const SECURE_NAME: &str = "__Host-planscope";
/// Name of the cookie without TLS, where browsers refuse the other one.
const PLAIN_NAME: &str = "planscope_session";
/// Name of the cookie of earlier versions. It held the token itself.
const OLD_NAME: &str = "planscope_token";
/// Longest value that is looked up.
const LONGEST_VALUE: usize = 64;

/// What the database keeps of a session that was opened with a named token.
pub(super) fn hash(value: &str) -> [u8; 32] {
    Sha256::digest(value).into()
}

/// What it keeps of one that was opened with the server's token: another token gives another hash, so that the session ends with the
/// token, and nobody can guess the token from it without the value.
pub(super) fn hash_with(token: &[u8; 32], value: &str) -> [u8; 32] {
    Sha256::new().chain_update(token).chain_update(value).finalize().into()
}

/// Whether the browser reaches this server by TLS. What a trusted proxy says decides, then the name.
pub(super) fn is_behind_tls(names: &Names, request: &Parts, host: &str) -> bool {
    let by_proxy = request.extensions.get::<Peer>().is_some_and(|peer| peer.by_proxy);
    let forwarded = request.headers.get("x-forwarded-proto").and_then(|scheme| scheme.to_str().ok());
    match forwarded.filter(|_| by_proxy) {
        // A second proxy appends its own scheme; the browser's is the first.
        Some(schemes) => schemes.split(',').next().is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https")),
        None => names.is_behind_tls(host),
    }
}

/// The cookies of a new session. The one of an earlier version, which holds the token, goes.
pub(super) fn begun(value: &str, is_secure: bool) -> Vec<String> {
    let lifetime = LIFETIME.as_secs();
    let (name, secure) = if is_secure { (SECURE_NAME, " Secure;") } else { (PLAIN_NAME, "") };
    let cookie = format!("{name}={value}; Path=/; Max-Age={lifetime};{secure} HttpOnly; SameSite=Strict");
    vec![cookie, expired(OLD_NAME)]
}

/// Cookies that end a session in the browser.
pub(super) fn ended() -> Vec<String> {
    [SECURE_NAME, PLAIN_NAME, OLD_NAME].map(expired).into()
}

fn expired(name: &str) -> String {
    let secure = if name == SECURE_NAME { " Secure;" } else { "" };
    format!("{name}=; Path=/; Max-Age=0;{secure} HttpOnly; SameSite=Strict")
}

/// Values of sessions that a request carries, that of TLS first.
pub(super) fn values(headers: &HeaderMap) -> Vec<&str> {
    let pairs: Vec<_> = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(_, value)| !value.is_empty() && value.len() <= LONGEST_VALUE)
        .collect();
    // One of each name: a request makes the server look up two values at most.
    let first = |wanted| pairs.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    [SECURE_NAME, PLAIN_NAME].into_iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    #[test]
    fn cookies_are_bound_to_the_host_behind_tls() {
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
    fn one_value_of_each_name_is_looked_up() {
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
    fn a_session_of_the_server_s_token_ends_with_it() {
        let (one, other) = (Sha256::digest("one").into(), Sha256::digest("other").into());
        assert_eq!(hash_with(&one, "value"), hash_with(&one, "value"));
        assert_ne!(hash_with(&one, "value"), hash_with(&other, "value"));
        assert_ne!(hash_with(&one, "value"), hash("value"));
    }
}
