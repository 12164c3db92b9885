//! Planning results: outcomes, timelines, schedules.

use api::job::{EngineOutcomeList, StoredOutcome};
use api::path::{OVERVIEW_MEDIA_TYPE, TIMELINE_MEDIA_TYPE};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use planner::scenario::PlannerKind;
use planner::timeline::Timeline;
use serde::Deserialize;

use super::scenarios::find;
use super::{off_thread, wants_json};
use crate::app::{App, Shared};
use crate::error::ApiError;
use crate::overviews::decode;

/// Selects the engine of a result.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EngineQuery {
    /// Name and version of an engine with a stored outcome for the scenario. Default: this engine,
    /// otherwise the engine with the latest outcome.
    engine: Option<String>,
}

/// Optional engine selection. Rejections are converted by `selected_engine`.
type EngineSelection = Result<Query<EngineQuery>, QueryRejection>;

fn selected_engine(selection: EngineSelection) -> Result<Option<String>, ApiError> {
    let Query(query) = selection.map_err(|rejection| ApiError::Malformed(rejection.body_text()))?;
    Ok(query.engine)
}

/// Lists the engines with a stored outcome for the scenario, most recent first.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/engines", tag = "outcomes",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = EngineOutcomeList),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn engines(State(app): Shared, Path(id): Path<String>) -> Result<Json<EngineOutcomeList>, ApiError> {
    let id = find(&app, &id).await?.id;
    Ok(Json(EngineOutcomeList { answers: app.store.reader().engine_answers(&id).await? }))
}

/// Returns the stored outcome for a scenario: from this engine, otherwise the latest from another
/// engine.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/outcome", tag = "outcomes",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), EngineQuery),
    responses(
        (status = 200, body = StoredOutcome),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown, or not planned yet"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn outcome(
    State(app): Shared,
    Path(id): Path<String>,
    engine: EngineSelection,
) -> Result<Json<StoredOutcome>, ApiError> {
    let engine = selected_engine(engine)?;
    let id = find(&app, &id).await?.id;
    let stored = app.store.reader().engine_outcome(&id, engine.as_deref()).await?;
    if engine.is_none() {
        app.overviews.make_ready(app.store.reader(), &stored);
    }
    Ok(Json(stored))
}

/// Returns the timeline for a planner and iteration, in columns.
///
/// The default is the compact format (postcard). Use `Accept: application/json` for JSON.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/timelines/{planner}/{iteration}", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = PlannerKind, Path, description = "Planner"),
        ("iteration" = u32, Path, description = "Iteration, from 0"),
        EngineQuery,
    ),
    responses(
        (status = 200, description = "The timeline", content(
            (Timeline = "application/json"),
            (String = "application/vnd.planscope.timeline"),
        )),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier or iteration"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn timeline(
    State(app): Shared,
    Path((id, planner, iteration)): Path<(String, String, String)>,
    engine: EngineSelection,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let engine = selected_engine(engine)?;
    let (_, encoded) = load_timeline(&app, &id, (&planner, &iteration), engine.as_deref()).await?;
    let vary = [(VARY, "accept")];
    if wants_json(&headers, TIMELINE_MEDIA_TYPE) {
        let json = off_thread(move || written(&decode(&encoded)?)).await?;
        return Ok((vary, [(CONTENT_TYPE, "application/json")], json).into_response());
    }
    Ok((vary, [(CONTENT_TYPE, TIMELINE_MEDIA_TYPE)], encoded).into_response())
}

/// Returns an overview of a timeline: the activity per lane in 1024 intervals of equal width.
///
/// The format is compact (postcard). A chart with a million spans can show the overview while it
/// downloads the spans.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/timelines/{planner}/{iteration}/overview", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = PlannerKind, Path, description = "Planner"),
        ("iteration" = u32, Path, description = "Iteration, from 0"),
    ),
    responses(
        (status = 200, description = "The overview", content((String = "application/vnd.planscope.overview"))),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier or iteration"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn overview(
    State(app): Shared,
    Path((id, planner, iteration)): Path<(String, String, String)>,
) -> Result<Response, ApiError> {
    let scenario = find(&app, &id).await?;
    let (planner, iteration) = named(&planner, &iteration)?;
    let overview = app.overviews.load(app.store.reader(), &scenario.id, planner, iteration).await?;
    Ok(([(CONTENT_TYPE, OVERVIEW_MEDIA_TYPE)], overview).into_response())
}

/// Returns the schedule for a planner and iteration in the torch action grammar, with a row per
/// rank.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/schedules/{planner}/{iteration}", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = PlannerKind, Path, description = "Planner"),
        ("iteration" = u32, Path, description = "Iteration, from 0"),
    ),
    responses(
        (status = 200, body = String, content_type = "text/csv", description = "The schedule, as an attachment"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier or iteration"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The ranks of the plan work in groups without a pipeline"),
    )
)]
pub(crate) async fn schedule(
    State(app): Shared,
    Path((id, planner, iteration)): Path<(String, String, String)>,
) -> Result<Response, ApiError> {
    let (short, encoded) = stored_timeline(&app, &id, &planner, &iteration).await?;
    let csv = off_thread(move || {
        let timeline = decode(&encoded)?;
        if timeline.is_grouped() { Err(ApiError::NoPipeline) } else { Ok(planner::export::torch_csv(&timeline)) }
    })
    .await?;
    // Planner and iteration are parsed, so the file name contains only safe characters.
    let attachment = format!("attachment; filename=\"planscope-{short}-{planner}-{iteration}.csv\"");
    let headers = [(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, attachment)];
    Ok((headers, csv).into_response())
}

/// Returns the short scenario name and the stored timeline.
pub(super) async fn stored_timeline(
    app: &App,
    id: &str,
    planner: &str,
    iteration: &str,
) -> Result<(String, Vec<u8>), ApiError> {
    load_timeline(app, id, (planner, iteration), None).await
}

async fn load_timeline(
    app: &App,
    id: &str,
    (planner, iteration): (&str, &str),
    engine: Option<&str>,
) -> Result<(String, Vec<u8>), ApiError> {
    let scenario = find(app, id).await?;
    let (planner, iteration) = named(planner, iteration)?;
    Ok((scenario.short, app.store.reader().engine_timeline(&scenario.id, engine, planner, iteration).await?))
}

/// Parses planner and iteration from the path.
fn named(planner: &str, iteration: &str) -> Result<(PlannerKind, u32), ApiError> {
    let planner = PlannerKind::from_id(planner).ok_or_else(|| ApiError::NoSuchPlanner(planner.to_owned()))?;
    let iteration =
        iteration.parse().map_err(|_| ApiError::Malformed("an iteration is a whole number from 0".to_owned()))?;
    Ok((planner, iteration))
}

/// Serializes a timeline as JSON.
pub(crate) fn written(timeline: &Timeline) -> Result<Vec<u8>, ApiError> {
    serde_json::to_vec(timeline).map_err(|error| ApiError::Fault(format!("a timeline cannot be written: {error}")))
}
