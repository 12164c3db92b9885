//! Dataset previews: merge and store.

use std::sync::{Arc, Weak};
use std::time::Duration;

use api::dataset::{DatasetPreview, StorePreviews, Uploaded};
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use ingest::dataset::Imported;

use super::uploads::blocking;
use crate::app::{App, Shared};
use crate::error::{ApiError, DocumentResponse};
use crate::imports::{PREVIEW_LIFETIME, Prepared};
use crate::label;

/// Maximum number of previews per dataset.
const MAX_PARTS: usize = 256;

/// Stores previews as a single dataset.
#[utoipa::path(
    post, path = "/api/v1/datasets/previews", tag = "datasets", request_body = StorePreviews,
    responses(
        (status = 201, body = Uploaded, description = "Stored"),
        (status = 200, body = Uploaded, description = "The same content is already stored"),
        (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "A preview has expired"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "The previews are not parts of one dataset"),
    )
)]
pub(crate) async fn store(
    State(app): Shared,
    body: Result<Json<StorePreviews>, JsonRejection>,
) -> Result<DocumentResponse<Uploaded>, ApiError> {
    let Json(wanted) = body.map_err(|rejection| ApiError::document(&rejection))?;
    let stored = store_prepared(&app, merged(&app, &wanted).await?).await?;
    app.imports.previews.remove(&wanted.previews);
    Ok(stored)
}

/// Merges previews into a new preview. Nothing is stored.
#[utoipa::path(
    post, path = "/api/v1/datasets/previews/merge", tag = "datasets", request_body = StorePreviews,
    responses(
        (status = 202, body = DatasetPreview, description = "Merged, not stored"),
        (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "A preview has expired"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "The previews are not parts of one dataset"),
    )
)]
pub(crate) async fn merge(
    State(app): Shared,
    body: Result<Json<StorePreviews>, JsonRejection>,
) -> Result<crate::error::Prepared<DatasetPreview>, ApiError> {
    let Json(wanted) = body.map_err(|rejection| ApiError::document(&rejection))?;
    let merged = merged(&app, &wanted).await?;
    app.imports.previews.remove(&wanted.previews);
    Ok(hold(&app, merged))
}

/// Caches a preview until it expires.
pub(super) fn hold(app: &Arc<App>, prepared: Prepared) -> crate::error::Prepared<DatasetPreview> {
    let (id, expires_at, prepared) = app.imports.previews.hold(prepared, app.clock.now());
    tokio::spawn(remove_expired(Arc::downgrade(app)));
    crate::error::Prepared(prepared.preview(id, expires_at.to_string()))
}

/// Removes expired previews after the lifetime of a new preview, so an idle server does not retain
/// memory.
async fn remove_expired(app: Weak<App>) {
    tokio::time::sleep(Duration::from_secs(PREVIEW_LIFETIME.as_secs().unsigned_abs() + 1)).await;
    if let Some(app) = app.upgrade() {
        app.imports.previews.remove_expired(app.clock.now());
    }
}

/// Stores an imported dataset.
pub(super) async fn store_prepared(app: &App, prepared: Prepared) -> Result<DocumentResponse<Uploaded>, ApiError> {
    let report = prepared.report();
    let dataset = blocking(move || prepared.to_stored()).await?;
    let id = dataset.id.clone();
    let is_new = app.store.writer().store_dataset(dataset, app.clock.now()).await?;
    let uploaded = Uploaded { dataset: app.store.reader().dataset(&id).await?, report };
    Ok(if is_new {
        DocumentResponse::Created(api::path::dataset(&id), uploaded)
    } else {
        DocumentResponse::Present(uploaded)
    })
}

/// Merges previews into a dataset.
async fn merged(app: &App, wanted: &StorePreviews) -> Result<Prepared, ApiError> {
    let now = app.clock.now();
    let name = wanted.name.as_deref().and_then(label::file);
    let find = |id: &String| app.imports.previews.find(id, now).ok_or_else(|| ApiError::NoPreview(id.clone()));
    if wanted.previews.len() > MAX_PARTS {
        return Err(ApiError::Malformed(format!("previews: at most {MAX_PARTS} of them")));
    }
    let parts = wanted.previews.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = parts.first() else {
        return Err(ApiError::Malformed("previews: at least one is needed".to_owned()));
    };
    let name = name.unwrap_or_else(|| first.name.clone());
    let merged = blocking(move || {
        if let [only] = parts.as_slice() {
            return Ok(only.renamed(name));
        }
        let files = parts.iter().flat_map(|part| part.files().iter().cloned()).collect();
        let shards: Vec<(String, Imported)> =
            parts.into_iter().map(|part| (part.name.clone(), part.imported.clone())).collect();
        Prepared::new(name, files, ingest::dataset::merge(shards)?)
    });
    Ok(merged.await??)
}
