//! Version and health.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};

use crate::app::Shared;
use crate::error::ApiError;

/// Version and health.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(crate) struct Health {
    /// "ok": the server runs and its database answers.
    status: String,
    /// Version of the engine.
    engine: String,
}

/// Version and health.
#[utoipa::path(get, path = "/api/v1/health", tag = "server", responses((status = 200, body = Health)))]
pub(crate) async fn health(State(app): Shared) -> Result<Json<Health>, ApiError> {
    app.store.reader().is_answering().await?;
    Ok(Json(Health { status: "ok".to_owned(), engine: planner::outcome::ENGINE.to_owned() }))
}
