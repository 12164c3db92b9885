//! Swaps on the critical path of the slowest replicas of a plan.

use std::sync::Arc;

use crate::planners::executed::run_iteration;
use crate::planners::{PlanningContext, TestedPlan};
use planscope_core::units::Nanos;
use planscope_pipeline::schedule::critical_swaps::{Effort, improve as improve_order};
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::plan::Plan;

/// Limit on simulated actions per iteration.
const ACTIONS_PER_ITERATION: usize = 4_000_000;
/// Limit on applied swaps per replica.
const MAX_STEPS: u32 = 400;

/// Improves the orders of a plan whose replicas are pipelines. The slowest replica comes first; replicas that end
/// before the slowest improved one are unchanged. Returns `None` if no order improves.
pub(super) fn improve(
    context: PlanningContext<'_>,
    tested: &TestedPlan,
    observer: &dyn Observer,
) -> Result<Option<TestedPlan>, Cancelled> {
    let PlanningContext { scenario, pricing, batches, .. } = context;
    let limit = scenario.memory_limit();
    let mut plan: Plan = tested.plan().clone();
    if !plan.modules.is_empty() {
        return Ok(None);
    }
    let mut is_improved = false;
    for (iteration, batch) in batches.evaluated.iter().enumerate() {
        go_on(observer)?;
        let runs = match tested.runs(iteration) {
            Some(runs) => runs.clone(),
            None => match run_iteration(scenario, pricing, tested.plan(), iteration, batch) {
                Ok(runs) => runs,
                Err(_) => return Ok(None),
            },
        };
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|&replica| (std::cmp::Reverse(runs[replica].execution.makespan()), replica));
        // Improved makespan that no replica can undercut to help.
        let mut slowest = Nanos::ZERO;
        let mut improved: Vec<usize> = Vec::new();
        let mut actions_left = ACTIONS_PER_ITERATION;
        for replica in order {
            let run = &runs[replica];
            if run.execution.makespan() <= slowest {
                break;
            }
            if let Some(&equal) = improved.iter().find(|&&other| Arc::ptr_eq(&runs[other], run)) {
                let schedule = plan.iterations[iteration].replicas[equal].schedule.clone();
                plan.iterations[iteration].replicas[replica].schedule = schedule;
                continue;
            }
            let schedule = &plan.iterations[iteration].replicas[replica].schedule;
            let actions = schedule.len().max(1);
            let orders = u32::try_from(actions_left / actions).unwrap_or(u32::MAX);
            let effort = Effort { steps: MAX_STEPS.min(orders), orders };
            let Some(found) = improve_order(schedule, &run.costs, limit, effort) else { break };
            actions_left = actions_left.saturating_sub(found.simulated as usize * actions);
            is_improved |= found.schedule != *schedule;
            let end = planscope_pipeline::simulate::execute(&found.schedule, &run.costs);
            slowest = slowest.max(end.map_or(run.execution.makespan(), |execution| execution.makespan()));
            plan.iterations[iteration].replicas[replica].schedule = found.schedule;
            improved.push(replica);
        }
    }
    Ok(is_improved.then(|| TestedPlan::from(plan)))
}
