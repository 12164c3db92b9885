//! Exports in the file formats of other programs.

use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use planner::outcome::{BatchSummary, PlanOutcome, Planned};
use planner::scenario::{PlannerKind, Scenario};

use super::off_thread;
use super::outcomes::stored_timeline;
use super::scenarios::find;
use crate::app::{App, Shared};
use crate::error::ApiError;
use crate::export::{chrome_trace::chrome_trace, megatron, table, torchtitan};
use crate::overviews::decode;

/// Builds an attachment response. The file name must not contain user input.
fn file(name: &str, media_type: &'static str, body: String) -> Response {
    let headers =
        [(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""))];
    (headers, body).into_response()
}

/// Returns the timeline for a planner and iteration as Chrome trace events, for the Perfetto
/// viewer.
///
/// An upload of this file as a trace yields a slice per timeline span.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/traces/{planner}/{iteration}", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = PlannerKind, Path, description = "Planner"),
        ("iteration" = u32, Path, description = "Iteration, from 0"),
    ),
    responses(
        (status = 200, body = serde_json::Value, content_type = "application/json", description = "The trace, as an attachment"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier or iteration"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn trace(
    State(app): Shared,
    Path((id, planner, iteration)): Path<(String, String, String)>,
) -> Result<Response, ApiError> {
    let (short, encoded) = stored_timeline(&app, &id, &planner, &iteration).await?;
    let trace = off_thread(move || Ok(chrome_trace(&decode(&encoded)?))).await?;
    Ok(file(&format!("planscope-{short}-{planner}-{iteration}.trace.json"), "application/json", trace))
}

/// Returns Megatron-LM arguments for a plan, as a shell array. Comments at the top list the
/// differences from the plan.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/megatron/{planner}", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = PlannerKind, Path, description = "Planner"),
    ),
    responses(
        (status = 200, body = String, content_type = "text/x-shellscript", description = "The arguments, as an attachment"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "Megatron-LM has no such schedule, or the model has more than one module"),
    )
)]
pub(crate) async fn megatron_arguments(
    State(app): Shared,
    Path((id, planner)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let plan = stored_plan(&app, &id, &planner).await?;
    let arguments = megatron::arguments(&plan.scenario, plan.kind, &plan.planned, &plan.batches);
    Ok(file(
        &format!("planscope-{}-{}.megatron.sh", plan.short, plan.kind.id()),
        "text/x-shellscript; charset=utf-8",
        arguments.map_err(ApiError::NotExportable)?,
    ))
}

/// Returns sections of a torchtitan job file for a plan. Comments at the top list what the file cannot express.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/torchtitan/{planner}", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = PlannerKind, Path, description = "Planner"),
    ),
    responses(
        (status = 200, body = String, content_type = "application/toml", description = "The sections, as an attachment"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "torch has no such schedule, or the model has more than one module"),
    )
)]
pub(crate) async fn torchtitan_job(
    State(app): Shared,
    Path((id, planner)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let plan = stored_plan(&app, &id, &planner).await?;
    let job = torchtitan::job_file(&plan.scenario, plan.kind, &plan.planned, &plan.batches);
    Ok(file(
        &format!("planscope-{}-{}.torchtitan.toml", plan.short, plan.kind.id()),
        "application/toml; charset=utf-8",
        job.map_err(ApiError::NotExportable)?,
    ))
}

/// A plan from a stored outcome.
struct StoredPlan {
    short: String,
    scenario: Scenario,
    kind: PlannerKind,
    planned: Box<Planned>,
    batches: Vec<BatchSummary>,
}

async fn stored_plan(app: &App, id: &str, planner: &str) -> Result<StoredPlan, ApiError> {
    let stored = find(app, id).await?;
    let kind = PlannerKind::from_id(planner).ok_or_else(|| ApiError::NoSuchPlanner(planner.to_owned()))?;
    let outcome = app.store.reader().outcome(&stored.id).await?.outcome;
    let result = outcome.results.into_iter().find(|result| result.planner == kind);
    let planned = match result.map(|result| result.answer) {
        Some(PlanOutcome::Planned(planned)) => planned,
        Some(PlanOutcome::Infeasible { .. }) | None => return Err(ApiError::NoPlannerPlan(kind)),
    };
    let (short, scenario) = (stored.short, stored.scenario);
    Ok(StoredPlan { short, scenario, kind, planned, batches: outcome.batches })
}

/// Returns the ranked table of the stored outcome as CSV.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/outcome.csv", tag = "outcomes",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = String, content_type = "text/csv", description = "The table, as an attachment"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown, or not planned yet"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn outcome_table(State(app): Shared, Path(id): Path<String>) -> Result<Response, ApiError> {
    let stored = find(&app, &id).await?;
    let outcome = app.store.reader().outcome(&stored.id).await?.outcome;
    Ok(file(&format!("planscope-{}.csv", stored.short), "text/csv; charset=utf-8", table::csv(&outcome)))
}
