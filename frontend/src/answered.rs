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
    if let Some(outcome) = stored(id).await? {
        return Ok(outcome);
    }
    let job = client::send::<Job>("POST", &path::plan(id), Body::Empty).await?;
    match client::follow(job, |_| true).await?.state {
        JobState::Failed { detail } => Err(Failure::Unreadable(detail)),
        JobState::Cancelled => Err(Failure::Unreadable("Planning was cancelled from another page.".to_owned())),
        JobState::Done | JobState::Queued | JobState::Running { .. } => client::get(&path::outcome(id)).await,
    }
}
