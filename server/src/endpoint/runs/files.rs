//! Creates runs from complete log files.

use std::sync::Arc;

use api::run::{RunDetail, RunOrigin};
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, Query, Request, State};
use axum::http::HeaderMap;
use planner::scenario::{FieldError, PlannerKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use super::{attached_plan, parse_log_table, request_key, unnamed};
use crate::app::Shared;
use crate::arrival::Reservation;
use crate::error::{ApiError, DocumentResponse};
use crate::label;
use crate::store::{Opened, RequestKey, RunRow};
use crate::token::Token;
use crate::token::run_id;

/// Maximum file size in MiB.
pub(crate) const MAX_LOG: usize = 256;

/// Options of an import.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Options {
    /// Display name. For a path, the last component is used.
    name: Option<String>,
    /// Scenario to attach, by identifier or unique prefix.
    scenario: Option<String>,
    /// Planner in that scenario.
    plan: Option<String>,
    /// Pattern table for the lines of the file, as TOML or JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<String>,
}

/// Creates a run from a complete log file.
///
/// The request body is the file, at most 256 MiB, optionally compressed with gzip. Its format is
/// detected from the content. The run has the state ended. A repeated request with the same
/// `Idempotency-Key` returns the same run.
#[utoipa::path(
    post, path = "/api/v1/runs/import", tag = "runs",
    params(Options, ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request the same one")),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = RunDetail, description = "Stored"),
        (status = 200, body = RunDetail, description = "Already stored by the same request"),
        (status = 400, description = "The query is malformed, the key is too long, or the body did not arrive"),
        (status = 410, description = "Stored by the same request and deleted since"),
        (status = 413, description = "More than 256 MiB"),
        (status = 422, description = "Not a log, invalid fields, or the key belongs to another request"),
        (status = 503, description = "Other files are being read; try again later"),
    )
)]
pub(crate) async fn import(
    State(app): Shared,
    options: Result<Query<Options>, QueryRejection>,
    headers: HeaderMap,
    request: Request,
) -> Result<DocumentResponse<RunDetail>, ApiError> {
    let Query(options) = options?;
    let room = Reservation::from_extensions(request.extensions());
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_LOG))?;
    let key = match request_key(&headers)? {
        None => None,
        Some(key) => Some(request_key_hash(key, &options, body.clone()).await?),
    };
    if let Some(key) = key {
        match app.store.writer().earlier_result(key).await? {
            Opened::New => {}
            Opened::Known(id) => {
                return Ok(DocumentResponse::Present(app.store.reader().run(&id, app.clock.now()).await?));
            }
            Opened::OtherRequest => return Err(ApiError::KeyReused),
        }
    }
    let planner = match options.plan.as_deref().filter(|plan| !plan.is_empty()) {
        None => None,
        Some(plan) => Some(PlannerKind::from_id(plan).ok_or_else(|| {
            let detail = format!("there is no planner {plan:?}");
            ApiError::InvalidRun(vec![FieldError { pointer: "/plan".to_owned(), detail }])
        })?),
    };
    let log_table = options.table.filter(|table| !table.trim().is_empty());
    let table = log_table.as_deref().map(|table| parse_log_table(table, "/table")).transpose()?;
    let (scenario, planner) = attached_plan(&app, options.scenario.as_deref(), planner).await?;
    let now = app.clock.now();
    let run = RunRow {
        id: run_id(),
        name: options.name.as_deref().and_then(label::file).unwrap_or_else(|| unnamed(now)),
        origin: RunOrigin::Imported,
        scenario,
        planner,
        // This token is not returned, because an imported log accepts no more data.
        token: Token::draw().hash(),
        key: None,
        log_table,
    };
    let turn = app.imports.turn().await?;
    let id = run.id.clone();
    let importing = Arc::clone(&app);
    // A separate task completes the run even if the connection breaks. A retry finds the run by
    // key.
    let imported = tokio::spawn(async move {
        let imported = importing.live.import(&run, key, body, table).await;
        drop((turn, room));
        imported
    });
    let imported =
        imported.await.map_err(|error| ApiError::Fault(format!("an import stopped unexpectedly: {error}")))?;
    let reader = app.store.reader();
    match imported? {
        Opened::New => Ok(DocumentResponse::Created(api::path::run(&id), reader.run(&id, now).await?)),
        // A concurrent identical request finished first.
        Opened::Known(id) => Ok(DocumentResponse::Present(reader.run(&id, now).await?)),
        Opened::OtherRequest => Err(ApiError::KeyReused),
    }
}

/// Hashes the key and the request, including the file. Runs on a blocking thread, because hashing a
/// large file is slow.
async fn request_key_hash(key: &str, options: &Options, body: Bytes) -> Result<RequestKey, ApiError> {
    let options = serde_json::to_vec(options).map_err(|error| ApiError::Malformed(error.to_string()))?;
    let key = Sha256::digest(key).into();
    let hash = move || {
        let mut asked = Sha256::new();
        // The length separates both fields, so different splits have different hashes.
        asked.update((options.len() as u64).to_le_bytes());
        asked.update(&options);
        asked.update(&body);
        RequestKey { key, request: asked.finalize().into() }
    };
    tokio::task::spawn_blocking(hash)
        .await
        .map_err(|error| ApiError::Fault(format!("reading a request stopped unexpectedly: {error}")))
}
