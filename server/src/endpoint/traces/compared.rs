//! Compares traces with each other: time by kernel, phase and step, and the ranks of a run.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use ingest::trace::recorded;
use planner::trace_comparison::{self, RankAxis, RankReport, RanksError, Recorded, TraceDifference, TraceTimes};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::overview;
use crate::app::{App, Shared};
use crate::endpoint::off_thread;
use crate::error::ApiError;
use crate::store::ChunkQuery;
use crate::traces::stored::{StoredColumns, unpack_trace};
use crate::traces::tables::{self, Table};

/// Maximum number of traces to compare.
const MAX_TRACES: usize = 64;
/// Maximum number of slices in these traces together. Ten million take about a gigabyte.
const MAX_SLICES: u64 = 10_000_000;
/// Maximum number of collectives in a JSON response. The CSV has all.
const MAX_COLLECTIVES: usize = 200;
/// Segments per rank on the axis.
const DEFAULT_SEGMENTS: u32 = 1000;
const MAX_SEGMENTS: u32 = 10_000;

impl From<RanksError> for ApiError {
    fn from(error: RanksError) -> Self {
        Self::TraceComparison(error.to_string())
    }
}

/// Form of the response.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FormOptions {
    /// `json` (default) or `csv`.
    format: Option<String>,
    /// Table in the CSV: kernels, phases, steps; for ranks also ranks, groups, collectives. Default:
    /// kernels; for ranks: ranks.
    table: Option<String>,
    /// Rank or device to use from a trace with several. Default: the first.
    rank: Option<u32>,
}

impl FormOptions {
    /// Returns the name of the table for CSV; `None` for JSON.
    fn table(&self) -> Result<Option<&str>, ApiError> {
        match self.format.as_deref() {
            None | Some("" | "json") => Ok(None),
            Some("csv") => Ok(Some(self.table.as_deref().unwrap_or_default())),
            Some(other) => Err(ApiError::Malformed(format!("format: {other:?} is neither json nor csv"))),
        }
    }
}

/// Returns time by kernel, phase and step, for every device of a trace or for one.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/times", tag = "traces",
    params(("id" = String, Path, description = "Content address"), FormOptions),
    responses(
        (status = 200, description = "The times", content((Vec<TraceTimes> = "application/json"), (String = "text/csv"))),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
        (status = 422, description = "The trace has no kernels or copies of a device"),
    )
)]
pub(crate) async fn times(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<FormOptions>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(options) = options?;
    let table = options.table()?;
    let ranks = load(&app, &[id]).await?;
    let ranks: Vec<Recorded> =
        ranks.into_iter().flatten().filter(|found| options.rank.is_none_or(|rank| rank == found.rank)).collect();
    if ranks.is_empty() {
        return Err(ApiError::TraceComparison(
            "it has no kernels or copies of a device, or not of this rank".to_owned(),
        ));
    }
    let times: Vec<TraceTimes> = off_thread(move || Ok(ranks.iter().map(trace_comparison::times).collect())).await?;
    answer(table, "times", &times, |times| tables::times(times))
}

/// Traces before and after a change.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DifferenceOptions {
    /// Trace before the change.
    before: String,
    /// Trace after the change.
    after: String,
}

/// Compares two traces by kernel, phase and step.
///
/// Steps are matched by number if the shorter trace has no other numbers, otherwise in order. Times
/// are sums over the matched steps, or over the complete traces if one has no steps.
#[utoipa::path(
    get, path = "/api/v1/traces/difference", tag = "traces", params(DifferenceOptions, FormOptions),
    responses(
        (status = 200, description = "The difference", content((TraceDifference = "application/json"), (String = "text/csv"))),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "A trace is unknown"),
        (status = 410, description = "A trace is deleted"),
        (status = 422, description = "A trace has no kernels or copies of a device"),
    )
)]
pub(crate) async fn difference(
    State(app): Shared,
    pair: Result<Query<DifferenceOptions>, QueryRejection>,
    options: Result<Query<FormOptions>, QueryRejection>,
) -> Result<Response, ApiError> {
    let (Query(pair), Query(options)) = (pair?, options?);
    let table = options.table()?;
    let mut sides = Vec::new();
    for ranks in load(&app, &[pair.before, pair.after]).await? {
        let first = ranks.into_iter().find(|found| options.rank.is_none_or(|rank| rank == found.rank));
        sides.push(first.ok_or_else(|| {
            ApiError::TraceComparison("one has no kernels or copies of a device, or not of this rank".to_owned())
        })?);
    }
    let difference = off_thread(move || Ok(trace_comparison::difference(&sides[0], &sides[1]))).await?;
    answer(table, "difference", &difference, tables::difference)
}

/// Traces of the ranks of a run.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RanksOptions {
    /// Traces, separated by commas, at most 64.
    traces: Option<String>,
    /// Run whose traces are compared, instead of `traces`.
    run: Option<String>,
}

/// Returns who waits for whom in the collectives of several ranks, and the straggler.
///
/// A collective ends on all its ranks at the same time, so the rank with the shortest kernel arrives
/// last. Collectives are matched by process group and sequence number, otherwise by order in the
/// step. JSON has the 200 collectives with the longest waits, the CSV all of them.
#[utoipa::path(
    get, path = "/api/v1/traces/ranks", tag = "traces", params(RanksOptions, FormOptions),
    responses(
        (status = 200, description = "The waits", content((RankReport = "application/json"), (String = "text/csv"))),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "A trace is unknown"),
        (status = 410, description = "A trace is deleted"),
        (status = 422, description = "Fewer than two ranks, two traces of one rank, or no collective in common"),
    )
)]
pub(crate) async fn ranks(
    State(app): Shared,
    wanted: Result<Query<RanksOptions>, QueryRejection>,
    options: Result<Query<FormOptions>, QueryRejection>,
) -> Result<Response, ApiError> {
    let (Query(wanted), Query(options)) = (wanted?, options?);
    let table = options.table()?;
    let ranks = load_ranks(&app, &wanted).await?;
    let most = if table.is_some() { usize::MAX } else { MAX_COLLECTIVES };
    let report = off_thread(move || Ok(trace_comparison::ranks(&ranks, most)?)).await?;
    answer(table, "ranks", &report, tables::ranks)
}

/// Part of the axis.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AxisOptions {
    /// Step to show. Default: the complete traces.
    step: Option<u64>,
    /// Maximum number of segments per rank, 1 to 10,000. Default: 1,000. Beyond it, neighbours are
    /// merged.
    segments: Option<u32>,
}

/// Returns the ranks on one axis: computing, waiting in collectives, transferring and copying. Clocks
/// are aligned on the ends of collectives.
#[utoipa::path(
    get, path = "/api/v1/traces/axis", tag = "traces", params(RanksOptions, AxisOptions),
    responses(
        (status = 200, body = RankAxis),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "A trace is unknown"),
        (status = 410, description = "A trace is deleted"),
        (status = 422, description = "Fewer than two ranks, two traces of one rank, or no collective in common"),
    )
)]
pub(crate) async fn axis(
    State(app): Shared,
    wanted: Result<Query<RanksOptions>, QueryRejection>,
    options: Result<Query<AxisOptions>, QueryRejection>,
) -> Result<Json<RankAxis>, ApiError> {
    let (Query(wanted), Query(options)) = (wanted?, options?);
    let most = options.segments.unwrap_or(DEFAULT_SEGMENTS);
    if !(1..=MAX_SEGMENTS).contains(&most) {
        return Err(ApiError::Malformed(format!("segments: {most} is out of range: 1 to {MAX_SEGMENTS}")));
    }
    let ranks = load_ranks(&app, &wanted).await?;
    Ok(Json(off_thread(move || Ok(trace_comparison::segments(&ranks, options.step, most)?)).await?))
}

/// Answers with JSON, or with a table as CSV.
fn answer<T: Serialize>(
    table: Option<&str>,
    name: &str,
    document: &T,
    tables: impl FnOnce(&T) -> Vec<Table>,
) -> Result<Response, ApiError> {
    let Some(id) = table else { return Ok(Json(document).into_response()) };
    let table =
        tables::chosen(tables(document), id).map_err(|reason| ApiError::Malformed(format!("table: {reason}")))?;
    let attachment = format!("attachment; filename=\"traces-{name}-{}.csv\"", table.id);
    let headers = [(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, attachment)];
    Ok((headers, table.csv()).into_response())
}

/// Loads the ranks of a run, or of listed traces.
async fn load_ranks(app: &App, wanted: &RanksOptions) -> Result<Vec<Recorded>, ApiError> {
    let listed = wanted.traces.as_deref().unwrap_or_default();
    let mut ids: Vec<String> = listed.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
    if let Some(run) = wanted.run.as_deref().filter(|run| !run.is_empty() && ids.is_empty()) {
        ids = app.store.reader().run_traces(run).await?.into_iter().map(|trace| trace.id).collect();
    }
    let mut ranks: Vec<Recorded> = load(app, &ids).await?.into_iter().flatten().collect();
    if ranks.len() > 1 && ranks.iter().all(|rank| rank.rank == 0) {
        // Files that state no rank: the order of the list.
        for (position, rank) in (0..).zip(&mut ranks) {
            rank.rank = position;
        }
    }
    Ok(ranks)
}

/// Loads the device activity of traces, one trace after the other.
pub(super) async fn load(app: &App, ids: &[String]) -> Result<Vec<Vec<Recorded>>, ApiError> {
    if ids.len() > MAX_TRACES {
        return Err(ApiError::Malformed(format!("traces: at most {MAX_TRACES} at once, not {}", ids.len())));
    }
    let reader = app.store.reader();
    let mut summaries = Vec::new();
    for id in ids {
        summaries.push(reader.trace(id).await?);
    }
    let slices: u64 = summaries.iter().map(|trace| trace.slices).sum();
    if slices > MAX_SLICES {
        return Err(ApiError::TraceComparison(format!(
            "they have {slices} slices, more than the {MAX_SLICES} that are compared at once; use planscope trace"
        )));
    }
    // One at a time, also with imports: the columns of a large trace take hundreds of megabytes.
    let _turn = app.traces.turn().acquire_owned().await.map_err(|_| ApiError::Stopping)?;
    let everything = ChunkQuery { from_tier: 0, merged_tier: None, from_ns: 0, to_ns: u64::MAX, lanes: (0, u32::MAX) };
    let mut loaded = Vec::new();
    for trace in summaries {
        let columns = StoredColumns {
            overview: overview(app, &trace.id).await?,
            names: reader.all_trace_names(&trace.id).await?,
            chunks: reader.trace_chunks_with_details(&trace.id, &everything).await?,
        };
        loaded.push(off_thread(move || Ok(recorded(&unpack_trace(columns)?, &trace.name, trace.rank))).await?);
    }
    Ok(loaded)
}
