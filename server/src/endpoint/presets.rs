//! Presets: models, clusters, sample sources and planners.

use api::gallery::{ClusterOption, ModelOption, PlannerOption, Presets, SampleOption};
use axum::Json;
use planner::scenario::PlannerKind;

/// Lists models, clusters, sample sources and planners by name.
#[utoipa::path(get, path = "/api/v1/presets", tag = "catalogue", responses((status = 200, body = Presets)))]
pub(crate) async fn presets() -> Json<Presets> {
    let models = planner::model::presets::models()
        .into_iter()
        .map(|preset| ModelOption {
            id: preset.id.to_owned(),
            parameters: preset.model.parameters(),
            model: preset.model,
        })
        .collect();
    let clusters = planner::cluster::presets::clusters()
        .into_iter()
        .map(|preset| ClusterOption { id: preset.id.to_owned(), cluster: preset.cluster })
        .collect();
    let samples = planner::workload::presets::samples()
        .into_iter()
        .map(|preset| SampleOption { id: preset.id.to_owned(), title: preset.title.to_owned(), source: preset.source })
        .collect();
    let planner =
        |id: PlannerKind| PlannerOption { id, title: id.title().to_owned(), question: id.info().purpose.to_owned() };
    let planners = PlannerKind::ALL.into_iter().map(planner).collect();
    Json(Presets { models, clusters, samples, planners })
}
