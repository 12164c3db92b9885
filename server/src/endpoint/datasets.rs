//! Dataset endpoints: upload, list, change, delete, restore.

pub(crate) mod previews;
pub(crate) mod ranges;
pub(crate) mod tokenizers;
pub(crate) mod uploads;

use api::dataset::{DatasetList, DatasetSummary};
use api::listing::{Annotations, ListQuery, MAX_PAGE};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};

use super::lists;
use crate::app::Shared;
use crate::error::{ApiError, Deleted};
use crate::store::DATASETS;

/// Lists stored datasets, pinned first, then from newest to oldest. Additional sort keys are
/// `samples` and `size`.
#[utoipa::path(
    get, path = "/api/v1/datasets", tag = "datasets", params(ListQuery),
    responses((status = 200, body = DatasetList), (status = 400, description = "The query is malformed"))
)]
pub(crate) async fn list(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<DatasetList>, ApiError> {
    let Query(query) = query?;
    let mut list = app.store.reader().datasets(&lists::wanted(query, &DATASETS, MAX_PAGE)?).await?;
    list.page.retention_days = app.live.limits().retention_days;
    Ok(Json(list))
}

/// Returns a dataset.
#[utoipa::path(
    get, path = "/api/v1/datasets/{id}", tag = "datasets", params(("id" = String, Path, description = "Content address")),
    responses((status = 200, body = DatasetSummary), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<DatasetSummary>, ApiError> {
    Ok(Json(app.store.reader().dataset(&id).await?))
}

/// Changes name, note and tags of a dataset. Omitted fields are not modified.
#[utoipa::path(
    patch, path = "/api/v1/datasets/{id}", tag = "datasets", request_body = Annotations,
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = DatasetSummary), (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Invalid fields; all of them are listed"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Json<Annotations>, JsonRejection>,
) -> Result<Json<DatasetSummary>, ApiError> {
    let Json(annotations) = body.map_err(|rejection| ApiError::document(&rejection))?;
    app.store.reader().dataset(&id).await?;
    app.store.writer().change_dataset(&id, &lists::checked(annotations)?, app.clock.now()).await?;
    Ok(Json(app.store.reader().dataset(&id).await?))
}

/// Restores a deleted dataset.
#[utoipa::path(
    post, path = "/api/v1/datasets/{id}/restore", tag = "datasets", params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = DatasetSummary), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted, and the retention period is over"),
    )
)]
pub(crate) async fn restore(State(app): Shared, Path(id): Path<String>) -> Result<Json<DatasetSummary>, ApiError> {
    app.store.writer().forget_datasets(app.live.limits().deleted_before(app.clock.now())).await?;
    app.store.writer().restore_dataset(&id).await?;
    Ok(Json(app.store.reader().dataset(&id).await?))
}

/// Deletes a dataset. Scenarios with this dataset retain stored outcomes, but planning them again
/// requires restoring the dataset.
#[utoipa::path(
    delete, path = "/api/v1/datasets/{id}", tag = "datasets", params(("id" = String, Path, description = "Content address")),
    responses((status = 204, description = "Deleted"), (status = 404, description = "Unknown"), (status = 410, description = "Already deleted"))
)]
pub(crate) async fn delete(State(app): Shared, Path(id): Path<String>) -> Result<Deleted, ApiError> {
    app.store.writer().delete_dataset(&id, app.clock.now()).await?;
    Ok(Deleted)
}
