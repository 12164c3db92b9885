//! Checks of training configurations. Nothing is stored.

use api::check::{Check, CheckChanges, CheckRequest, LogCheck, LogCheckRequest, MAX_FURTHER, SlownessRequest};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use ingest::job_config::Hardware;
use planner::outcome::Budget;
use planner::scenario::budget::search_bytes;
use planner::scenario::{FieldError, ValidScenario, parse_value};
use planner::slowness::{self, Measured, Slowness};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::off_thread;
use super::scenarios::{MAX_DOCUMENT, validate};
use crate::app::{App, Shared};
use crate::checks::{self, Configuration, ConfigurationError, MAX_DEVICES};
use crate::error::ApiError;
use crate::label;
use crate::observation::{Log, check_log};
use crate::turns::Claimant;

/// Error of a request without a measurement.
const MEASURED: &str =
    "/measured: one number, {\"step_s\": 1.5}, {\"tokens_per_s_per_device\": 8000} or {\"tflops_per_device\": 400}";

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
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn check(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Check>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let request = off_thread(move || parsed(&body)).await?;
    let (CheckRequest { budget, .. }, _, mut configuration, valid) = read(&app, request).await?;
    let bytes = search_bytes(valid.scenario(), app.studies.at_once());
    let checked = app.studies.run((&claimant, bytes), 1, move |effort| {
        let valid = checks::complete(&mut configuration, valid, effort.workers, effort.cancellation)?;
        checks::check(configuration, &valid, budget, effort.workers, effort.cancellation)
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
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn changes(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<CheckChanges>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let request = off_thread(move || parsed(&body)).await?;
    let (request, hardware, mut configuration, valid) = read(&app, request).await?;
    let bytes = search_bytes(valid.scenario(), app.studies.at_once());
    let changed = app.studies.run((&claimant, bytes), 1, move |effort| {
        let further = request.further.iter().map(|file| file.text.as_str());
        let files: Vec<&str> = std::iter::once(request.text.as_str()).chain(further).collect();
        let valid = checks::complete(&mut configuration, valid, effort.workers, effort.cancellation)?;
        checks::changes(&files, hardware, configuration.format, &valid, effort.workers, effort.cancellation)
    });
    Ok(Json(changed.await?))
}

/// Compares the measured throughput of a run with the prediction of its configuration, and explains a slower run.
///
/// Every cause is a property of the run that differs from the configuration, planned and simulated on one global
/// batch, for example a slower network. Causes with a larger effect than the gap are excluded. Nothing is stored. The
/// computation is synchronous, queued with the planning jobs, and limited to 20 s. `is_partial` is true if the time
/// limit is reached. Closing the request cancels it.
#[utoipa::path(
    post, path = "/api/v1/checks/slowness", tag = "checks", request_body = SlownessRequest,
    responses(
        (status = 200, body = Slowness),
        (status = 400, description = "The body is not JSON of this form"),
        (status = 413, description = "More than 1 MiB of text, or more than 5,000 keys"),
        (status = 422, description = "An unknown format, a value that cannot be used, contradictory values, or a job that does not fit"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn slowness(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Slowness>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let SlownessRequest { configuration, measured } = off_thread(move || {
        parsed(&body).map_err(|error| match error {
            ApiError::Malformed(detail) if detail.starts_with("/measured") => ApiError::Malformed(MEASURED.to_owned()),
            other => other,
        })
    })
    .await?;
    let (Measured::StepS(value) | Measured::TokensPerSPerDevice(value) | Measured::TflopsPerDevice(value)) = measured;
    if !(value.is_finite() && value > 0.0) {
        return Err(invalid("/measured", "it must be greater than 0".to_owned()));
    }
    let (_, _, mut configuration, valid) = read(&app, configuration).await?;
    let bytes = search_bytes(valid.scenario(), app.studies.at_once());
    let explained = app.studies.run((&claimant, bytes), 1, move |effort| {
        let valid = checks::complete(&mut configuration, valid, effort.workers, effort.cancellation)?;
        slowness::explain(&valid, measured, effort.workers, effort.cancellation)
    });
    Ok(Json(explained.await?))
}

/// Compares the log of a run with the prediction of its configuration, and explains a slower run.
///
/// First it is checked that both are the same job with the same layout. Otherwise the differences are listed, and nothing is
/// compared. If the log has timers, `comparison.phases` has the measured and predicted time by phase. Causes are those of
/// `/api/v1/checks/slowness` for the median step time without outliers. Nothing is stored. The computation is synchronous,
/// queued with the planning jobs, and limited to 20 s. Closing the request cancels it.
#[utoipa::path(
    post, path = "/api/v1/checks/log", tag = "checks", request_body = LogCheckRequest,
    responses(
        (status = 200, body = LogCheck),
        (status = 400, description = "The body is not JSON of this form"),
        (status = 413, description = "More than 1 MiB of configuration, or more than 5,000 keys"),
        (status = 422, description = "An unknown format, a log without steps or of more than 8 MiB, contradictory values, or a job that does not fit"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn log(
    State(app): Shared,
    claimant: Claimant,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<LogCheck>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let (configuration, log) = off_thread(move || {
        let LogCheckRequest { configuration, log } = parsed(&body)?;
        let name = label::clean(&log.name).unwrap_or_default();
        let log = Log::read(&name, log.text.as_bytes()).map_err(|error| invalid("/log/text", error.to_string()))?;
        Ok((configuration, log))
    })
    .await?;
    let (_, _, mut configuration, valid) = read(&app, configuration).await?;
    let bytes = search_bytes(valid.scenario(), app.studies.at_once());
    let checked = app.studies.run((&claimant, bytes), 1, move |effort| {
        let valid = checks::complete(&mut configuration, valid, effort.workers, effort.cancellation)?;
        check_log(log, &valid, effort.workers, effort.cancellation)
    });
    Ok(Json(checked.await?))
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| {
        // The message of serde, whose values are removed, after the field.
        let located = serde_json::from_slice::<Value>(body).ok().and_then(|value| parse_value::<T>(&value).err());
        let pointer = located.and_then(|errors| Some(errors.into_iter().next()?.pointer)).filter(|at| !at.is_empty());
        ApiError::Malformed(pointer.map_or_else(|| error.to_string(), |pointer| format!("{pointer}: {error}")))
    })
}

fn invalid(pointer: &str, detail: String) -> ApiError {
    ApiError::InvalidRequest(vec![FieldError { pointer: pointer.to_owned(), detail }])
}

/// Reads the configuration of a request, and validates its scenario.
async fn read(
    app: &App,
    request: CheckRequest,
) -> Result<(CheckRequest, Hardware, Configuration, ValidScenario), ApiError> {
    let (request, hardware, configuration) = off_thread(move || {
        if let Some(devices) = request.devices
            && !(1..=MAX_DEVICES).contains(&devices)
        {
            return Err(invalid("/devices", format!("must be 1 to {MAX_DEVICES}, not {devices}")));
        }
        let preset = request.device.as_deref().map(checks::preset).transpose();
        let hardware =
            Hardware { preset: preset.map_err(|detail| invalid("/device", detail))?, devices: request.devices };
        if let Some((field, rule)) = request.budget.and_then(Budget::out_of_range) {
            return Err(invalid(&format!("/budget/{field}"), rule.to_owned()));
        }
        if request.further.len() > MAX_FURTHER {
            return Err(invalid("/further", format!("at most {MAX_FURTHER} further files")));
        }
        let name = |name: &str| label::clean(name).unwrap_or_default();
        let further = request.further.iter().map(|file| (name(&file.name), file.text.as_str()));
        let files: Vec<(String, &str)> =
            std::iter::once((name(&request.name), request.text.as_str())).chain(further).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), *text)).collect();
        let configuration = checks::read(&files, hardware).map_err(|error| match error {
            ConfigurationError::Config(error) => ApiError::InvalidJobConfig(error),
            ConfigurationError::Scenario(errors) => ApiError::InvalidScenario(errors),
            ConfigurationError::PartialNode { .. } => invalid("/devices", error.to_string()),
            ConfigurationError::Log { .. } => invalid("/text", error.to_string()),
        })?;
        Ok((request, hardware, configuration))
    })
    .await?;
    let valid = validate(app.store.reader(), configuration.scenario.clone()).await?;
    Ok((request, hardware, configuration, valid))
}
