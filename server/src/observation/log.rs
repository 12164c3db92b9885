//! Comparison of a log that is not stored with the plan of a configuration.

use api::check::{LogCheck, MAX_LOG_BYTES};
use api::run::{Comparison, Quantity, RunPoint};
use ingest::log::{JobSetup, JobSetups, LogError, job_setup};
use planner::analysis::AnalysisError;
use planner::engine::{PlanError, plan};
use planner::fit::reference_planner;
use planner::host::{Cancellation, Workers};
use planner::outcome::PlanOutcome;
use planner::scenario::ValidScenario;
use planner::slowness::{self, Measured};

use super::{RunContext, Watched, compared, fill_step_times};
use crate::live::log_points;

/// Bytes at the start of a log that are searched for the job.
const SETUP_BYTES: usize = 256 << 10;

/// Errors of a log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogCheckError {
    /// The log is longer than the limit.
    #[error(
        "the log has {0} bytes, more than {MAX_LOG_BYTES}: cut it to its start and some hundred steps, or import it as a run"
    )]
    TooLong(usize),
    /// The text is no log.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A log of a run.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    name: String,
    /// Job setup per part of the log.
    setups: Vec<JobSetup>,
    points: Vec<RunPoint>,
}

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    /// The text is too long or no log.
    pub(crate) fn read(name: &str, bytes: &[u8]) -> Result<Self, LogCheckError> {
        if bytes.len() > MAX_LOG_BYTES {
            return Err(LogCheckError::TooLong(bytes.len()));
        }
        let points = log_points(bytes)?;
        let setups = if points.iter().any(|point| point.segment > 0) {
            let mut setups = JobSetups::new(None);
            setups.push(bytes);
            setups.push(b"\n");
            setups.finish()
        } else {
            vec![job_setup(&bytes[..bytes.len().min(SETUP_BYTES)])]
        };
        Ok(Self { name: name.to_owned(), setups, points })
    }
}

/// Compares a log with the plan of a scenario, and explains a slower run.
///
/// # Errors
/// The scenario does not fit or cannot be planned within the limits, or the time is up.
pub(crate) fn check_log(
    log: Log,
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<LogCheck, AnalysisError> {
    let planning = plan(valid, &mut Watched { cancellation, workers }).map_err(|error| match error {
        PlanError::Cancelled(_) => AnalysisError::TimeIsUp,
        error => AnalysisError::Unplanned(error.to_string()),
    })?;
    let planner = reference_planner(valid);
    let result = planning.outcome.results.into_iter().find(|result| result.planner == planner);
    let found = result.and_then(|result| match result.answer {
        PlanOutcome::Planned(planned) => Some(*planned),
        PlanOutcome::Infeasible { .. } => None,
    });
    let planned = found.ok_or_else(|| {
        AnalysisError::Unplanned("the configuration does not fit the memory, so there is no time to compare".to_owned())
    })?;
    let timeline = planning.timelines.into_iter().find(|stored| stored.planner == planner && stored.iteration == 0);
    let batches = planning.outcome.batches;
    let Log { name, setups, mut points } = log;
    let tokens: Vec<u64> = batches.iter().map(|batch| batch.tokens).collect();
    let filled = fill_step_times(&mut points, &tokens, valid.scenario().cluster.devices());
    let context = RunContext {
        run: name,
        setups,
        points,
        scenario: valid.clone(),
        planner,
        planned,
        batches,
        timeline: timeline.map(|stored| stored.timeline),
        has_plan_step_times: filled.is_some(),
        notes: filled.into_iter().collect(),
    };
    let comparison = compared(&context, None);
    let measured = measured_step(&comparison).filter(|_| comparison.job.is_comparable());
    let slowness = measured.map(|step_s| slowness::explain(valid, Measured::StepS(step_s), workers, cancellation));
    Ok(LogCheck { slowness: slowness.transpose()?, comparison })
}

fn measured_step(comparison: &Comparison) -> Option<f64> {
    let step = comparison.predictions.iter().find(|prediction| prediction.quantity == Quantity::StepTime)?;
    step.measured.filter(|seconds| *seconds > 0.0)
}
