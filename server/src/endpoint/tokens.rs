//! Named token endpoints: list, create, revoke.

use api::access::{CreatedToken, NewToken, TokenList};
use api::path;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use planner::scenario::FieldError;

use crate::access::{self, TOKEN_NAME_RULE, is_token_name};
use crate::app::Shared;
use crate::error::{ApiError, Deleted, DocumentResponse};
use crate::token::Token;

/// Lists named tokens, including revoked tokens. Requires the role admin.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "access", responses((status = 200, body = TokenList)))]
pub(crate) async fn list(State(app): Shared) -> Result<Json<TokenList>, ApiError> {
    Ok(Json(TokenList { tokens: app.store.reader().tokens().await? }))
}

/// Creates a token with a name and a role. It is shown only once. Requires the role admin.
#[utoipa::path(
    post, path = "/api/v1/tokens", tag = "access", request_body = NewToken,
    responses(
        (status = 201, body = CreatedToken, description = "Created; the server stores only a hash of the token"),
        (status = 400, description = "The body is not a document of this form"),
        (status = 409, description = "A token of this name exists, or existed"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "The name is not valid"),
    )
)]
pub(crate) async fn make(
    State(app): Shared,
    body: Result<Json<NewToken>, JsonRejection>,
) -> Result<DocumentResponse<CreatedToken>, ApiError> {
    let Json(NewToken { name, role }) = body.map_err(|rejection| ApiError::document(&rejection))?;
    if !is_token_name(&name) {
        let detail = format!("is not {TOKEN_NAME_RULE}");
        return Err(ApiError::InvalidAnnotations(vec![FieldError { pointer: "/name".to_owned(), detail }]));
    }
    let token = Token::draw();
    let hash = access::hash(token.as_str());
    if !app.store.writer().add_token(&name, role, &hash, app.clock.now()).await? {
        return Err(ApiError::TokenExists(name));
    }
    let created = CreatedToken { name, role, token: token.as_str().to_owned() };
    Ok(DocumentResponse::Created(path::token(&created.name), created))
}

/// Revokes a token and all sessions of the token. Requires the role admin.
#[utoipa::path(
    delete, path = "/api/v1/tokens/{name}", tag = "access", params(("name" = String, Path, description = "Name of the token")),
    responses((status = 204, description = "Revoked"), (status = 404, description = "Unknown"))
)]
pub(crate) async fn revoke(State(app): Shared, Path(name): Path<String>) -> Result<Deleted, ApiError> {
    app.store.writer().revoke_token(&name, app.clock.now()).await?;
    app.access.forget();
    Ok(Deleted)
}
