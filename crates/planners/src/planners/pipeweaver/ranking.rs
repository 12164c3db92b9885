//! Ranking of segment groups: decides which microbatch and module runs first (PipeWeaver Sec. 6.1).
//!
//! A ranking consists of two permutations of all groups, for forwards and for backwards.
//! Interleaving converts it to a schedule ([`planscope_pipeline::schedule::dual_queue`]); the search minimizes
//! the schedule's end. Three strategies explore the search space:
//!
//! - [`Strategy::MonteCarlo`]: tree search. A node at depth d fixes d positions. A round selects
//!   leaves by upper confidence bound, expands them, completes each prefix about ten times at
//!   random, then propagates the maximum score to the root.
//! - [`Strategy::DepthFirst`]: complete sequences in lexicographic order.
//! - [`Strategy::Random`]: independent random sequences.
//!
//! All strategies start from the same heuristic orders, so that a search returns a valid and useful
//! ranking even if the time budget is zero. Microbatches with equal costs are interchangeable; the
//! search explores a single order for them.
//!
//! # Determinism
//! A round in the tree search selects leaves sequentially. A selected path counts as visited
//! immediately (virtual visit), so that the next selection explores another path. Workers then
//! complete all leaves in parallel, using a separate random stream per leaf, then the search
//! propagates scores in selection order. The worker count changes the duration of a round, not the
//! result.

mod chance;
mod depth_first;
mod monte_carlo;
mod space;
mod tree;
mod trial;

pub use space::Space;

use planscope_core::host::{Cancellation, Workers};
use planscope_core::units::Nanos;
use planscope_pipeline::lower_bound::lower_bound;
use planscope_pipeline::schedule::dual_queue::{Interleaver, Interleaving, Priorities};

/// Search strategy.
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
    /// All strategies.
    pub const ALL: [Self; 3] = [Self::MonteCarlo, Self::DepthFirst, Self::Random];

    /// Returns the stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::MonteCarlo => "mcts",
            Self::DepthFirst => "dfs",
            Self::Random => "random",
        }
    }
}

/// Search objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Minimizes the schedule's end.
    Fastest,
    /// Maximizes the schedule's end, to measure the influence of the ranking.
    Slowest,
}

/// Initial orders for the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    /// All heuristic orders.
    All,
    /// Microbatches in data-loader order; encoders run directly before the backbone or several
    /// microbatches ahead.
    AsGiven,
}

impl Starts {
    /// Returns the start orders that PipeWeaver uses for a rollout count. Zero rollouts mean a fast
    /// draft; the other orders rarely improve it.
    pub const fn from_rollouts(rollouts: u32) -> Self {
        if rollouts == 0 { Self::AsGiven } else { Self::All }
    }
}

/// Search budget. Equal seed and rollouts give equal results unless cancellation stops the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Initial orders, which are always interleaved.
    pub starts: Starts,
    /// Rankings to interleave in addition to the initial orders.
    pub rollouts: u32,
    /// Random seed.
    pub seed: u32,
    /// Random stream index for the seed.
    pub stream: u64,
}

/// Search progress after some rollouts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Rankings interleaved so far.
    pub rollouts: u32,
    /// Elapsed seconds, measured by the caller.
    pub seconds: f64,
    /// Incumbent's end.
    pub end: Nanos,
}

/// Termination reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The end equals the lower bound, so the schedule is optimal for these costs.
    Optimal,
    /// The search explored all rankings.
    Exhausted,
    /// The end is at most 0.1 % above the lower bound.
    NearBound,
    /// The rollout budget is used up.
    Rollouts,
    /// The cancellation check fired.
    Time,
}

/// Search result.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Best ranking found.
    pub priorities: Priorities,
    /// End of its schedule, including gradient synchronization and optimizer.
    pub end: Nanos,
    /// Lower bound on the end for these costs.
    pub lower_bound: Nanos,
    /// Termination reason.
    pub ending: Ending,
    /// Interleaved rankings.
    pub rollouts: u32,
    /// Improvements during the search, including the initial and the final step.
    pub progress: Vec<Step>,
}

/// Searches for a ranking that optimizes the goal.
pub fn search(
    interleaving: &Interleaving<'_>,
    strategy: Strategy,
    goal: Goal,
    budget: Budget,
    workers: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Ranked {
    let space = Space::new(interleaving);
    let mut record = Record::new(interleaving, goal, cancellation);
    let mut interleaver = Interleaver::new(interleaving);
    for sequence in space.starts(interleaving, budget.starts) {
        let end = interleaver.end(&space.priorities(&sequence));
        record.offer(&sequence, end);
        record.rollouts += 1;
        // A search without time budget returns the initial order.
        if record.is_good_enough() || cancellation.is_over() {
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

/// Search state: incumbent and stop conditions.
struct Record<'a> {
    goal: Goal,
    cancellation: &'a dyn Cancellation,
    lower_bound: Nanos,
    best: Option<(Vec<u32>, Nanos)>,
    rollouts: u32,
    limit: u32,
    progress: Vec<Step>,
}

impl<'a> Record<'a> {
    fn new(interleaving: &Interleaving<'_>, goal: Goal, cancellation: &'a dyn Cancellation) -> Self {
        let lower_bound = lower_bound(interleaving.costs());
        Self { goal, cancellation, lower_bound, best: None, rollouts: 0, limit: 0, progress: Vec::new() }
    }

    fn is_better(&self, end: Nanos) -> bool {
        self.best.as_ref().is_none_or(|&(_, best)| self.goal.prefers(end, best))
    }

    fn offer(&mut self, sequence: &[u32], end: Nanos) {
        if self.is_better(end) {
            self.best = Some((sequence.to_vec(), end));
            self.progress.push(Step { rollouts: self.rollouts, seconds: self.cancellation.seconds(), end });
        }
    }

    fn guide(&self) -> &[u32] {
        self.best.as_ref().map_or(&[], |(sequence, _)| sequence)
    }

    fn is_good_enough(&self) -> bool {
        let near = Nanos::new(self.lower_bound.get() / 1000 * 1001);
        self.goal == Goal::Fastest && self.best.as_ref().is_some_and(|&(_, best)| best <= near)
    }

    /// Returns the termination reason, or `None` to continue.
    fn ending(&self) -> Option<Ending> {
        let best = self.best.as_ref().map(|&(_, best)| best);
        if self.goal == Goal::Fastest && best.is_some_and(|best| best <= self.lower_bound) {
            Some(Ending::Optimal)
        } else if self.is_good_enough() {
            Some(Ending::NearBound)
        } else if self.rollouts >= self.limit {
            Some(Ending::Rollouts)
        } else if self.cancellation.is_over() {
            Some(Ending::Time)
        } else {
            None
        }
    }

    fn finish(mut self, space: &Space, ending: Ending) -> Ranked {
        let (sequence, end) = self.best.expect("there is always a start");
        self.progress.push(Step { rollouts: self.rollouts, seconds: self.cancellation.seconds(), end });
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
