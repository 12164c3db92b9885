//! The best order of an uneven pipeline, proven (the baseline of PipeWeaver's section 3.1).
//!
//! With the times of all actions known, a pipeline is a job shop: microbatches are jobs that visit the ranks forwards
//! and then backwards, a rank runs one action at a time, and the last end is to be early. The paper writes it as an
//! integer program and finds that too slow to plan with. It is the yardstick of what plans: [`search`] proves how far
//! from the best a schedule is, for pipelines of up to 128 actions.
//!
//! *How.* Branch and bound. A node knows of some pairs of actions of a rank which runs first (the disjunctive graph of
//! Roy and Sussmann, 1964). Under the assumption that the iteration ends before the best one known, it concludes more:
//! pairs of which one order would end too late, sets of which one action must be last (edge finding), forwards for
//! which there is no memory. Where that ends in a contradiction nothing better is below. Otherwise both orders of the
//! tightest open pair are looked at. The search starts from the best of the heuristics of this crate, and its bound from
//! the least end that the conclusions alone cannot refute.
//!
//! *Sends* delay what they bring. Where a rank's sends wait for each other, which only happens where a send is longer
//! than an action, ends are simulated and bounds count the delay alone: they stay valid, and enumeration ends only when
//! every order has been settled or refuted.

mod branch;
mod dispatch;
mod node;
mod one_machine;
mod shop;
mod start;
#[cfg(test)]
mod tests;

pub use start::Heuristics;

use branch::Search;
use shop::Shop;

use crate::compare::lower_bound;
use crate::cost::PipelineCosts;
use crate::host::{Watch, Workers};
use crate::proof::{Proof, relative_gap};
use crate::schedule::Schedule;
use crate::schedule::dual_queue::TooLarge;
use crate::units::{Bytes, Nanos};

/// How much to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Nodes to look at, those that raise the first bound included.
    pub nodes: u64,
    /// Distance from the bound, (end - bound) / end, at which to stop.
    pub gap: f64,
    /// Seed of the heuristics that the search starts from.
    pub seed: u32,
}

impl Default for Budget {
    /// To the end, or some seconds.
    fn default() -> Self {
        Self { nodes: 200_000, gap: 0.0, seed: 0 }
    }
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// No schedule is faster.
    Optimal,
    /// None is faster by more than the gap that was asked for.
    WithinGap,
    /// The nodes are used up.
    Nodes,
    /// The watch ended it.
    Time,
    /// There are too many actions to enumerate: the heuristics' best and the simple bound.
    Large,
}

/// The best schedule found, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    /// The orders.
    pub schedule: Schedule,
    /// End of the iteration.
    pub end: Nanos,
    /// No schedule ends earlier.
    pub lower_bound: Nanos,
    /// Why the search ended.
    pub ending: Ending,
    /// Nodes looked at.
    pub nodes: u64,
    /// What the heuristics found.
    pub heuristics: Heuristics,
}

impl Exact {
    /// (end - bound) / end.
    pub fn gap(&self) -> f64 {
        relative_gap(self.end.get(), self.lower_bound.get())
    }

    /// What the bound proves, against the gap that was asked for.
    pub fn proof(&self, gap: f64) -> Proof {
        Proof::of(self.end.get(), self.lower_bound.get(), gap)
    }
}

/// Searches for the schedule that ends first among all that hold at most `limit` bytes on every rank.
///
/// Deterministic: the same costs, limit and budget give the same schedule, unless the watch ends the search.
///
/// # Errors
/// Names the rank and the microbatch with the largest need where one does not fit even alone.
pub fn search(
    costs: &PipelineCosts,
    limit: Bytes,
    budget: Budget,
    workers: &dyn Workers,
    watch: &dyn Watch,
) -> Result<Exact, TooLarge> {
    let (heuristics, schedule) = start::best(costs, limit, budget.seed, workers, watch)?;
    let end = heuristics.best().get();
    let bound = lower_bound(costs).get();
    let Some(shop) = Shop::of(costs, limit) else {
        let ending = if bound >= end { Ending::Optimal } else { Ending::Large };
        let lower_bound = Nanos::new(bound.min(end));
        return Ok(Exact { schedule, end: Nanos::new(end), lower_bound, ending, nodes: 0, heuristics });
    };
    let mut search = Search { costs, shop: &shop, budget, watch, best: schedule, end, bound, nodes: 0, next_look: 0 };
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
