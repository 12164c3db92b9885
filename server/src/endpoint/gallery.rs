//! Example scenarios.

use api::front_page::FrontPage;
use api::gallery::Gallery;
use axum::Json;

use crate::error::ApiError;
use crate::gallery::{entries, front_page};

/// Lists the example scenarios.
#[utoipa::path(get, path = "/api/v1/gallery", tag = "catalogue", responses((status = 200, body = Gallery)))]
pub(crate) async fn gallery() -> Result<Json<Gallery>, ApiError> {
    // The scenarios are embedded, so an invalid scenario is a server error.
    let entries = entries().map_err(|errors| ApiError::Fault(ApiError::InvalidScenario(errors).to_string()))?;
    Ok(Json(Gallery { entries }))
}

/// Returns the start page: a dozen example scenarios grouped by question, with results.
#[utoipa::path(get, path = "/api/v1/gallery/front-page", tag = "catalogue", responses((status = 200, body = FrontPage)))]
pub(crate) async fn front() -> Result<Json<FrontPage>, ApiError> {
    let page =
        front_page::front_page().map_err(|errors| ApiError::Fault(ApiError::InvalidScenario(errors).to_string()))?;
    Ok(Json(page))
}
