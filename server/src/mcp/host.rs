//! Where tools compute: in their own process, or on a server in turn with its studies and plans.

use std::sync::Arc;

use planner::host::NeverCancelled;
use planner::outcome::Planned;
use planner::scenario::Scenario;
use planner::scenario::budget::search_bytes;

use crate::app::App;
use crate::check_command::{JobFiles, Parts, Report, first_plan, validated};
use crate::plan_command::plan;
use crate::turns::Claimant;
use crate::workers::Threads;

/// Place of computations.
#[derive(Debug, Clone)]
pub(crate) enum Host {
    /// This process, with this number of worker threads per search.
    Process(Threads),
    /// A server, for a client. Its limits for studies and what-if requests apply.
    Server(Arc<App>, Claimant),
}

impl Host {
    /// Checks the files of a job.
    pub(super) async fn report(&self, job: JobFiles, parts: Parts) -> Result<Report, String> {
        match self {
            Self::Process(threads) => {
                let threads = *threads;
                blocking(move || job.report(parts, &threads, &NeverCancelled)).await
            }
            Self::Server(app, claimant) => {
                let bytes = search_bytes(job.scenario(), app.studies.at_once());
                let reported = app.studies.run((claimant, bytes), 1, move |effort| {
                    Ok(job.report(parts, effort.workers, effort.cancellation))
                });
                reported.await.map_err(|error| error.to_string())?.map_err(|error| format!("{error:#}"))
            }
        }
    }

    /// Returns the plan of a scenario with one planner, or `None` if it has no plan.
    pub(super) async fn plan(&self, scenario: Scenario) -> Result<Option<Planned>, String> {
        let valid = validated(scenario).map_err(|error| format!("{error:#}"))?;
        let planning = match self {
            Self::Process(threads) => {
                let threads = *threads;
                blocking(move || Ok(plan(&valid, threads)?)).await?
            }
            Self::Server(app, claimant) => {
                let planned = app.jobs.plan_at_once(valid, claimant, 0).await;
                planned.map_err(|error| error.to_string())?.0
            }
        };
        Ok(first_plan(planning))
    }
}

/// Runs a computation on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> Result<T, String> {
    let computed = tokio::task::spawn_blocking(work).await;
    let computed = computed.map_err(|error| format!("the computation stopped unexpectedly: {error}"))?;
    computed.map_err(|error| format!("{error:#}"))
}
