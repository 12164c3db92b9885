//! A choice that fits, by changing one pair at a time.

use std::cmp::Reverse;
use std::ops::Range;

use super::problem::{PairCost, TuningProblem};
use crate::units::Nanos;

/// A choice and what it holds.
#[derive(Debug, Clone)]
pub(super) struct Trial<'a> {
    problem: &'a TuningProblem,
    choice: Vec<u8>,
    /// Held at every instant.
    usage: Vec<u64>,
    /// The most of every [`BLOCK`] instants, so that the worst is found soon.
    peaks: Vec<u64>,
    time: Nanos,
}

/// Instants of which the most is remembered.
const BLOCK: usize = 16;

/// One pair gets another candidate.
#[derive(Clone, Copy)]
struct Change {
    pair: usize,
    candidate: u8,
    /// Bytes fewer where it counts.
    saved: u64,
    /// Nanoseconds more.
    lost: u64,
}

impl Change {
    /// More memory for less time; ties leave the earlier one.
    fn pays_better_than(self, other: Self) -> bool {
        u128::from(self.saved) * u128::from(other.lost) > u128::from(other.saved) * u128::from(self.lost)
    }
}

/// What a pair may hold before its backward and while that runs.
#[derive(Clone, Copy)]
struct Room {
    held: u64,
    at_release: u64,
}

impl Room {
    fn is_enough_for(self, cost: &PairCost) -> bool {
        cost.memory.get() <= self.held && cost.at_release() <= self.at_release
    }
}

impl<'a> Trial<'a> {
    pub(super) fn of(problem: &'a TuningProblem, choice: Vec<u8>) -> Self {
        let usage = problem.usage(&choice);
        Self { peaks: usage.chunks(BLOCK).map(most).collect(), usage, time: problem.time(&choice), problem, choice }
    }

    /// The fastest candidate of every pair, the leanest of equally fast ones.
    pub(super) fn fastest(problem: &'a TuningProblem) -> Self {
        let fastest = |costs: &Vec<super::PairCost>| {
            let best = (0..costs.len()).min_by_key(|&at| (costs[at].time, costs[at].at_release(), at));
            best.expect("every pair has a candidate") as u8
        };
        Self::of(problem, problem.pairs.iter().map(fastest).collect())
    }

    pub(super) fn time(&self) -> Nanos {
        self.time
    }

    pub(super) fn choice(&self) -> &[u8] {
        &self.choice
    }

    pub(super) fn fits(&self) -> bool {
        self.peaks.iter().all(|&held| held <= self.problem.room)
    }

    /// Makes a choice fit and then as fast as single changes can: PipeWeaver's greedy start (section 6.3).
    ///
    /// While an instant is over the limit, the pair held at the worst of them changes that saves most memory per time
    /// lost. Says whether the choice fits in the end; with transient memory it may not although another one does.
    pub(super) fn repair_and_improve(&mut self) -> bool {
        // A change lowers the worst instant, but with transient memory may raise another one, and so on in a circle.
        let most = self.problem.pairs.iter().map(Vec::len).sum::<usize>();
        let mut unbounded: Vec<Option<Change>> = Vec::new();
        for _ in 0..most {
            let Some((instant, over)) = self.worst() else { break };
            if unbounded.is_empty() {
                unbounded = (0..self.choice.len()).map(|pair| self.unbounded_relief(pair)).collect();
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

    /// The instant furthest over the limit and by how much; the first of equals.
    fn worst(&self) -> Option<(usize, u64)> {
        let mut worst = None;
        let mut most = self.problem.room;
        for (block, &peak) in self.peaks.iter().enumerate() {
            if peak > most {
                (worst, most) = (Some(block * BLOCK), peak);
            }
        }
        let first = worst?;
        let within = self.usage[first..].iter().position(|&held| held == most)?;
        Some((first + within, most - self.problem.room))
    }

    /// The change of a pair held at an instant that pays best while `over` bytes are too many; the first of equals.
    fn best_relief(&self, instant: usize, over: u64, unbounded: &[Option<Change>]) -> Option<Change> {
        let mut best: Option<Change> = None;
        for pair in self.problem.about(instant) {
            let span = self.problem.spans[pair];
            if !span.instants().contains(&instant) {
                continue;
            }
            let has_transient = span.releases && instant == span.last;
            let change = match unbounded[pair] {
                // What pays best for any number of bytes does so for no fewer than it saves.
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

    /// The change of one pair that pays best where only its memory counts, however much is too much.
    fn unbounded_relief(&self, pair: usize) -> Option<Change> {
        self.relief(pair, u64::MAX, |cost| cost.memory.get())
    }

    /// The change of one pair that pays best while `over` of what `held` counts are too many; the first of equals.
    fn relief(&self, pair: usize, over: u64, held: impl Fn(&PairCost) -> u64) -> Option<Change> {
        let costs = &self.problem.pairs[pair];
        let current = &costs[usize::from(self.choice[pair])];
        let mut best: Option<Change> = None;
        for (candidate, cost) in (0..=u8::MAX).zip(costs) {
            let saved = held(current).saturating_sub(held(cost)).min(over);
            let lost = cost.time.saturating_sub(current.time).get();
            let change = Change { pair, candidate, saved, lost };
            if saved > 0 && best.is_none_or(|best| change.pays_better_than(best)) {
                best = Some(change);
            }
        }
        best
    }

    /// Faster candidates wherever there is room, those that gain most first.
    fn improve(&mut self) {
        let mut gains: Vec<(Reverse<u64>, usize, u8)> = Vec::new();
        loop {
            gains.clear();
            for (pair, costs) in self.problem.pairs.iter().enumerate() {
                let current = costs[usize::from(self.choice[pair])].time;
                if costs.iter().all(|cost| cost.time >= current) {
                    continue;
                }
                // What finds no room beside the others as they are now may find it in the next round.
                let room = self.room_for(pair);
                let faster =
                    (0..=u8::MAX).zip(costs).filter(|(_, cost)| cost.time < current && room.is_enough_for(cost));
                gains.extend(faster.map(|(candidate, cost)| (Reverse((current - cost.time).get()), pair, candidate)));
            }
            gains.sort_unstable();
            let mut changed = false;
            for &(_, pair, candidate) in &gains {
                let costs = &self.problem.pairs[pair];
                let next = &costs[usize::from(candidate)];
                if next.time < costs[usize::from(self.choice[pair])].time && self.room_for(pair).is_enough_for(next) {
                    self.make(pair, candidate);
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// What there is for a pair beside the others.
    fn room_for(&self, pair: usize) -> Room {
        let span = self.problem.spans[pair];
        let current = &self.problem.pairs[pair][usize::from(self.choice[pair])];
        let beside = |instants: Range<usize>, own: u64| {
            let most = self.usage[instants].iter().copied().max();
            self.problem.room - most.map_or(0, |most| most - own)
        };
        let before_release = span.last + usize::from(!span.releases);
        Room {
            held: beside(span.first..before_release, current.memory.get()),
            at_release: beside(before_release..span.last + 1, current.at_release()),
        }
    }

    fn make(&mut self, pair: usize, candidate: u8) {
        let span = self.problem.spans[pair];
        let costs = &self.problem.pairs[pair];
        let (current, next) = (&costs[usize::from(self.choice[pair])], &costs[usize::from(candidate)]);
        for at in span.instants() {
            self.usage[at] = self.usage[at] - current.at(at, span) + next.at(at, span);
        }
        for block in span.first / BLOCK..=span.last / BLOCK {
            let end = self.usage.len().min((block + 1) * BLOCK);
            self.peaks[block] = most(&self.usage[block * BLOCK..end]);
        }
        self.time = self.time - current.time + next.time;
        self.choice[pair] = candidate;
    }
}

fn most(held: &[u64]) -> u64 {
    held.iter().fold(0, |most, &held| most.max(held))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tuning::examples::{best, cost, problem, problems};

    /// Both pairs held at once hold 20 of 14: pair 1 saves 8 for 1, pair 0 saves 6 for 9. Pair 1 changes.
    #[test]
    fn the_pair_that_saves_most_per_time_lost_changes() {
        let pairs = vec![vec![cost(10, 10, 0), cost(19, 4, 0)], vec![cost(10, 10, 0), cost(11, 2, 0)]];
        let problem = problem(pairs, "F0 F1 B1 B0", 14);
        let mut trial = Trial::fastest(&problem);
        assert!(trial.repair_and_improve());
        assert_eq!((trial.choice(), trial.time().get()), ([0, 1].as_slice(), 21));
    }

    /// Held are 30. Of 20, pair 0 pays best, 4 for 1, then pair 1, the missing 6 for 3; 18 are held, no room for pair 0
    /// to go back. Of 22 there is room, so that only pair 1 changes; of 26 pair 0 alone does.
    #[test]
    fn room_that_is_left_is_used() {
        let pairs = || {
            vec![vec![cost(10, 10, 0), cost(11, 6, 0)], vec![cost(10, 10, 0), cost(13, 2, 0)], vec![cost(10, 10, 0)]]
        };
        for (limit, choice) in [(20, [1, 1, 0]), (22, [0, 1, 0]), (26, [1, 0, 0]), (30, [0, 0, 0])] {
            let problem = problem(pairs(), "F0 F1 F2 B2 B1 B0", limit);
            let mut trial = Trial::fastest(&problem);
            assert!(trial.repair_and_improve());
            assert_eq!(trial.choice(), choice, "{limit}");
        }
    }

    proptest! {
        #[test]
        fn what_is_said_to_fit_does_and_is_never_better_than_the_best(problem in problems()) {
            let mut trial = Trial::fastest(&problem);
            let fits = trial.repair_and_improve();
            prop_assert_eq!(trial.time(), problem.time(trial.choice()));
            if fits {
                prop_assert!(problem.fits(trial.choice()));
                prop_assert!(Some(trial.time()) >= best(&problem));
            }
        }

        /// What is remembered of every pair leads to the change that looking at all candidates would.
        #[test]
        fn remembered_changes_pick_as_looking_anew_does(problem in problems()) {
            let mut trial = Trial::fastest(&problem);
            for _ in 0..problem.pairs.iter().map(Vec::len).sum::<usize>() {
                let Some((instant, over)) = trial.worst() else { break };
                let remembered: Vec<_> = (0..problem.pairs()).map(|pair| trial.unbounded_relief(pair)).collect();
                let picked = trial.best_relief(instant, over, &remembered);
                let held = (0..problem.pairs()).filter(|&pair| problem.spans[pair].instants().contains(&instant));
                let anew = held
                    .filter_map(|pair| trial.relief(pair, over, |cost| cost.at(instant, problem.spans[pair])))
                    .reduce(|best, change| if change.pays_better_than(best) { change } else { best });
                let named = |change: Change| (change.pair, change.candidate);
                prop_assert_eq!(picked.map(named), anew.map(named));
                let Some(change) = picked else { break };
                trial.make(change.pair, change.candidate);
            }
        }

        /// Without transient memory the greedy start finds a choice wherever there is one.
        #[test]
        fn without_transients_whatever_can_fit_is_made_to(problem in problems()) {
            let plain = problem.pairs.iter().flatten().all(|cost| cost.transient.get() == 0);
            prop_assume!(plain && best(&problem).is_some());
            prop_assert!(Trial::fastest(&problem).repair_and_improve());
        }
    }
}
