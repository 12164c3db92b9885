//! The log of a run: bytes in as they come, and out as they came.

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
use crate::store::LogPlace;
use crate::token::Token;

/// Bytes that are read at once from the database.
const PIECE_BYTES: usize = 256 << 10;
/// Longest reason of an end that is kept, in characters.
const LONGEST_REASON: usize = 2000;
/// Largest word of an end, in KiB: many times the longest reason.
pub(crate) const LARGEST_END_KIB: usize = 64;

/// A place in a log.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Place {
    /// File, from 0: a log that was rotated or written anew goes on in the next. Absent: the latest.
    file: Option<u32>,
    /// Byte of the file from which on; 0 by default.
    offset: Option<u64>,
}

/// The end of what is stored of a log: where to go on.
#[utoipa::path(
    head, path = "/api/v1/runs/{run}/log", tag = "runs", params(("run" = String, Path, description = "Identifier"), Place),
    responses(
        (status = 200, description = "Its bytes stand in Upload-Offset, the file spoken of in Upload-File"),
        (status = 400, description = "The query is malformed"),
        (status = 401, description = "The token of the run, or the server's, is needed"),
        (status = 403, description = "The token is not good for this run"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn end(
    State(app): Shared,
    Path(run): Path<String>,
    place: Result<Query<Place>, QueryRejection>,
    headers: HeaderMap,
) -> Result<LogEndsAt, ApiError> {
    let Query(place) = place?;
    authorise(&app, &run, &headers).await?;
    Ok(LogEndsAt(app.live.end_of_log(&run, place.file).await?))
}

/// Takes bytes into the log of a run, from a byte of the file on.
///
/// Bytes that are stored already are compared and skipped, so that sending again is safe. The body may go on as long as the
/// job does: bytes are stored within a quarter of a second, and only 60 s without a byte end the request. A request that
/// says its size has at most 8 MiB, the log of a run 2 GiB; of lines longer than 64 KiB nothing is read. A token that ends while the
/// body comes ends the request. A run has at most two such requests at once; a third one ends the oldest.
#[utoipa::path(
    method(patch, put), path = "/api/v1/runs/{run}/log", tag = "runs",
    params(("run" = String, Path, description = "Identifier"), Place),
    request_body(content = String, content_type = "application/octet-stream", description = "Bytes of the log"),
    responses(
        (status = 204, description = "Stored; the end of the file stands in Upload-Offset"),
        (status = 400, description = "The query is malformed, or the body broke off; what came of it is stored"),
        (status = 401, description = "The token of the run, or the server's, is needed"),
        (status = 403, description = "The token is not good for this run, or no longer"),
        (status = 404, description = "Unknown"),
        (status = 409, description = "gap: go on from Upload-Offset; diverged: open the next file; not-live: the log was imported; upload-replaced: newer requests took over"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "More than a request or a run may have"),
        (status = 429, description = "Too many logs are being sent; try again after a while"),
    )
)]
pub(crate) async fn append(
    State(app): Shared,
    Path(run): Path<String>,
    place: Result<Query<Place>, QueryRejection>,
    request: Request,
) -> Result<LogStored, ApiError> {
    let Query(place) = place?;
    let token = authorise(&app, &run, request.headers()).await?;
    let limits = app.live.limits();
    if request.body().size_hint().exact().is_some_and(|bytes| bytes > limits.request_bytes) {
        return Err(ApiError::LargeRequest(limits.request_bytes >> 20));
    }
    let seat = app.live.upload(&run).ok_or(ApiError::UploadsFull(limits.uploads))?;
    let end = app.live.end_of_log(&run, place.file).await?;
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
    // A task of its own: where the connection breaks, what came until then is stored nevertheless.
    let end = tokio::spawn(upload.take(body, seat));
    end.await.map_err(|error| ApiError::Fault(format!("an upload stopped unexpectedly: {error}")))?.map(LogStored)
}

/// The bytes of a log as they came.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/log", tag = "runs", params(("run" = String, Path, description = "Identifier"), Place),
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
    place: Result<Query<Place>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(place) = place?;
    let file = app.live.end_of_log(&run, place.file).await?.file;
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{run}-{file}.log\"")),
    ];
    let first = LogPlace { file, offset: place.offset.unwrap_or_default() };
    let pieces = stream::try_unfold((app, run, first), |(app, run, place)| async move {
        let piece = app.store.reader().log_bytes(&run, place, PIECE_BYTES).await.map_err(io::Error::other)?;
        let next = LogPlace { offset: place.offset + piece.len() as u64, ..place };
        Ok::<_, io::Error>((!piece.is_empty()).then_some((Bytes::from(piece), (app, run, next))))
    });
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Says that a run ended. Bytes may still come for a minute; steps that come later make it live again.
#[utoipa::path(
    post, path = "/api/v1/runs/{run}/finish", tag = "runs", request_body = FinishRun,
    params(("run" = String, Path, description = "Identifier")),
    responses(
        (status = 204, description = "It ended, or crashed where the code is neither 0 nor 130"),
        (status = 400, description = "The body is not such a document"),
        (status = 403, description = "The token is not good for this run"),
        (status = 404, description = "Unknown"),
        (status = 409, description = "The log was imported whole"),
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
    // Before the body is read, as the guard lets everyone come this far.
    // Where the server asks for no token, whoever sees a run may end it, as he may delete it.
    if app.access.needs_token() || headers.contains_key(axum::http::header::AUTHORIZATION) {
        authorise(&app, &run, &headers).await?;
    }
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|rejection| ApiError::small_body(&rejection, LARGEST_END_KIB))?;
    let end: FinishRun =
        serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(format!("the body is wrong: {error}")))?;
    let reason = end.reason.map(|reason| reason.trim().chars().take(LONGEST_REASON).collect::<String>());
    app.live.finish(&run, end.exit_code, reason.as_deref().filter(|reason| !reason.is_empty())).await?;
    Ok(Deleted)
}

/// Lets whoever has the server's token or one of the run's, and answers the hash of the latter. Whether there is such a run is said to
/// those alone.
pub(crate) async fn authorise(app: &App, run: &str, headers: &HeaderMap) -> Result<Option<[u8; 32]>, ApiError> {
    if app.access.may_write_logs(headers).await? {
        return Ok(None);
    }
    let token = Token::hash_of(bearer(headers).ok_or(ApiError::NoRunToken)?);
    admit(app, run, &token).await?;
    Ok(Some(token))
}

/// Refuses a token that is not good for the run, or is no longer.
pub(crate) async fn admit(app: &App, run: &str, token: &[u8; 32]) -> Result<(), ApiError> {
    if app.store.reader().run_admits(run, token).await? { Ok(()) } else { Err(ApiError::WrongRunToken) }
}

/// Bytes on their way into a log.
struct Upload {
    app: Arc<App>,
    run: String,
    /// Hash of the token of the run that it came with, if it was not the server's.
    token: Option<[u8; 32]>,
    file: u32,
    /// Byte of the file at which the waiting ones begin.
    offset: u64,
    /// End of the file as this upload knows it.
    stored: u64,
    waiting: Vec<u8>,
}

impl Upload {
    /// Takes bytes until they end, pause for long, are refused, or a newer upload has the seat.
    async fn take(mut self, mut body: BodyDataStream, mut seat: UploadSeat) -> Result<LogEnd, ApiError> {
        let app = Arc::clone(&self.app);
        let limits = *app.live.limits();
        let mut stopped = std::pin::pin!(app.live.stopped());
        let mut heard = Instant::now();
        // When the first of the waiting bytes came.
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
                    // Also where no byte came: the place itself may be wrong.
                    self.store(0).await?;
                    self.put(Vec::new()).await?;
                    return Ok(self.end());
                }
            }
        }
    }

    /// Stores what waits in pieces, down to less than so many bytes; all of it for 0.
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
        // A stream goes on for days, and its token may end before.
        if let Some(token) = &self.token {
            admit(&self.app, &self.run, token).await?;
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
