//! Lagrangian lower bound: each instant has a memory price, and each pair selects its cheapest
//! candidate independently.
//!
//! Let l_k >= 0 be the price at instant k, R the available memory, and m_ijk the memory of
//! candidate j of pair i at instant k. Then
//!
//! ```text
//! L(l) = sum over i of min over j of (t_ij + sum over k of l_k m_ijk) - R sum over k of l_k
//! ```
//!
//! is a lower bound on the time of all feasible selections (Lagrangian relaxation). Its maximum
//! equals the linear programming bound, because the subproblem per pair has integral solutions
//! (Geoffrion 1974). A pair is active at consecutive instants, so prefix sums over the prices make
//! an evaluation linear in the number of candidates. Prices follow the subgradient (memory minus R)
//! using the Polyak step size towards the best known time.

use std::ops::Range;

use super::greedy::Trial;
use super::problem::TuningProblem;
use planscope_core::units::Nanos;

/// Relative rounding error including a safety margin. Bounds are reduced by this error.
const ROUNDING: f64 = 1e-10;
/// Maximum price updates; more updates give almost no improvement.
const ROUNDS: u32 = 240;
/// The step size is halved after this number of updates that do not improve the bound.
const PATIENCE: u32 = 8;
/// Minimum step scale; the updates stop below it.
const FINEST: f64 = 1e-3;
/// Interval between repairs of the current selection. During the first interval, each better bound
/// also triggers a repair.
const REPAIR_EVERY: u32 = 12;

/// Prices and the resulting bound.
#[derive(Debug, Clone)]
pub(crate) struct Relaxation {
    /// Price per instant, in nanoseconds per byte.
    pub(crate) prices: Vec<f64>,
    /// L at these prices, before the rounding correction.
    pub(crate) value: f64,
    /// Sum of absolute terms in L, for the rounding correction.
    magnitude: f64,
}

impl Relaxation {
    /// Raises the bound and repairs intermediate selections until the gap is at most `gap` or the
    /// bound no longer improves. `repaired` is the selection from which `best` was repaired.
    pub(crate) fn tighten<'a>(
        problem: &'a TuningProblem,
        mut repaired: Vec<u8>,
        best: &mut Option<Trial<'a>>,
        gap: f64,
    ) -> Self {
        let columns = Columns::new(problem);
        let mut prices = vec![0.0; problem.instants.len()];
        let mut selection = vec![0; problem.pairs()];
        let mut found = Self { value: f64::NEG_INFINITY, magnitude: 0.0, prices: prices.clone() };
        let (mut scale, mut waited) = (1.0, 0);
        for round in 0..ROUNDS {
            let (value, magnitude) = columns.evaluate(&prices, &mut selection);
            let better = value > found.value + magnitude * ROUNDING;
            if better {
                found = Self { prices: prices.clone(), value, magnitude };
                waited = 0;
            } else {
                waited += 1;
                if waited == PATIENCE {
                    scale /= 2.0;
                    waited = 0;
                }
            }
            if (round % REPAIR_EVERY == 0 || (better && round < REPAIR_EVERY)) && selection != repaired {
                repaired.clone_from(&selection);
                let mut trial = Trial::new(problem, selection.clone());
                if trial.repair_and_improve() && best.as_ref().is_none_or(|best| trial.time() < best.time()) {
                    *best = Some(trial);
                }
            }
            let target = best.as_ref().map_or(columns.slowest, |best| best.time().get() as f64);
            let close = best.as_ref().is_some_and(|best| found.bound().get() >= cutoff(best.time(), gap));
            if close || scale < FINEST || value > target {
                break;
            }
            if !columns.step(&mut prices, &selection, scale * (target - value)) {
                // The selection is feasible and satisfies complementary slackness, so it is
                // optimal.
                break;
            }
        }
        found
    }

    /// Lower bound on the time of feasible selections.
    pub(crate) fn bound(&self) -> Nanos {
        self.lowered(self.value)
    }

    /// Applies the rounding correction and rounds up, because times are integers.
    pub(crate) fn lowered(&self, value: f64) -> Nanos {
        Nanos::new((value - self.magnitude * ROUNDING).ceil().max(0.0) as u64)
    }

    /// Minimum priced cost per pair.
    pub(crate) fn minima(&self, problem: &TuningProblem) -> Vec<f64> {
        let prefix = prefix(&self.prices);
        let columns = Columns::new(problem);
        let minimum = |pair: &Column| {
            let costs = &columns.costs[pair.costs.clone()];
            costs.iter().map(|cost| pair.priced(cost, &self.prices, &prefix)).fold(f64::INFINITY, f64::min)
        };
        columns.pairs.iter().map(minimum).collect()
    }
}

/// Minimum bound that proves `gap` for `time`.
pub(crate) fn cutoff(time: Nanos, gap: f64) -> u64 {
    time.get() - (time.get() as f64 * gap) as u64
}

/// Problem data as floating-point columns.
struct Columns {
    /// Time, memory and transient memory per candidate, grouped by pair.
    costs: Vec<[f64; 3]>,
    pairs: Vec<Column>,
    capacity: f64,
    /// Sum of the slowest candidates, an upper bound on the time.
    slowest: f64,
}

struct Column {
    /// Index range of the pair's candidates.
    costs: Range<usize>,
    first: usize,
    last: usize,
    releases: bool,
}

impl Column {
    fn priced(&self, [time, memory, transient]: &[f64; 3], prices: &[f64], prefix: &[f64]) -> f64 {
        let stored = memory * (prefix[self.last + 1] - prefix[self.first]);
        let at_release = if self.releases { transient * prices[self.last] } else { 0.0 };
        time + stored + at_release
    }
}

/// Prefix sums of the prices.
fn prefix(prices: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut prefix = vec![0.0];
    for price in prices {
        sum += price;
        prefix.push(sum);
    }
    prefix
}

impl Columns {
    fn new(problem: &TuningProblem) -> Self {
        let mut costs = Vec::with_capacity(problem.pairs.iter().map(Vec::len).sum());
        let mut pairs = Vec::with_capacity(problem.pairs());
        let mut slowest = 0.0;
        for (candidates, span) in problem.pairs.iter().zip(&problem.spans) {
            let first = costs.len();
            costs.extend(
                candidates
                    .iter()
                    .map(|cost| [cost.time.get() as f64, cost.memory.get() as f64, cost.transient.get() as f64]),
            );
            slowest += costs[first..].iter().map(|cost| cost[0]).fold(0.0, f64::max);
            pairs.push(Column {
                costs: first..costs.len(),
                first: span.first,
                last: span.last,
                releases: span.releases,
            });
        }
        Self { costs, pairs, capacity: problem.capacity as f64, slowest }
    }

    /// Returns L and the sum of its absolute terms. Writes the cheapest candidate per pair to
    /// `choice`.
    fn evaluate(&self, prices: &[f64], selection: &mut [u8]) -> (f64, f64) {
        let prefix = prefix(prices);
        let mut sum = 0.0;
        for (pair, selected) in self.pairs.iter().zip(selection) {
            let mut min_price = f64::INFINITY;
            for (candidate, cost) in (0..=u8::MAX).zip(&self.costs[pair.costs.clone()]) {
                let priced = pair.priced(cost, prices, &prefix);
                if priced < min_price {
                    min_price = priced;
                    *selected = candidate;
                }
            }
            sum += min_price;
        }
        let paid = self.capacity * prefix[prices.len()];
        (sum - paid, sum + paid)
    }

    /// Raises prices at instants that exceed the available memory and lowers the others. Returns
    /// false if no price changes.
    fn step(&self, prices: &mut [f64], selection: &[u8], distance: f64) -> bool {
        let mut slope = vec![0.0; prices.len() + 1];
        for (pair, &selected) in self.pairs.iter().zip(selection) {
            let [_, memory, transient] = self.costs[pair.costs.start + usize::from(selected)];
            slope[pair.first] += memory;
            slope[pair.last + 1] -= memory;
            if pair.releases {
                slope[pair.last] += transient;
                slope[pair.last + 1] -= transient;
            }
        }
        let (mut usage, mut norm) = (0.0, 0.0);
        for (slope, price) in slope.iter_mut().zip(prices.iter()) {
            usage += *slope;
            *slope = usage - self.capacity;
            if *price <= 0.0 && *slope < 0.0 {
                *slope = 0.0;
            }
            norm += *slope * *slope;
        }
        if norm <= 0.0 {
            return false;
        }
        for (price, slope) in prices.iter_mut().zip(&slope) {
            *price = (*price + distance * slope / norm).max(0.0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planners::pipeweaver::layer_tuning::examples::{best, cost, problem, problems};

    /// Two active pairs with candidates (10, 10) or (14, 2), and limit 12. The optimum changes a
    /// single pair: 24. The fractional solution must free 8 bytes at 4 / 8 ns per byte: 20 + 4 ns.
    /// The bound is tight.
    #[test]
    fn the_bound_matches_the_linear_relaxation() {
        let pairs = vec![vec![cost(10, 10, 0), cost(14, 2, 0)]; 2];
        for (limit, bound) in [(20, 20), (16, 22), (12, 24), (8, 26), (4, 28)] {
            let problem = problem(pairs.clone(), "F0 F1 B0 B1", limit);
            let relaxation = Relaxation::tighten(&problem, Vec::new(), &mut None, 0.0);
            assert_eq!(relaxation.bound().get(), bound, "{limit}");
        }
    }

    proptest! {
        #[test]
        fn no_selection_is_better_than_the_bound(problem in problems()) {
            let mut found = None;
            let relaxation = Relaxation::tighten(&problem, Vec::new(), &mut found, 0.0);
            if let Some(best) = best(&problem) {
                prop_assert!(relaxation.bound() <= best, "{:?} {best:?}", relaxation.bound());
            }
            if let Some(found) = found {
                prop_assert!(problem.fits(found.selection()));
            }
        }
    }
}
