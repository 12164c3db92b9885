//! Model Context Protocol over streamable HTTP, without sessions: every request is complete and nothing is stored.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Json, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::scenarios::MAX_DOCUMENT;
use crate::app::Shared;
use crate::error::ApiError;
use crate::mcp::{Host, Tools, incomplete_call};
use crate::turns::Claimant;

/// Largest refusal of the protocol in bytes.
const MAX_REFUSAL: usize = 1 << 16;

/// Answers a message of the protocol. The tools are those of `planscope mcp`. They compute in turn with studies and
/// what-if requests.
pub(crate) async fn serve(
    State(app): Shared,
    claimant: Claimant,
    parts: Parts,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    if let Some(answer) = incomplete_call(&body) {
        return Ok(Json(answer).into_response());
    }
    // The guard in front of all routes checks host names and origins.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    let tools = Tools::new(Host::Server(app, claimant));
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(tools.clone()), sessions, config);
    let response = service.handle(Request::from_parts(parts, Body::from(body))).await.map(Body::new);
    if response.status().is_success() || response.headers().contains_key(CONTENT_TYPE) {
        return Ok(response);
    }
    let refusal = axum::body::to_bytes(response.into_body(), MAX_REFUSAL).await.unwrap_or_default();
    Err(ApiError::Malformed(String::from_utf8_lossy(&refusal).into_owned()))
}
