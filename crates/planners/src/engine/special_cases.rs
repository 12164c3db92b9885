//! Plans of simpler methods for planners whose space contains them. Searches are heuristic, so the plan of a special
//! case can be faster on a run.

use super::spent::Budgeted;
use super::{Evaluation, PlanError, evaluate_apart};
use crate::planners::PlanningContext;
use crate::planners::dflop;
use crate::planners::settings_search::Quiet;
use planscope_plan::scenario::{FreeSetting, PlannerKind, Scenario};

/// Planners whose plans are special cases of those of `planner`: groups of powers of two are groups, one strategy
/// for all pipelines is a choice of strategies, and one layout for encoder and backbone, with balanced microbatches,
/// is a choice of layouts. As published, the layouts of DFLOP have disjoint devices.
fn of(planner: PlannerKind, scenario: &Scenario) -> &'static [PlannerKind] {
    match planner {
        PlannerKind::Dhp => &[PlannerKind::PowerOfTwoContext, PlannerKind::FlexSp],
        PlannerKind::Hydraulis => &[PlannerKind::StaticStrategy],
        PlannerKind::Dflop if scenario.is_free(FreeSetting::Assignment) => {
            &[PlannerKind::OneFOneB, PlannerKind::Interleaved]
        }
        _ => &[],
    }
}

/// Returns the fastest of the plan `own` and the plans of the special cases of its planner. Drafts have no special
/// cases. A method that does not apply has none, except DFLOP with context or expert parallelism: one layout for all
/// modules can have them.
pub(super) fn fastest(
    context: PlanningContext<'_>,
    own: Evaluation,
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    let is_draft = context.scenario.search.rollouts == 0;
    let mut best = match own {
        Evaluation::Planned(_) if !is_draft => own,
        Evaluation::Infeasible(_) if !is_draft && needs_one_layout(context) => own,
        own => return Ok(own),
    };
    for &planner in of(context.planner, context.scenario) {
        let special = PlanningContext { planner, ..context };
        let Evaluation::Planned(found) = evaluate_apart(special, &mut Quiet(observer))? else { continue };
        let advantage = match &best {
            Evaluation::Planned(best) if found.iteration_s() >= best.iteration_s() => continue,
            Evaluation::Planned(_) => "On this run it is faster than the plan of the search.",
            Evaluation::Infeasible(_) => "The search of this method has no context or expert parallelism.",
        };
        observer.spend(found.stored_spans())?;
        let decision = format!("The plan of {} is a special case of this method. {advantage}", planner.title());
        best = Evaluation::Planned(Box::new(found.with_decision(decision)));
    }
    Ok(best)
}

/// Returns whether DFLOP applies to the model, and the degrees exclude its search.
fn needs_one_layout(context: PlanningContext<'_>) -> bool {
    let training = &context.scenario.training;
    context.planner == PlannerKind::Dflop
        && (training.context_parallel > 1 || training.expert_parallel > 1)
        && dflop::has_encoder_and_backbone(&context.scenario.model)
}
