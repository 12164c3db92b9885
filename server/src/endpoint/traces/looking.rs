//! Reads parts of a trace: views, slices, names, counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::trace::{CounterList, MatchedName, SliceArrow, SliceDetail, TraceMatches, TraceView, VIEW_MEDIA_TYPE};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use ingest::trace::levels::{Span, level_for};
use serde::Deserialize;
use utoipa::IntoParams;

use super::overview;
use crate::app::{App, Shared};
use crate::endpoint::{off_thread, wants_json};
use crate::error::ApiError;
use crate::store::ChunkQuery;
use crate::traces::BLOCK_NAMES;
use crate::traces::arrows::Arrow;
use crate::traces::counters::Counters;
use crate::traces::import::{Detail, Named};
use crate::traces::overview::kind;
use crate::traces::packed::{unpack, unpack_json, unpack_spans};
use crate::traces::view::{Window, assemble};

/// Maximum width of a view in pixels.
const MAX_PIXELS: u32 = 8192;
/// Maximum number of lanes per view.
const MAX_LANES: usize = 512;
/// Maximum number of points per counter series.
const MAX_POINTS: u32 = 5000;
/// Maximum number of names in a search result.
const MAX_NAMES: usize = 100;
/// Number of parts searched per batch.
const PARTS_AT_ONCE: usize = 16;

/// Selects a view.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ViewOptions {
    /// Left edge, in ns since the trace's first start. Default: 0.
    from_ns: Option<u64>,
    /// Right edge, in ns. Default: end of the trace.
    to_ns: Option<u64>,
    /// Width in pixels, 1 to 8192. Default: 1024.
    pixels: Option<u32>,
    /// Lanes, for example "0-7,12", at most 512. Default: the first 512.
    lanes: Option<String>,
}

/// Returns the slices in a time window at pixel resolution.
///
/// Slices shorter than a pixel are merged with adjacent slices in the same row, and the span
/// contains their number. The sum of these numbers equals the number of slices that overlap the
/// window. The default is the compact format (postcard). Use `Accept: application/json` for JSON.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/view", tag = "traces",
    params(("id" = String, Path, description = "Content address"), ViewOptions),
    responses(
        (status = 200, description = "The view", content(
            (TraceView = "application/json"),
            (String = "application/vnd.planscope.trace-view"),
        )),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn view(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<ViewOptions>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Query(options) = options?;
    let trace = app.store.reader().trace(&id).await?;
    let overview = overview(&app, &id).await?;
    let window = window(&options, trace.span_ns, overview.lanes.len())?;
    let level = level_for(&overview.level_widths_ns, window.pixel_ns());
    let query = ChunkQuery {
        from_tier: 2 * level as u32,
        merged_tier: (level > 0).then_some(2 * level as u32 + 1),
        from_ns: window.from_ns,
        to_ns: window.to_ns,
        lanes: (window.lanes.first().copied().unwrap_or(u32::MAX), window.lanes.last().copied().unwrap_or(0)),
    };
    let chunks = app.store.reader().trace_chunks(&id, &query).await?;
    let (mut view, names) = off_thread(move || {
        let mut spans = Vec::new();
        for chunk in &chunks {
            spans.extend(unpack_spans(chunk)?);
        }
        Ok(assemble(spans, &window, level as u32, chunks.len() as u32))
    })
    .await?;
    view.names = load_names(&app, &id, names).await?;
    let vary = [(VARY, "accept")];
    if wants_json(&headers, VIEW_MEDIA_TYPE) {
        return Ok((vary, Json(view)).into_response());
    }
    Ok((vary, [(CONTENT_TYPE, VIEW_MEDIA_TYPE)], api::trace::encode(&view)).into_response())
}

fn window(options: &ViewOptions, span_ns: u64, lanes: usize) -> Result<Window, ApiError> {
    let from_ns = options.from_ns.unwrap_or(0);
    // Include slices that start at the end of the trace.
    let to_ns = options.to_ns.unwrap_or(span_ns.saturating_add(1).max(from_ns.saturating_add(1)));
    if to_ns <= from_ns {
        return Err(ApiError::Malformed(format!("to_ns: {to_ns} is not behind from_ns: {from_ns}")));
    }
    let pixels = options.pixels.unwrap_or(1024);
    if !(1..=MAX_PIXELS).contains(&pixels) {
        return Err(ApiError::Malformed(format!("pixels: {pixels} is out of range: 1 to {MAX_PIXELS}")));
    }
    let last = u32::try_from(lanes).unwrap_or(u32::MAX);
    let lanes = match options.lanes.as_deref().filter(|lanes| !lanes.is_empty()) {
        None => (0..last.min(MAX_LANES as u32)).collect(),
        Some(text) => parse_lanes(text, last)?,
    };
    Ok(Window { from_ns, to_ns, pixels, lanes })
}

/// Parses a list of lane numbers and ranges into ascending order. Lanes that do not exist in the
/// trace are omitted.
fn parse_lanes(text: &str, count: u32) -> Result<Vec<u32>, ApiError> {
    let wrong = |part: &str| ApiError::Malformed(format!("lanes: {part:?} is neither a number nor a range like 3-7"));
    let mut lanes = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) else {
            return Err(wrong(part));
        };
        if first > last {
            return Err(wrong(part));
        }
        lanes.extend((first..count.min(last.saturating_add(1))).take(MAX_LANES + 1));
        if lanes.len() > MAX_LANES {
            return Err(ApiError::Malformed(format!("lanes: at most {MAX_LANES} at once")));
        }
    }
    Ok(lanes.into_iter().collect())
}

/// Looks up names by index. The indices must be ascending.
async fn load_names(app: &App, id: &str, indices: Vec<u32>) -> Result<Vec<String>, ApiError> {
    let mut names = Vec::with_capacity(indices.len());
    for chunk in indices.chunk_by(|left, other| left / BLOCK_NAMES == other / BLOCK_NAMES) {
        let packed = app.store.reader().trace_names(id, chunk[0] / BLOCK_NAMES).await?;
        let block: Vec<Named> = off_thread(move || Ok(unpack_json(&packed)?)).await?;
        let name =
            |index: &u32| block.get((index % BLOCK_NAMES) as usize).map_or_else(String::new, |(name, ..)| name.clone());
        names.extend(chunk.iter().map(name));
    }
    Ok(names)
}

/// Selects a slice.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SliceOptions {
    /// Lane.
    lane: u32,
    /// Row within the lane, from 0.
    row: u32,
    /// A time inside the slice, in ns since the trace's first start.
    at_ns: u64,
}

/// Returns all details of the slice at a time in a row of a lane.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/slice", tag = "traces",
    params(("id" = String, Path, description = "Content address"), SliceOptions),
    responses(
        (status = 200, body = SliceDetail),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown, or no slice at this time"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn slice(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<SliceOptions>, QueryRejection>,
) -> Result<Json<SliceDetail>, ApiError> {
    let Query(SliceOptions { lane, row, at_ns }) = options?;
    let reader = app.store.reader();
    reader.trace(&id).await?;
    let query = ChunkQuery {
        from_tier: 0,
        merged_tier: None,
        from_ns: at_ns,
        to_ns: at_ns.saturating_add(1),
        lanes: (lane, lane),
    };
    let chunks = reader.trace_chunks_with_details(&id, &query).await?;
    let found = off_thread(move || {
        let mut found: Option<(Span, Detail)> = None;
        for (columns, details) in chunks {
            let spans = unpack_spans(&columns)?;
            let runs = |(_, span): &(usize, &Span)| {
                (span.lane, u32::from(span.depth)) == (lane, row)
                    && span.start_ns <= at_ns
                    && (span.end_ns() > at_ns || span.start_ns == at_ns)
            };
            let Some((place, span)) = spans.iter().enumerate().filter(runs).max_by_key(|(_, span)| span.start_ns)
            else {
                continue;
            };
            if found.as_ref().is_some_and(|(before, _)| before.start_ns >= span.start_ns) {
                continue;
            }
            let details: Vec<Detail> = details.map(|packed| unpack_json(&packed)).transpose()?.unwrap_or_default();
            let place = place as u32;
            let detail = details.into_iter().find(|detail| detail.span == place);
            found = Some((*span, detail.unwrap_or(Detail::nothing(place))));
        }
        Ok(found)
    });
    let (span, detail) = found.await?.ok_or(ApiError::NoSlice { lane, row, at_ns })?;
    let name = load_names(&app, &id, vec![span.name]).await?.pop().unwrap_or_default();
    let Detail { bytes, actions, message, arrows, further_arrows, .. } = detail;
    let arrow = |&Arrow(lane, row, since, is_incoming): &Arrow| SliceArrow {
        lane,
        row: u32::from(row),
        start_ns: span.start_ns.saturating_add_signed(since),
        is_incoming,
    };
    let arrows = arrows.iter().map(arrow).collect();
    let further_arrows = further_arrows.unwrap_or(0);
    Ok(Json(SliceDetail { bytes, actions, message, arrows, further_arrows, ..described(&span, name) }))
}

fn described(span: &Span, name: String) -> SliceDetail {
    SliceDetail {
        lane: span.lane,
        depth: u32::from(span.depth),
        start_ns: span.start_ns,
        duration_ns: span.extent_ns,
        name,
        kind: kind(span.kind),
        bytes: None,
        actions: Vec::new(),
        message: Vec::new(),
        arrows: Vec::new(),
        further_arrows: 0,
    }
}

/// Search options.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchOptions {
    /// Case-insensitive text to find in names.
    text: String,
    /// Start of the search for the next slice, in ns. Default: 0.
    from_ns: Option<u64>,
}

/// Returns matching names, each with count and total time, and the next matching slice.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/search", tag = "traces",
    params(("id" = String, Path, description = "Content address"), SearchOptions),
    responses(
        (status = 200, body = TraceMatches),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn search(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<SearchOptions>, QueryRejection>,
) -> Result<Json<TraceMatches>, ApiError> {
    let Query(SearchOptions { text, from_ns }) = options?;
    let text = text.to_lowercase();
    if text.is_empty() {
        return Err(ApiError::Malformed("text: there is nothing to look for".to_owned()));
    }
    let reader = app.store.reader();
    reader.trace(&id).await?;
    let blocks = reader.all_trace_names(&id).await?;
    let named = off_thread(move || {
        let mut named: BTreeMap<u32, Named> = BTreeMap::new();
        for (block, packed) in blocks.iter().enumerate() {
            let first = block as u32 * BLOCK_NAMES;
            let names: Vec<Named> = unpack_json(packed)?;
            let own = names
                .into_iter()
                .zip(first..)
                .filter(|((name, slices, _), _)| *slices > 0 && name.to_lowercase().contains(&text));
            named.extend(own.map(|(named, index)| (index, named)));
        }
        Ok(named)
    });
    let named = named.await?;
    let next = next(&app, &id, named.keys().copied().collect(), from_ns.unwrap_or(0)).await?;
    let next =
        next.map(|span| described(&span, named.get(&span.name).map_or_else(String::new, |(name, ..)| name.clone())));
    let slices = named.values().map(|(_, slices, _)| slices).sum();
    let all_names = named.len() as u64;
    let mut names: Vec<MatchedName> =
        named.into_values().map(|(name, slices, total_ns)| MatchedName { name, slices, total_ns }).collect();
    names.sort_by(|one, other| other.total_ns.cmp(&one.total_ns).then_with(|| one.name.cmp(&other.name)));
    names.truncate(MAX_NAMES);
    Ok(Json(TraceMatches { slices, names, all_names, next }))
}

/// Returns the first slice with a matching name that starts at or after `from_ns`.
async fn next(app: &App, id: &str, names: BTreeSet<u32>, from_ns: u64) -> Result<Option<Span>, ApiError> {
    if names.is_empty() {
        return Ok(None);
    }
    let reader = app.store.reader();
    let names = Arc::new(names);
    let mut best: Option<Span> = None;
    for parts in reader.trace_parts(id, from_ns).await?.chunks(PARTS_AT_ONCE) {
        // Parts are sorted by start, so later parts cannot contain an earlier slice.
        if best.is_some_and(|best| parts[0].2.unsigned_abs() > best.start_ns) {
            break;
        }
        let mut packed = Vec::with_capacity(parts.len());
        for &(tier, part, _) in parts {
            packed.push(reader.trace_part(id, tier, part).await?);
        }
        let names = Arc::clone(&names);
        let found = off_thread(move || {
            let mut found: Option<Span> = None;
            for columns in &packed {
                let spans = unpack_spans(columns)?;
                let own = spans.into_iter().filter(|span| span.start_ns >= from_ns && names.contains(&span.name));
                found = found.into_iter().chain(own).min_by_key(|span| (span.start_ns, span.lane, span.depth));
            }
            Ok(found)
        });
        best = best.into_iter().chain(found.await?).min_by_key(|span| (span.start_ns, span.lane, span.depth));
    }
    Ok(best)
}

/// Resolution of counters.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CounterOptions {
    /// Points per series, 2 to 5,000. Default: 1,000. Longer series are reduced to the minimum and
    /// maximum per interval.
    points: Option<u32>,
}

/// Returns the counters of a trace at reduced resolution.
#[utoipa::path(
    get, path = "/api/v1/traces/{id}/counters", tag = "traces",
    params(("id" = String, Path, description = "Content address"), CounterOptions),
    responses(
        (status = 200, body = CounterList),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn counters(
    State(app): Shared,
    Path(id): Path<String>,
    options: Result<Query<CounterOptions>, QueryRejection>,
) -> Result<Json<CounterList>, ApiError> {
    let points = options?.points.unwrap_or(1000);
    if !(2..=MAX_POINTS).contains(&points) {
        return Err(ApiError::Malformed(format!("points: {points} is out of range: 2 to {MAX_POINTS}")));
    }
    app.store.reader().trace(&id).await?;
    let Some(packed) = app.store.reader().trace_counters(&id).await? else {
        return Ok(Json(CounterList { series: Vec::new() }));
    };
    let list = off_thread(move || Ok(unpack::<Counters>(&packed)?.thinned(points as usize)));
    Ok(Json(list.await?))
}
