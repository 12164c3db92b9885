//! Breadth-first branch and bound along the rank's action order.
//!
//! The algorithm fixes pairs in forward order. The remaining problem depends only on the candidates
//! of pairs that are currently in memory, so among partial selections that agree on these pairs,
//! only the minimum-time selection remains (dynamic programming for the temporal knapsack problem,
//! Caprara, Malaguti and Toth 2013). The Lagrangian prices for future instants give a bound:
//!
//! ```text
//! time so far + prices x memory of the active pairs + minima of the remaining pairs - prices x memory limit
//! ```
//!
//! It is a lower bound for all completions; the search prunes partial selections whose bound
//! reaches the target. If the beam is full, partial selections that have the lowest bounds remain,
//! and the minimum bound of the discarded selections still contributes to the global bound.

use super::greedy::Trial;
use super::problem::TuningProblem;
use super::relaxation::{Relaxation, cutoff};
use planscope_core::units::Nanos;

/// Enumeration result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Enumeration {
    /// Lower bound for feasible selections. `None` if no selection is feasible.
    pub(crate) bound: Option<Nanos>,
    /// Visited partial selections.
    pub(crate) nodes: u64,
}

/// Searches for a selection that improves `best` by more than `gap`, using beam width `width`, and
/// updates `best`.
pub(crate) fn enumerate<'a>(
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
    if let Some(selection) = sweep.fastest() {
        let trial = Trial::new(problem, selection);
        if best.as_ref().is_none_or(|best| trial.time() < best.time()) {
            *best = Some(trial);
        }
    }
    let bound = sweep.left_out.into_iter().chain(best.as_ref().map(Trial::time)).min();
    Enumeration { bound: bound.map(|bound| bound.max(relaxation.bound())), nodes: sweep.nodes }
}

/// A selection for the pairs fixed so far.
#[derive(Clone)]
struct Partial {
    /// Candidates for the active pairs, in forward order.
    candidates: Vec<u8>,
    time: u64,
    /// Lower bound for all completions.
    bound: f64,
    /// Index of the last step, or `START`.
    step: usize,
}

/// A step that fixes a pair.
struct Step {
    before: usize,
    candidate: u8,
}

struct Sweep<'a> {
    problem: &'a TuningProblem,
    relaxation: &'a Relaxation,
    /// Prune partial selections that reach this time.
    target: u64,
    /// Pairs sorted by forward position.
    order: Vec<usize>,
    /// Active pairs, sorted likewise.
    active: Vec<usize>,
    partials: Vec<Partial>,
    steps: Vec<Step>,
    /// Sum of minima over the remaining pairs at each depth, at the Lagrangian prices.
    remaining_minima: Vec<f64>,
    /// Sum of future prices from each instant, multiplied by the available memory.
    paid: Vec<f64>,
    /// Minimum memory of unfixed pairs per instant.
    leanest: Vec<u64>,
    left_out: Option<Nanos>,
    nodes: u64,
}

/// Step index for the empty selection.
const START: usize = usize::MAX;

impl<'a> Sweep<'a> {
    fn new(problem: &'a TuningProblem, relaxation: &'a Relaxation, target: u64) -> Self {
        let mut order: Vec<usize> = (0..problem.pairs()).collect();
        // Pairs that share their first instant are interchangeable; pairs that end later come
        // first.
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
            active: Vec::new(),
            partials: vec![Partial { candidates: Vec::new(), time: 0, bound: relaxation.value, step: START }],
            steps: Vec::new(),
            remaining_minima: suffix(&mut order.iter().map(|&pair| minima[pair])),
            paid: suffix(&mut relaxation.prices.iter().map(|price| price * problem.capacity as f64)),
            leanest: problem.leanest(),
            left_out: None,
            nodes: 0,
            problem,
            relaxation,
            order,
        }
    }

    /// Extends all partial selections by all candidates of the next pair.
    fn fix(&mut self, depth: usize) {
        let pair = self.order[depth];
        let span = self.problem.spans[pair];
        let costs = &self.problem.pairs[pair];
        self.active.push(pair);
        for at in span.instants() {
            self.leanest[at] -= costs.iter().map(|cost| cost.at(at, span)).min().unwrap_or(0);
        }
        let partials = std::mem::take(&mut self.partials);
        // Instants before the pair's first instant are complete and no longer contribute to the
        // bound.
        let constant = self.remaining_minima[depth + 1] - self.paid[span.first];
        for partial in partials {
            for (candidate, cost) in (0..=u8::MAX).zip(costs) {
                self.nodes += 1;
                let mut candidates = partial.candidates.clone();
                candidates.push(candidate);
                let Some(priced) = self.priced(&candidates, span.first, span) else { continue };
                let time = partial.time + cost.time.get();
                let bound = time as f64 + priced + constant;
                let step = self.steps.len();
                if self.is_useful(bound) {
                    self.steps.push(Step { before: partial.step, candidate });
                    self.partials.push(Partial { candidates, time, bound, step });
                }
            }
        }
    }

    /// Priced memory of the active pairs from instant `from`. Returns `None` if the memory limit is
    /// exceeded during `span`.
    fn priced(&self, candidates: &[u8], from: usize, span: super::problem::Span) -> Option<f64> {
        let mut priced = 0.0;
        let last = self.active.iter().map(|&pair| self.problem.spans[pair].last).max().unwrap_or(from);
        for at in from..=last {
            let mut sum = 0;
            for (&pair, &candidate) in self.active.iter().zip(candidates) {
                let pair_span = self.problem.spans[pair];
                if pair_span.instants().contains(&at) {
                    sum += self.problem.pairs[pair][usize::from(candidate)].at(at, pair_span);
                }
            }
            if span.instants().contains(&at) && sum + self.leanest[at] > self.problem.capacity {
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
        self.left_out = Some(self.left_out.map_or(bound, |known| known.min(bound)));
    }

    /// Truncates to the `width` partial selections that have the lowest bounds.
    fn narrow(&mut self, width: usize) {
        if self.partials.len() <= width {
            return;
        }
        self.partials
            .sort_by(|current, other| current.bound.total_cmp(&other.bound).then(current.step.cmp(&other.step)));
        let dropped = self.relaxation.lowered(self.partials[width].bound);
        self.leave_out(dropped);
        self.partials.truncate(width);
    }

    /// Removes pairs that end before the next forward, then deduplicates partial selections that
    /// have become equal.
    fn forget(&mut self, depth: usize) {
        let next = self.order.get(depth + 1).map_or(usize::MAX, |&pair| self.problem.spans[pair].first);
        let stays: Vec<bool> = self.active.iter().map(|&pair| self.problem.spans[pair].last >= next).collect();
        if stays.iter().all(|&stays| stays) {
            return;
        }
        let mut stay = stays.iter();
        self.active.retain(|_| *stay.next().unwrap_or(&false));
        for partial in &mut self.partials {
            let mut stay = stays.iter();
            partial.candidates.retain(|_| *stay.next().unwrap_or(&false));
        }
        self.partials.sort_by(|current, other| {
            (&current.candidates, current.time, current.step).cmp(&(&other.candidates, other.time, other.step))
        });
        self.partials.dedup_by(|later, first| later.candidates == first.candidates);
    }

    fn fastest(&self) -> Option<Vec<u8>> {
        let best = self.partials.iter().min_by_key(|partial| (partial.time, partial.step))?;
        let mut selection = vec![0; self.order.len()];
        let mut step = best.step;
        for &pair in self.order.iter().rev() {
            selection[pair] = self.steps[step].candidate;
            step = self.steps[step].before;
        }
        Some(selection)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planners::pipeweaver::layer_tuning::examples::{best, problems};

    fn enumerated(problem: &TuningProblem, gap: f64) -> (Option<Nanos>, Enumeration) {
        // A 50 % gap stops the price updates early, so that the enumeration has work left.
        let relaxation = Relaxation::tighten(problem, Vec::new(), &mut None, 0.5);
        let mut found = None;
        let enumeration = enumerate(problem, &relaxation, &mut found, gap, usize::MAX);
        (found.map(|found| found.time()), enumeration)
    }

    proptest! {
        #[test]
        fn without_a_gap_the_best_is_found_and_proven(problem in problems()) {
            prop_assume!(problem.leanest().iter().all(|&bytes| bytes <= problem.capacity));
            let (found, enumeration) = enumerated(&problem, 0.0);
            prop_assert_eq!(found, best(&problem));
            prop_assert_eq!(enumeration.bound, found);
        }

        #[test]
        fn results_are_within_the_gap(problem in problems(), percent in 1_u64..60) {
            prop_assume!(problem.leanest().iter().all(|&bytes| bytes <= problem.capacity));
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
            prop_assume!(problem.leanest().iter().all(|&bytes| bytes <= problem.capacity));
            let relaxation = Relaxation::tighten(&problem, Vec::new(), &mut None, 0.5);
            let mut found = None;
            let enumeration = enumerate(&problem, &relaxation, &mut found, 0.0, width);
            if let Some(best) = best(&problem) {
                prop_assert!(enumeration.bound.is_some_and(|bound| bound <= best));
            }
            prop_assert!(found.is_none_or(|found| problem.fits(found.selection())));
        }
    }
}
