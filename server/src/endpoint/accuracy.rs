//! Predictions compared with published measurements, embedded at build time.

use std::sync::LazyLock;

use api::accuracy::Accuracy;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::document::Document;

/// The report of measured sets.
const ACCURACY_JSON: &str = include_str!("../../../docs/accuracy.json");

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| Document::new(ACCURACY_JSON));

/// Returns predictions and the published measurements they are compared with.
///
/// The document is constant for a server build. Use `If-None-Match` to avoid repeated downloads.
#[utoipa::path(get, path = "/api/v1/accuracy", tag = "accuracy", responses((status = 200, body = Accuracy)))]
pub(crate) async fn accuracy(request_headers: HeaderMap) -> Response {
    DOCUMENT.respond(&request_headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_document_has_the_form_that_is_promised() {
        let accuracy: Accuracy = serde_json::from_str(ACCURACY_JSON).unwrap();
        for set in &accuracy.sets {
            assert_eq!(set.statistics.count as usize, set.points.len(), "{}", set.id);
        }
        let mut ids: Vec<_> = accuracy.sets.iter().map(|set| set.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), accuracy.sets.len(), "identifiers are links");
    }
}
