//! Finds a feasible selection by single-pair changes.

use std::cmp::Reverse;
use std::ops::Range;

use super::problem::{PairCost, TuningProblem};
use planscope_core::units::Nanos;

/// A selection and its memory use.
#[derive(Debug, Clone)]
pub(crate) struct Trial<'a> {
    problem: &'a TuningProblem,
    selection: Vec<u8>,
    /// Memory per instant.
    usage: Vec<u64>,
    /// Maximum per [`BLOCK`] instants, for a fast search of the peak.
    peaks: Vec<u64>,
    time: Nanos,
}

/// Instants per block maximum.
const BLOCK: usize = 16;

/// Replaces a pair's candidate.
#[derive(Clone, Copy)]
struct Change {
    pair: usize,
    candidate: u8,
    /// Saved bytes at the relevant instant.
    saved: u64,
    /// Additional time in nanoseconds.
    lost: u64,
}

impl Change {
    /// Compares saved memory per added time. On ties the earlier change wins.
    fn pays_better_than(self, other: Self) -> bool {
        u128::from(self.saved) * u128::from(other.lost) > u128::from(other.saved) * u128::from(self.lost)
    }
}

/// Available memory for a pair before and during its backward.
#[derive(Clone, Copy)]
struct AvailableMemory {
    stored: u64,
    at_release: u64,
}

impl AvailableMemory {
    fn is_enough_for(self, cost: &PairCost) -> bool {
        cost.memory.get() <= self.stored && cost.at_release() <= self.at_release
    }
}

impl<'a> Trial<'a> {
    pub(crate) fn new(problem: &'a TuningProblem, selection: Vec<u8>) -> Self {
        let usage = problem.usage(&selection);
        Self {
            peaks: usage.chunks(BLOCK).map(peak_usage).collect(),
            usage,
            time: problem.time(&selection),
            problem,
            selection,
        }
    }

    /// Selects the minimum-time candidate per pair. On ties, the candidate that needs less memory
    /// wins.
    pub(crate) fn fastest(problem: &'a TuningProblem) -> Self {
        let fastest = |costs: &Vec<super::PairCost>| {
            let best = (0..costs.len()).min_by_key(|&at| (costs[at].time, costs[at].at_release(), at));
            best.expect("every pair has a candidate") as u8
        };
        Self::new(problem, problem.pairs.iter().map(fastest).collect())
    }

    pub(crate) fn time(&self) -> Nanos {
        self.time
    }

    pub(crate) fn selection(&self) -> &[u8] {
        &self.selection
    }

    pub(crate) fn fits(&self) -> bool {
        self.peaks.iter().all(|&bytes| bytes <= self.problem.capacity)
    }

    /// Makes a selection feasible, then improves it by single changes (greedy start in
    /// PipeWeaver Sec. 6.3).
    ///
    /// While an instant exceeds the limit, the function changes a pair that is active at the peak.
    /// It selects the change that saves the most memory per added time. Returns whether the result
    /// is feasible. If transient memory exists, it can return false although a feasible selection
    /// exists.
    pub(crate) fn repair_and_improve(&mut self) -> bool {
        // With transient memory, a change can raise another instant, so the loop could cycle
        // without this limit.
        let max_changes = self.problem.pairs.iter().map(Vec::len).sum::<usize>();
        let mut unbounded: Vec<Option<Change>> = Vec::new();
        for _ in 0..max_changes {
            let Some((instant, over)) = self.worst() else { break };
            if unbounded.is_empty() {
                unbounded = (0..self.selection.len()).map(|pair| self.unbounded_relief(pair)).collect();
            }
            let Some(change) = self.best_relief(instant, over, &unbounded) else { return false };
            self.make(change.pair, change.candidate);
            unbounded[change.pair] = self.unbounded_relief(change.pair);
        }
        if !self.fits() {
            return false;
        }
        self.improve();
        true
    }

    /// Returns the instant that exceeds the limit by the maximum amount, and the excess. On ties
    /// the lowest index wins.
    fn worst(&self) -> Option<(usize, u64)> {
        let mut worst = None;
        let mut highest = self.problem.capacity;
        for (block, &peak) in self.peaks.iter().enumerate() {
            if peak > highest {
                (worst, highest) = (Some(block * BLOCK), peak);
            }
        }
        let first = worst?;
        let within = self.usage[first..].iter().position(|&bytes| bytes == highest)?;
        Some((first + within, highest - self.problem.capacity))
    }

    /// Returns the most efficient change among pairs active at an instant, for an excess of `over`
    /// bytes. On ties the lowest index wins.
    fn best_relief(&self, instant: usize, over: u64, unbounded: &[Option<Change>]) -> Option<Change> {
        let mut best: Option<Change> = None;
        for pair in self.problem.about(instant) {
            let span = self.problem.spans[pair];
            if !span.instants().contains(&instant) {
                continue;
            }
            let has_transient = span.releases && instant == span.last;
            let change = match unbounded[pair] {
                // The most efficient unbounded change remains the most efficient if the excess is
                // at least its savings.
                Some(change) if !has_transient && change.saved <= over => Some(change),
                None if !has_transient => None,
                _ => self.relief(pair, over, |cost| cost.at(instant, span)),
            };
            if let Some(change) = change
                && best.is_none_or(|best| change.pays_better_than(best))
            {
                best = Some(change);
            }
        }
        best
    }

    /// Returns the most efficient change of a pair, considering only its stored memory and an
    /// unbounded excess.
    fn unbounded_relief(&self, pair: usize) -> Option<Change> {
        self.relief(pair, u64::MAX, |cost| cost.memory.get())
    }

    /// Returns the most efficient change of a pair for an excess of `over` bytes, measured by
    /// `stored`. On ties the lowest index wins.
    fn relief(&self, pair: usize, over: u64, memory: impl Fn(&PairCost) -> u64) -> Option<Change> {
        let costs = &self.problem.pairs[pair];
        let current = &costs[usize::from(self.selection[pair])];
        let mut best: Option<Change> = None;
        for (candidate, cost) in (0..=u8::MAX).zip(costs) {
            let saved = memory(current).saturating_sub(memory(cost)).min(over);
            let lost = cost.time.saturating_sub(current.time).get();
            let change = Change { pair, candidate, saved, lost };
            if saved > 0 && best.is_none_or(|best| change.pays_better_than(best)) {
                best = Some(change);
            }
        }
        best
    }

    /// Selects faster candidates that fit into memory, maximum time savings first.
    fn improve(&mut self) {
        let mut gains: Vec<(Reverse<u64>, usize, u8)> = Vec::new();
        loop {
            gains.clear();
            for (pair, costs) in self.problem.pairs.iter().enumerate() {
                let current = costs[usize::from(self.selection[pair])].time;
                if costs.iter().all(|cost| cost.time >= current) {
                    continue;
                }
                // A change that does not fit now can fit in the next round.
                let available = self.available_memory(pair);
                let faster =
                    (0..=u8::MAX).zip(costs).filter(|(_, cost)| cost.time < current && available.is_enough_for(cost));
                gains.extend(faster.map(|(candidate, cost)| (Reverse((current - cost.time).get()), pair, candidate)));
            }
            gains.sort_unstable();
            let mut changed = false;
            for &(_, pair, candidate) in &gains {
                let costs = &self.problem.pairs[pair];
                let next = &costs[usize::from(candidate)];
                if next.time < costs[usize::from(self.selection[pair])].time
                    && self.available_memory(pair).is_enough_for(next)
                {
                    self.make(pair, candidate);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Returns the memory that the other pairs leave available for a pair.
    fn available_memory(&self, pair: usize) -> AvailableMemory {
        let span = self.problem.spans[pair];
        let current = &self.problem.pairs[pair][usize::from(self.selection[pair])];
        let free_memory = |instants: Range<usize>, pair_memory: u64| {
            let peak = self.usage[instants].iter().copied().max();
            self.problem.capacity - peak.map_or(0, |highest| highest - pair_memory)
        };
        let before_release = span.last + usize::from(!span.releases);
        AvailableMemory {
            stored: free_memory(span.first..before_release, current.memory.get()),
            at_release: free_memory(before_release..span.last + 1, current.at_release()),
        }
    }

    fn make(&mut self, pair: usize, candidate: u8) {
        let span = self.problem.spans[pair];
        let costs = &self.problem.pairs[pair];
        let (current, next) = (&costs[usize::from(self.selection[pair])], &costs[usize::from(candidate)]);
        for at in span.instants() {
            self.usage[at] = self.usage[at] - current.at(at, span) + next.at(at, span);
        }
        for block in span.first / BLOCK..=span.last / BLOCK {
            let end = self.usage.len().min((block + 1) * BLOCK);
            self.peaks[block] = peak_usage(&self.usage[block * BLOCK..end]);
        }
        self.time = self.time - current.time + next.time;
        self.selection[pair] = candidate;
    }
}

fn peak_usage(usage: &[u64]) -> u64 {
    usage.iter().fold(0, |highest, &bytes| highest.max(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planners::pipeweaver::layer_tuning::examples::{best, cost, problem, problems};

    /// Both pairs need 20 of 14 bytes. Pair 1 saves 8 bytes for time 1, pair 0 saves 6 for time 9,
    /// so pair 1 changes.
    #[test]
    fn the_pair_with_the_best_saving_ratio_changes() {
        let pairs = vec![vec![cost(10, 10, 0), cost(19, 4, 0)], vec![cost(10, 10, 0), cost(11, 2, 0)]];
        let problem = problem(pairs, "F0 F1 B1 B0", 14);
        let mut trial = Trial::fastest(&problem);
        assert!(trial.repair_and_improve());
        assert_eq!((trial.selection(), trial.time().get()), ([0, 1].as_slice(), 21));
    }

    /// The pairs need 30. Limit 20: pair 0 is the most efficient change (4 for 1), then pair 1
    /// (remaining 6 for 3); the total is 18, and pair 0 cannot change back. Limit 22: pair 0
    /// changes back, so only pair 1 differs. Limit 26: only pair 0 changes.
    #[test]
    fn free_memory_is_used() {
        let pairs = || {
            vec![vec![cost(10, 10, 0), cost(11, 6, 0)], vec![cost(10, 10, 0), cost(13, 2, 0)], vec![cost(10, 10, 0)]]
        };
        for (limit, expected) in [(20, [1, 1, 0]), (22, [0, 1, 0]), (26, [1, 0, 0]), (30, [0, 0, 0])] {
            let problem = problem(pairs(), "F0 F1 F2 B2 B1 B0", limit);
            let mut trial = Trial::fastest(&problem);
            assert!(trial.repair_and_improve());
            assert_eq!(trial.selection(), expected, "{limit}");
        }
    }

    proptest! {
        #[test]
        fn feasible_trials_respect_limit_and_optimum(problem in problems()) {
            let mut trial = Trial::fastest(&problem);
            let fits = trial.repair_and_improve();
            prop_assert_eq!(trial.time(), problem.time(trial.selection()));
            if fits {
                prop_assert!(problem.fits(trial.selection()));
                prop_assert!(Some(trial.time()) >= best(&problem));
            }
        }

        /// The cached change per pair gives the same choice as a full scan over all candidates.
        #[test]
        fn remembered_changes_pick_as_looking_anew_does(problem in problems()) {
            let mut trial = Trial::fastest(&problem);
            for _ in 0..problem.pairs.iter().map(Vec::len).sum::<usize>() {
                let Some((instant, over)) = trial.worst() else { break };
                let remembered: Vec<_> = (0..problem.pairs()).map(|pair| trial.unbounded_relief(pair)).collect();
                let picked = trial.best_relief(instant, over, &remembered);
                let active = (0..problem.pairs()).filter(|&pair| problem.spans[pair].instants().contains(&instant));
                let anew = active
                    .filter_map(|pair| trial.relief(pair, over, |cost| cost.at(instant, problem.spans[pair])))
                    .reduce(|best, change| if change.pays_better_than(best) { change } else { best });
                let named = |change: Change| (change.pair, change.candidate);
                prop_assert_eq!(picked.map(named), anew.map(named));
                let Some(change) = picked else { break };
                trial.make(change.pair, change.candidate);
            }
        }

        /// Without transient memory, the greedy start finds a feasible selection if one exists.
        #[test]
        fn feasible_problems_without_transients_are_repaired(problem in problems()) {
            let plain = problem.pairs.iter().flatten().all(|cost| cost.transient.get() == 0);
            prop_assume!(plain && best(&problem).is_some());
            prop_assert!(Trial::fastest(&problem).repair_and_improve());
        }
    }
}
