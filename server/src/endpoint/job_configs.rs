//! Converts configuration files of training jobs to scenarios.

use api::job_config::JobConfig;
use axum::Json;
use axum::body::Bytes;
use axum::extract::Query;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use ingest::job_config;
use serde::Deserialize;
use utoipa::IntoParams;

use super::off_thread;
use super::scenarios::MAX_DOCUMENT;
use crate::checks::{config_format, read_settings};
use crate::error::ApiError;
use crate::label;

/// Options for reading a configuration file.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadOptions {
    /// File name, used as the scenario's title.
    name: Option<String>,
}

/// Converts a training job's configuration file to a scenario. Nothing is stored.
///
/// Formats: `config.json` of Hugging Face models, torchtitan job files (TOML), Megatron-LM
/// arguments in a script, a list or YAML. The response lists the values read, the assumptions, the
/// settings that a scenario cannot represent, and the unknown keys.
#[utoipa::path(
    post, path = "/api/v1/job-configs", tag = "scenarios", params(ReadOptions),
    request_body(content = String, content_type = "text/plain"),
    responses(
        (status = 200, body = JobConfig),
        (status = 400, description = "The query is malformed"),
        (status = 413, description = "More than 1 MiB, or more than 5,000 keys"),
        (status = 422, description = "An unknown format, or a key with a value that cannot be used"),
    )
)]
pub(crate) async fn read(
    query: Result<Query<ReadOptions>, QueryRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<JobConfig>, ApiError> {
    let Query(options) = query?;
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let name = options.name.as_deref().and_then(label::clean).unwrap_or_default();
    let config = off_thread(move || Ok(job_config::read(&name, &body)?)).await?;
    Ok(Json(JobConfig {
        format: config_format(config.format),
        scenario: config.scenario,
        read: read_settings(config.read),
        assumed: config.assumed,
        not_modelled: config.not_modelled,
        refusals: config.refusals,
        unknown: config.unknown,
    }))
}
