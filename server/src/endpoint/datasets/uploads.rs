//! Length file uploads: complete files, line formats of any size, and parts of Parquet files.

use std::sync::Arc;

use api::dataset::{RANGES_MEDIA_TYPE, Uploaded};
use axum::body::{BodyDataStream, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use ingest::dataset::{CHARACTERS_PER_TOKEN_RANGE, ImportError, Imported, Stream, Unit, arrow, parquet};
use planner::workload::preprocessing::Preprocessing;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ranges;
use crate::app::{App, Shared};
use crate::arrival::Reservation;
use crate::error::ApiError;
use crate::imports::{BodyReader, BodySender, ImportOptions, Prepared};
use crate::label;
use crate::shares::Sharer;

/// Maximum size in MiB of a file buffered in memory. Line formats and parts of Parquet files are
/// streamed and can be larger.
pub(crate) const MAX_UPLOAD: usize = 64;
const MAX_BYTES: usize = MAX_UPLOAD << 20;

/// Maximum decompressed size in bytes of a streamed file.
const MAX_UNPACKED: u64 = 1 << 40;

/// Number of bytes received from a refused body, so the sender reads the response instead of a
/// broken connection.
const DRAINED: u64 = 64 << 20;

/// Options of an upload.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadOptions {
    /// Display name. For a path, the last component is used.
    name: Option<String>,
    /// Column or key with the lengths. Default: selected by name.
    column: Option<String>,
    /// Column with additional lengths to sum, for example tokens of the completion. Empty: none.
    /// Default: selected by name.
    add: Option<String>,
    /// Column with the number of samples per row. Empty: each row is one sample. Default: selected
    /// by name.
    weight: Option<String>,
    /// Unit of the column values: tokens, characters or bytes. Default: derived from the column
    /// name.
    unit: Option<String>,
    /// Characters per token, for texts and for lengths in characters or bytes, 0.1 to 100. Default:
    /// 4.
    characters_per_token: Option<f64>,
    /// Tokenizer for texts, with an identifier from `POST /api/v1/tokenizers`.
    tokenizer: Option<String>,
    /// Rule that converts image sizes, video frames and audio seconds to encoder items and backbone
    /// tokens. By default, images are counted without conversion.
    #[param(inline)]
    preprocessing: Option<Preprocessing>,
    /// If true, the file is only read. Nothing is stored, and the response is a preview that can be
    /// stored for 15 minutes.
    #[serde(default)]
    preview: bool,
    /// Length of the complete file in bytes, if the body contains parts of it.
    pub(super) length: Option<u64>,
}

impl UploadOptions {
    /// Validates the options.
    pub(super) fn import_options(&self, app: &App) -> Result<ImportOptions, ApiError> {
        let unit =
            match self.unit.as_deref().filter(|unit| !unit.is_empty()) {
                None => None,
                Some(id) => Some(Unit::from_id(id).ok_or_else(|| {
                    ApiError::Malformed(format!("unit: {id:?} is none of tokens, characters and bytes"))
                })?),
            };
        if let Some(ratio) = self.characters_per_token
            && !CHARACTERS_PER_TOKEN_RANGE.contains(&ratio)
        {
            return Err(ApiError::Malformed(format!("characters_per_token: {ratio} is not between 0.1 and 100")));
        }
        let tokenizer = match self.tokenizer.as_deref().filter(|id| !id.is_empty()) {
            None => None,
            Some(id) => Some(app.imports.previews.tokenizer(id).ok_or_else(|| ApiError::NoTokenizer(id.to_owned()))?),
        };
        Ok(ImportOptions {
            column: self.column.clone().filter(|column| !column.is_empty()),
            add: self.add.clone(),
            weight: self.weight.clone(),
            unit,
            characters_per_token: self.characters_per_token,
            tokenizer,
            preprocessing: self.preprocessing,
        })
    }
}

/// Uploads a length file in any format from docs/formats.md. The format is detected from the
/// content.
///
/// The request body is the file, at most 64 MiB. CSV, JSON lines and plain numbers can have any
/// size, uncompressed or compressed with gzip or zstd. A body with type
/// `application/vnd.planscope.ranges` contains parts of a Parquet file of `length` bytes: its
/// footer and the ranges from `POST /api/v1/datasets/footers`. An upload of existing content
/// returns the stored dataset. A file is refused completely if it contains a zero or negative
/// length, or if more than a tenth of its rows contain no number. With `preview=true` nothing is
/// stored.
#[utoipa::path(
    post, path = "/api/v1/datasets", tag = "datasets", params(UploadOptions),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = Uploaded, description = "Stored"),
        (status = 200, body = Uploaded, description = "The same content is already stored"),
        (status = 202, body = api::dataset::DatasetPreview, description = "Read, not stored"),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "The tokenizer has expired"),
        (status = 413, description = "More than 64 MiB of a format that is read whole, or too many rows"),
        (status = 415, description = "Not a length file"),
        (status = 422, description = "The file is empty, its lengths are not lengths, or a column must be chosen; the candidates are listed"),
        (status = 503, description = "Other files are being read; try again later"),
    )
)]
pub(crate) async fn upload(
    State(app): Shared,
    options: Result<Query<UploadOptions>, QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let Query(options) = options?;
    let import_options = options.import_options(&app)?;
    let name = options.name.as_deref().and_then(label::file).unwrap_or_else(|| "dataset".to_owned());
    let is_ranges = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == RANGES_MEDIA_TYPE);
    let imported = if is_ranges {
        ranges::import(&app, request, options.length, import_options).await?
    } else {
        import(&app, request, import_options).await?
    };
    let (imported, _turn) = imported;
    let file = name.clone();
    let prepared = blocking(move || Prepared::new(name, vec![file], imported)).await??;
    if options.preview {
        return Ok(super::previews::hold(&app, prepared).into_response());
    }
    Ok(super::previews::store_prepared(&app, prepared).await?.into_response())
}

/// The imported data, with the import turn. Dropping the turn after storing releases it.
pub(super) type Read = (Imported, crate::imports::Turn);

/// Imports a body. Small bodies are buffered, larger ones are streamed.
async fn import(app: &Arc<App>, request: Request, import_options: ImportOptions) -> Result<Read, ApiError> {
    let reservation = Reservation::from_extensions(request.extensions());
    let sharer = Sharer::from_extensions(request.extensions());
    let mut body = request.into_body().into_data_stream();
    let mut buffer = Vec::new();
    while buffer.len() <= MAX_BYTES {
        let Some(piece) = body.next().await else {
            let turn = app.imports.turn().await?;
            // Memory and turn are released with the work, which may outlast the connection.
            return guarded(move || {
                let read = ingest::dataset::import(&buffer, &import_options.options());
                drop((buffer, reservation));
                (read, turn)
            })
            .await;
        };
        buffer.extend_from_slice(&piece.map_err(|error| ApiError::BrokenBody(error.to_string()))?);
    }
    // Later bytes are streamed.
    if let Some(reservation) = &reservation {
        reservation.switch_to_streaming();
    }
    let turn = app.imports.stream(&sharer).await?;
    let (sender, mut reader) = BodyReader::new(Bytes::new());
    let work = guarded(move || {
        let read = stream(&buffer, &mut reader, &import_options);
        drop((buffer, reservation));
        (read, turn)
    });
    let (read, sent) = tokio::join!(work, pass_on(body, sender));
    match (sent, read) {
        (Err(error), _) => Err(error),
        (Ok(()), read) => read,
    }
}

/// Imports a line format from a stream.
fn stream(buffer: &[u8], reader: &mut BodyReader, import_options: &ImportOptions) -> Result<Imported, ApiError> {
    let too_large = || ApiError::DatasetTooLarge(MAX_UPLOAD);
    if parquet::is(buffer) || arrow::is(buffer) {
        return Err(too_large());
    }
    let options = import_options.options();
    let mut stream = Stream::new(&options, MAX_UNPACKED);
    stream.push(buffer).map_err(|error| match error {
        // Not a line format.
        ImportError::Shape { .. } => too_large(),
        error => error.into(),
    })?;
    loop {
        let piece = reader.next_piece().map_err(|error| ApiError::BrokenBody(error.to_string()))?;
        if piece.is_empty() {
            return Ok(stream.finish()?);
        }
        stream.push(&piece)?;
    }
}

/// Forwards a body to a reader. If the reader stops early, receives and drops more data up to a
/// limit.
pub(super) async fn pass_on(mut body: BodyDataStream, sender: BodySender) -> Result<(), ApiError> {
    let mut dropped = 0;
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| ApiError::BrokenBody(error.to_string()))?;
        let bytes = piece.len() as u64;
        if sender.send(Some(piece)).await.is_err() {
            dropped += bytes;
            if dropped > DRAINED {
                return Ok(());
            }
        }
    }
    // The reader may already have stopped.
    drop(sender.send(None).await);
    Ok(())
}

/// Imports a file on a blocking thread. If the reader panics, the file is refused.
pub(super) async fn guarded<E: Into<ApiError> + Send + 'static>(
    work: impl FnOnce() -> (Result<Imported, E>, crate::imports::Turn) + Send + 'static,
) -> Result<Read, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok((read, turn)) => Ok((read.map_err(Into::into)?, turn)),
        Err(error) if error.is_panic() => {
            // The panic hook has already logged location and message.
            tracing::error!("a reader of datasets panicked");
            let detail =
                "its content cannot be decoded; write it again with another program or other settings".to_owned();
            Err(ImportError::Broken { format: "file", detail }.into())
        }
        Err(error) => Err(ApiError::Fault(format!("an import stopped unexpectedly: {error}"))),
    }
}

/// Runs a computation on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::Fault(format!("an import stopped unexpectedly: {error}")))
}
