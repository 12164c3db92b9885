//! The log of a run: upload and download.

use std::io;
use std::sync::Arc;

use api::run::FinishRun;
use axum::body::HttpBody as _;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, Path, Query, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

use crate::access::bearer;
use crate::app::{App, Shared};
use crate::error::{ApiError, Deleted, LogEndsAt, LogStored};
use crate::live::{LogEnd, LogRefusal, UploadSeat};
use crate::store::LogPosition;
use crate::token::Token;

/// Bytes per read from the database.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum stored length of an end reason, in characters.
const MAX_REASON: usize = 2000;
/// First bytes of a file that gzip compressed.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Maximum size of a finish request in KiB, far above the maximum length of the reason.
pub(crate) const MAX_END_KIB: usize = 64;

/// A position in a log.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogQuery {
    /// File number, from 0. A rotated or rewritten log continues in the next file. Default: the
    /// latest.
    file: Option<u32>,
    /// Byte offset in the file, 0 by default.
    offset: Option<u64>,
}

/// Returns the end of the stored log as the position for the next upload.
#[utoipa::path(
    head, path = "/api/v1/runs/{run}/log", tag = "runs", params(("run" = String, Path, description = "Identifier"), LogQuery),
    responses(
        (status = 200, description = "Upload-Offset has the number of stored bytes, Upload-File the current file"),
        (status = 400, description = "The query is malformed"),
        (status = 401, description = "The token of the run, or the server's, is needed"),
        (status = 403, description = "The token does not belong to this run"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn end(
    State(app): Shared,
    Path(run): Path<String>,
    place: Result<Query<LogQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<LogEndsAt, ApiError> {
    let Query(place) = place?;
    authorise(&app, &run, &headers).await?;
    Ok(LogEndsAt(app.live.log_end(&run, place.file).await?))
}

/// Appends bytes to the log of a run, at an offset in the file.
///
/// Bytes that are already stored are compared and skipped, so a retry is safe. A request can last
/// as long as the job: bytes are stored within a quarter of a second, and the timeout is 60 s
/// without data. Requests with a known size are limited to 8 MiB, and the log of a run to 2 GiB.
/// Lines longer than 64 KiB are ignored. The request is aborted if the token expires. A run has at
/// most two concurrent uploads, and a third aborts the oldest.
#[utoipa::path(
    method(patch, put), path = "/api/v1/runs/{run}/log", tag = "runs",
    params(("run" = String, Path, description = "Identifier"), LogQuery),
    request_body(content = String, content_type = "application/octet-stream", description = "Bytes of the log"),
    responses(
        (status = 204, description = "Stored; Upload-Offset has the end of the file"),
        (status = 400, description = "The query is malformed, or the body is incomplete; the part that arrived is stored"),
        (status = 401, description = "The token of the run, or the server's, is needed"),
        (status = 403, description = "The token does not belong to this run, or has expired"),
        (status = 404, description = "Unknown"),
        (status = 409, description = "gap: continue at Upload-Offset; diverged: open the next file; not-live: the log was imported; upload-replaced: a newer upload replaced this one"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "Exceeds the limit of a request or a run"),
        (status = 415, description = "The log is compressed"),
        (status = 429, description = "Too many logs are being sent; try again later"),
    )
)]
pub(crate) async fn append(
    State(app): Shared,
    Path(run): Path<String>,
    place: Result<Query<LogQuery>, QueryRejection>,
    request: Request,
) -> Result<LogStored, ApiError> {
    let Query(place) = place?;
    let token = authorise(&app, &run, request.headers()).await?;
    let limits = app.live.limits();
    if request.body().size_hint().exact().is_some_and(|bytes| bytes > limits.request_bytes) {
        return Err(ApiError::LargeRequest(limits.request_bytes >> 20));
    }
    let seat = app.live.upload(&run).ok_or(ApiError::UploadsFull(limits.uploads))?;
    let end = app.live.log_end(&run, place.file).await?;
    let upload = Upload {
        file: end.file,
        offset: place.offset.unwrap_or_default(),
        stored: end.stored,
        waiting: Vec::new(),
        app: Arc::clone(&app),
        run,
        token,
    };
    let body = request.into_body().into_data_stream();
    // A separate task stores all received bytes even if the connection breaks.
    let end = tokio::spawn(upload.take(body, seat));
    end.await.map_err(|error| ApiError::Fault(format!("an upload stopped unexpectedly: {error}")))?.map(LogStored)
}

/// Returns the raw bytes of a log.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/log", tag = "runs", params(("run" = String, Path, description = "Identifier"), LogQuery),
    responses(
        (status = 200, content_type = "application/octet-stream", description = "The bytes, as an attachment"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn bytes(
    State(app): Shared,
    Path(run): Path<String>,
    place: Result<Query<LogQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(place) = place?;
    let file = app.live.log_end(&run, place.file).await?.file;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{run}-{file}.log\"")),
    ];
    let first = LogPosition { file, offset: place.offset.unwrap_or_default() };
    let pieces = stream::try_unfold((app, run, first), |(app, run, place)| async move {
        let piece = app.store.reader().log_bytes(&run, place, PIECE_BYTES).await.map_err(io::Error::other)?;
        let next = LogPosition { offset: place.offset + piece.len() as u64, ..place };
        Ok::<_, io::Error>((!piece.is_empty()).then_some((Bytes::from(piece), (app, run, next))))
    });
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Marks a run as ended. Data is accepted for one more minute. Later steps change the state back to
/// live.
#[utoipa::path(
    post, path = "/api/v1/runs/{run}/finish", tag = "runs", request_body = FinishRun,
    params(("run" = String, Path, description = "Identifier")),
    responses(
        (status = 204, description = "Ended, or crashed if the exit code is not 0 or 130"),
        (status = 400, description = "The body is not a document of this form"),
        (status = 403, description = "The token does not belong to this run"),
        (status = 404, description = "Unknown"),
        (status = 409, description = "The log was imported as a complete file"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "More than 64 KiB"),
    )
)]
pub(crate) async fn finish(
    State(app): Shared,
    Path(run): Path<String>,
    headers: HeaderMap,
    request: Request,
) -> Result<Deleted, ApiError> {
    // Authorise before reading the body, because the guard does not authenticate this route. If the
    // server requires no token, any client that can see a run may end it, just as it may delete it.
    if app.access.needs_token() || headers.contains_key(axum::http::header::AUTHORIZATION) {
        authorise(&app, &run, &headers).await?;
    }
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|rejection| ApiError::small_body(&rejection, MAX_END_KIB))?;
    let end: FinishRun =
        serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(format!("the body is wrong: {error}")))?;
    let reason = end.reason.map(|reason| reason.trim().chars().take(MAX_REASON).collect::<String>());
    app.live.finish(&run, end.exit_code, reason.as_deref().filter(|reason| !reason.is_empty())).await?;
    Ok(Deleted)
}

/// Accepts the server's token or a token of the run. Returns the hash of a run token. Other clients
/// cannot learn whether the run exists.
pub(crate) async fn authorise(app: &App, run: &str, headers: &HeaderMap) -> Result<Option<[u8; 32]>, ApiError> {
    if app.access.may_write_logs(headers).await? {
        return Ok(None);
    }
    let token = Token::digest(bearer(headers).ok_or(ApiError::NoRunToken)?);
    admit(app, run, &token).await?;
    Ok(Some(token))
}

/// Returns an error if the token is not valid for the run, or has expired.
pub(crate) async fn admit(app: &App, run: &str, token: &[u8; 32]) -> Result<(), ApiError> {
    if app.store.reader().run_admits(run, token).await? { Ok(()) } else { Err(ApiError::WrongRunToken) }
}

/// A log upload in progress.
struct Upload {
    app: Arc<App>,
    run: String,
    /// Hash of the run token, or `None` for the server's token.
    token: Option<[u8; 32]>,
    file: u32,
    /// Offset in the file of the first byte in `waiting`.
    offset: u64,
    /// Last known end of the file.
    stored: u64,
    waiting: Vec<u8>,
}

impl Upload {
    /// Receives bytes. Stops at the end of the body, on a timeout, on a refusal, or if a newer
    /// upload replaces this one.
    async fn take(mut self, mut body: BodyDataStream, mut seat: UploadSeat) -> Result<LogEnd, ApiError> {
        let app = Arc::clone(&self.app);
        let limits = *app.live.limits();
        let mut stopped = std::pin::pin!(app.live.stopped());
        let mut heard = Instant::now();
        // Arrival time of the first byte in `waiting`.
        let mut since: Option<Instant> = None;
        loop {
            let silent = heard + limits.idle;
            let due = since.map_or(silent, |since| silent.min(since + limits.piece_wait));
            let next = tokio::select! {
                next = body.next() => next,
                () = tokio::time::sleep_until(due) => {
                    self.store(0).await?;
                    since = None;
                    if Instant::now() >= silent {
                        return Ok(self.end());
                    }
                    continue;
                }
                () = &mut stopped => {
                    self.store(0).await?;
                    return Err(ApiError::Stopping);
                }
                () = seat.replaced() => {
                    self.store(0).await?;
                    return Err(LogRefusal::Replaced { file: self.file, stored: self.stored }.into());
                }
            };
            match next {
                Some(Ok(bytes)) => {
                    heard = Instant::now();
                    since = since.or(Some(heard));
                    self.waiting.extend_from_slice(&bytes);
                    if self.waiting.len() >= limits.piece_bytes {
                        self.store(limits.piece_bytes).await?;
                        since = (!self.waiting.is_empty()).then_some(heard);
                    }
                }
                Some(Err(error)) => {
                    self.store(0).await?;
                    return Err(ApiError::BrokenBody(error.to_string()));
                }
                None => {
                    // Also check an empty upload, because the offset may be wrong.
                    self.store(0).await?;
                    self.put(Vec::new()).await?;
                    return Ok(self.end());
                }
            }
        }
    }

    /// Stores buffered bytes in pieces until fewer than `rest` remain, or all for 0.
    async fn store(&mut self, rest: usize) -> Result<(), ApiError> {
        let piece_bytes = self.app.live.limits().piece_bytes.max(1);
        while !self.waiting.is_empty() && self.waiting.len() >= rest {
            let behind = self.waiting.split_off(self.waiting.len().min(piece_bytes));
            let piece = std::mem::replace(&mut self.waiting, behind);
            self.put(piece).await?;
        }
        Ok(())
    }

    async fn put(&mut self, piece: Vec<u8>) -> Result<(), ApiError> {
        // An upload can last for days, and the token may expire in the meantime.
        if let Some(token) = &self.token {
            admit(&self.app, &self.run, token).await?;
        }
        if self.offset == 0 && piece.starts_with(&GZIP) {
            return Err(LogRefusal::Compressed.into());
        }
        let piece = Bytes::from(piece);
        let end = self.app.live.append(&self.run, Some(self.file), self.offset, &piece).await?;
        self.offset += piece.len() as u64;
        self.stored = end.stored;
        Ok(())
    }

    fn end(&self) -> LogEnd {
        LogEnd { file: self.file, stored: self.stored }
    }
}
