//! Comparison of runs with plans, calibration, and profile checks.

use api::profile::{Profile, ProfileCheck};
use api::run::{Comparison, RunPoint};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use ingest::log::{JobSetup, JobSetups, job_setup};
use planner::outcome::{ENGINE, PlanOutcome as Planning};
use planner::run_comparison::replan;
use planner::scenario::PlannerKind;
use planner::scenario::budget::plan_bytes;
use serde::Deserialize;
use utoipa::IntoParams;

use super::scenarios::{find, validate};
use crate::app::{App, Shared};
use crate::error::{ApiError, DocumentResponse};
use crate::label;
use crate::observation::{
    ObservationError, RunContext, Watched, calibrated, compared, compared_jobs, fill_step_times, last_part,
};
use crate::overviews::decode;
use crate::profiles::apply;
use crate::store::{LogPosition, Replaced, StoreError};
use crate::turns::Claimant;

/// Points per page read from the store.
const PAGE: u32 = 5000;
/// Maximum number of points used. Only the latest are used.
const MAX_POINTS: usize = 200_000;

/// Bytes at the start of a log that are searched for the job size.
const LOG_HEAD: usize = 256 << 10;
/// Bytes at the start of a log with several parts that are searched for the job sizes.
const MAX_LOG: u64 = 64 << 20;
/// Bytes per read from the log.
const LOG_PIECE: usize = 1 << 20;

/// Selects the planner and the part of the run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Against {
    /// Planner in the run's scenario. Default: the planner attached to the run, otherwise the
    /// fastest.
    planner: Option<String>,
    /// Part of the run to use. Default: the last part with regular steps.
    segment: Option<u32>,
}

/// Selects the run for a profile check.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CheckOptions {
    /// Run identifier.
    run: String,
    /// Planner in the run's scenario. Default: the planner attached to the run, otherwise the
    /// fastest.
    planner: Option<String>,
}

/// Comparison of a run with its plan: whether both are the same job, predicted values with their bands, outliers, residuals by phase.
///
/// `job` lists the checks that do not depend on speed: samples, tokens, operations and devices of a step, and limits of the device.
/// Where one of them differs, the run and the plan are different jobs; where one is `other_layout`, the plan has another layout than
/// the run. In both cases values are given without their differences.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/comparison", tag = "runs",
    params(("run" = String, Path, description = "Identifier"), Against),
    responses(
        (status = 200, body = Comparison),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown run or planner"),
        (status = 409, description = "The scenario is not planned yet"),
        (status = 410, description = "The run or its scenario was deleted"),
        (status = 422, description = "No scenario is attached, or the planner has no plan"),
    )
)]
pub(crate) async fn comparison(
    State(app): Shared,
    Path(run): Path<String>,
    against: Result<Query<Against>, QueryRejection>,
) -> Result<Json<Comparison>, ApiError> {
    let Query(against) = against?;
    let mut held = load_context(&app, &run, against.planner.as_deref()).await?;
    let compared = tokio::task::spawn_blocking(move || {
        let segment = against.segment.or_else(|| default_segment(&mut held));
        compared(&held, segment)
    });
    Ok(Json(compared.await.map_err(|error| ApiError::Fault(format!("a comparison stopped unexpectedly: {error}")))?))
}

/// Stores a profile with factors that fit the run's plan to the measurements.
///
/// With forward and backward timers, each pass has a separate factor. Otherwise a single factor for
/// both passes fits the median step. The profile is not applied to any scenario. The computation is
/// synchronous and queued with the planning jobs.
#[utoipa::path(
    post, path = "/api/v1/runs/{run}/calibration", tag = "runs",
    params(("run" = String, Path, description = "Identifier"), Against),
    responses(
        (status = 201, body = Profile, description = "Stored"),
        (status = 200, body = Profile, description = "The same factors are already stored"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown run or planner"),
        (status = 409, description = "The scenario is not planned yet"),
        (status = 410, description = "The run or its scenario was deleted"),
        (status = 422, description = "No scenario, no plan, no steps, different jobs or layouts, or no factor reconciles them"),
        (status = 503, description = "Too many computations are running, or planning took too long"),
    )
)]
pub(crate) async fn calibration(
    State(app): Shared,
    claimant: Claimant,
    Path(run): Path<String>,
    against: Result<Query<Against>, QueryRejection>,
) -> Result<DocumentResponse<Profile>, ApiError> {
    let Query(against) = against?;
    let detail = app.store.reader().run(&run, app.clock.now()).await?;
    let mut held = load_context(&app, &run, against.planner.as_deref()).await?;
    let segment = against.segment.or_else(|| default_segment(&mut held));
    let job = compared_jobs(&held, segment);
    if !job.is_comparable() {
        return Err(ObservationError::from_comparison(&job).into());
    }
    let bytes = plan_bytes(held.scenario.scenario(), app.studies.at_once());
    let work = app.studies.run((&claimant, bytes), 1, move |effort| {
        let mut observer = Watched { cancellation: effort.cancellation, workers: effort.workers };
        Ok(calibrated(&held, segment, &mut observer))
    });
    let mut profile = work.await??;
    profile.name = label::clean(&format!("calibration from {}", detail.summary.name)).unwrap_or_else(|| run.clone());
    let is_new = app.store.writer().store_profile(&profile, Replaced::default(), app.clock.now()).await?;
    let stored = app.store.reader().profile(&profile.id).await?;
    Ok(if is_new {
        DocumentResponse::Created(api::path::profile(&profile.id), stored)
    } else {
        DocumentResponse::Present(stored)
    })
}

/// Compares a run with its plan, with and without the profile. Nothing is stored.
#[utoipa::path(
    get, path = "/api/v1/profiles/{id}/check", tag = "profiles",
    params(("id" = String, Path, description = "Content address"), CheckOptions),
    responses(
        (status = 200, body = ProfileCheck),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown profile, run or planner"),
        (status = 409, description = "The run's scenario is not planned yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "No scenario, no plan, or no part of the profile applies to the model"),
        (status = 503, description = "Too many computations are running, or planning took too long"),
    )
)]
pub(crate) async fn check(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
    options: Result<Query<CheckOptions>, QueryRejection>,
) -> Result<Json<ProfileCheck>, ApiError> {
    let Query(options) = options?;
    let profile = app.store.reader().profile(&id).await?;
    let mut held = load_context(&app, &options.run, options.planner.as_deref()).await?;
    let segment = default_segment(&mut held);
    let applied = apply(&profile, held.scenario.scenario())?;
    let bytes = plan_bytes(held.scenario.scenario(), app.studies.at_once());
    let work = app.studies.run((&claimant, bytes), 1, move |effort| {
        let mut observer = Watched { cancellation: effort.cancellation, workers: effort.workers };
        let again = replan(&held.scenario, applied.scenario, held.planner, &held.planned, &mut observer);
        Ok(again.map(|planned| {
            let before = compared(&held, segment);
            let after = compared(&RunContext { planned, ..held }, segment);
            ProfileCheck {
                profile: id,
                run: before.run,
                scenario: before.scenario,
                planner: before.planner,
                plan: after.plan,
                before: before.predictions,
                after: after.predictions,
                notes: applied.changes.into_iter().chain(after.notes).collect(),
            }
        }))
    });
    Ok(Json(work.await?.map_err(ObservationError::from)?))
}

/// Returns the part of a run with restarts that is compared, and adds a note about it: the present state of the run, as for a log
/// that is checked. `None` for a run with one part.
pub(super) fn default_segment(context: &mut RunContext) -> Option<u32> {
    let (segment, note) = last_part(&context.points)?;
    context.notes.push(note);
    Some(segment)
}

/// Loads a run with its points and the plan for comparison.
pub(super) async fn load_context(app: &App, run: &str, planner: Option<&str>) -> Result<RunContext, ApiError> {
    let detail = app.store.reader().run(run, app.clock.now()).await?;
    let scenario = detail.summary.scenario.as_deref().ok_or(ObservationError::Unattached)?;
    let stored = find(app, scenario).await?;
    let answered = match app.store.reader().outcome(&stored.id).await {
        Ok(answered) => answered.outcome,
        Err(StoreError::Unknown { .. }) => return Err(ApiError::NotPlanned),
        Err(error) => return Err(error.into()),
    };
    let asked = match planner.filter(|id| !id.is_empty()) {
        Some(id) => Some(PlannerKind::from_id(id).ok_or_else(|| ApiError::NoSuchPlanner(id.to_owned()))?),
        None => detail.summary.plan,
    };
    let mut notes = Vec::new();
    if answered.engine != ENGINE {
        notes.push(format!("The plan is of {}, another version than this server.", answered.engine));
    }
    let found = answered.results.into_iter().find_map(|result| match result.answer {
        Planning::Planned(planned) if asked.is_none_or(|asked| asked == result.planner) => {
            Some((result.planner, *planned))
        }
        _ => None,
    });
    let none =
        || ObservationError::NoPlan(asked.map_or_else(|| "any planner".to_owned(), |kind| kind.title().to_owned()));
    let (planner, planned) = found.ok_or_else(none)?;
    let timeline = match app.store.reader().timeline(&stored.id, planner, 0).await {
        Ok(encoded) => Some(decode(&encoded)?),
        Err(_) => None,
    };
    let (mut points, is_cut) = points(app, run, detail.summary.points).await?;
    if is_cut {
        notes.push(format!("The latest {MAX_POINTS} points count."));
    }
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let setups = if points.iter().any(|point| point.segment > 0) {
        part_setups(app, run).await?
    } else {
        vec![job_setup(&log_head(app, run).await?)]
    };
    let step_tokens: Vec<u64> = answered.batches.iter().map(|batch| batch.tokens).collect();
    let filled = fill_step_times(&mut points, &step_tokens, scenario.scenario().cluster.devices());
    let has_step_times_of_plan = filled.is_some();
    notes.extend(filled);
    let run = run.to_owned();
    let batches = answered.batches;
    Ok(RunContext {
        run,
        setups,
        points,
        scenario,
        planner,
        planned,
        batches,
        timeline,
        notes,
        has_plan_step_times: has_step_times_of_plan,
    })
}

/// Returns at most [`LOG_HEAD`] bytes from the start of a run's log.
async fn log_head(app: &App, run: &str) -> Result<Vec<u8>, ApiError> {
    let mut head = Vec::new();
    while head.len() < LOG_HEAD {
        let place = LogPosition { file: 0, offset: head.len() as u64 };
        let piece = app.store.reader().log_bytes(run, place, LOG_HEAD - head.len()).await?;
        if piece.is_empty() {
            break;
        }
        head.extend(piece);
    }
    Ok(head)
}

/// Returns the job setup before each part of the run. If the log is longer than the search limit,
/// the last parts use the setup found before them.
async fn part_setups(app: &App, run: &str) -> Result<Vec<JobSetup>, ApiError> {
    let state = app.store.reader().log_state(run).await?;
    let mut setups = JobSetups::new(state.table);
    let mut left = MAX_LOG;
    for file in (0..).take(state.files.len()) {
        let mut offset = 0;
        while left > 0 {
            let piece = app.store.reader().log_bytes(run, LogPosition { file, offset }, LOG_PIECE).await?;
            if piece.is_empty() {
                break;
            }
            offset += piece.len() as u64;
            left = left.saturating_sub(piece.len() as u64);
            let read = tokio::task::spawn_blocking(move || {
                setups.push(&piece);
                setups
            });
            setups =
                read.await.map_err(|error| ApiError::Fault(format!("reading a log stopped unexpectedly: {error}")))?;
        }
        // The unterminated rest of a file counts as a line.
        setups.push(b"\n");
    }
    Ok(setups.finish())
}

/// Returns the latest points of a run, and true if older points were omitted.
async fn points(app: &App, run: &str, count: u64) -> Result<(Vec<RunPoint>, bool), ApiError> {
    let mut after = count.saturating_sub(MAX_POINTS as u64);
    let is_cut = after > 0;
    let mut points = Vec::new();
    loop {
        let page = app.store.reader().run_points(run, after, PAGE).await?;
        let Some(last) = page.last().map(|point| point.row) else { return Ok((points, is_cut)) };
        points.extend(page);
        if points.len() >= MAX_POINTS {
            return Ok((points, is_cut));
        }
        after = last;
    }
}
