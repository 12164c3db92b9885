//! Answers to stored scenarios, outside the explore page too.

use api::job::{EngineAnswerList, Job, JobState, StoredOutcome};
use api::path;

use crate::client::{self, Body, Failure};

/// The stored answer to a scenario, by whichever engine; nothing where none has answered yet.
pub(crate) async fn stored(id: &str) -> Result<Option<StoredOutcome>, Failure> {
    // Asked in this order, nobody is refused for what is no mistake.
    let known = client::get::<EngineAnswerList>(&path::engine_answers(id)).await?;
    if known.answers.is_empty() { Ok(None) } else { client::get(&path::outcome(id)).await.map(Some) }
}

/// Plans a scenario, where that has not been done, and answers the outcome.
pub(crate) async fn plan_to_the_end(id: &str) -> Result<StoredOutcome, Failure> {
    let cancelled = || Failure::Unreadable("Planning was cancelled from another page.".to_owned());
    plan_while(id, || true).await?.ok_or_else(cancelled)
}

/// The same while somebody waits for it: nobody does, and the worker is freed. Nothing where planning was cancelled.
pub(crate) async fn plan_while(
    id: &str,
    is_wanted: impl Fn() -> bool + 'static,
) -> Result<Option<StoredOutcome>, Failure> {
    if let Some(outcome) = stored(id).await? {
        return Ok(Some(outcome));
    }
    let job = client::send::<Job>("POST", &path::plan(id), Body::Empty).await?;
    let job = client::follow(job, move |_| is_wanted()).await?;
    match job.state {
        JobState::Done => client::get(&path::outcome(id)).await.map(Some),
        JobState::Failed { detail } => Err(Failure::Unreadable(detail)),
        JobState::Cancelled => Ok(None),
        JobState::Queued | JobState::Running { .. } => {
            // A job that has ended meanwhile, or a server that is gone, leaves nothing to free.
            drop(client::tell("DELETE", &path::job(&job.id), Body::Empty).await);
            Ok(None)
        }
    }
}
