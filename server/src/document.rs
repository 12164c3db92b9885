//! JSON documents embedded at build time.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

use crate::error::Unchanged;

/// A JSON document that is constant for a server build.
pub(crate) struct Document {
    text: &'static str,
    /// A weak tag, because the response may be compressed.
    tag: String,
}

impl Document {
    /// Creates a document from JSON text.
    pub(crate) fn new(text: &'static str) -> Self {
        let digest = data_encoding::BASE32_NOPAD.encode(&Sha256::digest(text)).to_ascii_lowercase();
        Self { text, tag: format!("W/\"{}\"", &digest[..26]) }
    }

    /// Returns the document, or 304 if the client already has it.
    pub(crate) fn respond(&self, request_headers: &HeaderMap) -> Response {
        let headers: [(HeaderName, HeaderValue); 2] = [
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (ETAG, HeaderValue::from_str(&self.tag).unwrap_or(HeaderValue::from_static("W/\"\""))),
        ];
        if has(request_headers, &self.tag) {
            return (headers, Unchanged).into_response();
        }
        (headers, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], self.text).into_response()
    }
}

/// True if `If-None-Match` contains the tag.
fn has(request_headers: &HeaderMap, tag: &str) -> bool {
    let tags = request_headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|value| value.split(',')).any(|known| known.trim() == "*" || opaque(known) == opaque(tag))
}

/// Removes the weak prefix from a tag.
fn opaque(tag: &str) -> &str {
    tag.trim().trim_start_matches("W/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_weakly() {
        let request_headers =
            |value: &'static str| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(value))]);
        assert!(has(&request_headers("\"old\", W/\"new\""), "W/\"new\""));
        assert!(has(&request_headers("\"new\""), "W/\"new\"") && has(&request_headers("*"), "W/\"new\""));
        assert!(!has(&request_headers("\"old\""), "W/\"new\"") && !has(&HeaderMap::new(), "W/\"new\""));
    }
}
