//! Run endpoints: open, list, change, delete and restore.

pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod log;
pub(crate) mod points;
pub(crate) mod replays;

use api::listing::ListQuery;
use api::run::{CreatedRun, NewRun, RunChange, RunDetail, RunList, RunOrigin, RunState};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use ingest::log::LogTable;
use jiff::Timestamp;
use planner::scenario::{FieldError, PlannerKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use crate::app::{App, Shared};
use crate::endpoint::{lists, scenarios};
use crate::error::{ApiError, Deleted, DocumentResponse};
use crate::label;
use crate::store::{Opened, RUNS, RequestKey, RunChanges, RunRow, state_filter};
use crate::token::Token;
use crate::token::run_id;

/// Default page size for runs.
const USUAL_LIST: u32 = 50;
/// Maximum length of an Idempotency-Key, in characters.
const MAX_KEY: usize = 255;

/// Filters for the list of runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunFilter {
    /// waiting, live, stalled, ended or crashed.
    state: Option<String>,
    /// live, imported or rehearsal.
    origin: Option<String>,
    /// Scenario attached to the run, by identifier or unique prefix.
    scenario: Option<String>,
}

/// Lists runs, pinned first, then from newest to oldest. Additional sort keys are `size`, `points`
/// and `step`. The default page size is 50.
#[utoipa::path(
    get, path = "/api/v1/runs", tag = "runs", params(ListQuery, RunFilter),
    responses((status = 200, body = RunList), (status = 400, description = "The query is malformed"), (status = 404, description = "No such scenario"))
)]
pub(crate) async fn list(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
    question: Result<Query<RunFilter>, QueryRejection>,
) -> Result<Json<RunList>, ApiError> {
    let (Query(query), Query(question)) = (query?, question?);
    let word = |text: Option<String>| text.filter(|text| !text.is_empty());
    let now = app.clock.now();
    let mut wanted = lists::wanted(query, &RUNS, USUAL_LIST)?;
    if let Some(scenario) = word(question.scenario) {
        let scenario = scenarios::find(&app, &scenario).await?.id;
        wanted.filters.push(("scenario_id = ".to_owned(), scenario, ""));
    }
    if let Some(origin) = named(word(question.origin), RunOrigin::from_id, "origin", RunOrigin::ALL.map(RunOrigin::id))?
    {
        wanted.filters.push(("origin = ".to_owned(), origin.id().to_owned(), ""));
    }
    if let Some(state) = named(word(question.state), RunState::from_id, "state", RunState::ALL.map(RunState::id))? {
        wanted.filters.push(state_filter(state, now));
    }
    let mut list = app.store.reader().runs(&wanted, now).await?;
    list.page.retention_days = app.live.limits().retention_days;
    Ok(Json(list))
}

/// Opens a run for a live log.
///
/// The token is returned only once, and the server stores a hash. A repeated request with the same
/// `Idempotency-Key` returns the same run. It also returns the same token, unless the token was
/// renewed or the server restarted. In that case it returns an additional token.
#[utoipa::path(
    post, path = "/api/v1/runs", tag = "runs", request_body = NewRun,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated request the same one")),
    responses(
        (status = 201, body = CreatedRun, description = "Opened"),
        (status = 200, body = CreatedRun, description = "Already opened by the same request"),
        (status = 400, description = "The body is not a document of this form, or the key is too long"),
        (status = 410, description = "Opened by the same request and deleted since"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Invalid fields, or the key belongs to another request"),
    )
)]
pub(crate) async fn open(
    State(app): Shared,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<DocumentResponse<CreatedRun>, ApiError> {
    let asked: NewRun = document(&body.map_err(|rejection| ApiError::body(&rejection, scenarios::MAX_DOCUMENT))?)?;
    let asked_key = request_key(&headers)?;
    let (key, token) = match asked_key {
        None => (None, Token::draw()),
        Some(key) => {
            let text = serde_json::to_vec(&asked).map_err(|error| ApiError::Malformed(error.to_string()))?;
            let hashes = RequestKey { key: Sha256::digest(key).into(), request: Sha256::digest(text).into() };
            (Some(hashes), app.live.secret().token(key))
        }
    };
    let now = app.clock.now();
    let log_table = asked.log_table.filter(|table| !table.trim().is_empty());
    if let Some(table) = &log_table {
        parse_log_table(table, "/log_table")?;
    }
    let (scenario, planner) = attached_plan(&app, asked.scenario.as_deref(), asked.plan).await?;
    let run = RunRow {
        id: run_id(),
        name: asked.name.as_deref().and_then(label::clean).unwrap_or_else(|| unnamed(now)),
        origin: RunOrigin::Live,
        scenario,
        planner,
        token: token.hash(),
        key,
        log_table,
    };
    let created = |run: String, token: &Token| CreatedRun {
        url: api::path::run_page(&run),
        run,
        ingest_token: token.as_str().to_owned(),
    };
    match app.store.writer().open_run(&run, None, now).await? {
        Opened::New => Ok(DocumentResponse::Created(api::path::run(&run.id), created(run.id, &token))),
        Opened::Known(id) => {
            let mut token = token;
            let again = || {
                token = app.live.secret().token_again(asked_key.unwrap_or_default(), &id);
                token.hash()
            };
            app.store.writer().admit_to_run(&id, again, now).await?;
            Ok(DocumentResponse::Present(created(id, &token)))
        }
        Opened::OtherRequest => Err(ApiError::KeyReused),
    }
}

/// Returns a run.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}", tag = "runs", params(("run" = String, Path, description = "Identifier")),
    responses((status = 200, body = RunDetail), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn get(State(app): Shared, Path(run): Path<String>) -> Result<Json<RunDetail>, ApiError> {
    Ok(Json(app.store.reader().run(&run, app.clock.now()).await?))
}

/// Changes name, note, tags, or the attached scenario and planner. Omitted fields are not modified.
#[utoipa::path(
    patch, path = "/api/v1/runs/{run}", tag = "runs", request_body = RunChange,
    params(("run" = String, Path, description = "Identifier")),
    responses(
        (status = 200, body = RunDetail),
        (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Invalid fields; all of them are listed"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(run): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<RunDetail>, ApiError> {
    let asked: RunChange = document(&body.map_err(|rejection| ApiError::body(&rejection, scenarios::MAX_DOCUMENT))?)?;
    let present = app.store.reader().run(&run, app.clock.now()).await?.summary;
    let mut errors = Vec::new();
    let name = asked.name.as_deref().and_then(|name| label::named(name, &mut errors));
    let note = asked.note.as_deref().map(label::note);
    let tags = asked.tags.as_deref().map(|asked| label::tags(asked, &mut errors));
    if !errors.is_empty() {
        return Err(ApiError::InvalidRun(errors));
    }
    let scenario = asked.scenario.as_deref().map(str::trim);
    let against = scenario.or(present.scenario.as_deref()).filter(|scenario| !scenario.is_empty());
    let (found, planner) = if scenario.is_some() || asked.plan.is_some() {
        attached_plan(&app, against, asked.plan).await?
    } else {
        (None, None)
    };
    let scenario = scenario.map(|_| found.unwrap_or_default());
    let changes = RunChanges { name, note, tags, scenario, planner, pinned: asked.pinned };
    app.store.writer().change_run(&run, &changes, app.clock.now()).await?;
    Ok(Json(app.store.reader().run(&run, app.clock.now()).await?))
}

/// Deletes a run. It can be restored during the retention period. After that, log and points are
/// removed permanently.
#[utoipa::path(
    delete, path = "/api/v1/runs/{run}", tag = "runs", params(("run" = String, Path, description = "Identifier")),
    responses((status = 204, description = "Deleted"), (status = 404, description = "Unknown"), (status = 410, description = "Already deleted"))
)]
pub(crate) async fn delete(State(app): Shared, Path(run): Path<String>) -> Result<Deleted, ApiError> {
    app.store.writer().delete_run(&run, app.clock.now()).await?;
    app.live.nudge(&run);
    Ok(Deleted)
}

/// Restores a deleted run.
#[utoipa::path(
    post, path = "/api/v1/runs/{run}/restore", tag = "runs", params(("run" = String, Path, description = "Identifier")),
    responses((status = 200, body = RunDetail), (status = 404, description = "Unknown"), (status = 410, description = "Deleted, and the retention period is over"))
)]
pub(crate) async fn restore(State(app): Shared, Path(run): Path<String>) -> Result<Json<RunDetail>, ApiError> {
    app.store.writer().forget_runs(app.live.limits().deleted_before(app.clock.now())).await?;
    app.store.writer().restore_run(&run).await?;
    Ok(Json(app.store.reader().run(&run, app.clock.now()).await?))
}

/// Creates a new token for the log of a run. All previous tokens expire.
#[utoipa::path(
    post, path = "/api/v1/runs/{run}/token", tag = "runs", params(("run" = String, Path, description = "Identifier")),
    responses((status = 200, body = CreatedRun), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn token(State(app): Shared, Path(run): Path<String>) -> Result<Json<CreatedRun>, ApiError> {
    let token = Token::draw();
    let now = app.clock.now();
    app.store.reader().run(&run, now).await?;
    // Renew first, so that a concurrent repeat of the opening request does not return an expired
    // token.
    app.live.secret().renew(&run);
    app.store.writer().renew_run_token(&run, &token.hash(), now).await?;
    Ok(Json(CreatedRun { url: api::path::run_page(&run), run, ingest_token: token.as_str().to_owned() }))
}

/// Returns the full identifier of the attached scenario, and the planner.
async fn attached_plan(
    app: &App,
    scenario: Option<&str>,
    plan: Option<PlannerKind>,
) -> Result<(Option<String>, Option<PlannerKind>), ApiError> {
    let wrong = |pointer: &str, detail: String| {
        Err(ApiError::InvalidRun(vec![FieldError { pointer: pointer.to_owned(), detail }]))
    };
    let Some(scenario) = scenario.filter(|scenario| !scenario.is_empty()) else {
        return match plan {
            Some(_) => wrong("/plan", "needs a scenario".to_owned()),
            None => Ok((None, None)),
        };
    };
    let stored = match scenarios::find(app, scenario).await {
        Ok(stored) => stored,
        Err(ApiError::Store(error)) if !matches!(error, crate::store::StoreError::Sqlite(_)) => {
            return wrong("/scenario", error.to_string());
        }
        Err(error @ (ApiError::Malformed(_) | ApiError::Ambiguous { .. })) => {
            return wrong("/scenario", error.to_string());
        }
        Err(error) => return Err(error),
    };
    let planners = &stored.scenario.planners;
    if let Some(plan) = plan.filter(|plan| !planners.contains(plan)) {
        let known: Vec<&str> = planners.iter().map(|planner| planner.id()).collect();
        return wrong("/plan", format!("{} is not among the scenario's planners: {}", plan.id(), known.join(", ")));
    }
    Ok((Some(stored.id), plan))
}

/// Returns the Idempotency-Key of a request, if present.
fn request_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    key.map(Some)
        .ok_or_else(|| ApiError::Malformed(format!("an Idempotency-Key has 1 to {MAX_KEY} visible characters")))
}

/// Parses a document. An empty body yields the default.
fn document<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, ApiError> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| ApiError::Malformed(format!("the body is wrong: {error}")))
}

/// Parses a custom pattern table. `pointer` names its field in errors.
pub(crate) fn parse_log_table(table: &str, pointer: &str) -> Result<LogTable, ApiError> {
    LogTable::parse(table).map_err(|error| {
        ApiError::InvalidRun(vec![FieldError { pointer: pointer.to_owned(), detail: error.to_string() }])
    })
}

/// Parses an enum value from the query.
fn named<T, const N: usize>(
    word: Option<String>,
    known: fn(&str) -> Option<T>,
    name: &str,
    all: [&str; N],
) -> Result<Option<T>, ApiError> {
    word.map(|word| {
        known(&word).ok_or_else(|| ApiError::Malformed(format!("{name} is one of {}, not {word:?}", all.join(", "))))
    })
    .transpose()
}

/// Default name for a run.
fn unnamed(now: Timestamp) -> String {
    format!("Run of {}", now.strftime("%Y-%m-%d %H:%M"))
}
