//! Sweep endpoints: store, list, plan, read, import, delete.

pub(crate) mod pictures;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use api::listing::{Annotations, ListQuery, MAX_PAGE};
use api::scenario::StoredScenario;
use api::sweep::{
    Gathered, RowPage, ScenarioSweeps, StoredSweep, SuggestedSweep, SweepList, SweepProgress, SweepState,
};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use futures::{Stream, StreamExt, stream};
use planner::host::Cancellation;
use planner::outcome::ENGINE;
use planner::scenario::FieldError;
use planner::scenario::validate::Datasets;
use planner::sweep::{Heading, PointRow, ScalingSweep, Shard, Sheet, Sweep, SweepId, usual_fields};
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio_stream::wrappers::WatchStream;
use utoipa::IntoParams;

use super::scenarios::{self, AtHand, MAX_DOCUMENT, MAX_SCENARIO};
use super::{lists, off_thread};
use crate::app::{App, Shared};
use crate::client::Client;
use crate::error::{ApiError, Deleted, DocumentResponse};
use crate::jobs::{Asker, too_long};
use crate::json_values;
use crate::label;
use crate::store::{SWEEPS, StoreError, SweepRecord};
use crate::sweeps::datasets::{Missing, missing};
use crate::sweeps::gathering::{self, Lines};
use crate::sweeps::{self, labelled, named};

/// Limit on sweeps parsed in parallel. Parsing reads all presets and at least a value per axis.
static STORED_AT_ONCE: Semaphore = Semaphore::const_new(2);
/// Maximum number of rows per page.
const MAX_ROWS: u32 = 1_000;
/// Interval for keep-alive comments. Proxies close silent streams.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Minimum interval between events, chosen for network load. It is still below the redraw time of a
/// page.
const PACE: Duration = Duration::from_millis(200);

/// Lists stored sweeps, pinned first, then from newest to oldest. Additional sort keys are `name`
/// and `points`.
#[utoipa::path(
    get, path = "/api/v1/sweeps", tag = "sweeps", params(ListQuery),
    responses((status = 200, body = SweepList), (status = 400, description = "The query is malformed"))
)]
pub(crate) async fn list(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<SweepList>, ApiError> {
    let Query(query) = query?;
    let mut list = app.store.reader().sweeps(&lists::wanted(query, &SWEEPS, MAX_PAGE)?).await?;
    list.page.retention_days = app.live.limits().retention_days;
    Ok(Json(list))
}

/// Stores a sweep under its content address.
///
/// The body is `{"schema": "sweep/1", "scenario": .., "axes": [..]}`, with optional `planners` and
/// `seeds` that override those of the scenario. An axis is `{"pointer": "/cluster/nodes", "values":
/// [1, 2, 4]}` or a range, `"from": 1, "to": 64, "steps": 7, "scale": "log2"`. All combinations are
/// points, at most 100,000. The last axis changes fastest.
#[utoipa::path(
    post, path = "/api/v1/sweeps", tag = "sweeps", request_body = serde_json::Value,
    responses(
        (status = 201, body = StoredSweep, description = "Stored; planning begins with a request to start"),
        (status = 200, body = StoredSweep, description = "The same sweep is already stored"),
        (status = 413, description = "More than 1 MiB"),
        (status = 422, description = "Invalid fields; all of them are listed, and up to 100 values without a valid scenario. At most 200,000 values"),
    )
)]
pub(crate) async fn store(
    State(app): Shared,
    body: Result<Bytes, BytesRejection>,
) -> Result<DocumentResponse<StoredSweep>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_SCENARIO))?;
    let sweep = parsed(&app, body).await?;
    let title = sweep.title().and_then(label::clean);
    let sweep = sweep.titled(title);
    let is_new = app.store.writer().store_sweep(&sweep, app.clock.now()).await?;
    let stored = described(&app, app.store.reader().sweep(sweep.id().as_str()).await?).await?;
    Ok(if is_new {
        DocumentResponse::Created(api::path::sweep(&stored.id), stored)
    } else {
        DocumentResponse::Present(stored)
    })
}

/// Parses a sweep from a request body. Dropping the future cancels the work after a short delay.
async fn parsed(app: &App, body: Bytes) -> Result<Sweep, ApiError> {
    let turn = STORED_AT_ONCE.acquire().await.map_err(|error| ApiError::Fault(error.to_string()))?;
    let asker = Asker::default();
    let patience = asker.patience(app.jobs.time_limit());
    off_thread(move || {
        let _turn = turn;
        json_values::check(&body).map_err(|error| ApiError::InvalidRequest(vec![error]))?;
        Sweep::parse_while(&String::from_utf8_lossy(&body), &patience).map_err(ApiError::InvalidRequest)
    })
    .await
}

/// Returns a sweep and the planning progress.
#[utoipa::path(
    get, path = "/api/v1/sweeps/{id}", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses((status = 200, body = StoredSweep), (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<StoredSweep>, ApiError> {
    let record = find(&app, &id).await?;
    Ok(Json(described(&app, record).await?))
}

/// Changes name, note and tags of a sweep. Omitted fields are not modified.
#[utoipa::path(
    patch, path = "/api/v1/sweeps/{id}", tag = "sweeps", request_body = Annotations,
    params(("id" = String, Path, description = "Identifier")),
    responses(
        (status = 200, body = StoredSweep), (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"), (status = 422, description = "Invalid fields; all of them are listed"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Json<Annotations>, JsonRejection>,
) -> Result<Json<StoredSweep>, ApiError> {
    let Json(annotations) = body.map_err(|rejection| ApiError::document(&rejection))?;
    find(&app, &id).await?;
    app.store.writer().change_sweep(&id, &lists::checked(annotations)?, app.clock.now()).await?;
    Ok(Json(described(&app, find(&app, &id).await?).await?))
}

/// Deletes a sweep including all rows, and stops planning. It can be restored during the retention
/// period.
#[utoipa::path(
    delete, path = "/api/v1/sweeps/{id}", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses((status = 204, description = "Deleted"), (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"), (status = 410, description = "Already deleted"))
)]
pub(crate) async fn delete(State(app): Shared, Path(id): Path<String>) -> Result<Deleted, ApiError> {
    find(&app, &id).await?;
    app.sweeps.stop(&id);
    app.store.writer().delete_sweep(&id, app.clock.now()).await?;
    Ok(Deleted)
}

/// Restores a deleted sweep including all rows.
#[utoipa::path(
    post, path = "/api/v1/sweeps/{id}/restore", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses(
        (status = 200, body = StoredSweep), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted, and the retention period is over"),
    )
)]
pub(crate) async fn restore(State(app): Shared, Path(id): Path<String>) -> Result<Json<StoredSweep>, ApiError> {
    app.store.writer().forget_sweeps(app.live.limits().deleted_before(app.clock.now())).await?;
    app.store.writer().restore_sweep(&id).await?;
    get(State(app), Path(id)).await
}

/// Plans all points that have no result from this engine, at low priority. Planning resumes after a
/// restart.
#[utoipa::path(
    post, path = "/api/v1/sweeps/{id}/start", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses(
        (status = 200, body = SweepProgress), (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"), (status = 422, description = "A point needs a dataset that is not stored; nothing is planned"),
        (status = 503, description = "The server does not plan (--without-work)"),
    )
)]
pub(crate) async fn start(State(app): Shared, Path(id): Path<String>) -> Result<Json<SweepProgress>, ApiError> {
    Ok(Json(begin(&app, &id).await?))
}

/// Stops planning. Existing rows remain, and a new start continues after them.
#[utoipa::path(
    post, path = "/api/v1/sweeps/{id}/cancel", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses((status = 200, body = StoredSweep), (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn cancel(State(app): Shared, Path(id): Path<String>) -> Result<Json<StoredSweep>, ApiError> {
    let record = find(&app, &id).await?;
    app.sweeps.cancel(&id).await?;
    Ok(Json(described(&app, record).await?))
}

/// Streams the progress of a sweep as server-sent events: event "sweep", with the progress as data.
/// The stream closes after planning.
#[utoipa::path(
    get, path = "/api/v1/sweeps/{id}/events", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses(
        (status = 200, body = SweepProgress, content_type = "text/event-stream", description = "The current progress, then every change"),
        (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn events(
    State(app): Shared,
    Path(id): Path<String>,
    client: Client,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let present = described(&app, find(&app, &id).await?).await?.progress;
    let watched = app
        .sweeps
        .subscribe(&id)
        .map_or_else(|| stream::iter([present]).left_stream(), |receiver| WatchStream::new(receiver).right_stream());
    let progress = stream::unfold((Some(Box::pin(watched)), false), |(watched, is_late)| async move {
        let mut watched = watched?;
        if is_late {
            tokio::time::sleep(PACE).await;
        }
        let progress = watched.next().await?;
        let goes_on = progress.state == SweepState::Running;
        Some((progress, (goes_on.then_some(watched), true)))
    });
    let seat = app.live.stream(&client)?;
    let events = progress.map(move |progress| {
        let _guard = &seat;
        let data = serde_json::to_string(&progress).expect("progress has only text keys");
        Ok(Event::default().event("sweep").data(data))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Selects rows.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RowQuery {
    /// Number of the first point, 0 by default.
    from: Option<u32>,
    /// Maximum number of rows, 1,000 at most.
    limit: Option<u32>,
}

/// Returns a page of rows in point order.
#[utoipa::path(
    get, path = "/api/v1/sweeps/{id}/points", tag = "sweeps", params(("id" = String, Path, description = "Identifier"), RowQuery),
    responses(
        (status = 200, body = RowPage), (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn points(
    State(app): Shared,
    Path(id): Path<String>,
    query: Result<Query<RowQuery>, QueryRejection>,
) -> Result<Json<RowPage>, ApiError> {
    let Query(query) = query?;
    find(&app, &id).await?;
    let reader = app.store.reader();
    let limit = query.limit.unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS);
    let texts = reader.sweep_rows(&id, &reader.sweep_engine(&id).await?, query.from.unwrap_or(0), limit).await?;
    let rows = off_thread(move || {
        let rows = texts.iter().map(|text| serde_json::from_str::<PointRow>(text)).collect::<Result<Vec<_>, _>>();
        Ok(rows.map_err(|error| StoreError::Damaged { kind: "row of a sweep", detail: error.to_string() })?)
    })
    .await?;
    let next = rows.last().filter(|_| rows.len() as u32 == limit).map(|row| row.index + 1);
    Ok(Json(RowPage { rows, next }))
}

/// Imports the rows of a shard in the output format of `planscope sweep`.
///
/// Existing rows do not change. The file can be split into parts, each with the first line
/// repeated.
#[utoipa::path(
    post, path = "/api/v1/sweeps/{id}/points", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    request_body(content = String, content_type = "application/jsonl"),
    responses(
        (status = 200, body = Gathered, description = "Stored and missing points"),
        (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"), (status = 413, description = "More than 16 MiB"),
        (status = 422, description = "A line belongs to another sweep or engine version; its position is stated, and nothing is stored"),
    )
)]
pub(crate) async fn gather(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Gathered>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    find(&app, &id).await?;
    let lines = off_thread(move || parse_lines(&id, &String::from_utf8_lossy(&body))).await?;
    Ok(Json(gathering::store(&app.store, &lines, app.clock.now()).await?))
}

/// Parses the lines of a shard.
fn parse_lines(id: &str, text: &str) -> Result<Lines, ApiError> {
    let mut numbered = (1_usize..).zip(text.lines());
    let refuse = |line: usize, detail: String| {
        ApiError::InvalidRequest(vec![FieldError::new("", format!("line {line}: {detail}"))])
    };
    let (_, heading) = numbered.next().ok_or_else(|| refuse(1, "there is none".to_owned()))?;
    let sheet = Sheet::open(heading).map_err(|error| refuse(1, error.to_string()))?;
    if sheet.sweep.id().as_str() != id {
        return Err(refuse(1, format!("belongs to the sweep {}, not to {id}", sheet.sweep.id())));
    }
    let mut lines = Lines::new(sheet);
    for (number, line) in numbered {
        lines.push(line).map_err(|error| refuse(number, error.to_string()))?;
    }
    Ok(lines)
}

/// Returns all available rows as a file in the output format of `planscope sweep`.
#[utoipa::path(
    get, path = "/api/v1/sweeps/{id}/points.jsonl", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses(
        (status = 200, body = String, content_type = "application/jsonl"),
        (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn file(State(app): Shared, Path(id): Path<String>) -> Result<Response, ApiError> {
    let record = find(&app, &id).await?;
    let engine = app.store.reader().sweep_engine(&id).await?;
    let heading = Heading { engine: engine.clone(), ..Heading::new(&record.sweep, Shard::FULL) };
    let name = format!("attachment; filename=\"planscope-sweep-{}.jsonl\"", &id[..10]);
    let pages = stream::try_unfold((app, id, engine, Some(0_u32)), |(app, id, engine, from)| async move {
        let Some(from) = from else { return Ok(None) };
        let texts = app.store.reader().sweep_rows(&id, &engine, from, MAX_ROWS).await?;
        let last = texts.last().and_then(|text| serde_json::from_str::<PointRow>(text).ok()).map(|row| row.index + 1);
        let next = last.filter(|_| texts.len() as u32 == MAX_ROWS);
        let page: String = texts.into_iter().flat_map(|text| [text, "\n".to_owned()]).collect();
        Ok::<_, StoreError>(Some((page, (app, id, engine, next))))
    });
    let head = stream::iter([Ok(format!("{}\n", heading.line()))]);
    let headers = [(CONTENT_TYPE, "application/jsonl".to_owned()), (CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(head.chain(pages))).into_response())
}

/// Stores the scenario for a point as a draft, so it can be opened and planned completely.
#[utoipa::path(
    post, path = "/api/v1/sweeps/{id}/points/{point}/scenario", tag = "sweeps",
    params(("id" = String, Path, description = "Identifier"), ("point" = u32, Path, description = "Number of the point")),
    responses(
        (status = 201, body = StoredScenario, description = "Stored"), (status = 200, body = StoredScenario, description = "Already stored"),
        (status = 400, description = "No such point"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
        (status = 422, description = "The values are not a valid scenario; all invalid fields are listed"),
    )
)]
pub(crate) async fn scenario(
    State(app): Shared,
    client: Client,
    Path((id, point)): Path<(String, u32)>,
) -> Result<DocumentResponse<StoredScenario>, ApiError> {
    let record = find(&app, &id).await?;
    let points = record.sweep.points();
    let point = record.sweep.point(point);
    let point =
        point.ok_or_else(|| ApiError::Malformed(format!("the points are numbered from 0 to {}", points - 1)))?;
    let datasets = load_datasets(&app, &record.sweep).await?;
    let valid = off_thread(move || point.valid(&datasets).map_err(ApiError::InvalidScenario)).await?;
    let is_new = app.store.writer().store_scenario(valid.id(), valid.scenario(), &client, app.clock.now()).await?;
    let stored = app.store.reader().scenario(valid.id().as_str()).await?;
    Ok(if is_new {
        DocumentResponse::Created(api::path::scenario(&stored.id), stored)
    } else {
        DocumentResponse::Present(stored)
    })
}

/// Returns suggested sweeps for a scenario: common fields with values near the current values, and
/// predefined scaling studies.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/sweeps", tag = "sweeps",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = ScenarioSweeps),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn scenario_sweeps(
    State(app): Shared,
    Path(id): Path<String>,
) -> Result<Json<ScenarioSweeps>, ApiError> {
    let scenario = scenarios::find(&app, &id).await?.scenario;
    let ready = move || {
        let ready = |kind: ScalingSweep| {
            let sweep = kind.sweep(&scenario)?.ok()?;
            let sweep = serde_json::from_str(&sweep.to_json()).ok()?;
            Some(SuggestedSweep { study: kind, title: kind.title().to_owned(), sweep })
        };
        let studies = ScalingSweep::ALL.into_iter().filter_map(ready).collect();
        Ok(ScenarioSweeps { fields: usual_fields(&scenario), studies })
    };
    Ok(Json(off_thread(ready).await?))
}

/// Starts or resumes planning of a stored sweep.
pub(crate) async fn begin(app: &Arc<App>, id: &str) -> Result<SweepProgress, ApiError> {
    if !app.jobs.takes_work() {
        return Err(ApiError::WithoutWork);
    }
    let record = find(app, id).await?;
    let datasets = needed(app, &record.sweep).await?;
    Ok(app.sweeps.start(record.sweep, datasets).await?)
}

async fn find(app: &App, id: &str) -> Result<SweepRecord, ApiError> {
    let known: Result<SweepId, _> = id.parse();
    let known = known.map_err(|error| ApiError::Malformed(error.to_string()))?;
    Ok(app.store.reader().sweep(known.as_str()).await?)
}

/// Loads the stored datasets that the base scenario or axis values reference.
async fn load_datasets(app: &App, sweep: &Sweep) -> Result<AtHand, ApiError> {
    Ok(AtHand::load(app.store.reader(), sweeps::datasets::named(sweep)).await?)
}

/// Loads datasets and fails if any is missing. Otherwise the row for a point would report a missing
/// dataset permanently.
async fn needed(app: &App, sweep: &Sweep) -> Result<AtHand, ApiError> {
    let datasets = load_datasets(app, sweep).await?;
    let id = sweep.id();
    let is_complete = sweeps::datasets::named(sweep).iter().all(|name| datasets.dataset(name).is_some());
    let is_at_work = app.sweeps.progress(id.as_str()).is_some_and(|progress| progress.state == SweepState::Running);
    if is_complete || is_at_work {
        return Ok(datasets);
    }
    let present = app.store.reader().sweep_present(id.as_str(), ENGINE).await?;
    let sweep = sweep.clone();
    let turn = STORED_AT_ONCE.acquire().await.map_err(|error| ApiError::Fault(error.to_string()))?;
    let asker = Asker::default();
    let (patience, plan_time) = (asker.patience(app.jobs.time_limit()), app.jobs.plan_time());
    off_thread(move || {
        let _turn = turn;
        let left = (0..sweep.points()).filter(|point| !present.contains(point)).take_while(|_| !patience.is_over());
        let found = missing(&sweep, &datasets, left);
        if patience.is_over() {
            return Err(ApiError::TooLong(too_long(plan_time)));
        }
        let Some(Missing { point, dataset }) = found else { return Ok(datasets) };
        let detail = format!(
            "point {point} needs the dataset {dataset}, which is not stored here (any more): restore it or upload it again, then start"
        );
        Err(ApiError::InvalidRequest(vec![FieldError::new("", detail)]))
    })
    .await
}

async fn described(app: &App, record: SweepRecord) -> Result<StoredSweep, ApiError> {
    let SweepRecord { sweep, title, note, tags, pinned, created_at } = record;
    let id = sweep.id().to_string();
    let engine = app.store.reader().sweep_engine(&id).await?;
    let points = sweep.points();
    let progress = if let Some(progress) = app.sweeps.progress(&id) {
        progress
    } else {
        let (done, without_plan) = app.store.reader().sweep_counts(&id, &engine).await?;
        let state = match app.store.reader().sweep_error(&id).await? {
            _ if done == points => SweepState::Done,
            Some(detail) => SweepState::Failed { detail },
            None => SweepState::Idle,
        };
        SweepProgress { state, points, done, without_plan, points_per_s: None }
    };
    off_thread(move || {
        Ok(StoredSweep {
            axes: sweep.axes().iter().map(labelled).collect(),
            planners: sweep.planners().into_iter().map(named).collect(),
            sweep: serde_json::to_value(&sweep).expect("a sweep has only text keys"),
            id,
            title,
            note,
            tags,
            pinned,
            progress,
            engine,
            current_engine: ENGINE.to_owned(),
            created_at,
        })
    })
    .await
}
