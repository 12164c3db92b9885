//! Scenario endpoints: store, list, find, save, change, delete, restore, plan.

use std::collections::HashMap;
use std::sync::Arc;

use api::job::Job;
use api::listing::{Annotations, ListQuery, MAX_PAGE};
use api::scenario::{Keep, PlanList, ScenarioIdentity, ScenarioList, StoredScenario};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use planner::scenario::PlannerKind;
use planner::scenario::validate::Datasets;
use planner::scenario::{Scenario, ScenarioId, ValidScenario};
use planner::workload::{Dataset, SampleSource};
use serde::Deserialize;
use tokio::sync::Semaphore;
use utoipa::IntoParams;

use super::{lists, off_thread};
use crate::app::{App, Shared};
use crate::client::Client;
pub(crate) use crate::error::MAX_DOCUMENT;
use crate::error::{ApiError, Deleted, DocumentResponse};
use crate::jobs::Started;
use crate::json_values;
use crate::label;
use crate::store::{DRAFTS, MIN_PREFIX, PLANS, Reader, Resolved, SCENARIOS, StoreError};
use crate::turns::Claimant;

/// Maximum size of a scenario or sweep in MiB. A scenario can contain a list of samples.
pub(crate) const MAX_SCENARIO: usize = 1;
/// Limit on scenarios parsed in parallel.
static PARSED_AT_ONCE: Semaphore = Semaphore::const_new(4);

/// Additional options for the list of scenarios.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListOptions {
    /// Lists the client's drafts, sorted from most to least recently used, instead of the saved
    /// scenarios. Sort keys are `used` and `name`.
    drafts: Option<bool>,
}

/// Additional options for the list of plans.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlanOptions {
    /// Planner of the plan.
    planner: Option<String>,
    /// Engine of the plan.
    engine: Option<String>,
}

/// Lists saved scenarios, pinned first, then from newest to oldest. Additional sort keys are
/// `model`, `cluster`, `planner` and `time`.
#[utoipa::path(
    get, path = "/api/v1/scenarios", tag = "scenarios", params(ListQuery, ListOptions),
    responses((status = 200, body = ScenarioList), (status = 400, description = "The query is malformed"))
)]
pub(crate) async fn list(
    State(app): Shared,
    client: Client,
    query: Result<Query<ListQuery>, QueryRejection>,
    options: Result<Query<ListOptions>, QueryRejection>,
) -> Result<Json<ScenarioList>, ApiError> {
    let (Query(query), Query(options)) = (query?, options?);
    let reader = app.store.reader();
    let mut list = if options.drafts == Some(true) {
        reader.drafts(&client, lists::wanted(query, &DRAFTS, MAX_PAGE)?).await?
    } else {
        reader.scenarios(&lists::wanted(query, &SCENARIOS, MAX_PAGE)?).await?
    };
    list.page.retention_days = app.live.limits().retention_days;
    Ok(Json(list))
}

/// Lists stored plans for all scenarios, including drafts, from newest to oldest. Additional sort
/// keys are `planner`, `time` and `engine`.
#[utoipa::path(
    get, path = "/api/v1/plans", tag = "outcomes", params(ListQuery, PlanOptions),
    responses((status = 200, body = PlanList), (status = 400, description = "The query is malformed"), (status = 404, description = "No such planner"))
)]
pub(crate) async fn plans(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
    options: Result<Query<PlanOptions>, QueryRejection>,
) -> Result<Json<PlanList>, ApiError> {
    let (Query(query), Query(options)) = (query?, options?);
    let mut wanted = lists::wanted(query, &PLANS, MAX_PAGE)?;
    if let Some(planner) = options.planner.filter(|planner| !planner.is_empty()) {
        let known = PlannerKind::from_id(&planner).ok_or(ApiError::NoSuchPlanner(planner))?;
        wanted.filters.push(("planner = ".to_owned(), known.id().to_owned(), ""));
    }
    if let Some(engine) = options.engine.filter(|engine| !engine.is_empty()) {
        wanted.filters.push(("engine = ".to_owned(), engine, ""));
    }
    let mut list = app.store.reader().plans(&wanted).await?;
    list.page.retention_days = app.live.limits().retention_days;
    Ok(Json(list))
}

/// Stores a scenario under its content address, as a draft until it is saved.
///
/// `model` and `cluster` can be `{"preset": "llama-2-7b"}`, with further fields that override the
/// preset. The server stores the newest 500 drafts per client, plus 2,000 that were planned within
/// thirty days. Drafts required by a job, a run or a trace, and drafts opened within thirty days,
/// are never evicted (docs/operators.md).
#[utoipa::path(
    put, path = "/api/v1/scenarios", tag = "scenarios", request_body = Scenario,
    responses(
        (status = 201, body = StoredScenario, description = "Stored"),
        (status = 200, body = StoredScenario, description = "The same scenario is already stored"),
        (status = 413, description = "More than 1 MiB"),
        (status = 422, description = "Invalid fields; all of them are listed. At most 200,000 values"),
        (status = 507, description = "The limit of drafts is reached"),
    )
)]
pub(crate) async fn store(
    State(app): Shared,
    client: Client,
    body: Result<Bytes, BytesRejection>,
) -> Result<DocumentResponse<StoredScenario>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_SCENARIO))?;
    let mut scenario = parsed(body).await?;
    scenario.title = scenario.title.as_deref().and_then(label::clean);
    let valid = validate(app.store.reader(), scenario).await?;
    let is_new = app.store.writer().store_scenario(valid.id(), valid.scenario(), &client, app.clock.now()).await?;
    let stored = app.store.reader().scenario(valid.id().as_str()).await?;
    Ok(if is_new {
        DocumentResponse::Created(api::path::scenario(&stored.id), stored)
    } else {
        DocumentResponse::Present(stored)
    })
}

/// Computes the identifier of a scenario, and returns whether it is stored and planned. Nothing is
/// stored.
#[utoipa::path(
    post, path = "/api/v1/scenarios/identity", tag = "scenarios", request_body = Scenario,
    responses(
        (status = 200, body = ScenarioIdentity),
        (status = 413, description = "More than 1 MiB"),
        (status = 422, description = "Invalid fields; all of them are listed"),
    )
)]
pub(crate) async fn identity(
    State(app): Shared,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ScenarioIdentity>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_SCENARIO))?;
    let valid = validate(app.store.reader(), parsed(body).await?).await?;
    let id = valid.id().as_str();
    let stored = match app.store.reader().scenario(id).await {
        Ok(_) => true,
        Err(StoreError::Unknown { .. } | StoreError::Gone { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    let planned = stored && !app.store.reader().engine_answers(id).await?.is_empty();
    Ok(Json(ScenarioIdentity { id: id.to_owned(), stored, planned }))
}

/// Returns a scenario, by identifier or unique prefix of at least ten characters.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}", tag = "scenarios",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = StoredScenario),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<StoredScenario>, ApiError> {
    let stored = find(&app, &id).await?;
    note_view(&app, &stored.id).await;
    Ok(Json(stored))
}

/// Records a view of a scenario, which protects drafts from eviction. Errors are only logged, so
/// scenarios can be read from a read-only database.
async fn note_view(app: &App, id: &str) {
    let now = app.clock.now();
    let noted = match app.store.reader().is_view_due(id, now).await {
        Ok(true) => app.store.writer().view_scenario(id, now).await,
        Ok(false) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = noted {
        tracing::debug!(id, "a view of a scenario is not stored: {error}");
    }
}

/// Saves a scenario in the list, optionally with a new title. `"source": "link"` marks it as saved
/// via a copied link.
#[utoipa::path(
    post, path = "/api/v1/scenarios/{id}/keep", tag = "scenarios", request_body = Keep,
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = StoredScenario),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, not an identifier, or the body is not a document of this form"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "More than 16 MiB"),
    )
)]
pub(crate) async fn keep(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<StoredScenario>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_DOCUMENT))?;
    let keep = if body.is_empty() {
        Keep { title: None, source: None }
    } else {
        serde_json::from_slice(&body).map_err(|error| ApiError::Malformed(format!("the body is wrong: {error}")))?
    };
    let id = find(&app, &id).await?.id;
    let title = keep.title.as_deref().and_then(label::clean);
    app.store.writer().keep_scenario(&id, title.as_deref(), keep.source, app.clock.now()).await?;
    Ok(Json(app.store.reader().scenario(&id).await?))
}

/// Removes a scenario from the list. It becomes a draft, and links to it work as long as the draft
/// is stored.
#[utoipa::path(
    delete, path = "/api/v1/scenarios/{id}/keep", tag = "scenarios",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = StoredScenario),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn unkeep(
    State(app): Shared,
    client: Client,
    Path(id): Path<String>,
) -> Result<Json<StoredScenario>, ApiError> {
    let id = find(&app, &id).await?.id;
    app.store.writer().unkeep_scenario(&id, &client, app.clock.now()).await?;
    Ok(Json(app.store.reader().scenario(&id).await?))
}

/// Changes name, note, tags and pin of a scenario. Omitted fields are not modified. A pinned
/// scenario is also saved.
#[utoipa::path(
    patch, path = "/api/v1/scenarios/{id}", tag = "scenarios", request_body = Annotations,
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = StoredScenario),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, not an identifier, or the body is not a document of this form"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Invalid fields; all of them are listed"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Json<Annotations>, JsonRejection>,
) -> Result<Json<StoredScenario>, ApiError> {
    let Json(words) = body.map_err(|rejection| ApiError::document(&rejection))?;
    let id = find(&app, &id).await?.id;
    app.store.writer().change_scenario(&id, &lists::checked(words)?, app.clock.now()).await?;
    Ok(Json(app.store.reader().scenario(&id).await?))
}

/// Restores a deleted scenario and all outcomes, by full identifier.
#[utoipa::path(
    post, path = "/api/v1/scenarios/{id}/restore", tag = "scenarios",
    params(("id" = String, Path, description = "Whole identifier")),
    responses(
        (status = 200, body = StoredScenario), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted, and the retention period is over"),
    )
)]
pub(crate) async fn restore(State(app): Shared, Path(id): Path<String>) -> Result<Json<StoredScenario>, ApiError> {
    app.store.writer().forget_scenarios(app.live.limits().deleted_before(app.clock.now())).await?;
    app.store.writer().restore_scenario(&id).await?;
    Ok(Json(app.store.reader().scenario(&id).await?))
}

/// Deletes a scenario and all outcomes. They can be restored during the retention period.
#[utoipa::path(
    delete, path = "/api/v1/scenarios/{id}", tag = "scenarios",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 204, description = "Deleted"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Already deleted"),
    )
)]
pub(crate) async fn delete(State(app): Shared, Path(id): Path<String>) -> Result<Deleted, ApiError> {
    let id = find(&app, &id).await?.id;
    app.jobs.cancel_scenario(&id);
    app.store.writer().delete_scenario(&id, app.clock.now()).await?;
    Ok(Deleted)
}

/// Plans a scenario.
///
/// During planning, a repeated request returns the same job. After this engine has stored an
/// outcome, it returns a finished job.
#[utoipa::path(
    post, path = "/api/v1/scenarios/{id}/plan", tag = "jobs",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 202, body = Job, description = "Queued; follow its events"),
        (status = 200, body = Job, description = "Already being planned, or already planned"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "It cannot be planned, for example because its dataset was deleted, or it needs more memory than --plan-memory"),
        (status = 503, description = "The queue is full; try again later"),
    )
)]
pub(crate) async fn plan(
    State(app): Shared,
    Path(id): Path<String>,
    claimant: Claimant,
) -> Result<DocumentResponse<Job>, ApiError> {
    let stored = find(&app, &id).await?;
    Ok(match begin_plan(&app, stored, claimant).await? {
        Started::New(job) => DocumentResponse::Accepted(api::path::job(&job.id), job),
        Started::Known(job) => DocumentResponse::Present(job),
    })
}

/// Plans a stored scenario, unless planning is in progress or this engine has already stored an
/// outcome.
pub(crate) async fn begin_plan(app: &App, stored: StoredScenario, claimant: Claimant) -> Result<Started, ApiError> {
    if let Some(job) = app.jobs.active(&stored.id).await {
        return Ok(Started::Known(job));
    }
    if app.store.reader().is_answered(&stored.id).await? {
        return Ok(Started::Known(app.jobs.done(&stored.id)));
    }
    let valid = validate(app.store.reader(), stored.scenario).await?;
    Ok(app.jobs.start(valid, claimant).await?)
}

/// Resolves an identifier or prefix to a scenario.
pub(crate) async fn find(app: &App, id: &str) -> Result<StoredScenario, ApiError> {
    let id = id.to_ascii_lowercase();
    if !id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7')) || id.len() > ScenarioId::LENGTH {
        return Err(ApiError::Malformed("an identifier is made of up to 52 characters a-z and 2-7".to_owned()));
    }
    if id.len() < MIN_PREFIX {
        return Err(ApiError::Malformed(format!("at least {MIN_PREFIX} characters of an identifier are needed")));
    }
    match app.store.reader().resolve(&id).await? {
        Resolved::Single(id) => Ok(app.store.reader().scenario(&id).await?),
        Resolved::Several(candidates) => {
            let candidates = app.store.reader().candidates(&candidates).await?;
            Err(ApiError::Ambiguous { prefix: id, candidates })
        }
    }
}

/// Parses a scenario from a request body.
pub(crate) async fn parsed(body: Bytes) -> Result<Scenario, ApiError> {
    let turn = PARSED_AT_ONCE.acquire().await.map_err(|error| ApiError::Fault(error.to_string()))?;
    off_thread(move || {
        let _turn = turn;
        json_values::check(&body).map_err(|error| ApiError::InvalidScenario(vec![error]))?;
        planner::scenario::parse(&String::from_utf8_lossy(&body)).map_err(ApiError::InvalidScenario)
    })
    .await
}

/// Validates a scenario with the stored datasets.
pub(crate) async fn validate(reader: &Reader, scenario: Scenario) -> Result<ValidScenario, ApiError> {
    let mut names = Vec::new();
    collect(&scenario.workload.samples, &mut names);
    let datasets = AtHand::load(reader, names).await?;
    tokio::task::spawn_blocking(move || ValidScenario::new(scenario, &datasets))
        .await
        .map_err(|error| ApiError::Fault(format!("validation stopped unexpectedly: {error}")))?
        .map_err(ApiError::InvalidScenario)
}

/// Datasets loaded before validation, because validation is synchronous.
pub(crate) struct AtHand(HashMap<String, Arc<Dataset>>);

impl AtHand {
    pub(crate) async fn load(reader: &Reader, names: Vec<String>) -> Result<Self, StoreError> {
        let mut datasets = HashMap::new();
        for name in names {
            if datasets.contains_key(&name) {
                continue;
            }
            if let Some(dataset) = reader.dataset_content(&name).await? {
                datasets.insert(name, Arc::new(dataset));
            }
        }
        Ok(Self(datasets))
    }
}

impl Datasets for AtHand {
    fn dataset(&self, id: &str) -> Option<Arc<Dataset>> {
        self.0.get(id).cloned()
    }
}

fn collect(source: &SampleSource, names: &mut Vec<String>) {
    match source {
        SampleSource::Dataset { id, .. } => names.push(id.clone()),
        SampleSource::Mixture { parts } => parts.iter().for_each(|part| collect(&part.source, names)),
        SampleSource::Phases { source, .. } => collect(source, names),
        SampleSource::Drawn { .. } => {}
    }
}
