//! Resumes or ends the unfinished work of a previous server process.

use api::job::JobState;

use crate::app::App;
use crate::endpoint::scenarios::validate;
use crate::jobs::Jobs;
use crate::store::{StoreError, UnfinishedJob};

/// Exit code of a process killed by a signal.
const LOST: i32 = 137;

/// Resumes accepted jobs that are not finished. Returns the number of jobs to plan again.
///
/// # Errors
/// Fails on a database error.
pub async fn take_up_jobs(app: &App) -> Result<usize, StoreError> {
    app.jobs.show_given_up().await?;
    let left = app.store.reader().left_jobs().await?;
    let mut taken_up = 0;
    for job in left {
        match fate(app, &job).await? {
            Fate::Goes(scenario) => {
                app.jobs.take_up(&job, *scenario);
                taken_up += 1;
            }
            Fate::Ends(state) => app.jobs.give_up(&job, state).await?,
        }
    }
    if taken_up > 0 {
        tracing::info!(jobs = taken_up, "the server before left jobs, which are planned now");
    }
    Ok(taken_up)
}

/// Lists unfinished jobs without planning them, so they can be cancelled. Logs the number of
/// waiting jobs and sweeps.
///
/// # Errors
/// Fails on a database error.
pub async fn leave_work(app: &App) -> Result<(), StoreError> {
    app.jobs.show_given_up().await?;
    let left = app.store.reader().left_jobs().await?;
    let sweeps = app.store.reader().wanted_sweeps().await?.len();
    for job in &left {
        app.jobs.show(job);
    }
    tracing::warn!(jobs = left.len(), sweeps, "the server takes up no work and plans nothing (--without-work)");
    Ok(())
}

/// Ends work that was interrupted with the previous server process: rehearsals are marked as
/// crashed, and partial imports are removed.
///
/// # Errors
/// Fails on a database error. An error for a single run is only logged.
pub async fn end_interrupted(app: &App) -> Result<(), StoreError> {
    for run in app.store.reader().open_rehearsals().await? {
        if let Err(error) = app.live.finish(&run, LOST, Some("the server ended")).await {
            tracing::warn!(run, "a rehearsal that ended with the server before was not ended: {error}");
        }
    }
    let imports = app.store.writer().give_up_imports().await?;
    if imports > 0 {
        tracing::info!(imports, "the server before left imports half-way, which are forgotten");
    }
    Ok(())
}

/// Decision for an unfinished job.
enum Fate {
    /// Plan the job.
    Goes(Box<planner::scenario::ValidScenario>),
    /// End the job.
    Ends(JobState),
}

async fn fate(app: &App, job: &UnfinishedJob) -> Result<Fate, StoreError> {
    // The outcome was stored, but the server ended before it updated the job state.
    if app.store.reader().is_answered(&job.scenario).await? {
        return Ok(Fate::Ends(JobState::Done));
    }
    let stored = match app.store.reader().scenario(&job.scenario).await {
        Ok(stored) => stored,
        Err(StoreError::Unknown { .. } | StoreError::Gone { .. }) => return Ok(Fate::Ends(JobState::Cancelled)),
        Err(error @ StoreError::Damaged { .. }) => return Ok(failed(error.to_string())),
        Err(error) => return Err(error),
    };
    if Jobs::is_hopeless(job) {
        tracing::error!(job = job.id, attempts = job.attempts, "a job is given up: every server that planned it ended");
        let detail = format!(
            "the server ended {} times while it planned this scenario, perhaps for want of memory; plan it again with fewer planners or \
             iterations",
            job.attempts
        );
        return Ok(failed(detail));
    }
    match validate(app.store.reader(), stored.scenario).await {
        Ok(scenario) => Ok(match app.jobs.memory_error(&scenario) {
            Some(error) => failed(error.to_string()),
            None => Fate::Goes(Box::new(scenario)),
        }),
        Err(error) => Ok(failed(error.to_string())),
    }
}

fn failed(detail: String) -> Fate {
    Fate::Ends(JobState::Failed { detail })
}
