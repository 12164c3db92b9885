//! Candidate plans of a batch, and the choice among them by the operator graph.

use super::Setting;
use super::arrangement::Arrangement;
use super::local_search::{Rules, improve};
use super::prices::{Prices, Way};
use crate::planners::PlanningContext;
use crate::planners::dhp::batch::{chunked_plans, close_plans};
use crate::planners::dhp::{
    BatchPlan, GroupError, GroupProblem, Load, Sequence, megatron_balanced, static_degrees, static_plan,
    variable_length_plan,
};
use planscope_core::workload::PackedBatch;
use planscope_plan::scenario::PlannerKind;

/// Maximum ratio of the estimate of a plan to the smallest, for plans that the operator graph compares.
const CLOSE_PLANS: f64 = 1.1;
/// The same for plans with one degree, whose estimate has a larger error.
pub(super) const CLOSE_STATIC: f64 = 1.25;
/// Numbers of microbatches that FlexSP tries beyond the smallest.
const MORE_MICROBATCHES: u32 = 4;
/// Plans that the local search improves.
const IMPROVED: usize = 2;

/// Returns true if the planner improves plans by local search.
const fn is_searched(kind: PlannerKind) -> bool {
    matches!(kind, PlannerKind::Dhp | PlannerKind::PowerOfTwoContext | PlannerKind::FlexSp)
}

impl Setting<'_> {
    /// Returns the plans that are close under the fitted cost. For DHP, the plans of its baselines are among them.
    pub(super) fn candidates(&self, sequences: &[Sequence]) -> Result<Vec<BatchPlan>, GroupError> {
        let problem = self.problem(&self.sides[0], sequences);
        match (self.context.planner, self.fixed) {
            (_, Some(degree)) => return Ok(vec![self.fixed_plan(problem, degree)?]),
            (PlannerKind::BalancedContext, None) => return Ok(vec![megatron_balanced(problem)?]),
            (PlannerKind::FlexSp, None) => return chunked_plans(problem, MORE_MICROBATCHES),
            _ => {}
        }
        let mut plans = close_plans(problem, CLOSE_PLANS)?;
        if self.context.planner != PlannerKind::Dhp {
            return Ok(plans);
        }
        // A baseline that cannot plan the batch is no candidate.
        for side in &self.sides {
            let problem = self.problem(side, sequences);
            if side.exchange != self.sides[0].exchange {
                plans.extend(close_plans(problem, CLOSE_PLANS).unwrap_or_default());
            }
            let powers = side.degrees.powers_of_two();
            let powers = GroupProblem { degrees: &powers, ..problem };
            plans.extend(close_plans(powers, 1.0).unwrap_or_default());
            plans.extend(chunked_plans(powers, MORE_MICROBATCHES).unwrap_or_default().into_iter().take(1));
            let fastest = plans.iter().map(|plan| plan.seconds).fold(f64::INFINITY, f64::min);
            let dividing = static_degrees(problem).into_iter();
            let close = dividing.filter(|(_, seconds)| seconds.as_ref().is_ok_and(|s| *s <= fastest * CLOSE_STATIC));
            for (degree, _) in close {
                plans.extend(static_plan(problem, degree));
                plans.extend(variable_length_plan(problem, degree));
            }
        }
        plans.extend(megatron_balanced(problem));
        Ok(plans)
    }

    /// Returns the fastest of the plans by the operator graph, improved by the planners that search. DHP also repeats the searches of
    /// powers of two and FlexSP, because a local search from more starts can end elsewhere.
    pub(super) fn fastest(
        &self,
        plans: &[BatchPlan],
        batch: &PackedBatch,
        sequences: &[Sequence],
    ) -> Result<Arrangement, String> {
        let PlanningContext { scenario, pricing, planner: kind, .. } = self.context;
        let mut prices = Prices::new(scenario, pricing, self.layout, batch);
        let ways = |degree: u32| self.ways(degree);
        let fitted = |load: Load, way: Way| self.fitted(load, way);
        let rules = Rules {
            on: self.ranks(),
            sequences,
            tokens_per_rank: self.tokens_per_rank,
            degrees: &self.sides[0].degrees,
            ways: &ways,
            fitted: &fitted,
        };
        if !is_searched(kind) {
            return minimum(timed(plans, &rules, &mut prices)?);
        }
        let mut best = searched(plans, &rules, &mut prices)?;
        if kind != PlannerKind::Dhp {
            return Ok(best);
        }
        for side in &self.sides {
            let degrees = side.degrees.powers_of_two();
            let problem = GroupProblem { degrees: &degrees, ..self.problem(side, sequences) };
            let one_way = |degree: u32| vec![(side.exchange, degree)];
            let restricted = Rules { degrees: &degrees, ways: &one_way, ..rules };
            // A sequence can exceed all powers of two.
            for plans in
                [close_plans(problem, CLOSE_PLANS), chunked_plans(problem, MORE_MICROBATCHES)].into_iter().flatten()
            {
                let other = searched(&plans, &restricted, &mut prices)?;
                if other.seconds < best.seconds {
                    best = other;
                }
            }
        }
        let improved = Arrangement::place(improve(best.items.clone(), &rules, &mut prices), rules.on);
        Ok(if improved.seconds < best.seconds { improved } else { best })
    }
}

/// Arrangements of the plans with times of the operator graph.
fn timed(plans: &[BatchPlan], rules: &Rules<'_>, prices: &mut Prices<'_>) -> Result<Vec<Arrangement>, String> {
    let mut arranged = Vec::with_capacity(plans.len());
    for plan in plans {
        let mut candidate = Arrangement::from_plan(plan, rules.sequences, rules.on);
        candidate.set_times(prices, rules.ways, rules.on).ok_or("a degree has no costs")?;
        arranged.push(candidate);
    }
    Ok(arranged)
}

/// Returns the fastest of the plans after list scheduling and local search.
fn searched(plans: &[BatchPlan], rules: &Rules<'_>, prices: &mut Prices<'_>) -> Result<Arrangement, String> {
    let mut arranged = timed(plans, rules, prices)?;
    let placed: Vec<Arrangement> =
        arranged.iter().map(|candidate| Arrangement::place(candidate.items.clone(), rules.on)).collect();
    arranged.extend(placed);
    arranged.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let starts: Vec<Arrangement> = arranged.iter().take(IMPROVED).cloned().collect();
    for start in starts {
        arranged.push(Arrangement::place(improve(start.items, rules, prices), rules.on));
    }
    minimum(arranged)
}

fn minimum(arranged: Vec<Arrangement>) -> Result<Arrangement, String> {
    let fastest = arranged.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
    fastest.ok_or_else(|| "the batch has no plan".to_owned())
}
