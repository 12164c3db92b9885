//! Execution plans: what every rank does and in which order, communication included.

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

/// Whose list, and with how many buffers.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RankOptions {
    /// Rank of the pipeline, from 0; absent: 0.
    rank: Option<u32>,
    /// Buffers at both ends of every channel, 0 for as many as there are transfers; absent: the fewest of 2, 4, 8, 16 and
    /// 32 that delay nothing, or as many as there are.
    buffers: Option<u32>,
}

/// The file.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FileOptions {
    /// Form of the file; absent: csv.
    #[param(inline)]
    form: Option<Form>,
    /// Buffers at both ends of every channel, 0 for as many as there are transfers; absent: the fewest of 2, 4, 8, 16 and
    /// 32 that delay nothing, or as many as there are.
    buffers: Option<u32>,
}

/// Forms of the file.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// One row per action.
    Csv,
    /// Lists of actions by rank.
    Json,
}

/// Buffers to try, in order: the first that delays nothing is taken, or the last.
fn buffers(asked: Option<u32>) -> Vec<Buffers> {
    let of = |count: u32| NonZeroU32::new(count).map_or(Buffers::UNLIMITED, Buffers::of);
    asked.map_or_else(|| [2, 4, 8, 16, 32, 0].map(of).to_vec(), |count| vec![of(count)])
}

/// A delay of the iteration that is none: one in a thousand.
const NO_DELAY: f64 = 1.001;

/// What one rank does in the execution plan of one planner and iteration: stages, sends, receives and the waits for them.
///
/// Of the slowest replica, as its timeline is. The plan is compiled from the stored timeline and replayed by the checker.
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
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "Too short, or not an identifier, iteration or query"),
        (status = 404, description = "Unknown, not planned yet, no plan of that planner, or no such rank"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The ranks of the plan work in groups and hand nothing to each other"),
    )
)]
pub(crate) async fn of_a_rank(
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

/// The whole execution plan of one planner and iteration as a file.
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
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "Too short, or not an identifier, iteration or query"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The ranks of the plan work in groups and hand nothing to each other"),
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
    // Planner and iteration were read, so they hold nothing that a file name must not.
    let name = format!("planscope-{short}-{planner}-{iteration}-execution.{extension}");
    let attachment = format!("attachment; filename=\"{name}\"");
    Ok(([(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, attachment)], text).into_response())
}

/// The plan of a stored timeline, and what the checker says of it. Large plans take a while, so off the async threads.
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
