//! Comparison of a log that is not stored with the plan of a configuration.

use api::check::{LogCheck, MAX_LOG_BYTES};
use api::run::{Comparison, PhaseResidual, Quantity, RunPoint};
use ingest::log::{JobSetup, JobSetups, LogError, job_setup};
use planner::analysis::AnalysisError;
use planner::engine::{PlanError, plan};
use planner::fit::reference_planner;
use planner::host::{Cancellation, Workers};
use planner::outcome::PlanOutcome;
use planner::run_comparison::Phase;
use planner::scenario::{Scenario, ValidScenario};
use planner::slowness::{self, Cause, MIN_SHARE, Measured, PhaseGap, PhaseShift, Relation, Slowness};

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
    let planner = reference_planner(valid);
    let alone = Scenario { planners: vec![planner], ..valid.scenario().clone() };
    let alone = ValidScenario::new(alone, valid).map_err(|errors| {
        AnalysisError::Unplanned(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    })?;
    let planning = plan(&alone, &mut Watched { cancellation, workers }).map_err(|error| match error {
        PlanError::Cancelled(_) => AnalysisError::TimeIsUp,
        error => AnalysisError::Unplanned(error.to_string()),
    })?;
    let found = planning.outcome.results.into_iter().next().and_then(|result| match result.answer {
        PlanOutcome::Planned(planned) => Some(*planned),
        PlanOutcome::Infeasible { .. } => None,
    });
    let planned = found.ok_or_else(|| {
        AnalysisError::Unplanned("the configuration does not fit the memory, so there is no time to compare".to_owned())
    })?;
    let timeline = planning.timelines.into_iter().find(|stored| stored.iteration == 0);
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
    let slowness = slowness.transpose()?.map(|slowness| {
        let mut slowness = with_data_time(slowness, &comparison);
        slowness.rank_by_phases(&phase_gaps(&comparison));
        slowness
    });
    Ok(LogCheck { slowness, comparison })
}

/// Adds the reading of batches to the causes of a slower run, if the log has its timer and it explains a part of the gap.
/// The time is measured, not simulated.
fn with_data_time(mut slowness: Slowness, comparison: &Comparison) -> Slowness {
    let gap_s = slowness.measured_s - slowness.predicted_s;
    let data = comparison.phases.iter().find(|phase| phase.phase == Phase::Data.name());
    let read_s = data.map_or(0.0, |phase| phase.measured_s);
    if data.is_some() {
        // The timer decides.
        slowness.causes.retain(|cause| !cause.is_reading());
    }
    if slowness.relation == Relation::Slower && read_s >= MIN_SHARE * gap_s {
        slowness.causes.push(Cause {
            title: "reading of batches, by its timer".to_owned(),
            fields: Vec::new(),
            iteration_s: slowness.predicted_s + read_s,
            explains_s: read_s,
            phases: vec![PhaseShift { phase: Phase::Data.name().to_owned(), seconds: read_s }],
            confirm: "Run some steps on synthetic data (--mock-data of Megatron-LM). Raise the number of loader processes, and check \
                      the storage."
                .to_owned(),
        });
        let missed = |cause: &Cause| (cause.explains_s - gap_s).abs();
        slowness.causes.sort_by(|a, b| missed(a).total_cmp(&missed(b)));
    }
    slowness
}

/// Returns measured minus predicted time of the phases that the log times. Reading of batches is predicted as 0.
fn phase_gaps(comparison: &Comparison) -> Vec<PhaseGap<'_>> {
    let gap = |residual: &'_ PhaseResidual| {
        let is_data = residual.phase == Phase::Data.name();
        let predicted_s = residual.predicted_s.or(is_data.then_some(0.0))?;
        Some(residual.measured_s - predicted_s)
    };
    comparison
        .phases
        .iter()
        .filter_map(|residual| Some(PhaseGap { phase: &residual.phase, seconds: gap(residual)? }))
        .collect()
}

fn measured_step(comparison: &Comparison) -> Option<f64> {
    let step = comparison.predictions.iter().find(|prediction| prediction.quantity == Quantity::StepTime)?;
    step.measured.filter(|seconds| *seconds > 0.0)
}

#[cfg(test)]
mod tests {
    use planner::run_comparison::Band;

    use super::*;
    use crate::observation::comparison::sifted;

    /// In recorded runs, the next step is in the narrowed band as often as stated. The band before is that of a prediction that is
    /// 15 % too slow.
    #[test]
    fn narrowed_bands_cover_recorded_steps() {
        let Ok(data) = std::env::var("PLANSCOPE_DATA") else {
            eprintln!("skipped: PLANSCOPE_DATA is not set, so there are no recorded runs");
            return;
        };
        let (mut inside, mut all, mut widest) = (0, 0, 0.0_f64);
        for file in std::fs::read_dir(std::path::Path::new(&data).join("data/logs")).unwrap() {
            let log = Log::read("", &std::fs::read(file.unwrap().path()).unwrap()).unwrap();
            let regular = sifted(&log.points).regular;
            let steps: Vec<f64> = regular.iter().filter_map(|&index| log.points[index].step_s).collect();
            let mut sorted = steps.clone();
            sorted.sort_by(f64::total_cmp);
            let predicted = 1.15 * sorted[sorted.len() / 2];
            let band = Band::new(predicted, &[], (0.83, 1.21));
            for seen in 5..steps.len() {
                let next = band.narrowed(&steps[..seen]).unwrap();
                inside += u32::from(next.holds(steps[seen]));
                all += 1;
                widest = widest.max(next.high / next.low - 1.0);
            }
        }
        let coverage = f64::from(inside) / f64::from(all);
        eprintln!("{inside} of {all} steps inside, widest {widest:.3}");
        assert!(all > 40 && (0.7..0.95).contains(&coverage), "{inside} of {all}");
        assert!(widest < 0.1, "{widest}");
    }
}
