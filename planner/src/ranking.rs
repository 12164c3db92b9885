//! Ranking of segment groups: which microbatch's which module first (PipeWeaver, section 6.1).
//!
//! A ranking is two sequences of all groups, one for forwards and one for backwards. Interleaving turns it into a
//! schedule ([`crate::schedule::dual_queue`]), whose end is what is minimised. Three searches explore the same space:
//!
//! - [`Strategy::MonteCarlo`]: a tree whose node at depth d has fixed the first d places. A round descends by upper
//!   confidence bounds, adds nodes, completes each at random about ten times, and carries the best score up.
//! - [`Strategy::DepthFirst`]: complete sequences in lexicographic order.
//! - [`Strategy::Random`]: independent random sequences.
//!
//! All three start from the same few orders that experience suggests, so that a search that gets no time at all still
//! answers with a valid and sensible one. Microbatches that cost the same are interchangeable; only one order of them
//! is looked at.
//!
//! *Parallel and still deterministic.* A round of the tree search picks its leaves one after the other, a picked path
//! counting as visited at once, so that the next pick goes elsewhere; then all leaves are completed side by side, each
//! with a random stream of its own; then scores are carried up in the order of picking. The number of workers
//! changes how long a round takes, never what it finds.

mod chance;
mod depth_first;
mod monte_carlo;
mod space;
mod tree;
mod trial;

pub use space::Space;

use crate::compare::lower_bound;
use crate::host::{Watch, Workers};
use crate::schedule::dual_queue::{Interleaver, Interleaving, Priorities};
use crate::units::Nanos;

/// How the space is explored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Monte-Carlo tree search.
    MonteCarlo,
    /// Lexicographic enumeration.
    DepthFirst,
    /// Independent random sequences.
    Random,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::MonteCarlo, Self::DepthFirst, Self::Random];

    /// Stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::MonteCarlo => "mcts",
            Self::DepthFirst => "dfs",
            Self::Random => "random",
        }
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The ranking that ends first.
    Fastest,
    /// The ranking that ends last: how much ranking matters.
    Slowest,
}

/// The orders that a search starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    /// All that experience suggests.
    All,
    /// Microbatches as they are given, with encoders just before their backbone or some microbatches ahead.
    AsGiven,
}

impl Starts {
    /// Those of PipeWeaver's search with that many rollouts: who asks for none wants an answer soon, and other orders are seldom
    /// better by themselves.
    pub const fn of(rollouts: u32) -> Self {
        if rollouts == 0 { Self::AsGiven } else { Self::All }
    }
}

/// How long to search. A search given the same seed and rollouts finds the same, unless the watch ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Orders that are interleaved in any case.
    pub starts: Starts,
    /// Rankings to interleave, beside the starting orders.
    pub rollouts: u32,
    /// Seed of everything random.
    pub seed: u32,
    /// Stream of the seed.
    pub stream: u64,
}

/// The best end known after some rollouts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Rankings interleaved so far.
    pub rollouts: u32,
    /// Seconds by the caller's watch.
    pub seconds: f64,
    /// The best end.
    pub end: Nanos,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The best end is the lower bound: no schedule of these costs is faster.
    Optimal,
    /// Every ranking has been seen.
    Exhausted,
    /// The best end is within one per mille of the lower bound.
    NearBound,
    /// The rollouts are used up.
    Rollouts,
    /// The watch ended it.
    Time,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The best ranking.
    pub priorities: Priorities,
    /// When its schedule ends, synchronisation and optimizer included.
    pub end: Nanos,
    /// No schedule of these costs ends earlier.
    pub lower_bound: Nanos,
    /// Why the search ended.
    pub ending: Ending,
    /// Rankings interleaved.
    pub rollouts: u32,
    /// How the best end fell (or rose, for the slowest), first and last step included.
    pub progress: Vec<Step>,
}

/// Searches.
pub fn search(
    interleaving: &Interleaving<'_>,
    strategy: Strategy,
    goal: Goal,
    budget: Budget,
    workers: &dyn Workers,
    watch: &dyn Watch,
) -> Ranked {
    let space = Space::of(interleaving);
    let mut record = Record::new(interleaving, goal, watch);
    let mut interleaver = Interleaver::new(interleaving);
    for sequence in space.starts(interleaving, budget.starts) {
        let end = interleaver.end(&space.priorities(&sequence));
        record.offer(&sequence, end);
        record.rollouts += 1;
        // The first start is the answer of a search that gets no time.
        if record.is_good_enough() || watch.is_over() {
            break;
        }
    }
    record.limit = record.rollouts.saturating_add(budget.rollouts);
    let ending = match strategy {
        Strategy::MonteCarlo => monte_carlo::run(interleaving, &space, budget, workers, &mut record),
        Strategy::DepthFirst => depth_first::run(interleaving, &space, workers, &mut record),
        Strategy::Random => chance::run(interleaving, &space, budget, workers, &mut record),
    };
    record.finish(&space, ending)
}

/// The best so far, and whether to go on.
struct Record<'a> {
    goal: Goal,
    watch: &'a dyn Watch,
    lower_bound: Nanos,
    best: Option<(Vec<u32>, Nanos)>,
    rollouts: u32,
    limit: u32,
    progress: Vec<Step>,
}

impl<'a> Record<'a> {
    fn new(interleaving: &Interleaving<'_>, goal: Goal, watch: &'a dyn Watch) -> Self {
        let lower_bound = lower_bound(interleaving.costs());
        Self { goal, watch, lower_bound, best: None, rollouts: 0, limit: 0, progress: Vec::new() }
    }

    fn is_better(&self, end: Nanos) -> bool {
        self.best.as_ref().is_none_or(|&(_, best)| self.goal.prefers(end, best))
    }

    fn offer(&mut self, sequence: &[u32], end: Nanos) {
        if self.is_better(end) {
            self.best = Some((sequence.to_vec(), end));
            self.progress.push(Step { rollouts: self.rollouts, seconds: self.watch.seconds(), end });
        }
    }

    fn guide(&self) -> &[u32] {
        self.best.as_ref().map_or(&[], |(sequence, _)| sequence)
    }

    fn is_good_enough(&self) -> bool {
        let near = Nanos::new(self.lower_bound.get() / 1000 * 1001);
        self.goal == Goal::Fastest && self.best.as_ref().is_some_and(|&(_, best)| best <= near)
    }

    /// Why the search has to end now, if it has to.
    fn ending(&self) -> Option<Ending> {
        let best = self.best.as_ref().map(|&(_, best)| best);
        if self.goal == Goal::Fastest && best.is_some_and(|best| best <= self.lower_bound) {
            Some(Ending::Optimal)
        } else if self.is_good_enough() {
            Some(Ending::NearBound)
        } else if self.rollouts >= self.limit {
            Some(Ending::Rollouts)
        } else if self.watch.is_over() {
            Some(Ending::Time)
        } else {
            None
        }
    }

    fn finish(mut self, space: &Space, ending: Ending) -> Ranked {
        let (sequence, end) = self.best.expect("there is always a start");
        self.progress.push(Step { rollouts: self.rollouts, seconds: self.watch.seconds(), end });
        Ranked {
            priorities: space.priorities(&sequence),
            end,
            lower_bound: self.lower_bound,
            ending,
            rollouts: self.rollouts,
            progress: self.progress,
        }
    }
}

impl Goal {
    fn prefers(self, end: Nanos, to: Nanos) -> bool {
        match self {
            Self::Fastest => end < to,
            Self::Slowest => end > to,
        }
    }
}

#[cfg(test)]
mod tests;
