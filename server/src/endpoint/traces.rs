//! Trace endpoints: upload, list, change, delete, restore. [`looking`] reads a trace, [`planned`]
//! compares it with a plan, [`compared`] with other traces.

pub(crate) mod compared;
pub(crate) mod looking;
pub(crate) mod planned;

use std::fs::File;
use std::io::ErrorKind;

use api::listing::Annotations;
use api::listing::{ListQuery, MAX_PAGE};
use api::trace::{TraceChange, TraceDetail, TraceList, TraceSummary, UploadedTrace};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::HeaderMap;
use futures::StreamExt;
use ingest::trace::TimeUnit;
use planner::scenario::PlannerKind;
use planner::trace_alignment::MAX_NUMBER;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use utoipa::IntoParams;

use super::runs::log::{admit, authorise};
use super::scenarios::find;
use super::{lists, off_thread};
use crate::actor::Actor;
use crate::app::{App, Shared};
use crate::error::{ApiError, Deleted, DocumentResponse};
use crate::imports::BYTES_BEFORE_SLOT;
use crate::label;
use crate::shares::{Sharer, Slot};
use crate::store::{Changed, Sent, TRACES};
use crate::trace_id::TraceHash;
use crate::traces::import::prepare;
use crate::traces::overview::Overview;
use crate::traces::packed::{Damaged, unpack_json};

impl From<Damaged> for ApiError {
    fn from(error: Damaged) -> Self {
        Self::Fault(error.to_string())
    }
}

/// Additional options for the list of traces.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListOptions {
    /// Run identifier.
    run: Option<String>,
}

/// Lists stored traces, pinned first, then from newest to oldest, with the total size. Additional
/// sort keys are `slices`, `span` and `size`.
#[utoipa::path(
    get, path = "/api/v1/traces", tag = "traces", params(ListQuery, ListOptions),
    responses((status = 200, body = TraceList), (status = 400, description = "The query is malformed"))
)]
pub(crate) async fn list(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
    options: Result<Query<ListOptions>, QueryRejection>,
) -> Result<Json<TraceList>, ApiError> {
    let (Query(query), Query(options)) = (query?, options?);
    let mut wanted = lists::wanted(query, &TRACES, MAX_PAGE)?;
    if let Some(run) = options.run.filter(|run| !run.is_empty()) {
        wanted.filters.push(("run_id = ".to_owned(), run, ""));
    }
    let (traces, mut page) = app.store.reader().traces(&wanted).await?;
    let limits = &app.traces.limits;
    page.retention_days = u32::try_from(limits.retention.as_secs() / 86_400).unwrap_or(u32::MAX);
    Ok(Json(TraceList { traces, page, largest_upload_mib: limits.upload_mib }))
}

/// Options of an upload.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SendOptions {
    /// Display name. For a path, the last component is used.
    name: Option<String>,
    /// Run that the trace is from.
    run: Option<String>,
    /// Traced rank. Default: the rank in the file.
    rank: Option<u32>,
    /// Scenario to compare with, by identifier or unique prefix.
    scenario: Option<String>,
    /// Planner in that scenario. Default: the fastest.
    planner: Option<String>,
    /// Time unit of Chrome traces: us (as in the format), ms or ns.
    unit: Option<String>,
    /// Pipeline stage of the traced rank, for action names without a stage (`Forward 0` in torch's
    /// 1F1B and GPipe). Default: derived from the rank and the job's process groups.
    stage: Option<u32>,
}

/// Parsing options for a trace.
#[derive(Debug, Clone, Copy)]
struct Reading {
    unit: TimeUnit,
    stage: Option<u32>,
}

/// Uploads a trace: Kineto or other Chrome trace events, Perfetto packets, Chakra nodes, or an SQLite
/// export of Nsight Systems, optionally compressed with gzip.
///
/// The request body is the file. Its format is detected from the content. All slices are stored. An
/// upload of existing content returns the stored trace and updates its options. The token of the
/// run in `run` also permits an upload. A truncated file is read as far as possible, and the report
/// contains a note.
#[utoipa::path(
    post, path = "/api/v1/traces", tag = "traces", params(SendOptions),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = UploadedTrace, description = "Stored"),
        (status = 200, body = UploadedTrace, description = "The same bytes are already stored"),
        (status = 300, description = "The prefix of the scenario is ambiguous; the candidates are listed"),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "The scenario or the planner is unknown"),
        (status = 410, description = "The scenario is deleted"),
        (status = 413, description = "Larger than the limit of the server, compressed or decompressed"),
        (status = 415, description = "Not a trace"),
        (status = 422, description = "The file is empty, broken, or has nothing to show"),
        (status = 503, description = "Other traces are being uploaded; try again later"),
    )
)]
pub(crate) async fn upload(
    State(app): Shared,
    options: Result<Query<SendOptions>, QueryRejection>,
    actor: Actor,
    request: Request,
) -> Result<DocumentResponse<UploadedTrace>, ApiError> {
    let Query(options) = options?;
    let named_run = options.run.as_deref().and_then(label::clean);
    let by_run = by_run_token(&app, &actor, named_run.as_deref(), request.headers()).await?;
    let unit = match options.unit.as_deref() {
        None | Some("" | "us") => TimeUnit::Microseconds,
        Some("ms") => TimeUnit::Milliseconds,
        Some("ns") => TimeUnit::Nanoseconds,
        Some(other) => return Err(ApiError::Malformed(format!("unit: {other:?} is none of us, ms and ns"))),
    };
    let run = named_run;
    let requested = parse_planner(options.planner.as_deref())?;
    // A run token grants no access to scenarios.
    let scenario = options.scenario.as_deref().filter(|scenario| !scenario.is_empty() && by_run.is_none());
    let (scenario, planner) = match (scenario, &run) {
        (Some(scenario), _) => (Some(find(&app, scenario).await?.id), requested),
        // By default, a trace uses the scenario and planner of its run. The run may be unknown to
        // this server.
        (None, Some(run)) => match app.store.reader().run(run, app.clock.now()).await {
            Ok(detail) => (detail.summary.scenario, requested.or(detail.summary.plan)),
            Err(_) => (None, requested),
        },
        (None, None) => (None, requested),
    };
    let sent = Sent { name: options.name.as_deref().and_then(label::file), run, rank: options.rank, scenario, planner };
    if options.stage.is_some_and(|stage| stage >= MAX_NUMBER) {
        return Err(ApiError::Malformed(format!("stage: the largest pipeline stage is {}", MAX_NUMBER - 1)));
    }
    let reading = Reading { unit, stage: options.stage };
    let sharer = Sharer::from_extensions(request.extensions());
    let received = receive(&app, &sharer, request.into_body(), reading).await?;
    let id = received.id.clone();
    let is_new = if let (Some(token), Some(run)) = (&by_run, &sent.run) {
        // The token may have expired during the upload. An existing trace does not change.
        admit(&app, run, token).await?;
        app.store.reader().trace(&id).await.is_err()
    } else {
        !app.store.writer().send_trace_again(&id, &sent).await?
    };
    if is_new {
        // Check the quota before the slow parsing step. The stored size is only known after it.
        app.store.reader().check_space().await?;
        store(&app, &sent, received, reading).await?;
    }
    let reader = app.store.reader();
    let uploaded = UploadedTrace { trace: reader.trace(&id).await?, report: reader.trace_report(&id).await? };
    Ok(if is_new {
        DocumentResponse::Created(api::path::trace(&id), uploaded)
    } else {
        DocumentResponse::Present(uploaded)
    })
}

/// A received file.
struct Received {
    file: File,
    bytes: u64,
    id: String,
    slot: Slot,
}

/// Returns the hash of the run token if the upload has no other authorisation. Fails if the token
/// is not valid for the run.
async fn by_run_token(
    app: &App,
    actor: &Actor,
    run: Option<&str>,
    headers: &HeaderMap,
) -> Result<Option<[u8; 32]>, ApiError> {
    if !actor.is_run_token() {
        return Ok(None);
    }
    authorise(app, run.ok_or(ApiError::Unauthorised)?, headers).await
}

/// Streams a body into a temporary file, which is deleted with its last handle.
///
/// A large upload takes an upload slot after its first MiB, and a small upload after its last byte,
/// so a slow client does not occupy a slot.
async fn receive(app: &App, sharer: &Sharer, body: Body, reading: Reading) -> Result<Received, ApiError> {
    let limits = &app.traces.limits;
    let fault = |error: &std::io::Error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => ApiError::DiskFull,
        _ => ApiError::Fault(format!("a file on its way cannot be written: {error}")),
    };
    let mut early_slot = None;
    let file = tempfile::tempfile_in(&limits.folder).map_err(|error| fault(&error))?;
    let mut file = tokio::fs::File::from_std(file);
    let mut hash = TraceHash::new(reading.unit, reading.stage);
    let mut bytes = 0;
    let mut stream = body.into_data_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| ApiError::BrokenBody(error.to_string()))?;
        bytes += chunk.len() as u64;
        if bytes > BYTES_BEFORE_SLOT as u64 && early_slot.is_none() {
            early_slot = Some(app.traces.acquire_slot(sharer).await?);
        }
        if bytes > limits.upload_mib << 20 {
            return Err(ApiError::TraceTooLarge(limits.upload_mib));
        }
        hash.add(&chunk);
        file.write_all(&chunk).await.map_err(|error| fault(&error))?;
    }
    file.flush().await.map_err(|error| fault(&error))?;
    let slot = match early_slot {
        Some(acquired) => acquired,
        None => app.traces.acquire_slot(sharer).await?,
    };
    Ok(Received { file: file.into_std().await, bytes, id: hash.id(), slot })
}

/// Parses a file in turn with other imports, and stores the content.
async fn store(app: &App, sent: &Sent, received: Received, reading: Reading) -> Result<(), ApiError> {
    let Received { file, bytes, id, slot } = received;
    let turn = app.traces.turn().acquire_owned().await.map_err(|_| ApiError::Stopping)?;
    let limits = app.traces.limits.reading;
    let prepared = tokio::task::spawn_blocking(move || {
        // Turn and slot are released with the work, which can outlast the connection. The file is
        // dropped before them.
        let _guard = (turn, slot);
        prepare(file, reading.unit, reading.stage, &limits)
    });
    let prepared =
        prepared.await.map_err(|error| ApiError::Fault(format!("an import stopped unexpectedly: {error}")))??;
    Ok(app.store.writer().store_trace(&id, sent, bytes, &prepared, app.clock.now()).await?)
}

/// Returns a trace: processes, lanes, steps, time breakdown, and the import report.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}", tag = "traces", params(("id" = String, Path, description = "Content address")),
    responses((status = 200, body = TraceDetail), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<TraceDetail>, ApiError> {
    let reader = app.store.reader();
    let trace = reader.trace(&id).await?;
    let report = reader.trace_report(&id).await?;
    let mut overview = overview(&app, &id).await?;
    for breakdown in &mut overview.busy {
        breakdown.trace.clone_from(&trace.id);
    }
    let Overview { began_ns, processes, lanes, steps, counters, flows, level_widths_ns, busy: time_breakdowns } =
        overview;
    Ok(Json(TraceDetail {
        trace,
        report,
        began_ns,
        processes,
        lanes,
        steps,
        counters,
        flows,
        level_widths_ns,
        busy: time_breakdowns,
    }))
}

/// Changes name, note, tags, run, rank or plan of a trace. Omitted fields are not modified.
#[utoipa::path(
    patch, path = "/api/v1/traces/{id}", tag = "traces", request_body = TraceChange,
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = TraceSummary),
        (status = 300, description = "The prefix of the scenario is ambiguous; the candidates are listed"),
        (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "Unknown, or the scenario is"),
        (status = 410, description = "Deleted, or the scenario is"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Invalid fields; all of them are listed"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<TraceSummary>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, super::scenarios::MAX_DOCUMENT))?;
    let change: TraceChange =
        serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(format!("the body is wrong: {error}")))?;
    app.store.reader().trace(&id).await?;
    let scenario = match change.scenario.as_deref() {
        None => None,
        Some("") => Some(String::new()),
        Some(scenario) => Some(find(&app, scenario).await?.id),
    };
    let text = |raw: String| label::clean(&raw).unwrap_or_default();
    let annotations = Annotations { name: change.name, note: change.note, tags: change.tags, pinned: change.pinned };
    let changed = Changed {
        annotations: lists::checked(annotations)?,
        run: change.run.map(text),
        rank: change.rank,
        scenario,
        planner: change.planner,
    };
    app.store.writer().change_trace(&id, &changed, app.clock.now()).await?;
    Ok(Json(app.store.reader().trace(&id).await?))
}

/// Deletes a trace. It can be restored during the retention period for traces.
#[utoipa::path(
    delete, path = "/api/v1/traces/{id}", tag = "traces", params(("id" = String, Path, description = "Content address")),
    responses((status = 204, description = "Deleted"), (status = 404, description = "Unknown"), (status = 410, description = "Already deleted"))
)]
pub(crate) async fn delete(State(app): Shared, Path(id): Path<String>) -> Result<Deleted, ApiError> {
    app.store.reader().trace(&id).await?;
    app.store.writer().delete_trace(&id, app.clock.now()).await?;
    Ok(Deleted)
}

/// Restores a deleted trace.
#[utoipa::path(
    post, path = "/api/v1/traces/{id}/restore", tag = "traces", params(("id" = String, Path, description = "Content address")),
    responses((status = 200, body = TraceSummary), (status = 404, description = "Unknown"), (status = 410, description = "Deleted, and the retention period is over"))
)]
pub(crate) async fn restore(State(app): Shared, Path(id): Path<String>) -> Result<Json<TraceSummary>, ApiError> {
    app.store.writer().forget_traces(app.traces.limits.deleted_before(app.clock.now())).await?;
    app.store.writer().restore_trace(&id).await?;
    Ok(Json(app.store.reader().trace(&id).await?))
}

/// Decompresses the overview of a trace.
async fn overview(app: &App, id: &str) -> Result<Overview, ApiError> {
    let packed = app.store.reader().trace_overview(id).await?;
    off_thread(move || Ok(unpack_json(&packed)?)).await
}

/// Parses an optional planner identifier.
fn parse_planner(id: Option<&str>) -> Result<Option<PlannerKind>, ApiError> {
    let named = id.filter(|id| !id.is_empty());
    named.map(|id| PlannerKind::from_id(id).ok_or_else(|| ApiError::NoSuchPlanner(id.to_owned()))).transpose()
}
