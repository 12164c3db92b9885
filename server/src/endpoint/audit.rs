//! The record of changes.

use api::access::AuditPage;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::Shared;
use crate::error::ApiError;

/// Changes of a page where the query says nothing, and most of them.
const DEFAULT: u32 = 100;
const MOST: u32 = 1000;

/// Which part of the record.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Number of the last change of the part before, as `next` says; absent: begin with the latest.
    after: Option<u64>,
    /// Most changes, 100 by default, 1000 at most.
    limit: Option<u32>,
}

/// Who changed what, the latest first. For the role admin.
///
/// The last 200,000 changes are kept. Bytes of logs are not among them, nor questions whose answers are not stored.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "access", params(Part),
    responses((status = 200, body = AuditPage), (status = 400, description = "The query is malformed"))
)]
pub(crate) async fn changes(
    State(app): Shared,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<AuditPage>, ApiError> {
    let Query(part) = part?;
    let limit = part.limit.unwrap_or(DEFAULT).clamp(1, MOST);
    Ok(Json(app.store.reader().changes(part.after, limit).await?))
}
