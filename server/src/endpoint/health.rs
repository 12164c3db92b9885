//! Version, health, and whether new content is taken.

use axum::Json;
use axum::extract::State;
use planner::scenario::FieldError;
use serde::{Deserialize, Serialize};

use crate::app::Shared;
use crate::error::ApiError;
use crate::store::{FileFault, StoreError};

/// Version and health.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Health {
    /// "ok": the server runs and its database answers.
    status: String,
    /// Version of the engine.
    engine: String,
}

/// Version and health: whether the server lives. One that does not is to be started again.
#[utoipa::path(get, path = "/api/v1/health", tag = "server", responses((status = 200, body = Health), (status = 503, description = "The database does not answer, or its file was emptied")))]
pub(crate) async fn health(State(app): Shared) -> Result<Json<Health>, ApiError> {
    // A file that was deleted or moved is still read, and moved back by its operator; what was emptied has to be restored.
    if let Err(fault @ FileFault::Truncated(_)) = app.store.in_place() {
        return Err(StoreError::from(fault).into());
    }
    if let Err(error) = app.store.reader().is_answering().await {
        let detail = format!("the database cannot be read; its file may be damaged, or have been cut: {error}");
        return Err(ApiError::NotReady(vec![FieldError { pointer: "/database/read".to_owned(), detail }]));
    }
    Ok(Json(Health { status: "ok".to_owned(), engine: planner::outcome::ENGINE.to_owned() }))
}

/// How ready the server is.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Readiness {
    /// "ready": new content is taken.
    status: String,
    /// Bytes that the database holds.
    used_bytes: u64,
    /// Bytes that it may hold, where there is a limit.
    quota_bytes: Option<u64>,
}

/// Whether new content is taken. Where not, `errors` names what is wrong: `/database/file`, `/database/read`, `/database/write`, `/database/quota`.
///
/// A server that is not ready still answers what it has: starting it again mends nothing, and loses a database whose file was deleted.
#[utoipa::path(
    get, path = "/api/v1/ready", tag = "server",
    responses((status = 200, body = Readiness), (status = 503, description = "New content is not taken; what is wrong is named"))
)]
pub(crate) async fn ready(State(app): Shared) -> Result<Json<Readiness>, ApiError> {
    let reader = app.store.reader();
    let mut wrong = Vec::new();
    let mut note = |pointer: &str, detail: String| {
        wrong.push(FieldError { pointer: pointer.to_owned(), detail });
    };
    let file = app.store.in_place();
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
        && let Err(error) = reader.has_room().await
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
