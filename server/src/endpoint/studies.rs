//! Studies: how the search of a PipeWeaver plan went, what the size of its sub-microbatches does, every layout of modules.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use planner::outcome::ENGINE;
use planner::scenario::ValidScenario;
use planner::study::layouts as study_layouts;
use planner::study::stages as study_stages;
use planner::study::{
    LayoutSweep, SearchProgress, StageStudy, SubMicrobatches, Subject, search_progress, sub_microbatches,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::scenarios::{find, validate};
use crate::app::{App, Shared};
use crate::error::ApiError;
use crate::store::StoreError;

/// Most rollouts of a search.
const MOST_ROLLOUTS: u32 = 100_000;
/// Rollouts that show how a search goes on, where nobody says how many.
const PROGRESS_ROLLOUTS: u32 = 2_000;
/// Rollouts of one of the many searches over sizes, where nobody says how many.
const SIZE_ROLLOUTS: u32 = 200;
/// Layouts of each freedom and cluster size that are simulated.
const MOST_POINTS: u32 = 150;

/// What is studied.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StudyOptions {
    /// Iteration, from 0; absent: 0.
    iteration: Option<u32>,
    /// Rankings that each search interleaves, 1 to 100,000; absent: 2,000 for the search, 200 for sizes.
    rollouts: Option<u32>,
}

/// What is looked at.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StageOptions {
    /// Iteration, from 0; absent: 0.
    iteration: Option<u32>,
}

impl StudyOptions {
    fn rollouts(&self, default: u32) -> Result<u32, ApiError> {
        let rollouts = self.rollouts.unwrap_or(default);
        if (1..=MOST_ROLLOUTS).contains(&rollouts) {
            return Ok(rollouts);
        }
        Err(ApiError::Malformed(format!("rollouts: {rollouts} is out of range: 1 to {MOST_ROLLOUTS}")))
    }
}

/// How the best known iteration falls while the ranking is searched, by three strategies.
///
/// Looks at the slowest replica of the iteration, cut as the PipeWeaver plan cuts it. Computed while you wait, in turn
/// with planning jobs and for 20 s at most; then `is_cut` says that the time was up. Closing the request ends it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/search", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), StudyOptions),
    responses(
        (status = 200, body = SearchProgress),
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "Too short, not an identifier, or a wrong query"),
        (status = 404, description = "Unknown, or no such iteration"),
        (status = 409, description = "Not planned by this engine yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "There is nothing to study, for example because no PipeWeaver planner has a plan"),
        (status = 503, description = "Too many studies are under way; try again after a while"),
    )
)]
pub(crate) async fn search(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<StudyOptions>, QueryRejection>,
) -> Result<Json<SearchProgress>, ApiError> {
    let Query(options) = options?;
    let rollouts = options.rollouts(PROGRESS_ROLLOUTS)?;
    let (scenario, subject) = subject(&app, &id, &options).await?;
    let study = app.studies.run(rollouts, move |effort| search_progress(&scenario, subject, effort)).await?;
    Ok(Json(study))
}

/// The fastest and the slowest order at each size of the sub-microbatches of images or clips.
///
/// Looks at the slowest replica of the iteration of the PipeWeaver plan. Computed while you wait, in turn with planning
/// jobs and for 20 s at most; then `is_cut` says that the time was up. Closing the request ends it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/sub-microbatches", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), StudyOptions),
    responses(
        (status = 200, body = SubMicrobatches),
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "Too short, not an identifier, or a wrong query"),
        (status = 404, description = "Unknown, or no such iteration"),
        (status = 409, description = "Not planned by this engine yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "There is nothing to study: the model has one module, or no PipeWeaver planner has a plan"),
        (status = 503, description = "Too many studies are under way; try again after a while"),
    )
)]
pub(crate) async fn sizes(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<StudyOptions>, QueryRejection>,
) -> Result<Json<SubMicrobatches>, ApiError> {
    let Query(options) = options?;
    let rollouts = options.rollouts(SIZE_ROLLOUTS)?;
    let (scenario, subject) = subject(&app, &id, &options).await?;
    let study = app.studies.run(rollouts, move |effort| sub_microbatches(&scenario, subject, effort)).await?;
    Ok(Json(study))
}

/// Every layout of the scenario's modules as a point: one for all, their own on shared devices, their own on devices of their own.
///
/// Points are simulated on the representative batch, those first whose estimates are best. Computed while you wait, in turn with
/// planning jobs and for 20 s at most; then `is_partial` says that the time was up. Closing the request ends it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/layouts", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = LayoutSweep),
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 503, description = "Too many studies are under way; try again after a while"),
    )
)]
pub(crate) async fn layouts(State(app): Shared, Path(id): Path<String>) -> Result<Json<LayoutSweep>, ApiError> {
    let stored = find(&app, &id).await?;
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let sweep = app.studies.run(1, move |effort| Ok(study_layouts(&scenario, MOST_POINTS, effort.watch))).await?;
    Ok(Json(sweep))
}

/// How long the stages of every plan take from microbatch to microbatch in one iteration, the bubble beside the one of equal
/// microbatches, and what stages reach of their devices.
///
/// Of the slowest replica, as the timelines are; plans whose ranks work in groups have no stages and are left out.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/stages", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), StageOptions),
    responses(
        (status = 200, body = StageStudy),
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "Too short, not an identifier, or a wrong query"),
        (status = 404, description = "Unknown, or not planned yet"),
        (status = 410, description = "Deleted"),
        (status = 503, description = "Too many studies are under way; try again after a while"),
    )
)]
pub(crate) async fn stages(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<StageOptions>, QueryRejection>,
) -> Result<Json<StageStudy>, ApiError> {
    let iteration = options?.0.iteration.unwrap_or(0);
    let stored = find(&app, &id).await?;
    let reader = app.store.reader();
    let outcome = reader.outcome(&stored.id).await?.outcome;
    let mut encoded = Vec::new();
    for result in &outcome.results {
        let has_iteration = matches!(&result.answer, planner::outcome::Answer::Planned(planned)
            if planned.iterations.len() > iteration as usize);
        if has_iteration {
            encoded.push((result.planner, reader.timeline(&stored.id, result.planner, iteration).await?));
        }
    }
    let model = stored.scenario.model;
    let study = app.studies.run(1, move |_| {
        let decoded =
            encoded.iter().filter_map(|(planner, bytes)| Some((*planner, api::timeline::decode(bytes).ok()?)));
        Ok(study_stages(&model, &outcome, iteration, &decoded.collect::<Vec<_>>()))
    });
    Ok(Json(study.await?))
}

/// The scenario, and the plan of it that is studied.
async fn subject(app: &App, id: &str, options: &StudyOptions) -> Result<(ValidScenario, Subject), ApiError> {
    let stored = find(app, id).await?;
    let outcome = match app.store.reader().outcome(&stored.id).await {
        Ok(answered) => answered.outcome,
        Err(StoreError::Unknown { .. }) => return Err(ApiError::NotPlanned),
        Err(error) => return Err(error.into()),
    };
    if outcome.engine != ENGINE {
        return Err(ApiError::NotPlanned);
    }
    let subject = Subject::of(&outcome, options.iteration.unwrap_or(0))?;
    Ok((validate(app.store.reader(), stored.scenario).await?, subject))
}
