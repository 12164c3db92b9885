//! Whole log files become runs.

use api::run::{RunDetail, RunOrigin};
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use planner::scenario::{FieldError, PlannerKind};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{held_against, unnamed};
use crate::app::Shared;
use crate::error::{Answer, ApiError};
use crate::label;
use crate::live::{Token, run_id};
use crate::store::RunRow;

/// Largest file, in MiB.
pub(crate) const LARGEST_LOG: usize = 256;

/// What stands beside a file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Options {
    /// Name to show; the last part of a path is taken.
    name: Option<String>,
    /// Scenario that it is held against, by identifier or unique prefix.
    scenario: Option<String>,
    /// Planner of that scenario.
    plan: Option<String>,
}

/// Makes a run of a whole log file, of any format that is recognised by its content, packed with gzip or not.
///
/// The body is the file itself, at most 256 MiB. The run has ended.
#[utoipa::path(
    post, path = "/api/v1/runs/import", tag = "runs", params(Options),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = RunDetail, description = "Stored"),
        (status = 400, description = "The query is malformed, or the body did not arrive"),
        (status = 413, description = "More than 256 MiB"),
        (status = 422, description = "It is no log, or fields are wrong"),
    )
)]
pub(crate) async fn import(
    State(app): Shared,
    options: Result<Query<Options>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Answer<RunDetail>, ApiError> {
    let Query(options) = options?;
    let body = body.map_err(|rejection| ApiError::body(&rejection, LARGEST_LOG))?;
    let planner = match options.plan.as_deref().filter(|plan| !plan.is_empty()) {
        None => None,
        Some(plan) => Some(PlannerKind::from_id(plan).ok_or_else(|| {
            let detail = format!("there is no planner {plan:?}");
            ApiError::InvalidRun(vec![FieldError { pointer: "/plan".to_owned(), detail }])
        })?),
    };
    let (scenario, planner) = held_against(&app, options.scenario.as_deref(), planner).await?;
    let now = app.clock.now();
    let run = RunRow {
        id: run_id(),
        name: options.name.as_deref().and_then(label::file).unwrap_or_else(|| unnamed(now)),
        origin: RunOrigin::Imported,
        scenario,
        planner,
        // Nobody is told this one: an imported log takes no more bytes.
        token: Token::draw().hash(),
        key: None,
    };
    app.live.import(&run, body).await?;
    let detail = app.store.reader().run(&run.id, now).await?;
    Ok(Answer::Created(api::path::run(&run.id), detail))
}
