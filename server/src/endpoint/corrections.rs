//! Scenario corrections that match the job of a run.

use api::run::{Corrected, CorrectionQuery};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use planner::run_comparison::{Correction, corrected};

use super::observations::{default_segment, load_context};
use super::scenarios::{begin_plan, validate};
use crate::app::Shared;
use crate::client::Client;
use crate::error::{ApiError, DocumentResponse};
use crate::jobs::Started;
use crate::label;
use crate::observation::{ObservationError, compared_jobs};
use crate::store::RunChanges;
use crate::turns::Claimant;

/// Stores a corrected draft of the run's scenario, plans it, and attaches it to the run.
///
/// The corrections are in `job.corrections` of the comparison: global batch, context length, number
/// of devices. The previously attached scenario does not change.
#[utoipa::path(
    post, path = "/api/v1/runs/{run}/correction", tag = "runs",
    params(("run" = String, Path, description = "Identifier"), CorrectionQuery),
    responses(
        (status = 201, body = Corrected, description = "Stored, attached and being planned"),
        (status = 200, body = Corrected, description = "The corrected scenario was already stored; it is attached now"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown run or planner"),
        (status = 409, description = "The scenario is not planned yet"),
        (status = 410, description = "The run or its scenario was deleted"),
        (status = 422, description = "No scenario, no plan, nothing to correct, or the corrected scenario is not valid"),
        (status = 503, description = "The queue is full; the scenario is attached, plan it later"),
        (status = 507, description = "The limit of drafts is reached"),
    )
)]
pub(crate) async fn correction(
    State(app): Shared,
    client: Client,
    claimant: Claimant,
    Path(run): Path<String>,
    query: Result<Query<CorrectionQuery>, QueryRejection>,
) -> Result<DocumentResponse<Corrected>, ApiError> {
    let Query(query) = query?;
    let mut context = load_context(&app, &run, query.planner.as_deref()).await?;
    let segment = query.segment.or_else(|| default_segment(&mut context));
    let corrections = compared_jobs(&context, segment).corrections;
    if corrections.is_empty() {
        return Err(ObservationError::NothingToCorrect.into());
    }
    let before = context.scenario.scenario();
    let changes: Vec<String> = corrections.iter().map(|correction: &Correction| correction.describe()).collect();
    let mut scenario = corrected(before, &corrections);
    let title = before.title.as_deref().unwrap_or(&before.model.name);
    scenario.title = label::clean(&format!("{title}, {}", changes.join(", ")));
    let valid = validate(app.store.reader(), scenario).await?;
    let writer = app.store.writer();
    let now = app.clock.now();
    let is_new = writer.store_scenario(valid.id(), valid.scenario(), &client, now).await?;
    let stored = app.store.reader().scenario(valid.id().as_str()).await?;
    let planner = app.store.reader().run(&run, now).await?.summary.plan;
    let attach = RunChanges { scenario: Some(stored.id.clone()), planner, ..RunChanges::default() };
    writer.change_run(&run, &attach, now).await?;
    let (Started::New(job) | Started::Known(job)) = begin_plan(&app, stored.clone(), claimant).await?;
    let path = api::path::scenario(&stored.id);
    let response = Corrected { scenario: stored, job, changes };
    Ok(if is_new { DocumentResponse::Created(path, response) } else { DocumentResponse::Present(response) })
}
