//! Fetches stored planning outcomes, and plans a scenario if it has none.

use api::job::{EngineOutcomeList, Job, JobState, StoredOutcome};
use api::path;

use crate::client::{self, Body, RequestError};

/// Returns the stored outcome of a scenario from any engine version, or `None` if no outcome
/// exists.
pub(crate) async fn stored(id: &str) -> Result<Option<StoredOutcome>, RequestError> {
    // The list of outcomes comes first, because a direct GET of a missing outcome returns an HTTP
    // error.
    let known = client::get::<EngineOutcomeList>(&path::engine_answers(id)).await?;
    if known.answers.is_empty() { Ok(None) } else { client::get(&path::outcome(id)).await.map(Some) }
}

/// Returns the stored outcome, or plans the scenario and returns the new outcome.
pub(crate) async fn fetch_or_plan(id: &str) -> Result<StoredOutcome, RequestError> {
    let cancelled = || RequestError::Unreadable("Planning was cancelled from another page.".to_owned());
    fetch_or_plan_while(id, || true).await?.ok_or_else(cancelled)
}

/// Same as [`fetch_or_plan`], but cancels the job and frees its worker when `is_wanted` returns
/// false. Returns `None` if planning was cancelled.
pub(crate) async fn fetch_or_plan_while(
    id: &str,
    is_wanted: impl Fn() -> bool + 'static,
) -> Result<Option<StoredOutcome>, RequestError> {
    if let Some(outcome) = stored(id).await? {
        return Ok(Some(outcome));
    }
    let job = client::send::<Job>("POST", &path::plan(id), Body::Empty).await?;
    let job = client::follow(job, move |_| is_wanted()).await?;
    match job.state {
        JobState::Done => client::get(&path::outcome(id)).await.map(Some),
        JobState::Failed { detail } => Err(RequestError::Unreadable(detail)),
        JobState::Cancelled => Ok(None),
        JobState::Queued | JobState::Running { .. } => {
            // The request may fail because the job has ended or the server is down. In both cases
            // there is no worker to free.
            drop(client::submit("DELETE", &path::job(&job.id), Body::Empty).await);
            Ok(None)
        }
    }
}
