//! Exact scheduling for uneven pipelines, used as a baseline (PipeWeaver Sec. 3.1).
//!
//! If all action durations are known, a pipeline is a job shop. A microbatch is a job: it visits
//! the ranks in forward order, then in backward order. A rank runs a single action at a time. The
//! objective is the makespan. The paper formulates an integer program and finds it too slow for
//! online planning. Planscope uses the exact solver to evaluate its planners: [`search`] proves a
//! bound on the optimality gap for pipelines up to 128 actions. Justification improves larger
//! pipelines until the budget ends.
//!
//! # Algorithm
//! The solver runs branch and bound. A node stores precedence relations between actions on the same
//! rank (the disjunctive graph by Roy and Sussmann, 1964). It assumes an iteration end earlier than
//! the incumbent's end, which implies more relations:
//!
//! - the order for a pair if the opposite order finishes too late,
//! - actions that must follow a set of actions (edge finding),
//! - forwards that cannot start yet because memory is full.
//!
//! A contradiction prunes the node. Otherwise the solver branches on the order for the tightest
//! open pair. The first incumbent is the best heuristic schedule. The initial bound is the minimum
//! end that propagation alone cannot refute.
//!
//! # Sends
//! A send delays the dependent action. Sends from a rank can queue if a send is longer than an
//! action. In that case simulation provides the end, whereas bounds include only the delay. The
//! bounds remain valid, but the enumeration stops only after all orders are fixed or refuted.

mod branch;
mod dispatch;
mod justify;
mod node;
mod one_machine;
mod shop;
mod start;
#[cfg(test)]
mod tests;

pub use start::Heuristics;

use branch::Search;
use justify::{Justified, Limits, justify};
use shop::Shop;

use planscope_core::action::Schedule;
use planscope_core::host::{Cancellation, Workers};
use planscope_core::optimality::{Optimality, relative_gap};
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::lower_bound::{lower_bound, memory_bound};
use planscope_pipeline::schedule::dual_queue::TooLarge;

/// Search budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Node limit, including nodes that raise the initial bound. For pipelines that are too large to
    /// enumerate, the limit on improvement passes.
    pub nodes: u64,
    /// Target gap, (end - bound) / end. The search stops when it reaches the gap.
    pub gap: f64,
    /// Seed for the heuristics that provide the initial schedule.
    pub seed: u32,
}

impl Default for Budget {
    /// 200,000 nodes, gap 0. Finds a proof or stops after some seconds.
    fn default() -> Self {
        Self { nodes: 200_000, gap: 0.0, seed: 0 }
    }
}

/// Termination reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The schedule is optimal.
    Optimal,
    /// The schedule is optimal up to the target gap.
    WithinGap,
    /// The search reached the node limit.
    Nodes,
    /// The cancellation check fired.
    Time,
    /// Too many actions to enumerate. The result is the best schedule of the heuristics and of the
    /// improvement passes, plus a simple bound.
    Large,
}

/// Incumbent schedule and lower bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    /// Action order per rank.
    pub schedule: Schedule,
    /// Iteration end.
    pub end: Nanos,
    /// Lower bound on the iteration end.
    pub lower_bound: Nanos,
    /// Termination reason.
    pub ending: Ending,
    /// Visited nodes, or improvement passes.
    pub nodes: u64,
    /// Heuristic results.
    pub heuristics: Heuristics,
}

impl Exact {
    /// Returns the gap, (end - bound) / end.
    pub fn gap(&self) -> f64 {
        relative_gap(self.end.get(), self.lower_bound.get())
    }

    /// Compares the bound to the target gap.
    pub fn optimality(&self, gap: f64) -> Optimality {
        Optimality::classify(self.end.get(), self.lower_bound.get(), gap)
    }
}

/// Searches for the schedule that minimizes the iteration end while all ranks use at most `limit`
/// bytes.
///
/// The search is deterministic: equal costs, limit and budget result in the same schedule, unless
/// cancellation stops it.
///
/// # Errors
/// If a microbatch does not fit into memory, returns the rank and the microbatch that have the
/// maximum need.
pub fn search(
    costs: &PipelineCosts,
    limit: Bytes,
    budget: Budget,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Exact, TooLarge> {
    let (heuristics, schedule) = start::best(costs, limit, budget.seed, workers, cancellation)?;
    let end = heuristics.best().get();
    let bound = lower_bound(costs).max(memory_bound(costs, limit)).get();
    let Some(shop) = Shop::from_costs(costs, limit) else {
        let target = (bound as f64 / (1.0 - budget.gap)) as u64;
        let limits = Limits { passes: budget.nodes, target: Nanos::new(target.max(bound)), cancellation };
        let Justified { schedule, end, passes } =
            justify(costs, limit, (Nanos::new(end), schedule), budget.seed, &limits);
        let lower_bound = Nanos::new(bound).min(end);
        let ending = match Optimality::classify(end.get(), lower_bound.get(), budget.gap) {
            Optimality::Optimal => Ending::Optimal,
            Optimality::WithinGap => Ending::WithinGap,
            Optimality::Heuristic => Ending::Large,
        };
        return Ok(Exact { schedule, end, lower_bound, ending, nodes: passes, heuristics });
    };
    let mut search =
        Search { costs, shop: &shop, budget, cancellation, best: schedule, end, bound, nodes: 0, next_look: 0 };
    let ending = search.run();
    let Search { best, end, bound, nodes, .. } = search;
    Ok(Exact {
        schedule: best,
        end: Nanos::new(end),
        lower_bound: Nanos::new(bound.min(end)),
        ending,
        nodes,
        heuristics,
    })
}
