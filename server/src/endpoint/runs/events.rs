//! Server-sent events for a single run, or for several runs in a single stream.

use std::convert::Infallible;

use api::run::{RunEvent, RunUpdate};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::{App, Shared};
use crate::client::Client;
use crate::error::ApiError;
use crate::live::{FeedEvent, Follower};
use crate::store::StoreError;

/// Maximum number of runs per stream.
const MAX_RUNS: usize = 64;

type Events = Sse<axum::response::sse::KeepAliveStream<BoxStream<'static, Result<Event, Infallible>>>>;

/// Start position of a stream.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct From {
    /// The stream starts after this row, 0 by default. A Last-Event-ID takes precedence.
    after: Option<u64>,
}

/// Streams the events of a run as server-sent events.
///
/// - `state`: the run's state, sent first and on each change.
/// - `point`: a point of the run. Its id is the row, and a stream can be resumed from it
///   (`Last-Event-ID`). While later lines can still extend the latest point, it is sent without an
///   id, with `open` set and with its future row. A later event for the same row replaces it.
/// - `gap`: the rows omitted because the stream lags by more than 1,000. Request them by page.
///
/// A comment every 15 s prevents proxies from closing the stream.
#[utoipa::path(
    get, path = "/api/v1/runs/{run}/events", tag = "runs",
    params(
        ("run" = String, Path, description = "Identifier"), From,
        ("Last-Event-ID" = Option<String>, Header, description = "Row after which the stream continues"),
    ),
    responses(
        (status = 200, body = RunEvent, content_type = "text/event-stream", description = "Until the run is deleted or the server stops"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn get(
    State(app): Shared,
    Path(run): Path<String>,
    from: Result<Query<From>, QueryRejection>,
    client: Client,
    headers: HeaderMap,
) -> Result<Events, ApiError> {
    let Query(from) = from?;
    app.store.reader().run_pulse(&run, app.clock.now()).await?;
    let after = last_event_id(&headers).and_then(|id| id.parse().ok()).or(from.after).unwrap_or_default();
    let events = following(app.live.follow(&run, after)).map(|told| {
        let event = Event::default().event(told.name).data(told.data);
        match told.row {
            Some(row) => event.id(row.to_string()),
            None => event,
        }
    });
    sent(&app, &client, events)
}

/// Selects runs and their start positions.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Several {
    /// Run identifiers, separated by commas, at most 64.
    runs: String,
    /// Start rows, in the same order. A Last-Event-ID takes precedence.
    after: Option<String>,
}

/// Streams the events of several runs as a single stream of server-sent events.
///
/// Event names are the same as for a single run. The data also contains the run: `{"run", "event",
/// "data"}`. An id contains the rows of all runs in request order, separated by commas. Unknown or
/// deleted runs are skipped.
#[utoipa::path(
    get, path = "/api/v1/runs/events", tag = "runs",
    params(Several, ("Last-Event-ID" = Option<String>, Header, description = "Rows after which the stream continues")),
    responses(
        (status = 200, body = RunUpdate, content_type = "text/event-stream", description = "Until all runs are deleted or the server stops"),
        (status = 400, description = "The query is malformed"),
        (status = 404, description = "All runs are unknown or deleted"),
    )
)]
pub(crate) async fn several(
    State(app): Shared,
    asked: Result<Query<Several>, QueryRejection>,
    client: Client,
    headers: HeaderMap,
) -> Result<Events, ApiError> {
    let Query(asked) = asked?;
    let runs: Vec<&str> = asked.runs.split(',').map(str::trim).filter(|run| !run.is_empty()).collect();
    if runs.is_empty() || runs.len() > MAX_RUNS {
        return Err(ApiError::Malformed(format!("runs names 1 to {MAX_RUNS} runs, divided by commas")));
    }
    let rows = |text: &str| -> Option<Vec<u64>> {
        let rows: Option<Vec<u64>> = text.split(',').map(|row| row.trim().parse().ok()).collect();
        rows.filter(|rows| rows.len() == runs.len())
    };
    let mut rows = last_event_id(&headers)
        .and_then(rows)
        .or_else(|| asked.after.as_deref().and_then(rows))
        .unwrap_or_else(|| vec![0; runs.len()]);
    let mut streams = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        match app.store.reader().run_pulse(run, app.clock.now()).await {
            Ok(_) => {}
            Err(StoreError::Unknown { .. } | StoreError::Gone { .. }) => continue,
            Err(error) => return Err(error.into()),
        }
        let name = (*run).to_owned();
        let told = following(app.live.follow(run, rows[index]));
        streams.push(told.map(move |told| (index, name.clone(), told)).boxed());
    }
    if streams.is_empty() {
        return Err(StoreError::Unknown { kind: "run", id: runs.join(", ") }.into());
    }
    let events = stream::select_all(streams).map(move |(index, run, told)| {
        // The data is already JSON. Run and event name need no escaping.
        let data = format!("{{\"run\":\"{run}\",\"event\":\"{}\",\"data\":{}}}", told.name, told.data);
        let event = Event::default().event(told.name).data(data);
        let Some(row) = told.row else { return event };
        rows[index] = row;
        let id: Vec<String> = rows.iter().map(u64::to_string).collect();
        event.id(id.join(","))
    });
    sent(&app, &client, events)
}

fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id").and_then(|id| id.to_str().ok())
}

fn following(follower: Follower) -> impl Stream<Item = FeedEvent> + Send {
    stream::unfold(follower, |mut follower| async move { follower.next().await.map(|event| (event, follower)) })
}

/// Builds the response stream, which closes when the server stops. Fails if the client has too many
/// streams.
fn sent(app: &App, client: &Client, events: impl Stream<Item = Event> + Send + 'static) -> Result<Events, ApiError> {
    let limits = app.live.limits();
    let seat = app.live.stream(client)?;
    let events = events.take_until(app.live.stopped()).map(move |event| {
        let _guard = &seat;
        Ok(event)
    });
    Ok(Sse::new(events.boxed()).keep_alive(KeepAlive::new().interval(limits.heartbeat)))
}
