//! Checks of training configurations. Nothing is stored.

use api::check::{Check, CheckChanges, CheckRequest};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use ingest::job_config::Hardware;
use planner::scenario::budget::search_bytes;
use planner::scenario::{FieldError, ValidScenario};

use super::off_thread;
use super::scenarios::{MAX_DOCUMENT, validate};
use crate::app::{App, Shared};
use crate::checks::{self, Configuration, ConfigurationError, MAX_DEVICES};
use crate::error::ApiError;
use crate::label;
use crate::turns::Claimant;

/// Checks the configuration of a training job: whether it fits, its time and memory on one global batch.
///
/// Formats are those of `/api/v1/job-configs`, and scenarios. Nothing is stored. The computation is synchronous, queued
/// with the planning jobs, and limited to 20 s. Closing the request cancels it.
#[utoipa::path(
    post, path = "/api/v1/checks", tag = "checks", request_body = CheckRequest,
    responses(
        (status = 200, body = Check),
        (status = 400, description = "The body is not JSON of this form"),
        (status = 413, description = "More than 1 MiB of text, or more than 5,000 keys"),
        (status = 422, description = "An unknown format, a value that cannot be used, contradictory values, or a job that exceeds the limits"),
        (status = 503, description = "Too many studies are under way; try again after a while"),
    )
)]
pub(crate) async fn check(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Check>, ApiError> {
    let (_, configuration, valid) = read(&app, body).await?;
    let bytes = search_bytes(valid.scenario(), app.studies.at_once());
    let checked = app.studies.run((&claimant, bytes), 1, move |effort| {
        checks::check(configuration, &valid, effort.workers, effort.cancellation)
    });
    Ok(Json(checked.await?))
}

/// Returns the ten single changes of a configuration that help most, and the edits of its file.
///
/// Every change is planned and simulated on one global batch. If the job does not fit, the changes make it fit;
/// otherwise they save time. An edit is a range of the text and its replacement. Nothing is stored. The computation is
/// synchronous, queued with the planning jobs, and limited to 20 s. `fit.is_partial` is true if the time limit is
/// reached. Closing the request cancels it.
#[utoipa::path(
    post, path = "/api/v1/checks/changes", tag = "checks", request_body = CheckRequest,
    responses(
        (status = 200, body = CheckChanges),
        (status = 400, description = "The body is not JSON of this form"),
        (status = 413, description = "More than 1 MiB of text, or more than 5,000 keys"),
        (status = 422, description = "An unknown format, a value that cannot be used, contradictory values, or a job that exceeds the limits"),
        (status = 503, description = "Too many studies are under way; try again after a while"),
    )
)]
pub(crate) async fn changes(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<CheckChanges>, ApiError> {
    let (request, Configuration { format, .. }, valid) = read(&app, body).await?;
    let bytes = search_bytes(valid.scenario(), app.studies.at_once());
    let changed = app.studies.run((&claimant, bytes), 1, move |effort| {
        checks::changes(&request.text, format, &valid, effort.workers, effort.cancellation)
    });
    Ok(Json(changed.await?))
}

/// Reads the configuration of a request, and validates its scenario.
async fn read(
    app: &App,
    body: Result<Bytes, BytesRejection>,
) -> Result<(CheckRequest, Configuration, ValidScenario), ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let (request, configuration) = off_thread(move || {
        let request: CheckRequest =
            serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(error.to_string()))?;
        let wrong = |pointer: &str, detail: String| {
            ApiError::InvalidRequest(vec![FieldError { pointer: pointer.to_owned(), detail }])
        };
        if let Some(devices) = request.devices
            && !(1..=MAX_DEVICES).contains(&devices)
        {
            return Err(wrong("/devices", format!("{devices} is out of range: 1 to {MAX_DEVICES}")));
        }
        let preset = request.device.as_deref().map(checks::preset).transpose();
        let hardware =
            Hardware { preset: preset.map_err(|detail| wrong("/device", detail))?, devices: request.devices };
        let name = label::clean(&request.name).unwrap_or_default();
        let configuration = checks::read(&name, &request.text, hardware).map_err(|error| match error {
            ConfigurationError::Config(error) => ApiError::InvalidJobConfig(error),
            ConfigurationError::Scenario(errors) => ApiError::InvalidScenario(errors),
            ConfigurationError::PartialNode { .. } => wrong("/devices", error.to_string()),
        })?;
        Ok((request, configuration))
    })
    .await?;
    let valid = validate(app.store.reader(), configuration.scenario.clone()).await?;
    Ok((request, configuration, valid))
}
