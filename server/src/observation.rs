//! Compares runs with their plans: job identity, confidence bands, outliers, phases, and
//! calibration.

mod batches;
mod calibration;
mod comparison;
mod contradictions;
mod job;
mod log;
mod pauses;
mod roomy;
mod slow_ranks;
mod spread;
mod trend;

pub(crate) use calibration::calibrated;
pub(crate) use comparison::compared;
pub(crate) use job::compared_jobs;
pub(crate) use log::{Log, check_log, last_part};
pub(crate) use roomy::roomy;

use api::run::{RunPoint, StepTimeOrigin};
use ingest::log::JobSetup;
use planner::engine::{Observer, PlanError};
use planner::host::{Cancellation, Workers};
use planner::outcome::{BatchSummary, Planned};
use planner::run_comparison::{Agreement, JobCheck, JobComparison, ReplanError, TimerRanks, contains_waits};
use planner::scenario::{PlannerKind, ValidScenario};
use planner::timeline::Timeline;

/// A run and the plan to compare it with.
#[derive(Debug, Clone)]
pub(crate) struct RunContext {
    pub(crate) run: String,
    /// Job setup per part of the run, from the log before the part's first step. Contains at least
    /// one element.
    pub(crate) setups: Vec<JobSetup>,
    /// Points in row order.
    pub(crate) points: Vec<RunPoint>,
    pub(crate) scenario: ValidScenario,
    /// Planner of the plan.
    pub(crate) planner: PlannerKind,
    pub(crate) planned: Planned,
    /// Batches used to evaluate the plan.
    pub(crate) batches: Vec<BatchSummary>,
    /// First iteration of the plan, if stored.
    pub(crate) timeline: Option<Timeline>,
    /// Notes for the user about the data sources.
    pub(crate) notes: Vec<String>,
    /// True if step times are derived from the tokens in the plan's batches. Such times provide no
    /// information about the tokens per step of the run.
    pub(crate) has_plan_step_times: bool,
}

impl RunContext {
    /// Returns which rank's timers the log prints.
    pub(crate) fn whose(&self) -> TimerRanks {
        let phases = || self.points.iter().flat_map(|point| &point.phases);
        if phases().all(|phase| phase.one_rank) {
            TimerRanks::LastRank
        } else if phases().any(|phase| phase.min_s.is_some() && contains_waits(&phase.name)) {
            TimerRanks::Range
        } else {
            TimerRanks::Slowest
        }
    }

    /// Formats layout and schedule as a line.
    pub(crate) fn plan(&self) -> String {
        let layout = &self.planned.layout;
        let title = self.planner.title();
        if self.planned.placement.is_some() {
            return format!("{title}, modules with layouts of their own");
        }
        let chunks = if layout.chunks > 1 { format!(" · VPP {}", layout.chunks) } else { String::new() };
        format!(
            "{title}: TP {} · PP {} · DP {}{chunks} · mb {}",
            layout.tensor, layout.pipeline, layout.data, layout.microbatch
        )
    }
}

/// If no point has a step time, computes step times from the tokens per second and the scenario's
/// mean tokens per step. Returns a note for the user if any were computed.
pub(crate) fn fill_step_times(points: &mut [RunPoint], step_tokens: &[u64], devices: u32) -> Option<String> {
    if step_tokens.is_empty() || points.iter().any(|point| point.step_s.is_some()) {
        return None;
    }
    let tokens = step_tokens.iter().map(|&tokens| tokens as f64).sum::<f64>() / step_tokens.len() as f64;
    let mut filled = 0_usize;
    for point in points {
        let total_rate = point.tokens_per_s_per_device.map(|rate| rate * f64::from(devices));
        if let Some(rate) = point.tokens_per_s.or(total_rate).filter(|&rate| rate > 0.0) {
            (point.step_s, point.step_s_origin) = (Some(tokens / rate), Some(StepTimeOrigin::TokenRate));
            filled += 1;
        }
    }
    (filled > 0).then(|| {
        format!(
            "The log has no step times: they are {tokens:.0} tokens of a step of the scenario divided by the tokens per second of \
             the log."
        )
    })
}

/// Errors of a comparison or a calibration.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ObservationError {
    /// No scenario is attached to the run.
    #[error("no scenario is attached to the run: choose one under \u{201c}Compare with scenario\u{201d}")]
    Unattached,
    /// No planner, or not the requested planner, has a plan for the scenario.
    #[error("the scenario has no plan of {0}")]
    NoPlan(String),
    /// No step in the run has a time.
    #[error("the log states no step time")]
    NoSteps,
    /// Run and plan are different jobs.
    #[error("the run and the plan are different jobs: {0}")]
    OtherJob(String),
    /// The plan has another layout than the run.
    #[error("the plan has another layout than the run: {0}")]
    OtherLayout(String),
    /// The log contains no corrections.
    #[error("the log states nothing that the scenario could be corrected by")]
    NothingToCorrect,
    /// Replanning failed.
    #[error("{0}")]
    Replan(#[from] ReplanError),
    /// No factor reproduces the measured time.
    #[error("no factor on the layers brings the plan to what was measured: {0}")]
    TargetMissed(String),
}

impl ObservationError {
    /// The error of a comparison that found another job or another layout, with both values.
    pub(crate) fn from_comparison(job: &JobComparison) -> Self {
        if job.is_same_job() {
            let layouts = job.checks.iter().filter(|check| check.agreement == Agreement::OtherLayout);
            return Self::OtherLayout(layouts.map(difference).collect::<Vec<_>>().join("; "));
        }
        Self::OtherJob(job.differences().map(difference).collect::<Vec<_>>().join("; "))
    }

    /// True if the time limit was reached.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Self::Replan(ReplanError::Plan(PlanError::Cancelled(_))))
    }
}

/// Describes a failed check with both values.
pub(crate) fn difference(check: &JobCheck) -> String {
    let name = check.quantity.name();
    if !check.planned_name.is_empty() {
        return format!("{name} {} in the log, {} in the plan", check.measured_name, check.planned_name);
    }
    let number = |value: f64| if value < 1e9 { format!("{value:.0}") } else { format!("{value:.3e}") };
    let measured = check.measured.map_or_else(|| "none".to_owned(), number);
    let planned = number(check.planned);
    if check.quantity.is_limited() {
        return format!("{name} {measured} in the log, above the {planned} of the device");
    }
    format!("{name} {measured} in the log, {planned} in the plan")
}

/// Cancels planning when the cancellation check is true.
pub(crate) struct Watched<'a> {
    pub(crate) cancellation: &'a dyn Cancellation,
    pub(crate) workers: &'a dyn Workers,
}

impl Observer for Watched<'_> {
    fn started(&mut self, _: PlannerKind) {}
    fn progress(&mut self, _: PlannerKind, _: &'static str, _: u32, _: u32) {}
    fn finished(&mut self, _: PlannerKind) {}
    fn cancelled(&self) -> bool {
        self.cancellation.is_over()
    }
    fn workers(&self) -> &dyn Workers {
        self.workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 tokens per second on each of 8 devices, and 16,000 tokens per step: 2 s.
    #[test]
    fn step_times_follow_from_tokens() {
        let batches = [15_000, 17_000];
        let point = || RunPoint { tokens_per_s_per_device: Some(1000.0), ..RunPoint::default() };
        let mut points = [point(), RunPoint::default()];
        let note = fill_step_times(&mut points, &batches, 8);
        assert!(note.is_some_and(|note| note.contains("16000 tokens")));
        assert_eq!((points[0].step_s, points[0].step_s_origin), (Some(2.0), Some(StepTimeOrigin::TokenRate)));
        assert_eq!(points[1].step_s, None);
        // A log with step times does not change.
        let mut timed = [RunPoint { step_s: Some(3.0), ..point() }, point()];
        assert_eq!(fill_step_times(&mut timed, &batches, 8), None);
        assert_eq!(timed[1].step_s, None);
    }
}
