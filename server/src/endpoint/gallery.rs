//! Ready scenarios.

use api::gallery::Gallery;
use axum::Json;

use crate::error::ApiError;
use crate::gallery::entries;

/// Ready scenarios.
#[utoipa::path(get, path = "/api/v1/gallery", tag = "catalogue", responses((status = 200, body = Gallery)))]
pub(crate) async fn gallery() -> Result<Json<Gallery>, ApiError> {
    // They are embedded, so a wrong one is a fault of ours, not of whoever asks.
    let entries = entries().map_err(|errors| ApiError::Fault(ApiError::InvalidScenario(errors).to_string()))?;
    Ok(Json(Gallery { entries }))
}
