//! Figures of papers beside ours, embedded as they were when the server was built.

use std::sync::LazyLock;

use api::papers::Papers;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::document::Document;

/// What `cargo xtask papers` wrote.
const TEXT: &str = include_str!("../../../docs/papers.json");

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| Document::of(TEXT));

/// Figures of papers beside ours. The same until the server is another one: ask with `If-None-Match`.
#[utoipa::path(get, path = "/api/v1/papers", tag = "accuracy", responses((status = 200, body = Papers)))]
pub(crate) async fn papers(asked: HeaderMap) -> Response {
    DOCUMENT.answer(&asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every plan names a ready scenario, so that pages can link to it.
    #[test]
    fn the_embedded_document_has_the_form_that_is_promised() {
        let papers: Papers = serde_json::from_str(TEXT).unwrap();
        let gallery = crate::gallery::entries().unwrap();
        for set in papers.papers.iter().flat_map(|paper| &paper.sets) {
            assert!(!set.figures.is_empty(), "{}", set.id);
            for figure in &set.figures {
                assert_eq!(figure.ours.is_none(), figure.missing.is_some(), "{}: {}", set.id, figure.label);
            }
            for plan in &set.plans {
                assert!(gallery.iter().any(|entry| entry.slug == plan.scenario), "{}: {}", set.id, plan.scenario);
            }
        }
    }
}
