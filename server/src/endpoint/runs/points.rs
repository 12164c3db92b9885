//! Points of a run, by page or as a file.

mod table;

use std::io;

use api::run::{PointPage, RunPoint};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::Shared;
use crate::error::ApiError;
use crate::store::StoreError;
use table::Table;

/// Maximum number of points per page.
const MAX_PAGE: u32 = 5000;
/// Maximum number of timers with a column in a file.
const MAX_PHASES: u32 = 200;

/// Selects a page of points.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Returns points after this row, 0 by default.
    after: Option<u64>,
    /// Number of points per page, at most 5,000. Default: 5,000.
    limit: Option<u32>,
}

/// Returns the points of a run after a row, identical to those in the event stream.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/points", tag = "runs", params(("run" = String, Path, description = "Identifier"), Part),
    responses(
        (status = 200, body = PointPage),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn page(
    State(app): Shared,
    Path(run): Path<String>,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Json<PointPage>, ApiError> {
    let Query(part) = part?;
    let limit = part.limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
    let after = part.after.unwrap_or_default();
    // Load the run first, so the points include the run's last row.
    let pulse = app.store.reader().run_pulse(&run, app.clock.now()).await?;
    let points = app.store.reader().run_points(&run, after, limit).await?;
    let last = points.last().map_or(after, |point| point.row);
    let next = (last < pulse.points).then_some(last);
    let open = pulse.open.filter(|_| last == pulse.points).as_deref().map(point).transpose()?;
    Ok(Json(PointPage { points, next, open }))
}

/// File format.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Form {
    /// csv or json.
    form: String,
}

/// Returns all complete points of a run as a file.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/export", tag = "runs", params(("run" = String, Path, description = "Identifier"), Form),
    responses(
        (status = 200, content_type = "text/csv", description = "CSV, or JSON, as an attachment"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn export(
    State(app): Shared,
    Path(run): Path<String>,
    form: Result<Query<Form>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(Form { form }) = form?;
    let summary = app.store.reader().run(&run, app.clock.now()).await?.summary;
    let phases = app.store.reader().run_phases(&run, MAX_PHASES).await?;
    let (kind, table) = match form.as_str() {
        "csv" => ("text/csv; charset=utf-8", Table::csv(phases)),
        "json" => ("application/json", Table::json(&summary)),
        _ => return Err(ApiError::Malformed(format!("form is csv or json, not {form:?}"))),
    };
    let headers =
        [(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, format!("attachment; filename=\"{run}.{form}\""))];
    // Stream page by page, because the number of points is not limited.
    let pages = stream::try_unfold(Some((app, run, table, 0)), |state| async move {
        let Some((app, run, mut table, after)) = state else { return Ok(None) };
        let points = app.store.reader().run_points(&run, after, MAX_PAGE).await.map_err(io::Error::other)?;
        let Some(last) = points.last().map(|point| point.row) else {
            return Ok(Some((Bytes::from(table.end()), None)));
        };
        Ok::<_, io::Error>(Some((Bytes::from(table.rows(&points)?), Some((app, run, table, last)))))
    });
    Ok((headers, Body::from_stream(pages)).into_response())
}

fn point(json: &str) -> Result<RunPoint, StoreError> {
    serde_json::from_str(json)
        .map_err(|error| StoreError::Damaged { kind: "open point of a run", detail: error.to_string() })
}
