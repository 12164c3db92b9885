//! Compares a trace with a plan: pipeline iterations, and the time breakdown per rank.

use api::path::TIMELINE_MEDIA_TYPE;
use api::trace::{ActionList, Alignment, MeasuredIteration, TimeBreakdown, TimeBreakdownList, TracePlan, TraceSummary};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use planner::outcome::PlanOutcome;
use planner::scenario::PlannerKind;
use planner::timeline::Timeline;
use planner::trace_alignment;
use planner::trace_alignment::Rows;
use planner::trace_comparison::Recorded;
use planner::trace_prediction::{self, TracePrediction};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::outcomes::written;
use super::super::scenarios::{find, validate};
use super::{compared, overview, parse_planner};
use crate::app::{App, Shared};
use crate::endpoint::{off_thread, wants_json};
use crate::error::ApiError;
use crate::overviews::decode;
use crate::traces::observed::{Actions, AlignedIterations, Part, together};
use crate::traces::packed::unpack;

/// Maximum number of traces to combine for a run.
const MAX_TRACES: usize = 1024;
/// Range of the speed factor for an observed iteration.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Returns busy, communication and idle time per rank, for a trace or for all traces of its run.
///
/// The times are sums over the kernels per device. For a trace without kernels, they are sums over
/// the pipeline actions in its names.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/busy", tag = "traces", params(("id" = String, Path, description = "Content address")),
    responses((status = 200, body = TimeBreakdownList), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn time_breakdown(
    State(app): Shared,
    Path(id): Path<String>,
) -> Result<Json<TimeBreakdownList>, ApiError> {
    let mut ranks: Vec<TimeBreakdown> = Vec::new();
    for trace in run_traces(&app, &id).await? {
        let breakdowns = overview(&app, &trace.id).await?.busy;
        // The rank of a trace is ambiguous if the trace contains several devices.
        let rank = trace.rank.filter(|_| breakdowns.len() == 1);
        ranks.extend(breakdowns.into_iter().map(|breakdown| TimeBreakdown {
            trace: trace.id.clone(),
            rank: rank.or(breakdown.rank),
            ..breakdown
        }));
    }
    ranks.sort_by_key(|breakdown| (breakdown.rank.is_none(), breakdown.rank));
    Ok(Json(TimeBreakdownList { ranks }))
}

/// Returns the pipeline iterations in a trace and in the other traces of its run.
///
/// Actions are recognised by names such as `PP:0F3` or `0F3`. Iterations are the annotated profiler
/// steps. Without annotations, a repeated action starts a new iteration.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/actions", tag = "traces", params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = ActionList),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The trace has no action of a pipeline schedule"),
    )
)]
pub(crate) async fn actions(State(app): Shared, Path(id): Path<String>) -> Result<Json<ActionList>, ApiError> {
    let AlignedIterations { traces, iterations, notes } = load_iterations(&app, &id).await?;
    let mut ranks: Vec<u32> =
        iterations.iter().flat_map(|item| item.actions.iter().map(|action| action.rank)).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let first = iterations.iter().map(|item| item.interval_ns().0).min().unwrap_or_default();
    let iteration = |source: &trace_alignment::Iteration| {
        let (start, end) = source.interval_ns();
        MeasuredIteration {
            number: source.number,
            announced: source.announced,
            start_ns: start - first,
            span_ns: end - start,
            actions: source.actions.len() as u64,
        }
    };
    let iterations = iterations.iter().map(iteration).collect();
    Ok(Json(ActionList { traces, ranks, iterations, notes }))
}

/// Selects an observed iteration.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TimelineOptions {
    /// Index of the observed iteration, from 0. Default: 0.
    observed: Option<u32>,
    /// Factor applied to all times, for a run that was executed faster than planned. Default: 1.
    speed: Option<f64>,
}

/// Returns the timeline of an observed iteration, in the same columns as a simulated timeline.
///
/// The default is the compact format (postcard). Use `Accept: application/json` for JSON. Memory
/// and the dependency that delayed an action are not observed.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/timeline", tag = "traces",
    params(("id" = String, Path, description = "Content address"), TimelineOptions),
    responses(
        (status = 200, description = "The timeline", content(
            (Timeline = "application/json"),
            (String = "application/vnd.planscope.timeline"),
        )),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown, or no such iteration"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The trace has no action of a pipeline schedule"),
    )
)]
pub(crate) async fn timeline(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<TimelineOptions>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Query(options) = options?;
    let speed = checked_speed(options.speed)?;
    let together = load_iterations(&app, &id).await?;
    let rows = rows(together, options.observed.unwrap_or(0), speed).await?.0;
    let vary = [(VARY, "accept")];
    let wants_json = wants_json(&headers, TIMELINE_MEDIA_TYPE);
    let (kind, bytes) = off_thread(move || {
        if wants_json {
            return Ok(("application/json", written(&rows.timeline)?));
        }
        Ok((TIMELINE_MEDIA_TYPE, api::timeline::encode(&rows.timeline)))
    })
    .await?;
    Ok((vary, [(CONTENT_TYPE, kind)], bytes).into_response())
}

/// Selects the observed iteration and the plan.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AlignmentOptions {
    /// Index of the observed iteration, from 0. Default: 0.
    observed: Option<u32>,
    /// Scenario, by identifier or unique prefix. Default: the scenario attached to the trace.
    scenario: Option<String>,
    /// Planner. Default: the planner attached to the trace, otherwise the fastest.
    planner: Option<String>,
    /// Iteration of the plan, from 0. Default: 0.
    iteration: Option<u32>,
    /// Factor applied to observed times, for a run that was executed faster than planned. Default:
    /// 1.
    speed: Option<f64>,
}

/// Aligns an observed iteration with a planned iteration. Actions are matched by stage, kind and
/// microbatch.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/alignment", tag = "traces",
    params(("id" = String, Path, description = "Content address"), AlignmentOptions),
    responses(
        (status = 200, body = Alignment),
        (status = 300, description = "The prefix of the scenario is ambiguous; the candidates are listed"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown, no such iteration, or no plan of that planner"),
        (status = 409, description = "The trace has no scenario, or its scenario has no plan yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The trace has no action of a pipeline schedule"),
    )
)]
pub(crate) async fn alignment(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<AlignmentOptions>, QueryRejection>,
) -> Result<Json<Alignment>, ApiError> {
    let Query(options) = options?;
    let speed = checked_speed(options.speed)?;
    let trace = app.store.reader().trace(&id).await?;
    let (scenario, planner) =
        find_plan(&app, &trace, (options.scenario.as_deref(), options.planner.as_deref())).await?;
    let iteration = options.iteration.unwrap_or(0);
    let simulated = app.store.reader().timeline(&scenario, planner, iteration).await?;
    let observed_iteration = options.observed.unwrap_or(0);
    let together = load_iterations(&app, &id).await?;
    let (rows, mut notes) = rows(together, observed_iteration, speed).await?;
    if rows.clipped > 0 {
        notes.push(format!(
            "{} actions begin before the one in front of them on the lane ends; they are shown from there on.",
            rows.clipped
        ));
    }
    let aligned = off_thread(move || Ok(trace_alignment::align(&rows.timeline, &decode(&simulated)?))).await?;
    Ok(Json(Alignment { scenario, planner, iteration, observed_iteration, aligned, notes }))
}

/// Selects the rank and the plan.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PredictionOptions {
    /// Rank of the trace, or of one of its devices. Default: as the trace states, otherwise 0.
    rank: Option<u32>,
    /// Scenario, by identifier or unique prefix. Default: the scenario attached to the trace.
    scenario: Option<String>,
    /// Planner. Default: the planner attached to the trace, otherwise the fastest.
    planner: Option<String>,
}

/// Compares the kernels of a rank with the predicted operators of a plan, by type.
///
/// Times are means per step of the trace. `parts` adds up to the step: computation, exposed communication, copies and idle
/// time. `idle` has the idle time by cause.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/prediction", tag = "traces",
    params(("id" = String, Path, description = "Content address"), PredictionOptions),
    responses(
        (status = 200, body = TracePrediction),
        (status = 300, description = "The prefix of the scenario is ambiguous; the candidates are listed"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown, or no plan of that planner"),
        (status = 409, description = "The trace has no scenario, or its scenario has no plan yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The trace has no kernels or copies of a device"),
    )
)]
pub(crate) async fn prediction(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<PredictionOptions>, QueryRejection>,
) -> Result<Json<TracePrediction>, ApiError> {
    let Query(PredictionOptions { rank, scenario, planner }) = options?;
    let trace = app.store.reader().trace(&id).await?;
    let (scenario, planner) = find_plan(&app, &trace, (scenario.as_deref(), planner.as_deref())).await?;
    let stored = app.store.reader().outcome(&scenario).await?;
    let planned = stored.outcome.results.into_iter().find_map(|result| match result.answer {
        PlanOutcome::Planned(planned) if result.planner == planner => Some(planned),
        _ => None,
    });
    let planned = planned.ok_or(ApiError::NoPlannerPlan(planner))?;
    let scenario = find(&app, &scenario).await?.scenario;
    let valid = validate(app.store.reader(), scenario).await?;
    let mut devices: Vec<Recorded> = compared::load(&app, &[id]).await?.into_iter().flatten().collect();
    let several = devices.len() > 1;
    let index = devices.iter().position(|device| !several || rank.is_none_or(|rank| rank == device.rank));
    let Some(index) = index else {
        return Err(ApiError::TraceComparison(
            "it has no kernels or copies of a device, or not of this rank".to_owned(),
        ));
    };
    let recorded = devices.swap_remove(index);
    let found = off_thread(move || Ok(trace_prediction::compare(&valid, &planned, &recorded, rank))).await?;
    Ok(Json(found))
}

/// Returns the scenario and planner to compare a trace with, by default those attached to the trace.
async fn find_plan(
    app: &App,
    trace: &TraceSummary,
    (scenario, planner): (Option<&str>, Option<&str>),
) -> Result<(String, PlannerKind), ApiError> {
    // By default, a trace uses the scenario and planner of its run.
    let of_run = match (&trace.plan, &trace.run) {
        (None, Some(run)) => app.store.reader().run(run, app.clock.now()).await.ok(),
        _ => None,
    };
    let of_run = of_run.map(|run| run.summary);
    let of_run = of_run.and_then(|run| Some(TracePlan { scenario: run.scenario?, planner: run.plan }));
    let attached = trace.plan.as_ref().or(of_run.as_ref());
    let asked = scenario.filter(|scenario| !scenario.is_empty());
    let scenario = asked.or(attached.map(|plan| plan.scenario.as_str())).ok_or(ApiError::NoTracePlan)?;
    let scenario = find(app, scenario).await?.id;
    let of_attached = attached.filter(|plan| plan.scenario == scenario).and_then(|plan| plan.planner);
    let named = parse_planner(planner)?.or(of_attached);
    let outcome = match app.store.reader().outcome(&scenario).await {
        Ok(stored) => stored.outcome,
        Err(crate::store::StoreError::Unknown { .. }) => return Err(ApiError::NotPlanned),
        Err(error) => return Err(error.into()),
    };
    // Results are sorted from fastest to slowest.
    let planned = outcome.results.iter().filter(|result| matches!(result.answer, PlanOutcome::Planned(_)));
    let planner = planned.map(|result| result.planner).find(|planner| named.is_none_or(|named| named == *planner));
    let planner = planner.ok_or(named.map_or(ApiError::NoPlanAtAll, ApiError::NoPlannerPlan))?;
    Ok((scenario, planner))
}

/// Returns the trace and the other traces of its run.
async fn run_traces(app: &App, id: &str) -> Result<Vec<TraceSummary>, ApiError> {
    let trace = app.store.reader().trace(id).await?;
    match &trace.run {
        None => Ok(vec![trace]),
        Some(run) => {
            let mut traces = app.store.reader().run_traces(run).await?;
            traces.truncate(MAX_TRACES);
            Ok(traces)
        }
    }
}

/// Returns the iterations in the trace and in the other traces of its run.
async fn load_iterations(app: &App, id: &str) -> Result<AlignedIterations, ApiError> {
    let mut parts = Vec::new();
    for trace in run_traces(app, id).await? {
        let Some(packed) = app.store.reader().trace_actions(&trace.id).await? else { continue };
        let began_ns = overview(app, &trace.id).await?.began_ns;
        let actions: Actions = off_thread(move || Ok(unpack(&packed)?)).await?;
        parts.push(Part { trace: trace.id, rank: trace.rank, began_ns, span_ns: trace.span_ns, actions });
    }
    let together = off_thread(move || Ok(together(&parts))).await?;
    if together.iterations.is_empty() { Err(ApiError::NoActions) } else { Ok(together) }
}

/// Converts an iteration to a timeline. Also returns notes for the user.
async fn rows(mut together: AlignedIterations, index: u32, speed: f64) -> Result<(Rows, Vec<String>), ApiError> {
    let there = together.iterations.len();
    if index as usize >= there {
        return Err(ApiError::NoSuchIteration { requested: index, there });
    }
    let mut iteration = together.iterations.swap_remove(index as usize);
    let rows = off_thread(move || {
        let first = iteration.interval_ns().0;
        for action in &mut iteration.actions {
            // Scale the end times instead of durations, so adjacent actions stay adjacent.
            let scaled = |ns: u64| ((ns - first) as f64 * speed).round() as u64;
            let (start, end) = (scaled(action.start_ns), scaled(action.end_ns()));
            (action.start_ns, action.duration_ns) = (start, end - start);
        }
        Ok(trace_alignment::timeline(&iteration.actions))
    });
    Ok((rows.await?, together.notes))
}

fn checked_speed(speed: Option<f64>) -> Result<f64, ApiError> {
    let speed = speed.unwrap_or(1.0);
    if SPEEDS.contains(&speed) {
        return Ok(speed);
    }
    Err(ApiError::Malformed(format!("speed: {speed} is out of range: 0.000001 to 1000000")))
}
