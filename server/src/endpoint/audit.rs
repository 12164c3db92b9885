//! The audit log.

use api::access::AuditPage;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::Shared;
use crate::error::ApiError;

/// Default number of changes per page.
const DEFAULT: u32 = 100;
const MAX_LIMIT: u32 = 1000;

/// Selects a page of the audit log.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Number of the last change on the previous page, from `next`. Default: the latest change.
    after: Option<u64>,
    /// Maximum number of changes, 100 by default, 1000 at most.
    limit: Option<u32>,
}

/// Lists changes with their users, from newest to oldest. Requires the role admin.
///
/// The log stores the last 200,000 changes. It excludes log data and requests that store no result.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "access", params(Part),
    responses((status = 200, body = AuditPage), (status = 400, description = "The query is malformed"))
)]
pub(crate) async fn changes(
    State(app): Shared,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<AuditPage>, ApiError> {
    let Query(part) = part?;
    let limit = part.limit.unwrap_or(DEFAULT).clamp(1, MAX_LIMIT);
    Ok(Json(app.store.reader().changes(part.after, limit).await?))
}
