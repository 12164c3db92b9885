//! A lower bound: memory gets a price at every instant, and each pair then chooses by itself.
//!
//! For prices l_k >= 0 of the instants k, with room R and what candidate j of pair i holds there, m_ijk,
//!
//!   L(l) = sum over i of min over j of (t_ij + sum over k of l_k m_ijk) - R sum over k of l_k
//!
//! is no more than the time of any choice that fits (Lagrangian relaxation; its maximum is the bound of the linear
//! relaxation, since each pair's own problem is solved in whole numbers anyway: Geoffrion 1974). A pair is held over
//! consecutive instants, so prefix sums of the prices make one evaluation linear in the number of candidates.
//! Prices follow the subgradient, memory held minus room, with Polyak's step towards the best known time.

use std::ops::Range;

use super::greedy::Trial;
use super::problem::TuningProblem;
use crate::units::Nanos;

/// Relative error of the sums below, with room: a bound is lowered by it before it counts.
const ROUNDING: f64 = 1e-10;
/// Most price changes; further ones gain next to nothing.
const ROUNDS: u32 = 240;
/// Changes without a better bound after which the step is halved.
const PATIENCE: u32 = 8;
/// Step at which prices no longer move.
const FINEST: f64 = 1e-3;
/// A choice is made to fit every so many changes, and after each better bound of the first ones.
const REPAIR_EVERY: u32 = 12;

/// Prices and what they prove.
#[derive(Debug, Clone)]
pub(super) struct Relaxation {
    /// Per instant, in nanoseconds per byte.
    pub(super) prices: Vec<f64>,
    /// L at these prices, not lowered for rounding.
    pub(super) value: f64,
    /// Magnitude of the sums that it is the difference of.
    magnitude: f64,
}

impl Relaxation {
    /// Raises the bound, and makes the choices met on the way fit, until both are within `gap` of each other or the
    /// bound no longer rises. `repaired` is the choice that `best` was made from.
    pub(super) fn tighten<'a>(
        problem: &'a TuningProblem,
        mut repaired: Vec<u8>,
        best: &mut Option<Trial<'a>>,
        gap: f64,
    ) -> Self {
        let columns = Columns::of(problem);
        let mut prices = vec![0.0; problem.instants.len()];
        let mut choice = vec![0; problem.pairs()];
        let mut found = Self { value: f64::NEG_INFINITY, magnitude: 0.0, prices: prices.clone() };
        let (mut scale, mut waited) = (1.0, 0);
        for round in 0..ROUNDS {
            let (value, magnitude) = columns.evaluate(&prices, &mut choice);
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
            if (round % REPAIR_EVERY == 0 || (better && round < REPAIR_EVERY)) && choice != repaired {
                repaired.clone_from(&choice);
                let mut trial = Trial::of(problem, choice.clone());
                if trial.repair_and_improve() && best.as_ref().is_none_or(|best| trial.time() < best.time()) {
                    *best = Some(trial);
                }
            }
            let target = best.as_ref().map_or(columns.slowest, |best| best.time().get() as f64);
            let close = best.as_ref().is_some_and(|best| found.bound().get() >= cutoff(best.time(), gap));
            if close || scale < FINEST || value > target {
                break;
            }
            if !columns.step(&mut prices, &choice, scale * (target - value)) {
                // The choice fits and costs nothing that a price could shift: it is the best.
                break;
            }
        }
        found
    }

    /// No choice that fits takes less.
    pub(super) fn bound(&self) -> Nanos {
        self.lowered(self.value)
    }

    /// What a bound made of the same terms proves: times are whole, so it may be rounded up.
    pub(super) fn lowered(&self, value: f64) -> Nanos {
        Nanos::new((value - self.magnitude * ROUNDING).ceil().max(0.0) as u64)
    }

    /// What the cheapest candidate of each pair costs at these prices.
    pub(super) fn minima(&self, problem: &TuningProblem) -> Vec<f64> {
        let prefix = prefix(&self.prices);
        let columns = Columns::of(problem);
        let least = |pair: &Column| {
            let costs = &columns.costs[pair.costs.clone()];
            costs.iter().map(|cost| pair.priced(cost, &self.prices, &prefix)).fold(f64::INFINITY, f64::min)
        };
        columns.pairs.iter().map(least).collect()
    }
}

/// Least bound at which a time is proven within `gap`.
pub(super) fn cutoff(time: Nanos, gap: f64) -> u64 {
    time.get() - (time.get() as f64 * gap) as u64
}

/// The problem in the numbers of the relaxation.
struct Columns {
    /// Time, memory and transient memory of each candidate, pair after pair.
    costs: Vec<[f64; 3]>,
    pairs: Vec<Column>,
    room: f64,
    /// Sum of the slowest candidates: no choice takes longer.
    slowest: f64,
}

struct Column {
    /// Where its candidates stand.
    costs: Range<usize>,
    first: usize,
    last: usize,
    releases: bool,
}

impl Column {
    fn priced(&self, [time, memory, transient]: &[f64; 3], prices: &[f64], prefix: &[f64]) -> f64 {
        let held = memory * (prefix[self.last + 1] - prefix[self.first]);
        let at_release = if self.releases { transient * prices[self.last] } else { 0.0 };
        time + held + at_release
    }
}

/// Sums of the prices before each instant.
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
    fn of(problem: &TuningProblem) -> Self {
        let mut costs = Vec::with_capacity(problem.pairs.iter().map(Vec::len).sum());
        let mut pairs = Vec::with_capacity(problem.pairs());
        let mut slowest = 0.0;
        for (own, span) in problem.pairs.iter().zip(&problem.spans) {
            let first = costs.len();
            costs.extend(
                own.iter().map(|cost| [cost.time.get() as f64, cost.memory.get() as f64, cost.transient.get() as f64]),
            );
            slowest += costs[first..].iter().map(|cost| cost[0]).fold(0.0, f64::max);
            pairs.push(Column {
                costs: first..costs.len(),
                first: span.first,
                last: span.last,
                releases: span.releases,
            });
        }
        Self { costs, pairs, room: problem.room as f64, slowest }
    }

    /// L and the sum of the magnitudes of its terms; each pair's best candidate goes into `choice`.
    fn evaluate(&self, prices: &[f64], choice: &mut [u8]) -> (f64, f64) {
        let prefix = prefix(prices);
        let mut sum = 0.0;
        for (pair, chosen) in self.pairs.iter().zip(choice) {
            let mut least = f64::INFINITY;
            for (candidate, cost) in (0..=u8::MAX).zip(&self.costs[pair.costs.clone()]) {
                let priced = pair.priced(cost, prices, &prefix);
                if priced < least {
                    least = priced;
                    *chosen = candidate;
                }
            }
            sum += least;
        }
        let paid = self.room * prefix[prices.len()];
        (sum - paid, sum + paid)
    }

    /// Prices rise where the choice holds more than the room and fall where it holds less; false where none moves.
    fn step(&self, prices: &mut [f64], choice: &[u8], distance: f64) -> bool {
        let mut slope = vec![0.0; prices.len() + 1];
        for (pair, &chosen) in self.pairs.iter().zip(choice) {
            let [_, memory, transient] = self.costs[pair.costs.start + usize::from(chosen)];
            slope[pair.first] += memory;
            slope[pair.last + 1] -= memory;
            if pair.releases {
                slope[pair.last] += transient;
                slope[pair.last + 1] -= transient;
            }
        }
        let (mut held, mut norm) = (0.0, 0.0);
        for (slope, price) in slope.iter_mut().zip(prices.iter()) {
            held += *slope;
            *slope = held - self.room;
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
    use crate::tuning::examples::{best, cost, problem, problems};

    /// Two pairs held together, each (10, 10) or (14, 2), and room for 12: one must change, which costs 24. In fractions
    /// both move half way and beyond: 8 bytes too many at 4 / 8 ns each are 4 ns more than 20. The bound is tight.
    #[test]
    fn the_bound_is_that_of_the_linear_relaxation() {
        let pairs = vec![vec![cost(10, 10, 0), cost(14, 2, 0)]; 2];
        for (room, bound) in [(20, 20), (16, 22), (12, 24), (8, 26), (4, 28)] {
            let problem = problem(pairs.clone(), "F0 F1 B0 B1", room);
            let relaxation = Relaxation::tighten(&problem, Vec::new(), &mut None, 0.0);
            assert_eq!(relaxation.bound().get(), bound, "{room}");
        }
    }

    proptest! {
        #[test]
        fn no_choice_is_better_than_the_bound(problem in problems()) {
            let mut found = None;
            let relaxation = Relaxation::tighten(&problem, Vec::new(), &mut found, 0.0);
            if let Some(best) = best(&problem) {
                prop_assert!(relaxation.bound() <= best, "{:?} {best:?}", relaxation.bound());
            }
            if let Some(found) = found {
                prop_assert!(problem.fits(found.choice()));
            }
        }
    }
}
