//! Partial uploads of Parquet files: the footer, then the ranges of the required columns.

use std::sync::Arc;

use api::dataset::FileRanges;
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, Query, Request, State};
use futures::StreamExt;
use ingest::dataset::parquet::{Footer, Sparse, import_from};

use super::uploads::{MAX_UPLOAD, Read, UploadOptions, blocking, guarded, pass_on};
use crate::app::{App, Shared};
use crate::arrival::Reservation;
use crate::error::ApiError;
use crate::imports::ranges::{COLUMN_BUDGET, RangesError, receive};
use crate::imports::{BYTES_BEFORE_SLOT, BodyReader, ImportOptions};
use crate::shares::Sharer;

/// Returns the byte ranges of a Parquet file that are required for reading sequence lengths.
///
/// The request body is the end of the file: the footer, its length, and the magic bytes. The ranges
/// contain the length columns, at most 256 MiB (texts and lists: 64 MiB), and the first values of all
/// other columns, so an upload of the ranges can list the available columns.
#[utoipa::path(
    post, path = "/api/v1/datasets/footers", tag = "datasets", params(UploadOptions),
    request_body(content = String, content_type = "application/octet-stream", description = "The end of the file"),
    responses(
        (status = 200, body = FileRanges),
        (status = 400, description = "The request is malformed"),
        (status = 413, description = "More than 64 MiB"),
        (status = 422, description = "Not the footer of a Parquet file, or no such column"),
        (status = 503, description = "Other files are being read; try again later"),
    )
)]
pub(crate) async fn footer(
    State(app): Shared,
    options: Result<Query<UploadOptions>, QueryRejection>,
    request: Request,
) -> Result<Json<FileRanges>, ApiError> {
    let Query(options) = options?;
    let length = options.length.ok_or_else(length_missing)?;
    let import_options = options.import_options(&app)?;
    let reservation = Reservation::from_extensions(request.extensions());
    let body = Bytes::from_request(request, &()).await;
    let tail = body.map_err(|rejection| ApiError::dataset(&rejection, MAX_UPLOAD))?;
    let found = blocking(move || {
        let footer = Footer::read(&tail, length)?;
        let plan = footer.plan(&import_options.options(), COLUMN_BUDGET);
        drop(reservation);
        Ok::<_, ApiError>(FileRanges {
            ranges: plan.ranges.into_iter().map(|range| (range.start, range.end - range.start)).collect(),
            rows: footer.rows(),
        })
    });
    Ok(Json(found.await??))
}

/// Reads parts of a Parquet file.
pub(super) async fn import(
    app: &Arc<App>,
    request: Request,
    length: Option<u64>,
    import_options: ImportOptions,
) -> Result<Read, ApiError> {
    let length = length.ok_or_else(length_missing)?;
    let reservation = Reservation::from_extensions(request.extensions());
    let sharer = Sharer::from_extensions(request.extensions());
    let mut body = request.into_body().into_data_stream();
    let mut first = Vec::new();
    while first.len() < BYTES_BEFORE_SLOT {
        let Some(piece) = body.next().await else { break };
        first.extend_from_slice(&piece.map_err(|error| ApiError::BrokenBody(error.to_string()))?);
    }
    let turn = app.imports.stream(&sharer).await?;
    let (sender, mut reader) = BodyReader::new(Bytes::from(first));
    let work = guarded(move || {
        let parts = receive(&mut reader, length).map_err(|error| match error {
            RangesError::Malformed(detail) => ApiError::MalformedRanges(detail),
            RangesError::Io(error) => ApiError::BrokenBody(error.to_string()),
        });
        let read = parts.and_then(|parts| Ok(import_from(Sparse::new(length, parts), &import_options.options())?));
        drop(reservation);
        (read, turn)
    });
    let (read, sent) = tokio::join!(work, pass_on(body, sender));
    sent?;
    read
}

fn length_missing() -> ApiError {
    ApiError::Malformed("length: the length of the file in bytes is needed".to_owned())
}
