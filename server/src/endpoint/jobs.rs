//! Planning jobs: status, events, cancellation.

use std::convert::Infallible;
use std::time::Duration;

use api::job::Job;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::{Stream, StreamExt, stream};
use tokio_stream::wrappers::WatchStream;

use crate::app::Shared;
use crate::client::Client;
use crate::error::ApiError;

/// Interval for keep-alive comments. Proxies close silent streams.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Returns a planning job.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path, description = "Identifier of the job")),
    responses((status = 200, body = Job), (status = 404, description = "Unknown, or finished some time ago"))
)]
pub(crate) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<Job>, ApiError> {
    app.jobs.job(&id).map(Json).ok_or(ApiError::NoSuchJob(id))
}

/// Streams a planning job as server-sent events: event "job", with the job as data. The stream
/// closes after the final status.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/events", tag = "jobs", params(("id" = String, Path, description = "Identifier of the job")),
    responses(
        (status = 200, body = Job, content_type = "text/event-stream", description = "The current state of the job, then every change"),
        (status = 404, description = "Unknown, or finished some time ago"),
    )
)]
pub(crate) async fn events(
    State(app): Shared,
    Path(id): Path<String>,
    client: Client,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let receiver = app.jobs.subscribe(&id).ok_or(ApiError::NoSuchJob(id))?;
    let seat = app.live.stream(&client)?;
    let jobs = stream::unfold(Some(WatchStream::new(receiver)), |jobs| async {
        let mut jobs = jobs?;
        let job = jobs.next().await?;
        let rest = if job.state.is_final() { None } else { Some(jobs) };
        Some((job, rest))
    });
    // A server shutdown does not end the job. The client reconnects to the next server.
    let events = jobs.take_until(Box::pin(app.live.stopped())).map(move |job| {
        let _guard = &seat;
        let data = serde_json::to_string(&job).expect("a job has only text keys");
        Ok(Event::default().event("job").data(data))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Cancels a planning job. A finished job does not change.
#[utoipa::path(
    delete, path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path, description = "Identifier of the job")),
    responses((status = 200, body = Job, description = "The current state of the job; a running job ends soon"), (status = 404, description = "Unknown, or finished some time ago"))
)]
pub(crate) async fn cancel(State(app): Shared, Path(id): Path<String>) -> Result<Json<Job>, ApiError> {
    app.jobs.cancel(&id).await?.map(Json).ok_or(ApiError::NoSuchJob(id))
}
