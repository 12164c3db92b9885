//! The schedule bench: published schedules, and tables of one's own, with no model.

use api::schedule::ScheduleKinds;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use planner::schedule_comparison;
use planner::schedule_comparison::{Limits, ScheduleAnswer, ScheduleQuestion, ValidQuestion};
use tokio::sync::Semaphore;

use super::off_thread;
use super::scenarios::LARGEST_DOCUMENT;
use crate::app::Shared;
use crate::error::ApiError;
use crate::jobs::{Asker, too_long};
use crate::json_values;
use crate::turns::{Claimant, Demand};

/// Questions that are answered at once; each takes a core for a few seconds at most.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Bytes of a question with its 250,000 actions and its answer.
const MEMORY: u64 = 64 << 20;

/// Every kind of schedule, with its formulas.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "schedules", responses((status = 200, body = ScheduleKinds)))]
pub(crate) async fn kinds() -> Json<ScheduleKinds> {
    Json(ScheduleKinds::all())
}

/// Makes and runs schedules with given times, and tables in torch's action grammar beside them.
///
/// Nothing is stored. A schedule that does not exist in that size, and a table that is wrong, is an entry with the reason
/// in the answer; the others are answered all the same. Closing the connection ends the computation behind the schedule at hand.
#[utoipa::path(
    post, path = "/api/v1/schedules", tag = "schedules", request_body = ScheduleQuestion,
    responses(
        (status = 200, body = ScheduleAnswer),
        (status = 413, description = "More than 16 MiB"),
        (status = 422, description = "Fields are wrong; every one is named. At most 250,000 actions are run at once, of a document of 200,000 values"),
    )
)]
pub(crate) async fn compare(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ScheduleAnswer>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, LARGEST_DOCUMENT))?;
    let turn = AT_ONCE.acquire().await.map_err(|error| ApiError::Fault(error.to_string()))?;
    let memory = app.jobs.turns().take(&claimant, Demand::memory(MEMORY)).await;
    let asker = Asker::default();
    let (patience, plan_time) = (asker.patience(app.jobs.time_limit()), app.jobs.plan_time());
    let answer = off_thread(move || {
        // The turn ends with the computation, which may outlast the asker by a moment.
        let _held = (turn, memory);
        json_values::check(&body).map_err(|error| ApiError::InvalidQuestion(vec![error]))?;
        let question = schedule_comparison::parse(&String::from_utf8_lossy(&body)).map_err(ApiError::InvalidQuestion)?;
        let question = ValidQuestion::new(question, Limits::SERVED).map_err(ApiError::InvalidQuestion)?;
        schedule_comparison::answer_while(&question, &patience).ok_or_else(|| ApiError::TooLong(too_long(plan_time)))
    });
    Ok(Json(answer.await?))
}
