//! The identity of the client, and logout.

use api::access::Identity;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;

use crate::actor::Actor;
use crate::app::Shared;
use crate::error::{ApiError, LoggedOut};

/// Returns the identity and the role of the client.
#[utoipa::path(get, path = "/api/v1/session", tag = "access", responses((status = 200, body = Identity)))]
pub(crate) async fn who(State(app): Shared, actor: Actor) -> Json<Identity> {
    Json(Identity { actor: actor.name, role: actor.role, token_needed: app.access.needs_token() })
}

/// Logs out: ends the session of the cookie.
#[utoipa::path(
    delete, path = "/api/v1/session", tag = "access",
    responses((status = 204, description = "The session ended and its cookies are removed"))
)]
pub(crate) async fn end(State(app): Shared, headers: HeaderMap) -> Result<LoggedOut, ApiError> {
    Ok(LoggedOut(app.access.logout(&headers).await?))
}
