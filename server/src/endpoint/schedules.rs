//! The schedule bench: published schedules, and tables of one's own, with no model.

use api::schedule::ScheduleKinds;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use planner::bench::{self, Limits, ScheduleAnswer, ScheduleQuestion, ValidQuestion};
use tokio::sync::Semaphore;

use crate::endpoint::scenarios::LARGEST_SCENARIO;
use crate::error::ApiError;

/// Questions that are answered at once; each takes a core for a few seconds at most.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Every kind of schedule, with its formulas.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "schedules", responses((status = 200, body = ScheduleKinds)))]
pub(crate) async fn kinds() -> Json<ScheduleKinds> {
    Json(ScheduleKinds::all())
}

/// Makes and runs schedules with given times, and tables in torch's action grammar beside them.
///
/// Nothing is stored. A schedule that does not exist in that size, and a table that is wrong, is an entry with the reason
/// in the answer; the others are answered all the same.
#[utoipa::path(
    post, path = "/api/v1/schedules", tag = "schedules", request_body = ScheduleQuestion,
    responses(
        (status = 200, body = ScheduleAnswer),
        (status = 413, description = "More than 16 MiB"),
        (status = 422, description = "Fields are wrong; every one is named. At most 250,000 actions are run at once"),
    )
)]
pub(crate) async fn compare(body: Result<Bytes, BytesRejection>) -> Result<Json<ScheduleAnswer>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, LARGEST_SCENARIO))?;
    let _permit = AT_ONCE.acquire().await.map_err(|error| ApiError::Fault(error.to_string()))?;
    let answered = tokio::task::spawn_blocking(move || {
        let question = bench::parse(&String::from_utf8_lossy(&body))?;
        Ok(bench::answer(&ValidQuestion::new(question, Limits::SERVED)?))
    });
    let answer = answered.await.map_err(|error| ApiError::Fault(format!("the bench stopped unexpectedly: {error}")))?;
    answer.map(Json).map_err(ApiError::InvalidQuestion)
}
