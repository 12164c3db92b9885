//! Cross-origin checks based on browser headers. Clients that send no such headers are not browsers
//! and pass.

use axum::http::header::ORIGIN;
use axum::http::request::Parts;
use axum::http::{HeaderName, Method};

use super::is_api_path;
use crate::error::ApiError;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// Maximum length in characters for an origin in an error message.
const MAX_QUOTED: usize = 100;

/// Rejects cross-site requests with any method: an image on a foreign page could start a
/// computation on the server. Only a link that opens a page passes.
pub(super) fn check(request: &Parts, host: &str) -> Result<(), ApiError> {
    let site = text(request, &FETCH_SITE).filter(|site| !matches!(*site, "same-origin" | "none"));
    if let Some(site) = site
        && !opens_page(request)
    {
        return Err(ApiError::ForeignOrigin(format!("a {} page", truncated(site))));
    }
    match text(request, &ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, authority)| authority) != Some(host) => {
            Err(ApiError::ForeignOrigin(truncated(origin)))
        }
        _ => Ok(()),
    }
}

/// Rejects cross-site login links. A user who follows such a link would work under the account of
/// its author.
pub(super) fn check_login(request: &Parts) -> Result<(), ApiError> {
    match text(request, &FETCH_SITE) {
        None | Some("same-origin" | "none") => Ok(()),
        Some(site) => Err(ApiError::ForeignOrigin(format!(
            "a {} page, and a link with a token is opened by pasting it into the address bar",
            truncated(site)
        ))),
    }
}

/// Returns true if a link or bookmark opens a page of this server in a tab.
fn opens_page(request: &Parts) -> bool {
    let path = request.uri.path();
    matches!(request.method, Method::GET | Method::HEAD)
        && !is_api_path(path)
        && !path.starts_with("/assets/")
        && text(request, &FETCH_MODE) == Some("navigate")
        && text(request, &FETCH_DESTINATION).is_none_or(|destination| destination == "document")
}

/// Returns the header value. A value that is not text maps to a word that fails all checks.
fn text<'r>(request: &'r Parts, name: &HeaderName) -> Option<&'r str> {
    request.headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"))
}

fn truncated(text: &str) -> String {
    text.chars().take(MAX_QUOTED).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn passes(method: &str, path: &str, headers: &[(&str, &str)]) -> bool {
        let request = Request::builder().method(method).uri(path);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        check(&request.body(()).unwrap().into_parts().0, "localhost:8080").is_ok()
    }

    #[test]
    fn cross_site_requests_only_load_pages() {
        const LINK: [(&str, &str); 2] = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        const IMAGE: [(&str, &str); 2] = [("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];
        const FRAME: [(&str, &str); 2] = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")];
        for site in ["cross-site", "same-site"] {
            let with = |kind: [(&'static str, &'static str); 2]| [("sec-fetch-site", site), kind[0], kind[1]];
            for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] {
                for path in ["/api/v1/health", "/api/nothing", "/metrics"] {
                    for kind in [LINK, IMAGE, FRAME] {
                        assert!(!passes(method, path, &with(kind)), "{site} {method} {path} {kind:?}");
                    }
                }
            }
            for (method, path, kind, good) in [
                ("GET", "/s/abcdefghij", LINK, true),
                ("HEAD", "/", LINK, true),
                ("POST", "/", LINK, false),
                ("GET", "/", IMAGE, false),
                ("GET", "/", FRAME, false),
                ("GET", "/assets/planscope.js", LINK, false),
            ] {
                assert_eq!(passes(method, path, &with(kind)), good, "{site} {method} {path} {kind:?}");
            }
        }
        for site in ["same-origin", "none"] {
            for method in ["GET", "POST", "DELETE"] {
                assert!(passes(method, "/api/v1/health", &[("sec-fetch-site", site)]), "{site} {method}");
            }
        }
        assert!(passes("GET", "/api/v1/health", &[]), "a program");
    }

    /// Browsers from before 2023 do not send `Sec-Fetch-Site`.
    #[test]
    fn foreign_origin_is_rejected_for_every_method() {
        for method in ["GET", "POST", "DELETE"] {
            for (origin, good) in [
                ("http://localhost:8080", true),
                ("http://localhost:9999", false),
                ("https://evil.com", false),
                ("null", false),
            ] {
                assert_eq!(passes(method, "/api/v1/health", &[("origin", origin)]), good, "{method} {origin}");
            }
        }
    }
}
