//! What-if planning for interactive changes to a scenario. Nothing is stored.

use api::job::StoredOutcome;
use api::path::PLAN_PREVIEW_MEDIA_TYPE;
use api::what_if::{self, PlanPreview};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use planner::outcome::{ENGINE, PlanOutcome, Planning};
use planner::scenario::Scenario;
use serde::Deserialize;

use super::off_thread;
use super::scenarios::{MAX_SCENARIO, parsed, validate};
use crate::app::{App, Shared};
use crate::error::ApiError;
use crate::jobs::displayed_iteration;
use crate::overviews::decode;
use crate::turns::Claimant;

/// Options of a what-if request.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Iteration for the timelines, from 0. If it does not exist, the last iteration is used.
    #[serde(default)]
    iteration: u32,
    /// Skips slow searches (the PipeWeaver ranking search). The response indicates whether a search
    /// was skipped.
    #[serde(default)]
    sketch: bool,
}

/// Plans a scenario immediately, and returns the outcome with the timelines of an iteration.
/// Nothing is stored.
///
/// If this engine has already stored an outcome for the scenario, it is returned without planning.
/// Closing the connection cancels planning after a short delay.
#[utoipa::path(
    post, path = "/api/v1/what-if", tag = "scenarios", request_body = Scenario, params(Wanted),
    responses(
        (status = 200, description = "Outcome and timelines", content((String = "application/vnd.planscope.what-if"))),
        (status = 400, description = "`iteration` is not a whole number, or `sketch` is neither true nor false"),
        (status = 413, description = "More than 1 MiB"),
        (status = 422, description = "Invalid fields, all of them listed; or planning takes longer than --what-if-seconds or more memory than --plan-memory"),
        (status = 503, description = "Too many requests wait, try again later; or the server does not plan (--without-work)"),
    )
)]
pub(crate) async fn plan_preview(
    State(app): Shared,
    claimant: Claimant,
    wanted: Result<Query<Wanted>, axum::extract::rejection::QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let Query(wanted) = wanted.map_err(|rejection| ApiError::Malformed(rejection.body_text()))?;
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_SCENARIO))?;
    let scenario = parsed(body).await?;
    let valid = validate(app.store.reader(), scenario).await?;
    if app.store.reader().is_answered(valid.id().as_str()).await? {
        return stored(&app, valid.id().as_str(), wanted.iteration).await;
    }
    let sketch = if wanted.sketch { valid.sketch() } else { None };
    let is_sketch = sketch.is_some();
    let (planning, planning_ms) = app.jobs.plan_at_once(sketch.unwrap_or(valid), &claimant, wanted.iteration).await?;
    let created_at = app.clock.now().to_string();
    let answer = move || {
        let Planning { outcome, timelines } = planning;
        let iteration = displayed_iteration(&outcome, wanted.iteration);
        let timelines = timelines.into_iter().map(|planned| (planned.planner, planned.timeline)).collect();
        let outcome = StoredOutcome { outcome, planning_ms, created_at, current_engine: ENGINE.to_owned(), is_sketch };
        what_if::encode(&PlanPreview { outcome, iteration, timelines })
    };
    let bytes = off_thread(move || Ok(answer())).await?;
    Ok(([(CONTENT_TYPE, PLAN_PREVIEW_MEDIA_TYPE)], bytes).into_response())
}

/// Returns the stored outcome from this engine.
async fn stored(app: &App, id: &str, iteration: u32) -> Result<Response, ApiError> {
    let outcome = app.store.reader().outcome(id).await?;
    let iteration = displayed_iteration(&outcome.outcome, iteration);
    let mut timelines = Vec::new();
    for result in &outcome.outcome.results {
        if matches!(result.answer, PlanOutcome::Planned(_)) {
            timelines.push((result.planner, app.store.reader().timeline(id, result.planner, iteration).await?));
        }
    }
    let bytes = off_thread(move || {
        let decoded = timelines.into_iter().map(|(planner, encoded)| Ok((planner, decode(&encoded)?)));
        let timelines = decoded.collect::<Result<_, ApiError>>()?;
        Ok(what_if::encode(&PlanPreview { outcome, iteration, timelines }))
    })
    .await?;
    Ok(([(CONTENT_TYPE, PLAN_PREVIEW_MEDIA_TYPE)], bytes).into_response())
}
