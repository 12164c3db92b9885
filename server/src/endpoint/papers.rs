//! Published results compared with Planscope, embedded at build time.

use std::collections::HashMap;
use std::sync::LazyLock;

use api::papers::{CitedSet, Papers, ScenarioPapers};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use planner::scenario::ValidScenario;
use planner::scenario::validate::NoDatasets;

use super::scenarios::find;
use crate::app::Shared;
use crate::document::Document;
use crate::error::ApiError;
use crate::gallery::entries;

/// Output of `cargo xtask papers`.
const TEXT: &str = include_str!("../../../docs/papers.json");

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| Document::new(TEXT));

/// Returns published results and the corresponding Planscope results.
///
/// The document is constant for a server build. Use `If-None-Match` to avoid repeated downloads.
#[utoipa::path(get, path = "/api/v1/papers", tag = "accuracy", responses((status = 200, body = Papers)))]
pub(crate) async fn papers(request_headers: HeaderMap) -> Response {
    DOCUMENT.respond(&request_headers)
}

/// Names of example scenarios by identifier.
static READY: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let named = entries().unwrap_or_default().into_iter().filter_map(|entry| {
        let valid = ValidScenario::new(entry.scenario, &NoDatasets).ok()?;
        Some((valid.id().as_str().to_owned(), entry.slug))
    });
    named.collect()
});

/// Tables and figures by the example scenario they use.
static CITED: LazyLock<HashMap<String, Vec<CitedSet>>> = LazyLock::new(|| {
    let mut cited: HashMap<String, Vec<CitedSet>> = HashMap::new();
    let papers: Papers = serde_json::from_str(TEXT).unwrap_or(Papers { engine: String::new(), papers: Vec::new() });
    for paper in papers.papers {
        for set in paper.sets {
            let mut slugs: Vec<&str> = set.plans.iter().map(|plan| plan.scenario.as_str()).collect();
            slugs.sort_unstable();
            slugs.dedup();
            for slug in slugs {
                let set = CitedSet { paper: paper.id.clone(), title: paper.title.clone(), set: set.clone() };
                cited.entry(slug.to_owned()).or_default().push(set);
            }
        }
    }
    cited
});

/// Returns published and computed results for a scenario that matches a setup from a paper.
///
/// The result is empty for other scenarios. An edited setup is a different scenario.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/papers", tag = "scenarios",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = ScenarioPapers),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn scenario_papers(
    State(app): Shared,
    Path(id): Path<String>,
) -> Result<Json<ScenarioPapers>, ApiError> {
    let stored = find(&app, &id).await?;
    let slug = READY.get(&stored.id).cloned();
    let cited = slug.as_ref().and_then(|slug| CITED.get(slug)).cloned().unwrap_or_default();
    Ok(Json(ScenarioPapers { slug, cited }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identifiers of example scenarios are unique, and each citation refers to an example
    /// scenario.
    #[test]
    fn citations_are_found_by_setup_id() {
        assert_eq!(READY.len(), entries().unwrap().len());
        assert!(CITED.keys().all(|slug| READY.values().any(|ready| ready == slug)));
        assert!(CITED.len() > 100, "{}", CITED.len());
    }

    /// Each plan names an example scenario, so pages can link to it.
    #[test]
    fn the_embedded_document_has_the_form_that_is_promised() {
        let papers: Papers = serde_json::from_str(TEXT).unwrap();
        let gallery = crate::gallery::entries().unwrap();
        for set in papers.papers.iter().flat_map(|paper| &paper.sets) {
            assert!(!set.figures.is_empty() || !set.choices.is_empty(), "{}", set.id);
            for figure in &set.figures {
                assert_eq!(figure.ours.is_none(), figure.missing.is_some(), "{}: {}", set.id, figure.label);
            }
            for plan in &set.plans {
                assert!(gallery.iter().any(|entry| entry.slug == plan.scenario), "{}: {}", set.id, plan.scenario);
            }
        }
    }
}
