//! Predictions against published measurements, embedded as they were when the server was built.

use std::sync::LazyLock;

use api::accuracy::Accuracy;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::error::Unchanged;

/// What `cargo xtask accuracy` wrote.
const DOCUMENT: &str = include_str!("../../../docs/accuracy.json");

/// Weak, because the answer may be compressed on its way.
static TAG: LazyLock<String> = LazyLock::new(|| {
    let digest = data_encoding::BASE32_NOPAD.encode(&Sha256::digest(DOCUMENT)).to_ascii_lowercase();
    format!("W/\"{}\"", &digest[..26])
});

/// Predictions against published measurements. The same until the server is another one: ask with `If-None-Match`.
#[utoipa::path(get, path = "/api/v1/accuracy", tag = "accuracy", responses((status = 200, body = Accuracy)))]
pub(crate) async fn accuracy(asked: HeaderMap) -> Response {
    let headers: [(HeaderName, HeaderValue); 2] = [
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (ETAG, HeaderValue::from_str(&TAG).unwrap_or(HeaderValue::from_static("W/\"\""))),
    ];
    if has(&asked, &TAG) {
        return (headers, Unchanged).into_response();
    }
    (headers, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], DOCUMENT).into_response()
}

/// Whether the asker has what bears the tag.
fn has(asked: &HeaderMap, tag: &str) -> bool {
    let tags = asked.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|value| value.split(',')).any(|known| known.trim() == "*" || opaque(known) == opaque(tag))
}

/// A tag without its mark of weakness.
fn opaque(tag: &str) -> &str {
    tag.trim().trim_start_matches("W/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_document_has_the_form_that_is_promised() {
        let accuracy: Accuracy = serde_json::from_str(DOCUMENT).unwrap();
        for set in &accuracy.sets {
            assert_eq!(set.statistics.count as usize, set.points.len(), "{}", set.id);
        }
        let mut ids: Vec<_> = accuracy.sets.iter().map(|set| set.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), accuracy.sets.len(), "identifiers are links");
    }

    #[test]
    fn tags_are_compared_weakly() {
        let asked = |value: &'static str| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(value))]);
        assert!(has(&asked("\"old\", W/\"new\""), "W/\"new\""));
        assert!(has(&asked("\"new\""), "W/\"new\"") && has(&asked("*"), "W/\"new\""));
        assert!(!has(&asked("\"old\""), "W/\"new\"") && !has(&HeaderMap::new(), "W/\"new\""));
    }
}
