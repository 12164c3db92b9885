//! The plan that was run, once more: the same layout under changed times.

use crate::engine::{Observer, PlanError, plan};
use crate::outcome::{Answer, Layout, Planned};
use crate::scenario::{FieldError, PlannerKind, Scenario, ValidScenario};
use crate::training::LayoutRequest;

/// Why a plan cannot be made again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplanError {
    /// The changed scenario is none.
    #[error("the scenario is not valid with it: {}", .0.first().map_or_else(String::new, ToString::to_string))]
    Invalid(Vec<FieldError>),
    /// Planning ended early, or a plan was refused.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is no plan.
    #[error("there is no plan with it: {0}")]
    NoPlan(String),
}

/// Plans `changed`, which differs from `original` in times only, by one planner and on the layout of `planned`, where that is one
/// layout for all modules and iterations; otherwise as the planner chooses.
///
/// # Errors
/// Where the changed scenario is not valid, planning is cancelled, or no plan is found.
pub fn replan(
    original: &ValidScenario,
    changed: Scenario,
    planner: PlannerKind,
    planned: &Planned,
    observer: &mut dyn Observer,
) -> Result<Planned, ReplanError> {
    let asked = Scenario { planners: vec![planner], ..changed };
    let pinned = pinned(planned).map(|layout| Scenario { layout, ..asked.clone() });
    if let Some(Ok(valid)) = pinned.map(|scenario| ValidScenario::new(scenario, original))
        && let Ok(again) = only_plan(&valid, observer)?
        && same(again.layout, planned.layout)
    {
        return Ok(again);
    }
    let valid = ValidScenario::new(asked, original).map_err(ReplanError::Invalid)?;
    only_plan(&valid, observer)?.map_err(ReplanError::NoPlan)
}

/// The degrees that fix the layout of a plan; `None` where modules, pipelines or groups have their own.
fn pinned(planned: &Planned) -> Option<LayoutRequest> {
    let has_own = planned.placement.is_some()
        || planned.iterations.iter().any(|iteration| iteration.strategy.is_some() || iteration.groups.is_some());
    let Layout { tensor, pipeline, chunks, microbatch, group, .. } = planned.layout;
    (!has_own).then_some(LayoutRequest {
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

/// The one plan of a scenario with one planner, or why there is none.
fn only_plan(scenario: &ValidScenario, observer: &mut dyn Observer) -> Result<Result<Planned, String>, PlanError> {
    let planning = plan(scenario, observer)?;
    Ok(match planning.outcome.results.into_iter().next().map(|result| result.answer) {
        Some(Answer::Planned(planned)) => Ok(*planned),
        Some(Answer::Infeasible { binding, .. }) => Err(binding),
        None => Err("no planner was asked".to_owned()),
    })
}
