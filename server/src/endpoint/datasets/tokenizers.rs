//! Tokenizers cached for uploads.

use std::sync::Arc;

use api::dataset::TokenizerSummary;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::{Extension, Json};
use ingest::dataset::{ImportError, Tokenizer};

use super::uploads::{MAX_UPLOAD, blocking};
use crate::app::Shared;
use crate::arrival::Reservation;
use crate::changes::CreatedId;
use crate::error::ApiError;

/// Example sentence of common words. Users can recognise an unsuitable tokenizer from the tokens.
const EXAMPLE: &str = "The quick brown fox jumps over the lazy dog.";

/// Caches a tokenizer.json in memory for later uploads. The cache stores the four most recently
/// used tokenizers.
#[utoipa::path(
    post, path = "/api/v1/tokenizers", tag = "datasets",
    request_body(content = String, content_type = "application/json", description = "A tokenizer.json of Hugging Face"),
    responses(
        (status = 200, body = TokenizerSummary),
        (status = 400, description = "The body did not arrive"),
        (status = 413, description = "More than 64 MiB"),
        (status = 422, description = "Not a supported tokenizer"),
        (status = 503, description = "Other files are being read; try again later"),
    )
)]
pub(crate) async fn hold(
    State(app): Shared,
    request: Request,
) -> Result<(Extension<CreatedId>, Json<TokenizerSummary>), ApiError> {
    let reservation = Reservation::from_extensions(request.extensions());
    let body = Bytes::from_request(request, &()).await;
    let file = body.map_err(|rejection| ApiError::body(&rejection, MAX_UPLOAD))?;
    let turn = app.imports.turn().await?;
    let previews = Arc::clone(&app.imports.previews);
    let pending = blocking(move || {
        let _until_read = (reservation, turn);
        let tokenizer = Tokenizer::read(&file)?;
        let unusable = || ImportError::Tokenizer { detail: "it encodes no text".to_owned() };
        let example_tokens = tokenizer.count(EXAMPLE).ok_or_else(unusable)? as u64;
        let id = previews.hold_tokenizer(&file, Arc::new(tokenizer));
        Ok::<_, ApiError>(TokenizerSummary { id, example_tokens })
    });
    let summary = pending.await??;
    Ok((Extension(CreatedId(summary.id.clone())), Json(summary)))
}
