//! Studies: search progress of a PipeWeaver plan, sub-microbatch sizes, and all module layouts.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use planner::analysis::correction as study_correction;
use planner::analysis::layouts as study_layouts;
use planner::analysis::stages as study_stages;
use planner::analysis::{
    AnalysisError, CorrectionAnalysis, LayoutPlan, LayoutSweep, SearchProgress, SlowShapes, StageAnalysis,
    SubMicrobatches, Subject, layout_plan, search_progress, sub_microbatches,
};
use planner::fit::{self, DeviceTable, Fit};
use planner::outcome::{ENGINE, Outcome, PlanOutcome as Planning};
use planner::planners::dflop::CorrectionSettings;
use planner::run_comparison::StepRatio;
use planner::scenario::budget::{plan_bytes, search_bytes};
use planner::scenario::{PlannerKind, ValidScenario};
use serde::Deserialize;
use utoipa::IntoParams;

use super::scenarios::{find, validate};
use crate::app::{App, Shared};
use crate::error::ApiError;
use crate::store::StoreError;
use crate::turns::Claimant;

/// Maximum number of run steps used. A scenario has no more batches.
const MAX_STEPS: u32 = 5000;
/// Estimated size of a decoded timeline relative to the compact format.
const DECODED: u64 = 8;
/// Maximum number of rollouts per search.
const MAX_ROLLOUTS: u32 = 100_000;
/// Default number of rollouts for the search study.
const PROGRESS_ROLLOUTS: u32 = 2_000;
/// Default number of rollouts per size.
const SIZE_ROLLOUTS: u32 = 200;
/// Maximum number of layouts to simulate per freedom and cluster size.
const MAX_POINTS: u32 = 150;

/// Study options.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AnalysisOptions {
    /// Iteration, from 0. Default: 0.
    iteration: Option<u32>,
    /// Number of rankings to interleave per search, 1 to 100,000. Default: 2,000 for the search,
    /// 200 for sizes.
    rollouts: Option<u32>,
}

/// Selects an iteration.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StageOptions {
    /// Iteration, from 0. Default: 0.
    iteration: Option<u32>,
}

impl AnalysisOptions {
    fn rollouts(&self, default: u32) -> Result<u32, ApiError> {
        let rollouts = self.rollouts.unwrap_or(default);
        if (1..=MAX_ROLLOUTS).contains(&rollouts) {
            return Ok(rollouts);
        }
        Err(ApiError::Malformed(format!("rollouts: {rollouts} is out of range: 1 to {MAX_ROLLOUTS}")))
    }
}

/// Returns the best known iteration time during the ranking search, for three strategies.
///
/// The study covers the slowest replica of the iteration, with the sub-microbatches of the
/// PipeWeaver plan. The computation is synchronous, queued with the planning jobs, and limited to
/// 20 s. `is_cut` is true if the time limit is reached. Closing the request cancels it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/search", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), AnalysisOptions),
    responses(
        (status = 200, body = SearchProgress),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, not an identifier, or a malformed query"),
        (status = 404, description = "Unknown, or no such iteration"),
        (status = 409, description = "Not planned by this engine yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "Nothing to analyse, for example because no PipeWeaver planner has a plan"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn search(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
    options: Result<Query<AnalysisOptions>, QueryRejection>,
) -> Result<Json<SearchProgress>, ApiError> {
    let Query(options) = options?;
    let rollouts = options.rollouts(PROGRESS_ROLLOUTS)?;
    let (scenario, subject) = subject(&app, &id, &options).await?;
    let bytes = search_bytes(scenario.scenario(), app.studies.at_once());
    let analysis = app
        .studies
        .run((&claimant, bytes), rollouts, move |effort| search_progress(&scenario, subject, effort))
        .await?;
    Ok(Json(analysis))
}

/// Returns the fastest and slowest order for each sub-microbatch size of images or clips.
///
/// The study covers the slowest replica of the iteration in the PipeWeaver plan. The computation is
/// synchronous, queued with the planning jobs, and limited to 20 s. `is_cut` is true if the time
/// limit is reached. Closing the request cancels it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/sub-microbatches", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), AnalysisOptions),
    responses(
        (status = 200, body = SubMicrobatches),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, not an identifier, or a malformed query"),
        (status = 404, description = "Unknown, or no such iteration"),
        (status = 409, description = "Not planned by this engine yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "Nothing to analyse: the model has one module, or no PipeWeaver planner has a plan"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn sizes(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
    options: Result<Query<AnalysisOptions>, QueryRejection>,
) -> Result<Json<SubMicrobatches>, ApiError> {
    let Query(options) = options?;
    let rollouts = options.rollouts(SIZE_ROLLOUTS)?;
    let (scenario, subject) = subject(&app, &id, &options).await?;
    let bytes = search_bytes(scenario.scenario(), app.studies.at_once());
    let analysis = app
        .studies
        .run((&claimant, bytes), rollouts, move |effort| sub_microbatches(&scenario, subject, effort))
        .await?;
    Ok(Json(analysis))
}

/// Returns all layouts of the scenario's modules as points.
///
/// The layouts are: a common layout for all modules, separate layouts on shared devices, and
/// separate layouts on separate devices. Points are simulated with the representative batch, in
/// order of their estimates. The computation is synchronous, queued with the planning jobs, and
/// limited to 20 s. `is_partial` is true if the time limit is reached. Closing the request cancels
/// it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/layouts", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = LayoutSweep),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn layouts(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
) -> Result<Json<LayoutSweep>, ApiError> {
    let stored = find(&app, &id).await?;
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let bytes = search_bytes(scenario.scenario(), app.studies.at_once());
    let sweep = app
        .studies
        .run((&claimant, bytes), 1, move |effort| {
            Ok(study_layouts(&scenario, MAX_POINTS, effort.workers, effort.cancellation))
        })
        .await?;
    Ok(Json(sweep))
}

/// Options of the fit.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FitOptions {
    /// Planner of all figures. Default: the first planner of the scenario other than `best`.
    planner: Option<PlannerKind>,
}

/// Returns the memory need by rank and term, and the ten single changes of the scenario that help most.
///
/// Every change is planned and simulated on one global batch. If the scenario does not fit, the changes make it
/// fit; otherwise they save time. The computation is synchronous, queued with the planning jobs, and limited to
/// 20 s. `is_partial` is true if the time limit is reached. Closing the request cancels it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/fit", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), FitOptions),
    responses(
        (status = 200, body = Fit),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, not an identifier, or a malformed query"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The scenario cannot be planned within the limits, or not within the time of a study"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn fit(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
    options: Result<Query<FitOptions>, QueryRejection>,
) -> Result<Json<Fit>, ApiError> {
    let Query(FitOptions { planner }) = options?;
    let stored = find(&app, &id).await?;
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let bytes = search_bytes(scenario.scenario(), app.studies.at_once());
    let fitted = app
        .studies
        .run((&claimant, bytes), 1, move |effort| fit::fit(&scenario, planner, effort.workers, effort.cancellation))
        .await?;
    Ok(Json(fitted))
}

/// Returns the fewest devices of every device type on which the 1F1B planner has a plan.
///
/// Layout and settings are free. Nodes are doubled until a plan fits, up to 1,024. The computation is synchronous,
/// queued with the planning jobs, and limited to 20 s. `is_partial` is true if the time limit is reached. Closing
/// the request cancels it.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/fewest-devices", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 200, body = DeviceTable),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The scenario cannot be planned within the limits"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn fewest_devices(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
) -> Result<Json<DeviceTable>, ApiError> {
    let stored = find(&app, &id).await?;
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let bytes = search_bytes(scenario.scenario(), app.studies.at_once());
    let table = app
        .studies
        .run((&claimant, bytes), 1, move |effort| fit::fewest_devices(&scenario, effort.workers, effort.cancellation))
        .await?;
    Ok(Json(table))
}

/// Returns details of a module layout, selected by name from the layout study: timeline, module
/// placement, and binding constraint.
///
/// The layout is planned for the representative batch, checked and simulated like every plan. The
/// computation is synchronous and queued with the planning jobs.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/layouts/{layout}", tag = "studies",
    params(
        ("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"),
        ("layout" = String, Path, description = "Name of a point of the sweep"),
    ),
    responses(
        (status = 200, body = LayoutPlan),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, or not an identifier"),
        (status = 404, description = "Unknown, or no layout of this scenario"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "These layouts are impossible; the detail states why"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn layout(
    State(app): Shared,
    claimant: Claimant,
    Path((id, layout)): Path<(String, String)>,
) -> Result<Json<LayoutPlan>, ApiError> {
    let stored = find(&app, &id).await?;
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let bytes = search_bytes(scenario.scenario(), 1);
    let analysis =
        app.studies.run((&claimant, bytes), 1, move |effort| layout_plan(&scenario, &layout, effort.cancellation));
    Ok(Json(analysis.await?))
}

/// Returns stage times per microbatch for all plans in an iteration.
///
/// The result also contains the bubble, the bubble for equal microbatches, and the device
/// utilisation per stage. It covers the slowest replica, like the timelines. Plans with
/// context-parallel groups have no stages and are omitted.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/stages", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), StageOptions),
    responses(
        (status = 200, body = StageAnalysis),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, not an identifier, or a malformed query"),
        (status = 404, description = "Unknown, or not planned yet"),
        (status = 410, description = "Deleted"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn stages(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
    options: Result<Query<StageOptions>, QueryRejection>,
) -> Result<Json<StageAnalysis>, ApiError> {
    let iteration = options?.0.iteration.unwrap_or(0);
    let stored = find(&app, &id).await?;
    let reader = app.store.reader();
    let outcome = reader.outcome(&stored.id).await?.outcome;
    let mut encoded = Vec::new();
    for result in &outcome.results {
        let has_iteration = matches!(&result.answer, planner::outcome::PlanOutcome::Planned(planned)
            if planned.iterations.len() > iteration as usize);
        if has_iteration {
            encoded.push((result.planner, reader.timeline(&stored.id, result.planner, iteration).await?));
        }
    }
    let model = stored.scenario.model;
    let bytes = encoded.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>().saturating_mul(DECODED);
    let analysis = app.studies.run((&claimant, bytes), 1, move |_| {
        let decoded =
            encoded.iter().filter_map(|(planner, bytes)| Some((*planner, api::timeline::decode(bytes).ok()?)));
        Ok(study_stages(&model, &outcome, iteration, &decoded.collect::<Vec<_>>()))
    });
    Ok(Json(analysis.await?))
}

/// Options of the correction study.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CorrectionOptions {
    /// Number of batches, 1 to 200. Default: 60.
    iterations: Option<u32>,
    /// Fraction of shapes that are slow, 0 to 1. Default: 0.03.
    anomaly: Option<f64>,
    /// Extra time for an item with a slow shape, relative to the maximum stage time, 0 to 10.
    /// Default: 0.5.
    slowdown: Option<f64>,
    /// Monitoring cost as a fraction of throughput, 0 to 1. Default: 0.04.
    cost: Option<f64>,
    /// Averaging window for benefits, in iterations, 1 to 200. Default: 20.
    window: Option<u32>,
    /// Run to compare with the plan. Step k in the log is batch k.
    run: Option<String>,
}

impl CorrectionOptions {
    fn slow(&self) -> Result<SlowShapes, ApiError> {
        let integer = |name: &str, given: Option<u32>, default: u32| match given.unwrap_or(default) {
            value @ 1..=200 => Ok(value),
            value => Err(ApiError::Malformed(format!("{name}: {value} is out of range: 1 to 200"))),
        };
        let share = |name: &str, given: Option<f64>, default: f64, max: f64| {
            let value = given.unwrap_or(default);
            let fits = (0.0..=max).contains(&value);
            fits.then_some(value)
                .ok_or_else(|| ApiError::Malformed(format!("{name}: {value} is out of range: 0 to {max}")))
        };
        Ok(SlowShapes {
            iterations: integer("iterations", self.iterations, 60)?,
            rate: share("anomaly", self.anomaly, 0.03, 1.0)?,
            magnitude: share("slowdown", self.slowdown, 0.5, 10.0)?,
            settings: CorrectionSettings {
                iterations: integer("window", self.window, 20)?,
                cost: share("cost", self.cost, 0.04, 1.0)?,
            },
        })
    }
}

/// Simulates the adaptive correction in DFLOP when some shapes are slower than profiled, and
/// compares shapes with a run.
///
/// The study assigns the scenario's batches under the DFLOP plan with and without correction. The
/// computation is synchronous, queued with the planning jobs, and limited to 20 s.
#[utoipa::path(
    get, path = "/api/v1/scenarios/{id}/studies/correction", tag = "studies",
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters"), CorrectionOptions),
    responses(
        (status = 200, body = CorrectionAnalysis),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "Too short, not an identifier, or a malformed query"),
        (status = 404, description = "Unknown"),
        (status = 409, description = "Not planned by this engine yet"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "DFLOP has no plan of the scenario"),
        (status = 503, description = "Too many studies are running; try again later"),
    )
)]
pub(crate) async fn correction(
    State(app): Shared,
    claimant: Claimant,
    Path(id): Path<String>,
    options: Result<Query<CorrectionOptions>, QueryRejection>,
) -> Result<Json<CorrectionAnalysis>, ApiError> {
    let Query(options) = options?;
    let slow = options.slow()?;
    let stored = find(&app, &id).await?;
    let outcome = planned(&app, &stored.id).await?;
    let run = match options.run.as_deref().filter(|run| !run.is_empty()) {
        Some(run) => steps(&app, run, &outcome).await?,
        None => Vec::new(),
    };
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let scenario =
        outcome.settings(PlannerKind::Dflop).map_or_else(|| scenario.clone(), |own| scenario.with_settings(&own));
    let bytes = plan_bytes(scenario.scenario(), 1);
    let work = app.studies.run((&claimant, bytes), 1, move |effort| {
        study_correction(&scenario, &outcome, slow, &run, effort.cancellation)
    });
    Ok(Json(work.await?))
}

/// Returns measured and predicted times for the steps of a run with the batches of the DFLOP plan.
async fn steps(app: &App, run: &str, outcome: &Outcome) -> Result<Vec<StepRatio>, ApiError> {
    app.store.reader().run(run, app.clock.now()).await?;
    let planned = outcome.results.iter().find_map(|result| match &result.answer {
        Planning::Planned(planned) if result.planner == PlannerKind::Dflop => Some(planned),
        _ => None,
    });
    let Some(planned) = planned else { return Err(AnalysisError::NoDataAwarePlan.into()) };
    let points = app.store.reader().run_points(run, 0, MAX_STEPS).await?;
    let ratio = |point: api::run::RunPoint| {
        let iteration = u32::try_from(point.step.checked_sub(1)?).ok()?;
        let predicted_s = planned.iterations.get(iteration as usize)?.iteration_s;
        Some(StepRatio { iteration, measured_s: point.step_s?, predicted_s })
    };
    Ok(points.into_iter().filter_map(ratio).collect())
}

/// Returns the outcome from this engine.
async fn planned(app: &App, id: &str) -> Result<Outcome, ApiError> {
    let outcome = match app.store.reader().outcome(id).await {
        Ok(answered) => answered.outcome,
        Err(StoreError::Unknown { .. }) => return Err(ApiError::NotPlanned),
        Err(error) => return Err(error.into()),
    };
    if outcome.engine != ENGINE {
        return Err(ApiError::NotPlanned);
    }
    Ok(outcome)
}

/// Returns the scenario and the plan to study.
async fn subject(app: &App, id: &str, options: &AnalysisOptions) -> Result<(ValidScenario, Subject), ApiError> {
    let stored = find(app, id).await?;
    let outcome = planned(app, &stored.id).await?;
    let subject = Subject::from_outcome(&outcome, options.iteration.unwrap_or(0))?;
    let scenario = validate(app.store.reader(), stored.scenario).await?;
    let scenario =
        outcome.settings(subject.planner).map_or_else(|| scenario.clone(), |own| scenario.with_settings(&own));
    Ok((scenario, subject))
}
