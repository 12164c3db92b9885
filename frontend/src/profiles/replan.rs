//! Planning a stored scenario outside the explore page.

use api::job::{Job, JobState, StoredOutcome};
use api::path;

use crate::client::{self, Body, Failure};

/// Plans a scenario, where that has not been done, and answers the outcome.
pub(crate) async fn plan_to_the_end(id: &str) -> Result<StoredOutcome, Failure> {
    match client::get::<StoredOutcome>(&path::outcome(id)).await {
        Err(failure) if failure.status() == Some(404) => {}
        answer => return answer,
    }
    let job = client::send::<Job>("POST", &path::plan(id), Body::Empty).await?;
    match client::follow(job, |_| true).await?.state {
        JobState::Failed { detail } => Err(Failure::Unreadable(detail)),
        JobState::Cancelled => Err(Failure::Unreadable("Planning was cancelled from another page.".to_owned())),
        JobState::Done | JobState::Queued | JobState::Running { .. } => client::get(&path::outcome(id)).await,
    }
}
