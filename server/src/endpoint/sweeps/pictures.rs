//! Plot data for a sweep.

use std::collections::HashMap;

use api::sweep::{Front, Metric, Picture};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use planner::scenario::PlannerKind;
use planner::sweep::PointRow;
use serde::Deserialize;
use utoipa::IntoParams;

use super::find;
use crate::app::Shared;
use crate::error::ApiError;
use crate::store::{Reader, StoreError};
use crate::sweeps::{self, ChartRequest, PictureError};

/// Number of optimal plans with an interval.
const MAX_INTERVALS: usize = 20;

/// Selects the plot.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PictureQuery {
    /// Index of the horizontal axis, from 0.
    x: Option<usize>,
    /// Index of the vertical axis. By default, the plot has a line per planner.
    y: Option<usize>,
    /// Value indices on all axes, for example "0,2,1". They apply to the axes that are not plotted.
    at: Option<String>,
    /// Planner for a map. Default: all.
    planner: Option<String>,
    /// Metric, iteration time by default.
    metric: Option<Metric>,
}

/// Returns a metric over one or two axes as plot data: at most 5,000 cells, with the point index
/// and the reason for empty cells.
#[utoipa::path(
    get, path = "/api/v1/sweeps/{id}/picture", tag = "sweeps", params(("id" = String, Path, description = "Identifier"), PictureQuery),
    responses(
        (status = 200, body = Picture), (status = 400, description = "The query is malformed"), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"), (status = 422, description = "No such picture"),
    )
)]
pub(crate) async fn picture(
    State(app): Shared,
    Path(id): Path<String>,
    query: Result<Query<PictureQuery>, QueryRejection>,
) -> Result<Json<Picture>, ApiError> {
    let Query(query) = query?;
    let kept = find(&app, &id).await?;
    let at = query.at.as_deref().unwrap_or_default();
    let at = at.split(',').filter(|place| !place.is_empty()).map(str::parse).collect::<Result<Vec<usize>, _>>();
    let at = at.map_err(|_| ApiError::Malformed("at: numbers with commas between them are needed".to_owned()))?;
    let planner = query.planner.filter(|planner| !planner.is_empty());
    let planner =
        planner.map(|planner| PlannerKind::from_id(&planner).ok_or(ApiError::NoSuchPlanner(planner))).transpose()?;
    let metric = query.metric.unwrap_or_default();
    let asked = ChartRequest { x: query.x.unwrap_or(0), y: query.y, at, planner, metric };
    let reader = app.store.reader();
    let engine = reader.sweep_engine(&id).await?;
    let picture = sweeps::picture(reader, &kept.sweep, &engine, &asked).await;
    Ok(Json(picture.map_err(|error| match error {
        PictureError::Field(error) => ApiError::InvalidRequest(vec![error]),
        PictureError::Store(error) => error.into(),
    })?))
}

/// Returns time and memory of all plans, starting with the Pareto front, at most 5,000 plans.
#[utoipa::path(
    get, path = "/api/v1/sweeps/{id}/front", tag = "sweeps", params(("id" = String, Path, description = "Identifier")),
    responses((status = 200, body = Front), (status = 400, description = "Not an identifier"), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"))
)]
pub(crate) async fn front(State(app): Shared, Path(id): Path<String>) -> Result<Json<Front>, ApiError> {
    let kept = find(&app, &id).await?;
    let reader = app.store.reader();
    let engine = reader.sweep_engine(&id).await?;
    let plans = reader.sweep_plans(&id, &engine).await?;
    let throughput = sweeps::throughput(reader, &kept.sweep, &engine).await?;
    let mut front = sweeps::front(&kept.sweep, &plans, throughput.as_ref());
    add_uncertainty(reader, (&id, &engine), &mut front).await?;
    Ok(Json(front))
}

/// Adds the intervals and the risks of the first optimal plans from their rows.
async fn add_uncertainty(reader: &Reader, (id, engine): (&str, &str), front: &mut Front) -> Result<(), ApiError> {
    let listed = || front.plans.iter().filter(|plan| plan.optimal).take(MAX_INTERVALS);
    let points: Vec<u32> = listed().map(|plan| plan.point).collect();
    let mut found = HashMap::new();
    for text in reader.engine_sweep_rows(id, engine, &points).await? {
        let row: PointRow = serde_json::from_str(&text)
            .map_err(|error| StoreError::Damaged { kind: "row of a sweep", detail: error.to_string() })?;
        for entry in row.planners() {
            if let Some(metrics) = entry.metrics() {
                found.insert((row.index, entry.planner()), (metrics.interval_s, sweeps::risk(metrics)));
            }
        }
    }
    for plan in front.plans.iter_mut().filter(|plan| plan.optimal).take(MAX_INTERVALS) {
        (plan.interval_s, plan.risk) = found.get(&(plan.point, plan.planner.planner)).copied().unwrap_or_default();
    }
    Ok(())
}
