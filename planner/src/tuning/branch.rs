//! The best choice by breadth-first branch and bound along the rank's order.
//!
//! Pairs are fixed in the order of their forwards. What is still to come sees of a partial choice only the candidates of
//! the pairs held just then, so of partial choices that agree in these the fastest is enough (the dynamic programme of
//! the temporal knapsack problem, Caprara, Malaguti and Toth 2013). With the relaxation's prices for the instants to
//! come,
//!
//!   time so far + prices x what the held pairs hold there + minima of the pairs to come - prices x room
//!
//! is no more than the time of any completion; what cannot get below the target is left out. Where more partial choices
//! are left than may be followed, those with the lowest bounds are, and the least bound of the others still bounds all.

use super::greedy::Trial;
use super::problem::TuningProblem;
use super::relaxation::{Relaxation, cutoff};
use crate::units::Nanos;

/// What the enumeration proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Enumeration {
    /// No choice that fits takes less; absent where none fits at all.
    pub(super) bound: Option<Nanos>,
    /// Partial choices looked at.
    pub(super) nodes: u64,
}

/// Looks for a choice better than `best` by more than `gap`, following `width` partial choices at most at a time, and
/// puts it there.
pub(super) fn enumerate<'a>(
    problem: &'a TuningProblem,
    relaxation: &Relaxation,
    best: &mut Option<Trial<'a>>,
    gap: f64,
    width: usize,
) -> Enumeration {
    let target = best.as_ref().map_or(u64::MAX, |best| cutoff(best.time(), gap));
    let mut sweep = Sweep::new(problem, relaxation, target);
    for depth in 0..sweep.order.len() {
        sweep.fix(depth);
        sweep.narrow(width);
        sweep.forget(depth);
    }
    if let Some(choice) = sweep.fastest() {
        let trial = Trial::of(problem, choice);
        if best.as_ref().is_none_or(|best| trial.time() < best.time()) {
            *best = Some(trial);
        }
    }
    let bound = sweep.left_out.into_iter().chain(best.as_ref().map(Trial::time)).min();
    Enumeration { bound: bound.map(|bound| bound.max(relaxation.bound())), nodes: sweep.nodes }
}

/// A choice for the pairs fixed so far.
#[derive(Clone)]
struct Partial {
    /// Candidates of the held pairs, in the order of their forwards.
    held: Vec<u8>,
    time: u64,
    /// No completion takes less.
    bound: f64,
    /// Its last step, an index into the steps; none at the start.
    step: usize,
}

/// One pair fixed after others.
struct Step {
    before: usize,
    candidate: u8,
}

struct Sweep<'a> {
    problem: &'a TuningProblem,
    relaxation: &'a Relaxation,
    /// Nothing at or above it is of use.
    target: u64,
    /// Pairs by the place of their forward.
    order: Vec<usize>,
    /// Pairs held, in the same order.
    held: Vec<usize>,
    partials: Vec<Partial>,
    steps: Vec<Step>,
    /// Minima of the pairs from each depth on, at the relaxation's prices.
    to_come: Vec<f64>,
    /// Prices of the instants from each one on, times the room.
    paid: Vec<f64>,
    /// Per instant, what the leanest candidates of the pairs not yet fixed hold.
    leanest: Vec<u64>,
    left_out: Option<Nanos>,
    nodes: u64,
}

/// The step of the empty choice.
const START: usize = usize::MAX;

impl<'a> Sweep<'a> {
    fn new(problem: &'a TuningProblem, relaxation: &'a Relaxation, target: u64) -> Self {
        let mut order: Vec<usize> = (0..problem.pairs()).collect();
        // Pairs that share their first instant are interchangeable here; those released later stay longer in view.
        order.sort_by_key(|&pair| (problem.spans[pair].first, std::cmp::Reverse(problem.spans[pair].last), pair));
        let minima = relaxation.minima(problem);
        let suffix = |values: &mut dyn DoubleEndedIterator<Item = f64>| {
            let mut sums = vec![0.0];
            for value in values.rev() {
                sums.push(sums[sums.len() - 1] + value);
            }
            sums.reverse();
            sums
        };
        Self {
            target,
            held: Vec::new(),
            partials: vec![Partial { held: Vec::new(), time: 0, bound: relaxation.value, step: START }],
            steps: Vec::new(),
            to_come: suffix(&mut order.iter().map(|&pair| minima[pair])),
            paid: suffix(&mut relaxation.prices.iter().map(|price| price * problem.room as f64)),
            leanest: problem.leanest(),
            left_out: None,
            nodes: 0,
            problem,
            relaxation,
            order,
        }
    }

    /// Every partial choice with every candidate of one more pair.
    fn fix(&mut self, depth: usize) {
        let pair = self.order[depth];
        let span = self.problem.spans[pair];
        let costs = &self.problem.pairs[pair];
        self.held.push(pair);
        for at in span.instants() {
            self.leanest[at] -= costs.iter().map(|cost| cost.at(at, span)).min().unwrap_or(0);
        }
        let partials = std::mem::take(&mut self.partials);
        // Every instant before the pair's first one is over: its price and its room no longer matter.
        let constant = self.to_come[depth + 1] - self.paid[span.first];
        for partial in partials {
            for (candidate, cost) in (0..=u8::MAX).zip(costs) {
                self.nodes += 1;
                let mut held = partial.held.clone();
                held.push(candidate);
                let Some(priced) = self.priced(&held, span.first, span) else { continue };
                let time = partial.time + cost.time.get();
                let bound = time as f64 + priced + constant;
                let step = self.steps.len();
                if self.is_useful(bound) {
                    self.steps.push(Step { before: partial.step, candidate });
                    self.partials.push(Partial { held, time, bound, step });
                }
            }
        }
    }

    /// What the held pairs hold from an instant on, at the relaxation's prices; none where they do not fit during `span`.
    fn priced(&self, held: &[u8], from: usize, span: super::problem::Span) -> Option<f64> {
        let mut priced = 0.0;
        let last = self.held.iter().map(|&pair| self.problem.spans[pair].last).max().unwrap_or(from);
        for at in from..=last {
            let mut sum = 0;
            for (&pair, &candidate) in self.held.iter().zip(held) {
                let own = self.problem.spans[pair];
                if own.instants().contains(&at) {
                    sum += self.problem.pairs[pair][usize::from(candidate)].at(at, own);
                }
            }
            if span.instants().contains(&at) && sum + self.leanest[at] > self.problem.room {
                return None;
            }
            priced += sum as f64 * self.relaxation.prices[at];
        }
        Some(priced)
    }

    fn is_useful(&mut self, bound: f64) -> bool {
        let bound = self.relaxation.lowered(bound);
        let useful = bound.get() < self.target;
        if !useful {
            self.leave_out(bound);
        }
        useful
    }

    fn leave_out(&mut self, bound: Nanos) {
        self.left_out = Some(self.left_out.map_or(bound, |least| least.min(bound)));
    }

    /// Keeps the `width` partial choices with the lowest bounds.
    fn narrow(&mut self, width: usize) {
        if self.partials.len() <= width {
            return;
        }
        self.partials.sort_by(|one, other| one.bound.total_cmp(&other.bound).then(one.step.cmp(&other.step)));
        let dropped = self.relaxation.lowered(self.partials[width].bound);
        self.leave_out(dropped);
        self.partials.truncate(width);
    }

    /// Pairs released before the next forward are no longer seen; of partial choices that then agree one stays.
    fn forget(&mut self, depth: usize) {
        let next = self.order.get(depth + 1).map_or(usize::MAX, |&pair| self.problem.spans[pair].first);
        let stays: Vec<bool> = self.held.iter().map(|&pair| self.problem.spans[pair].last >= next).collect();
        if stays.iter().all(|&stays| stays) {
            return;
        }
        let mut stay = stays.iter();
        self.held.retain(|_| *stay.next().unwrap_or(&false));
        for partial in &mut self.partials {
            let mut stay = stays.iter();
            partial.held.retain(|_| *stay.next().unwrap_or(&false));
        }
        self.partials.sort_by(|one, other| (&one.held, one.time, one.step).cmp(&(&other.held, other.time, other.step)));
        self.partials.dedup_by(|later, first| later.held == first.held);
    }

    fn fastest(&self) -> Option<Vec<u8>> {
        let best = self.partials.iter().min_by_key(|partial| (partial.time, partial.step))?;
        let mut choice = vec![0; self.order.len()];
        let mut step = best.step;
        for &pair in self.order.iter().rev() {
            choice[pair] = self.steps[step].candidate;
            step = self.steps[step].before;
        }
        Some(choice)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tuning::examples::{best, problems};

    fn enumerated(problem: &TuningProblem, gap: f64) -> (Option<Nanos>, Enumeration) {
        // Prices of a few rounds only, so that there is something left to enumerate.
        let relaxation = Relaxation::tighten(problem, Vec::new(), &mut None, 0.5);
        let mut found = None;
        let enumeration = enumerate(problem, &relaxation, &mut found, gap, usize::MAX);
        (found.map(|found| found.time()), enumeration)
    }

    proptest! {
        #[test]
        fn without_a_gap_the_best_is_found_and_proven(problem in problems()) {
            prop_assume!(problem.leanest().iter().all(|&held| held <= problem.room));
            let (found, enumeration) = enumerated(&problem, 0.0);
            prop_assert_eq!(found, best(&problem));
            prop_assert_eq!(enumeration.bound, found);
        }

        #[test]
        fn with_a_gap_what_is_found_is_within_it(problem in problems(), percent in 1_u64..60) {
            prop_assume!(problem.leanest().iter().all(|&held| held <= problem.room));
            let gap = percent as f64 / 100.0;
            let (found, enumeration) = enumerated(&problem, gap);
            prop_assert_eq!(found.is_some(), best(&problem).is_some());
            if let (Some(found), Some(bound), Some(best)) = (found, enumeration.bound, best(&problem)) {
                prop_assert!(bound <= best && best <= found);
                prop_assert!(bound.get() >= cutoff(found, gap), "{found:?} {bound:?}");
            }
        }

        #[test]
        fn following_few_at_a_time_bounds_all(problem in problems(), width in 1_usize..6) {
            prop_assume!(problem.leanest().iter().all(|&held| held <= problem.room));
            let relaxation = Relaxation::tighten(&problem, Vec::new(), &mut None, 0.5);
            let mut found = None;
            let enumeration = enumerate(&problem, &relaxation, &mut found, 0.0, width);
            if let Some(best) = best(&problem) {
                prop_assert!(enumeration.bound.is_some_and(|bound| bound <= best));
            }
            prop_assert!(found.is_none_or(|found| problem.fits(found.choice())));
        }
    }
}
