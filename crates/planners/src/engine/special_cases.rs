//! Plans of simpler methods for planners whose space contains them. Searches are heuristic, so the plan of a special
//! case can be faster on a run.

use super::settings::plan_free;
use super::spent::Budgeted;
use super::{Evaluation, PlanError, apart, evaluate_apart};
use crate::planners::dflop;
use crate::planners::settings_search::Quiet;
use crate::planners::{NoPlan, PlanningContext};
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerKind, Scenario};

/// Devices x sequences of the global batch of a small scenario.
const SMALL: u64 = 1024;

/// Planners whose plans are special cases of those of `planner`: groups of powers of two and equal groups are groups, one
/// strategy for all pipelines is a choice of strategies, equal layouts of all modules are a choice of layouts, and whole
/// microbatches in a static order, also with strategies per stage, are an interleaving. One layout for encoder and
/// backbone, with balanced microbatches, is a choice of layouts of DFLOP; as published, its layouts have disjoint devices.
fn of(planner: PlannerKind, scenario: &Scenario) -> &'static [PlannerKind] {
    match planner {
        PlannerKind::Dhp => &[PlannerKind::PowerOfTwoContext, PlannerKind::FlexSp, PlannerKind::BalancedContext],
        PlannerKind::Hydraulis => &[PlannerKind::StaticStrategy],
        PlannerKind::Dflop if scenario.is_free(FreeSetting::Assignment) => {
            &[PlannerKind::OneFOneB, PlannerKind::Interleaved, PlannerKind::DflopLayout]
        }
        PlannerKind::PipeWeaver if is_small(scenario) => &[
            PlannerKind::OneFOneBParameters,
            PlannerKind::InterleavedParameters,
            PlannerKind::NnScaler,
            PlannerKind::PipeWeaverPartition,
            PlannerKind::PipeWeaverInterleaving,
            PlannerKind::PipeWeaverRanking,
        ],
        PlannerKind::Dflop => &[PlannerKind::DflopLayout],
        PlannerKind::HeterogeneousColocated => &[PlannerKind::Homogeneous],
        _ => &[],
    }
}

/// Returns whether PipeWeaver and its ablation steps search the layouts of a scenario in a few seconds.
pub(super) fn is_small(scenario: &Scenario) -> bool {
    u64::from(scenario.cluster.devices()) * u64::from(scenario.workload.global_batch) <= SMALL
}

/// Returns the fastest of the plan `own` and the plans of the special cases of its planner. Drafts have no special
/// cases. A method that does not apply has none; a method whose search finds no plan has them.
pub(super) fn fastest(
    context: PlanningContext<'_>,
    own: Evaluation,
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    fastest_of(context, own, observer, &|special, observer| evaluate_apart(special, &mut Quiet(observer)))
}

/// Same as [`fastest`], for a small scenario with free settings: each special case chooses its own.
pub(super) fn fastest_free(
    context: PlanningContext<'_>,
    candidates: &[PlanSettings],
    own: Evaluation,
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    if !is_small(context.scenario) {
        return Ok(own);
    }
    fastest_of(context, own, observer, &|special, observer| {
        apart(special, &mut Quiet(observer), |special, observer| plan_free(special, candidates, observer))
    })
}

/// Plans a special case.
type PlanSpecial<'a> = &'a dyn Fn(PlanningContext<'_>, &mut Budgeted<'_>) -> Result<Evaluation, PlanError>;

fn fastest_of(
    context: PlanningContext<'_>,
    own: Evaluation,
    observer: &mut Budgeted<'_>,
    plan: PlanSpecial<'_>,
) -> Result<Evaluation, PlanError> {
    let is_draft = context.scenario.search.rollouts == 0;
    // The special cases of PipeWeaver search layouts for seconds, and the caller of a screening has them already.
    let is_screening = context.planner == PlannerKind::PipeWeaver && context.batches.is_screening();
    let mut best = match own {
        Evaluation::Infeasible(none) if !applies(context, &none) => return Ok(Evaluation::Infeasible(none)),
        own if is_draft || is_screening => return Ok(own),
        own => own,
    };
    for &planner in of(context.planner, context.scenario) {
        let special = PlanningContext { planner, ..context };
        let Evaluation::Planned(found) = plan(special, observer)? else { continue };
        let advantage = match &best {
            Evaluation::Planned(best) if found.iteration_s() >= best.iteration_s() => continue,
            Evaluation::Planned(_) => "On this run it is faster than the plan of the search.".to_owned(),
            Evaluation::Infeasible(none) => format!("The search finds no other plan: {}.", none.binding),
        };
        observer.spend(found.stored_spans())?;
        let decision = format!("The plan of {} is a special case of this method. {advantage}", planner.title());
        best = Evaluation::Planned(Box::new(found.with_decision(decision)));
    }
    Ok(best)
}

/// Returns whether a method without a plan applies: its plans exceed the memory, or it is DFLOP, whose search has neither
/// context nor expert parallelism, but one layout for all modules can have them.
fn applies(context: PlanningContext<'_>, none: &NoPlan) -> bool {
    let is_dflop = context.planner == PlannerKind::Dflop && dflop::has_encoder_and_backbone(&context.scenario.model);
    none.search.nearest.is_some() || is_dflop
}
