//! Jobs that run although their predicted memory need is above the device.

use planner::analysis::AnalysisError;
use planner::certainty;
use planner::engine::{PlanError, plan};
use planner::fit::reference_planner;
use planner::host::{Cancellation, Workers};
use planner::outcome::PlanOutcome;
use planner::scenario::{Scenario, ValidScenario};

use super::Watched;

/// Memory of the device that a job is compared with, relative to its own: more than the error of the prediction.
const ROOM: f64 = 1.4;

/// Returns the scenario with more memory per device, and a note, if the predicted need is above the device by no more than the error
/// of the prediction: a run proves that the job fits. `None` if the need is larger, or if there is no plan.
///
/// # Errors
/// The time is up.
pub(crate) fn roomy(
    valid: &ValidScenario,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Option<(ValidScenario, String)>, AnalysisError> {
    let available_gib = valid.scenario().cluster.device.memory_gib;
    let mut scenario = Scenario { planners: vec![reference_planner(valid)], ..valid.scenario().clone() };
    scenario.cluster.device.memory_gib = ROOM * available_gib;
    let Ok(larger) = ValidScenario::new(scenario, valid) else { return Ok(None) };
    let planning = match plan(&larger, &mut Watched { cancellation, workers }) {
        Ok(planning) => planning,
        Err(PlanError::Cancelled(_)) => return Err(AnalysisError::TimeIsUp),
        Err(_) => return Ok(None),
    };
    let Some(PlanOutcome::Planned(planned)) = planning.outcome.results.into_iter().next().map(|it| it.answer) else {
        return Ok(None);
    };
    let need_gib = planned.metrics.peak_memory_gib;
    let interval = certainty::memory_certainty(need_gib, available_gib).interval_gib;
    let note = format!(
        "The configuration needs {need_gib:.1}\u{202f}GiB of a device with {available_gib:.1}\u{202f}GiB by the prediction, with an 80\u{202f}% \
         interval from {:.1}\u{202f}GiB. A run exists, so it is compared as if it fits. The run can also have a setting that needs less memory.",
        interval.low
    );
    Ok((interval.low <= available_gib).then_some((larger, note)))
}
