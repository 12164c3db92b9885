//! Execution plans: the ordered actions per rank, including communication.

use api::execution_plan::ExecutionPlanView;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use planner::check::{Replay, check_execution_plan};
use planner::execution_plan::{Buffers, ExecutionPlan, compile};
use planner::export::execution_csv;
use serde::Deserialize;
use std::num::NonZeroU32;
use utoipa::{IntoParams, ToSchema};

use super::outcomes::stored_timeline;
use crate::app::Shared;
use crate::error::ApiError;
use crate::overviews::decode;

/// Selects the rank and the number of buffers.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RankOptions {
    /// Pipeline rank, from 0. Default: 0.
    rank: Option<u32>,
    /// Buffers per channel end. 0: one per transfer. Default: the first of 2, 4, 8, 16 and 32
    /// without delay, otherwise one per transfer.
    buffers: Option<u32>,
}

/// File options.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FileOptions {
    /// File format. Default: csv.
    #[param(inline)]
    form: Option<Form>,
    /// Buffers per channel end. 0: one per transfer. Default: the first of 2, 4, 8, 16 and 32
    /// without delay, otherwise one per transfer.
    buffers: Option<u32>,
}

/// File format.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// A row per action.
    Csv,
    /// Action lists per rank.
    Json,
}

/// Buffer numbers to try in order. The first without delay is used, otherwise the last.
fn buffers(requested: Option<u32>) -> Vec<Buffers> {
    let from_count = |count: u32| NonZeroU32::new(count).map_or(Buffers::UNLIMITED, Buffers::uniform);
    requested.map_or_else(|| [2, 4, 8, 16, 32, 0].map(from_count).to_vec(), |count| vec![from_count(count)])
}

/// Tolerance for the delay of an iteration: 0.1 percent.
const NO_DELAY: f64 = 1.001;

/// Returns the actions of a rank in the execution plan for a planner and iteration: stages, sends,
/// receives and waits.
///
/// The plan covers the slowest replica, like the timeline. It is compiled from the stored timeline
/// and replayed by the checker.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/execution-plans/{planner}/{iteration}", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = planner::scenario::PlannerKind, Path, description = "Planner"),
        ("iteration" = u32, Path, description = "Iteration, from 0"),
        RankOptions,
    ),
    responses(
        (status = 200, body = ExecutionPlanView),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier, iteration or query"),
        (status = 404, description = "Unknown, not planned yet, no plan of that planner, or no such rank"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The ranks of the plan work in groups without a pipeline"),
    )
)]
pub(crate) async fn rank_plan(
    State(app): Shared,
    Path((id, planner, iteration)): Path<(String, String, String)>,
    options: Result<Query<RankOptions>, QueryRejection>,
) -> Result<Json<ExecutionPlanView>, ApiError> {
    let Query(options) = options?;
    let (_, encoded) = stored_timeline(&app, &id, &planner, &iteration).await?;
    let (plan, replay) = compiled(encoded, buffers(options.buffers)).await?;
    let (rank, ranks) = (options.rank.unwrap_or(0), plan.ranks.len() as u32);
    let counts = plan.counts();
    let list = plan.ranks.into_iter().nth(rank as usize).ok_or(ApiError::NoSuchRank { rank, ranks })?;
    Ok(Json(ExecutionPlanView {
        buffers: plan.buffers,
        planned_s: seconds(plan.planned_ns),
        replayed_s: seconds(replay.end_ns),
        receives_held: replay.receives_held,
        sends_held: replay.sends_held,
        actions: counts.actions as u32,
        stages: counts.stages as u32,
        transfers: counts.transfers as u32,
        batches: counts.batches as u32,
        ranks,
        rank,
        list,
    }))
}

/// Returns the complete execution plan for a planner and iteration as a file.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/execution-plans/{planner}/{iteration}/file", tag = "outcomes",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("planner" = planner::scenario::PlannerKind, Path, description = "Planner"),
        ("iteration" = u32, Path, description = "Iteration, from 0"),
        FileOptions,
    ),
    responses(
        (status = 200, description = "The plan, as an attachment", content(
            (String = "text/csv"),
            (ExecutionPlan = "application/json"),
        )),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier, iteration or query"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The ranks of the plan work in groups without a pipeline"),
    )
)]
pub(crate) async fn file(
    State(app): Shared,
    Path((id, planner, iteration)): Path<(String, String, String)>,
    options: Result<Query<FileOptions>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(options) = options?;
    let (short, encoded) = stored_timeline(&app, &id, &planner, &iteration).await?;
    let (plan, _) = compiled(encoded, buffers(options.buffers)).await?;
    let (text, media_type, extension) = match options.form.unwrap_or(Form::Csv) {
        Form::Csv => (execution_csv(&plan), "text/csv; charset=utf-8", "csv"),
        Form::Json => {
            let text = serde_json::to_string(&plan).map_err(|error| ApiError::Fault(error.to_string()))?;
            (text, "application/json", "json")
        }
    };
    // Planner and iteration are parsed, so the file name contains only safe characters.
    let name = format!("planscope-{short}-{planner}-{iteration}-execution.{extension}");
    let attachment = format!("attachment; filename=\"{name}\"");
    Ok(([(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, attachment)], text).into_response())
}

/// Compiles the plan from a stored timeline and replays it in the checker, on a blocking thread
/// because large plans are slow.
async fn compiled(encoded: Vec<u8>, buffers: Vec<Buffers>) -> Result<(ExecutionPlan, Replay), ApiError> {
    let work = move || {
        let timeline = decode(&encoded)?;
        if timeline.is_grouped() {
            return Err(ApiError::NoPipeline);
        }
        let mut found = None;
        for buffers in buffers {
            let plan = compile(&timeline, buffers).map_err(|error| ApiError::Fault(error.to_string()))?;
            let replay = check_execution_plan(&plan, &timeline).map_err(|error| ApiError::Fault(error.to_string()))?;
            let delays_nothing = replay.end_ns as f64 <= plan.planned_ns as f64 * NO_DELAY;
            found = Some((plan, replay));
            if delays_nothing {
                break;
            }
        }
        found.ok_or_else(|| ApiError::Fault("no number of buffers was tried".to_owned()))
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|_| Err(ApiError::Fault("compiling an execution plan stopped unexpectedly".to_owned())))
}

fn seconds(ns: u64) -> f64 {
    planner::units::Nanos::new(ns).secs()
}
