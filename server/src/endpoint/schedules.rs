//! The schedule bench: published schedules and custom tables, without a model.

use api::schedule::ScheduleKinds;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use planner::schedule_comparison;
use planner::schedule_comparison::{Limits, ScheduleRequest, ScheduleResponse, ValidRequest};
use tokio::sync::Semaphore;

use super::off_thread;
use super::scenarios::MAX_DOCUMENT;
use crate::app::Shared;
use crate::error::ApiError;
use crate::jobs::{Asker, too_long};
use crate::json_values;
use crate::turns::{Claimant, Demand};

/// Limit on concurrent requests. A request occupies a core for at most a few seconds.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Memory estimate in bytes for a request with 250,000 actions, including the response.
const MEMORY: u64 = 64 << 20;

/// Lists all schedule kinds with their formulas.
#[utoipa::path(get, path = "/api/v1/schedules", tag = "schedules", responses((status = 200, body = ScheduleKinds)))]
pub(crate) async fn kinds() -> Json<ScheduleKinds> {
    Json(ScheduleKinds::all())
}

/// Builds and simulates schedules with given times, together with tables in the torch action
/// grammar.
///
/// Nothing is stored. A schedule that does not exist for the given size, or an invalid table, is
/// reported as an entry with the reason. All other entries are still computed. Closing the
/// connection cancels the computation after the current schedule.
#[utoipa::path(
    post, path = "/api/v1/schedules", tag = "schedules", request_body = ScheduleRequest,
    responses(
        (status = 200, body = ScheduleResponse),
        (status = 413, description = "More than 16 MiB"),
        (status = 422, description = "Invalid fields; all of them are listed. At most 250,000 actions, and a document of at most 200,000 values"),
    )
)]
pub(crate) async fn compare(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ScheduleResponse>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let turn = AT_ONCE.acquire().await.map_err(|error| ApiError::Fault(error.to_string()))?;
    let memory = app.jobs.turns().take(&claimant, Demand::memory(MEMORY)).await;
    let asker = Asker::default();
    let (patience, plan_time) = (asker.patience(app.jobs.time_limit()), app.jobs.plan_time());
    let response = off_thread(move || {
        // Release the slot at the end of the computation, which can outlast the connection briefly.
        let _guard = (turn, memory);
        json_values::check(&body).map_err(|error| ApiError::InvalidRequest(vec![error]))?;
        let request = schedule_comparison::parse(&String::from_utf8_lossy(&body)).map_err(ApiError::InvalidRequest)?;
        let valid_request = ValidRequest::new(request, Limits::SERVED).map_err(ApiError::InvalidRequest)?;
        schedule_comparison::respond_while(&valid_request, &patience)
            .ok_or_else(|| ApiError::TooLong(too_long(plan_time)))
    });
    Ok(Json(response.await?))
}
