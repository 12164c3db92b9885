//! Datasets: upload, list, change, delete, restore.

use api::dataset::{DatasetList, DatasetSummary, ImportReport, MediaReport, ShapedColumns, ShapedReport, Uploaded};
use api::shelf::{LARGEST_PAGE, ListQuery, Words};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, Path, Query, Request, State};
use ingest::dataset::{ImportError, Imported, Options};
use planner::data_aware::Preprocessing;
use planner::outcome::HistogramColumns;
use planner::workload::Dataset;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{lists, said_bytes};
use crate::app::Shared;
use crate::error::{Answer, ApiError, Deleted};
use crate::store::{DATASETS, NewDataset};
use crate::{dataset_id, label};

/// Largest upload, in MiB.
pub(crate) const LARGEST_UPLOAD: usize = 64;

/// Options of an upload.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadOptions {
    /// Name to show; the last part of a path is taken.
    name: Option<String>,
    /// Column or key that holds the lengths; absent: the best known name.
    column: Option<String>,
    /// Rule by which sizes of images, frames of video and seconds of sound become items of the encoder and tokens of the backbone;
    /// absent: none, images count as they stand.
    #[param(inline)]
    preprocessing: Option<Preprocessing>,
}

/// Stored datasets, pinned ones and then the newest first. Further orders are `samples` and `size`.
#[utoipa::path(
    get, path = "/api/v1/datasets", tag = "datasets", params(ListQuery),
    responses((status = 200, body = DatasetList), (status = 400, description = "A wrong query"))
)]
pub(crate) async fn list(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<DatasetList>, ApiError> {
    let Query(query) = query?;
    let mut list = app.store.reader().datasets(&lists::wanted(query, &DATASETS, LARGEST_PAGE)?).await?;
    list.page.retention_days = app.live.limits().retention_days;
    Ok(Json(list))
}

/// Uploads a length file: plain numbers, CSV, JSON or JSONL, recognised by content.
///
/// The body is the file itself, at most 64 MiB and 5,000,000 rows. The same content again answers the stored
/// dataset. A file with a zero or negative length, or in which more than a tenth of the rows hold no number,
/// is refused whole.
#[utoipa::path(
    post, path = "/api/v1/datasets", tag = "datasets", params(UploadOptions),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = Uploaded, description = "Stored"),
        (status = 200, body = Uploaded, description = "The same content is stored already"),
        (status = 400, description = "The request is malformed"),
        (status = 413, description = "More than 64 MiB or 5,000,000 rows"),
        (status = 415, description = "Not a text file"),
        (status = 422, description = "The file is empty, or its lengths are not lengths"),
        (status = 503, description = "Other files are being read; try again after a while"),
    )
)]
pub(crate) async fn upload(
    State(app): Shared,
    options: Result<Query<UploadOptions>, QueryRejection>,
    request: Request,
) -> Result<Answer<Uploaded>, ApiError> {
    let Query(options) = options?;
    let room = app.imports.room(said_bytes(request.headers()), LARGEST_UPLOAD).await?;
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|rejection| ApiError::dataset(&rejection, LARGEST_UPLOAD))?;
    let name = options.name.as_deref().and_then(label::file).unwrap_or_else(|| "dataset".to_owned());
    let column = options.column.filter(|column| !column.is_empty());
    let turn = app.imports.turn().await?;
    let read = tokio::task::spawn_blocking(move || {
        // Both end with the work, which may outlast the sender.
        let read = read(&body, name, column.as_deref(), options.preprocessing);
        drop((body, room));
        (read, turn)
    });
    let (read, _turn) =
        read.await.map_err(|error| ApiError::Fault(format!("an import stopped unexpectedly: {error}")))?;
    let (dataset, report) = read?;
    let id = dataset.id.clone();
    let is_new = app.store.writer().store_dataset(dataset, app.clock.now()).await?;
    let uploaded = Uploaded { dataset: app.store.reader().dataset(&id).await?, report };
    Ok(if is_new { Answer::Created(api::path::dataset(&id), uploaded) } else { Answer::Present(uploaded) })
}

/// One dataset.
#[utoipa::path(
    get, path = "/api/v1/datasets/{id}", tag = "datasets", params(("id" = String, Path, description = "Content address")),
    responses((status = 200, body = DatasetSummary), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn one(State(app): Shared, Path(id): Path<String>) -> Result<Json<DatasetSummary>, ApiError> {
    Ok(Json(app.store.reader().dataset(&id).await?))
}

/// Changes what people say of a dataset; what is absent stays.
#[utoipa::path(
    patch, path = "/api/v1/datasets/{id}", tag = "datasets", request_body = Words,
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = DatasetSummary), (status = 400, description = "The body is not such a document"),
        (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Fields are wrong; every one is named"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Json<Words>, JsonRejection>,
) -> Result<Json<DatasetSummary>, ApiError> {
    let Json(words) = body.map_err(|rejection| ApiError::document(&rejection))?;
    app.store.reader().dataset(&id).await?;
    app.store.writer().change_dataset(&id, &lists::checked(words)?, app.clock.now()).await?;
    Ok(Json(app.store.reader().dataset(&id).await?))
}

/// Brings a deleted dataset back.
#[utoipa::path(
    post, path = "/api/v1/datasets/{id}/restore", tag = "datasets", params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = DatasetSummary), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted longer ago than it is kept"),
    )
)]
pub(crate) async fn restore(State(app): Shared, Path(id): Path<String>) -> Result<Json<DatasetSummary>, ApiError> {
    app.store.writer().forget_datasets(app.live.limits().deleted_before(app.clock.now())).await?;
    app.store.writer().restore_dataset(&id).await?;
    Ok(Json(app.store.reader().dataset(&id).await?))
}

/// Deletes a dataset. Scenarios that name it keep their outcomes, but cannot be planned again until it is restored.
#[utoipa::path(
    delete, path = "/api/v1/datasets/{id}", tag = "datasets", params(("id" = String, Path, description = "Content address")),
    responses((status = 204, description = "Deleted"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted before"))
)]
pub(crate) async fn delete(State(app): Shared, Path(id): Path<String>) -> Result<Deleted, ApiError> {
    app.store.writer().delete_dataset(&id, app.clock.now()).await?;
    Ok(Deleted)
}

/// Reads a file and prepares what is stored of it; takes a second for the largest.
fn read(
    bytes: &[u8],
    name: String,
    column: Option<&str>,
    rule: Option<Preprocessing>,
) -> Result<(NewDataset, ImportReport), ImportError> {
    let options = Options { column, preprocessing: rule, ..Options::default() };
    let Imported { dataset, report } = ingest::dataset::import(bytes, &options)?;
    let (samples, text_tokens, images) = match &dataset {
        Dataset::Rows { text_tokens, images, .. } => {
            (text_tokens.len() as u64, HistogramColumns::of_values(text_tokens), HistogramColumns::of_values(images))
        }
        Dataset::Histogram { edges, counts } => {
            (counts.iter().sum::<f64>().round() as u64, HistogramColumns::of_bins(edges, counts), None)
        }
    };
    // Half a sample in all is still a sample.
    let samples = samples.max(1);
    let text_tokens = text_tokens.ok_or(ImportError::Empty)?;
    let shaped = shaped_columns(&dataset);
    let media = report.media.map(|media| {
        let figures = shaped.as_ref().zip(images.as_ref());
        let shaped = figures.map(|(shaped, items)| shaped_report(&media, shaped, items, samples));
        MediaReport { columns: media.columns, advice: media.advice, shaped }
    });
    let content = dataset_id::canonical(&dataset);
    let id = dataset_id::of(&content);
    let report = ImportReport {
        format: report.format,
        source: report.source,
        alternatives: report.candidates.into_iter().map(|candidate| candidate.name).collect(),
        parsed: report.parsed,
        repaired: report.repaired,
        skipped: report.skipped,
        first_problem: report.first_problem,
        media,
    };
    Ok((NewDataset { id, name, samples, text_tokens, images, shaped, content }, report))
}

/// Lengths of the backbone's sequences, s(d), where a rule has read media.
fn shaped_columns(dataset: &Dataset) -> Option<ShapedColumns> {
    let Dataset::Rows { text_tokens, shaped: Some(shaped), .. } = dataset else { return None };
    let lengths: Vec<u32> =
        text_tokens.iter().zip(&shaped.backbone_tokens).map(|(text, items)| text.saturating_add(*items)).collect();
    Some(ShapedColumns { preprocessing: shaped.preprocessing, backbone_tokens: HistogramColumns::of_values(&lengths)? })
}

fn shaped_report(
    media: &ingest::dataset::MediaReport,
    shaped: &ShapedColumns,
    items: &HistogramColumns,
    samples: u64,
) -> ShapedReport {
    let unread = [
        (media.unread_images, "image", "images"),
        (media.unread_frames, "frame of video", "frames of video"),
        (media.unread_clips, "clip of sound", "clips of sound"),
    ];
    ShapedReport {
        preprocessing: shaped.preprocessing,
        with_items: samples.saturating_sub(media.without_items),
        without_items: media.without_items,
        mean_batch: items.mean,
        largest_batch: items.max,
        mean_backbone_tokens: shaped.backbone_tokens.mean,
        largest_backbone_tokens: shaped.backbone_tokens.max,
        unread: unread
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
            .collect(),
    }
}
