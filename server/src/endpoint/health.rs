//! Version, liveness and readiness.

use axum::Json;
use axum::extract::State;
use planner::scenario::FieldError;
use serde::{Deserialize, Serialize};

use crate::app::Shared;
use crate::error::ApiError;
use crate::store::{FileFault, StoreError};

/// Engine version and health.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Health {
    /// "ok": the server runs and its database responds.
    status: String,
    /// Version of the engine.
    engine: String,
}

/// Returns version and liveness. A server that fails this check must be restarted.
#[utoipa::path(get, path = "/api/v1/health", tag = "server", responses((status = 200, body = Health), (status = 503, description = "The database does not respond, or its file is empty")))]
pub(crate) async fn health(State(app): Shared) -> Result<Json<Health>, ApiError> {
    // A deleted or moved file is still readable, and the operator can move it back. A truncated
    // file must be restored.
    if let Err(fault @ FileFault::Truncated(_)) = app.store.check_file() {
        return Err(StoreError::from(fault).into());
    }
    if let Err(error) = app.store.reader().is_answering().await {
        let detail = format!("the database cannot be read; its file may be damaged, or have been cut: {error}");
        return Err(ApiError::NotReady(vec![FieldError { pointer: "/database/read".to_owned(), detail }]));
    }
    Ok(Json(Health { status: "ok".to_owned(), engine: planner::outcome::ENGINE.to_owned() }))
}

/// Readiness of the server.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Readiness {
    /// "ready": new content is accepted.
    status: String,
    /// Database size in bytes.
    used_bytes: u64,
    /// Maximum database size in bytes, if limited.
    quota_bytes: Option<u64>,
}

/// Returns whether the server accepts new content.
///
/// If not, `errors` lists the causes: `/database/file`, `/database/read`, `/database/write`,
/// `/database/quota`. A server that is not ready still serves stored content. A restart does not
/// help, and it loses a database whose file was deleted.
#[utoipa::path(
    get, path = "/api/v1/ready", tag = "server",
    responses((status = 200, body = Readiness), (status = 503, description = "New content is refused; the reason is stated"))
)]
pub(crate) async fn ready(State(app): Shared) -> Result<Json<Readiness>, ApiError> {
    let reader = app.store.reader();
    let mut wrong = Vec::new();
    let mut note = |pointer: &str, detail: String| {
        wrong.push(FieldError { pointer: pointer.to_owned(), detail });
    };
    let file = app.store.check_file();
    let usage = reader.usage().await.map_err(|error| note("/database/read", error.to_string())).ok();
    match file {
        Err(fault) => note("/database/file", fault.to_string()),
        Ok(()) => {
            if let Err(error) = app.store.writer().probe().await {
                note("/database/write", error.to_string());
            }
        }
    }
    if usage.is_some()
        && let Err(error) = reader.check_space().await
    {
        note("/database/quota", error.to_string());
    }
    match usage {
        Some(usage) if wrong.is_empty() => {
            Ok(Json(Readiness { status: "ready".to_owned(), used_bytes: usage.used, quota_bytes: reader.quota() }))
        }
        _ => Err(ApiError::NotReady(wrong)),
    }
}
