//! Evaluation of the points of a sweep.

pub use planscope_analysis::sweep::*;

use planscope_plan::observer::{Cancelled, Observer};
use planscope_plan::outcome::{ENGINE, PlanOutcome};
use planscope_plan::scenario::validate::Datasets;
use planscope_plan::scenario::{FieldError, ValidScenario};
use planscope_planners::engine::{self, PlanError};

/// Error for a point without a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplanned {
    /// The observer cancelled planning.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// Planning exceeds the observer's memory limit.
    #[error("planning takes {} MiB or more", .bytes.div_ceil(1 << 20))]
    Outgrown {
        /// Peak memory in bytes, as far as known.
        bytes: u64,
    },
}

/// Plans a point. Planning failures become rows with an explanation.
///
/// # Errors
/// The observer cancels planning, or its memory limit is too small.
pub fn plan_point(point: &Point, datasets: &dyn Datasets, observer: &mut dyn Observer) -> Result<PointRow, Unplanned> {
    match point.valid(datasets) {
        Ok(scenario) => planned(point, &scenario, observer),
        Err(errors) => Ok(PointRow::invalid(point, errors)),
    }
}

/// Plans a point's scenario.
fn planned(point: &Point, scenario: &ValidScenario, observer: &mut dyn Observer) -> Result<PointRow, Unplanned> {
    let outcome = match engine::plan(scenario, observer) {
        Ok(planning) => planning.outcome,
        Err(PlanError::Cancelled(cancelled)) => return Err(Unplanned::Cancelled(cancelled)),
        Err(PlanError::Outgrown { bytes }) => return Err(Unplanned::Outgrown { bytes }),
        Err(rejected @ PlanError::Rejected { .. }) => return Ok(PointRow::failed(point, &rejected.to_string())),
        Err(large @ PlanError::TooLarge(_)) => {
            return Ok(PointRow::invalid(point, vec![FieldError::new("/iterations", large.to_string())]));
        }
    };
    let devices = scenario.scenario().cluster.devices();
    let rows = scenario.scenario().planners.iter().filter_map(|planner| {
        let result = outcome.results.iter().find(|result| result.planner == *planner)?;
        Some(match &result.answer {
            PlanOutcome::Planned(planned) => {
                PlannerRow::Planned { planner: *planner, figures: PlanMetrics::new(scenario.scenario(), planned) }
            }
            PlanOutcome::Infeasible { binding, .. } => {
                PlannerRow::Infeasible { planner: *planner, reason: binding.clone() }
            }
        })
    });
    Ok(PointRow {
        index: point.index,
        coordinates: point.coordinates.clone(),
        scenario: Some(scenario.id().to_string()),
        engine: ENGINE.to_owned(),
        answer: PointOutcome::Planned { devices, planners: rows.collect() },
    })
}

#[cfg(test)]
mod tests;
