//! Replanning on the same layout after a change of times.

use planscope_core::training::LayoutRequest;
use planscope_plan::outcome::{Layout, PlanOutcome, Planned};
use planscope_plan::scenario::{FieldError, PlannerKind, Scenario, ValidScenario};
use planscope_planners::engine::{Observer, PlanError, plan};

/// Error for a plan that cannot be repeated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplanError {
    /// The changed scenario is not valid.
    #[error("the scenario is not valid with it: {}", .0.first().map_or_else(String::new, ToString::to_string))]
    Invalid(Vec<FieldError>),
    /// Planning was cancelled or failed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The planner found no plan.
    #[error("there is no plan with it: {0}")]
    NoPlan(String),
}

/// Plans `changed` with one planner. `changed` differs from `original` only in times. The layout is
/// fixed to the layout in `planned` if it is common to all modules and iterations; otherwise the
/// planner chooses the layout.
///
/// # Errors
/// If the changed scenario is not valid, planning is cancelled, or no plan is found.
pub fn replan(
    original: &ValidScenario,
    changed: Scenario,
    planner: PlannerKind,
    planned: &Planned,
    observer: &mut dyn Observer,
) -> Result<Planned, ReplanError> {
    let requested = Scenario { planners: vec![planner], ..changed };
    let pinned = pinned(planned).map(|layout| Scenario { layout, ..requested.clone() });
    if let Some(Ok(valid)) = pinned.map(|scenario| ValidScenario::new(scenario, original)) {
        match only_plan(&valid, observer) {
            Ok(again) if same(again.layout, planned.layout) => return Ok(again),
            Ok(_) | Err(ReplanError::NoPlan(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let valid = ValidScenario::new(requested, original).map_err(ReplanError::Invalid)?;
    only_plan(&valid, observer)
}

/// Returns the degrees that fix the layout. `None` if modules, pipelines or groups have separate
/// layouts.
fn pinned(planned: &Planned) -> Option<LayoutRequest> {
    let has_separate_layouts = planned.placement.is_some()
        || planned.iterations.iter().any(|iteration| iteration.strategy.is_some() || iteration.groups.is_some());
    let Layout { tensor, pipeline, chunks, microbatch, group, .. } = planned.layout;
    (!has_separate_layouts).then_some(LayoutRequest {
        tensor: Some(tensor),
        pipeline: Some(pipeline),
        chunks: Some(chunks),
        microbatch: Some(microbatch),
        group,
    })
}

fn same(a: Layout, b: Layout) -> bool {
    (a.tensor, a.pipeline, a.data, a.chunks, a.microbatch) == (b.tensor, b.pipeline, b.data, b.chunks, b.microbatch)
}

/// Returns the plan of the only planner.
fn only_plan(scenario: &ValidScenario, observer: &mut dyn Observer) -> Result<Planned, ReplanError> {
    let planning = plan(scenario, observer)?;
    match planning.outcome.results.into_iter().next().map(|result| result.answer) {
        Some(PlanOutcome::Planned(planned)) => Ok(*planned),
        Some(PlanOutcome::Infeasible { binding, .. }) => Err(ReplanError::NoPlan(binding)),
        None => Err(ReplanError::NoPlan("no planner was requested".to_owned())),
    }
}
