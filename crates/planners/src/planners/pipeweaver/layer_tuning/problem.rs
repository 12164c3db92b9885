//! Problem definition: stage pairs on a rank, their action order, and the memory limit (the ILP in
//! PipeWeaver Sec. 6.3).

use std::ops::Range;

use planscope_core::units::{Bytes, Nanos};

/// Cost of a candidate for a stage pair (a forward and its backward).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PairCost {
    /// Forward plus backward time.
    pub time: Nanos,
    /// Bytes stored from the start of the forward to the end of the backward.
    pub memory: Bytes,
    /// Additional bytes during the backward, for recomputed or uploaded tensors.
    pub transient: Bytes,
}

impl From<&super::Candidate> for PairCost {
    fn from(candidate: &super::Candidate) -> Self {
        Self { time: candidate.time, memory: candidate.memory, transient: Bytes::ZERO }
    }
}

/// A memory event on the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Forward: allocates the pair's memory.
    Hold(u32),
    /// Backward: adds the pair's transient memory while it runs, then frees both.
    Release(u32),
}

/// Stage pairs on a rank in action order. The solver selects a candidate per pair.
///
/// A candidate changes the duration of a pair, not the order. Therefore memory can exceed the limit
/// only at local peaks: at a backward that follows a forward, and at a backward that has transient
/// memory. Each peak is a [`Moment`]; memory at any other time is at most the memory at some peak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuningProblem {
    pub(crate) pairs: Vec<Vec<PairCost>>,
    pub(crate) spans: Vec<Span>,
    /// Last instant at which this pair or an earlier pair is active, per pair.
    latest_before: Vec<usize>,
    /// First instant at which this pair or a later pair is active, per pair.
    earliest_from: Vec<usize>,
    pub(crate) instants: Vec<Moment>,
    /// Memory limit minus base memory, or 0 if the base exceeds the limit.
    pub(crate) capacity: u64,
    pub(crate) base: Bytes,
    pub(crate) limit: Bytes,
}

/// A local memory peak: the backward of `releasing` runs while other pairs are active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Position in the action order.
    pub event: usize,
    /// Pair whose backward runs.
    pub releasing: u32,
}

/// Instants at which a pair is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// True if the last instant is the pair's own backward.
    pub(crate) releases: bool,
}

impl Span {
    pub(crate) fn instants(self) -> std::ops::RangeInclusive<usize> {
        self.first..=self.last
    }
}

impl PairCost {
    /// Memory at an instant within the span.
    pub(crate) fn at(&self, instant: usize, span: Span) -> u64 {
        if span.releases && instant == span.last { self.at_release() } else { self.memory.get() }
    }

    pub(crate) fn at_release(&self) -> u64 {
        self.memory.get() + self.transient.get()
    }
}

/// Reasons for an invalid problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// A pair has no candidates.
    #[error("pair {pair} has no candidate")]
    NoCandidate {
        /// Pair index.
        pair: usize,
    },
    /// A pair has more candidates than a `u8` index can address.
    #[error("pair {pair} has {candidates} candidates, 256 are the most")]
    TooManyCandidates {
        /// Pair index.
        pair: usize,
        /// Number of candidates.
        candidates: usize,
    },
    /// The order contains an unknown pair.
    #[error("action {event} of the order is of pair {pair}, of {pairs}")]
    UnknownPair {
        /// Position in the order.
        event: usize,
        /// Pair index.
        pair: u32,
        /// Number of pairs.
        pairs: usize,
    },
    /// A forward or a backward occurs twice.
    #[error("action {event} of the order is the second {kind} of pair {pair}")]
    Twice {
        /// Position in the order.
        event: usize,
        /// Pair index.
        pair: u32,
        /// "forward" or "backward".
        kind: &'static str,
    },
    /// A backward precedes its forward.
    #[error("action {event} of the order is the backward of pair {pair}, which comes before its forward")]
    BackwardFirst {
        /// Position in the order.
        event: usize,
        /// Pair index.
        pair: u32,
    },
    /// A forward or a backward does not occur.
    #[error("the order has no {kind} of pair {pair}")]
    Missing {
        /// Pair index.
        pair: usize,
        /// "forward" or "backward".
        kind: &'static str,
    },
    /// Sums overflow.
    #[error("the largest candidates of all pairs add up to more than 2^63 of bytes or of nanoseconds")]
    TooLarge,
}

impl TuningProblem {
    /// Creates a problem. Each pair needs candidates, exactly one forward in `order`, and a later
    /// backward.
    ///
    /// `base` is the static memory (weights, gradients, optimizer state), `limit` the memory limit.
    pub fn new(pairs: Vec<Vec<PairCost>>, order: &[Event], base: Bytes, limit: Bytes) -> Result<Self, ProblemError> {
        for (pair, costs) in pairs.iter().enumerate() {
            if costs.is_empty() {
                return Err(ProblemError::NoCandidate { pair });
            }
            if costs.len() > 256 {
                return Err(ProblemError::TooManyCandidates { pair, candidates: costs.len() });
            }
        }
        bounded(&pairs, base)?;
        let (spans, instants) = instants(&pairs, order)?;
        let running = |next: fn(usize, usize) -> usize, values: &mut dyn Iterator<Item = usize>| -> Vec<usize> {
            let mut sum = None;
            values.map(|value| *sum.insert(sum.map_or(value, |sum| next(sum, value)))).collect()
        };
        let latest_before = running(usize::max, &mut spans.iter().map(|span| span.last));
        let mut earliest_from = running(usize::min, &mut spans.iter().rev().map(|span| span.first));
        earliest_from.reverse();
        let capacity = limit.saturating_sub(base).get();
        Ok(Self { pairs, spans, latest_before, earliest_from, instants, capacity, base, limit })
    }

    /// Returns the number of pairs.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the total time for a selection (one candidate index per pair).
    pub fn time(&self, selection: &[u8]) -> Nanos {
        self.selected_costs(selection).map(|cost| cost.time).sum()
    }

    /// Returns the peak memory for a selection, including the base, and its first instant. Without
    /// pairs the instant is `None`.
    pub fn peak(&self, selection: &[u8]) -> (Bytes, Option<Moment>) {
        let usage = self.usage(selection);
        let peak = usage.iter().copied().max().unwrap_or(0);
        let first = usage.iter().position(|&bytes| bytes == peak).map(|at| self.instants[at]);
        (self.with_base(peak), first)
    }

    /// Returns memory in bytes per instant, excluding the base.
    pub(crate) fn usage(&self, selection: &[u8]) -> Vec<u64> {
        self.sums(self.selected_costs(selection).map(|cost| (cost.memory.get(), cost.at_release())))
    }

    /// Returns whether a selection respects the limit.
    pub fn fits(&self, selection: &[u8]) -> bool {
        self.peak(selection).0 <= self.limit
    }

    /// Returns the minimum memory per instant, excluding the base. The minimum is taken per pair
    /// and instant, so it is a lower bound.
    pub(crate) fn leanest(&self) -> Vec<u64> {
        let minimum = |costs: &Vec<PairCost>, value: fn(&PairCost) -> u64| costs.iter().map(value).min().unwrap_or(0);
        self.sums(
            self.pairs
                .iter()
                .map(|costs| (minimum(costs, |cost| cost.memory.get()), minimum(costs, PairCost::at_release))),
        )
    }

    /// Total memory per instant, from pair memory before and during the backward.
    fn sums(&self, amounts: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
        // Memory added and freed relative to the previous instant.
        let mut changes = vec![(0, 0); self.instants.len() + 1];
        for ((before, at_release), span) in amounts.zip(&self.spans) {
            changes[span.first].0 += before;
            changes[span.last + 1].1 += if span.releases { at_release } else { before };
            if span.releases {
                changes[span.last].0 += at_release;
                changes[span.last].1 += before;
            }
        }
        let mut sum = 0;
        let each = changes[..self.instants.len()].iter().map(|(more, less)| {
            sum = sum + more - less;
            sum
        });
        each.collect()
    }

    /// Returns a range that contains all pairs active at an instant. The range is narrow if pair
    /// indices follow forward order.
    pub(crate) fn about(&self, instant: usize) -> Range<usize> {
        let first = self.latest_before.partition_point(|&last| last < instant);
        let end = self.earliest_from.partition_point(|&first| first <= instant);
        first..end.max(first)
    }

    /// Adds the base memory.
    pub(crate) fn with_base(&self, bytes: u64) -> Bytes {
        self.base + Bytes::new(bytes)
    }

    fn selected_costs<'a>(&'a self, selection: &'a [u8]) -> impl Iterator<Item = &'a PairCost> {
        self.pairs.iter().zip(selection).map(|(costs, &candidate)| &costs[usize::from(candidate)])
    }
}

/// Checks that the total is below 2^63, so that partial sums cannot overflow.
fn bounded(pairs: &[Vec<PairCost>], base: Bytes) -> Result<(), ProblemError> {
    let max_sum = |value: fn(&PairCost) -> u128| -> u128 {
        pairs.iter().map(|costs| costs.iter().map(value).max().unwrap_or(0)).sum()
    };
    let memory = max_sum(|cost| u128::from(cost.memory.get()) + u128::from(cost.transient.get()));
    let time = max_sum(|cost| u128::from(cost.time.get()));
    let limit = u128::from(u64::MAX / 2);
    if memory + u128::from(base.get()) > limit || time > limit { Err(ProblemError::TooLarge) } else { Ok(()) }
}

fn instants(pairs: &[Vec<PairCost>], order: &[Event]) -> Result<(Vec<Span>, Vec<Moment>), ProblemError> {
    #[derive(Clone, Copy)]
    enum State {
        Before,
        Stored(usize),
        Done(Span),
    }
    let mut states = vec![State::Before; pairs.len()];
    let mut instants = Vec::new();
    let mut risen = false;
    for (event, &action) in order.iter().enumerate() {
        let (Event::Hold(pair) | Event::Release(pair)) = action;
        let unknown = ProblemError::UnknownPair { event, pair, pairs: pairs.len() };
        let state = states.get_mut(pair as usize).ok_or(unknown)?;
        *state = match (action, *state) {
            (Event::Hold(_), State::Before) => {
                risen = true;
                State::Stored(instants.len())
            }
            (Event::Hold(_), _) => return Err(ProblemError::Twice { event, pair, kind: "forward" }),
            (Event::Release(_), State::Before) => return Err(ProblemError::BackwardFirst { event, pair }),
            (Event::Release(_), State::Done(_)) => return Err(ProblemError::Twice { event, pair, kind: "backward" }),
            (Event::Release(_), State::Stored(first)) => {
                let transient = pairs[pair as usize].iter().any(|cost| cost.transient > Bytes::ZERO);
                let releases = risen || transient;
                if releases {
                    instants.push(Moment { event, releasing: pair });
                }
                risen = false;
                State::Done(Span { first, last: instants.len() - 1, releases })
            }
        };
    }
    let done = states.into_iter().enumerate().map(|(pair, state)| match state {
        State::Done(span) => Ok(span),
        State::Before => Err(ProblemError::Missing { pair, kind: "forward" }),
        State::Stored(_) => Err(ProblemError::Missing { pair, kind: "backward" }),
    });
    Ok((done.collect::<Result<_, _>>()?, instants))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planners::pipeweaver::layer_tuning::examples::{choices, cost, order, problems};

    fn events(problem: &TuningProblem) -> Vec<usize> {
        problem.instants.iter().map(|instant| instant.event).collect()
    }

    #[test]
    fn memory_is_looked_at_where_it_peaks() {
        let plain = || vec![vec![cost(1, 5, 0)]; 3];
        let mut transient = plain();
        transient[1] = vec![cost(1, 5, 0), cost(2, 1, 3)];
        for (pairs, actions, expected) in [
            (plain(), "F0 F1 F2 B2 B1 B0", vec![3]),
            (plain(), "F0 F1 B0 F2 B1 B2", vec![2, 4]),
            // A backward after a backward is a peak only if it has transient memory.
            (transient, "F0 F1 F2 B2 B1 B0", vec![3, 4]),
        ] {
            let problem = TuningProblem::new(pairs, &order(actions), Bytes::ZERO, Bytes::ZERO).unwrap();
            assert_eq!(events(&problem), expected, "{actions}");
        }
    }

    proptest! {
        #[test]
        fn sums_and_ranges_match_a_full_scan(problem in problems()) {
            let problem = &problem;
            let active = |at: usize| (0..problem.pairs()).filter(move |&pair| problem.spans[pair].instants().contains(&at));
            for selection in choices(problem).into_iter().step_by(7) {
                let selected = |pair: usize| &problem.pairs[pair][usize::from(selection[pair])];
                let usage = (0..problem.instants.len())
                    .map(|at| active(at).map(|pair| selected(pair).at(at, problem.spans[pair])).sum::<u64>());
                prop_assert_eq!(problem.usage(&selection), usage.collect::<Vec<_>>());
            }
            for at in 0..problem.instants.len() {
                let about = problem.about(at);
                prop_assert!(active(at).all(|pair| about.contains(&pair)), "{} {:?}", at, about);
            }
        }
    }

    /// F0 F1 B0 F2 B1 B2, 5 bytes per pair, 2 transient bytes, base 7. At B0 pairs 0 and 1 are
    /// active: 7 + 5 + 5 + 2.
    #[test]
    fn the_peak_holds_the_base_the_pairs_and_the_transient() {
        let pairs = vec![vec![cost(1, 5, 2)]; 3];
        let problem = TuningProblem::new(pairs, &order("F0 F1 B0 F2 B1 B2"), Bytes::new(7), Bytes::ZERO).unwrap();
        assert_eq!(problem.usage(&[0, 0, 0]), [12, 12, 7]);
        assert_eq!(problem.peak(&[0, 0, 0]), (Bytes::new(19), Some(Moment { event: 2, releasing: 0 })));
    }

    #[test]
    fn orders_that_make_no_sense_are_named() {
        let pairs = || vec![vec![cost(1, 1, 0)]; 2];
        for (pairs, actions, message) in [
            (pairs(), "F0 F1 B0", "the order has no backward of pair 1"),
            (pairs(), "F0 B0", "the order has no forward of pair 1"),
            (pairs(), "F0 F2 B0", "action 1 of the order is of pair 2, of 2"),
            (pairs(), "F0 F1 F0", "action 2 of the order is the second forward of pair 0"),
            (pairs(), "F0 B0 B0", "action 2 of the order is the second backward of pair 0"),
            (pairs(), "F0 B1", "action 1 of the order is the backward of pair 1, which comes before its forward"),
            (vec![Vec::new()], "F0 B0", "pair 0 has no candidate"),
            (vec![vec![cost(1, 1, 0); 257]], "F0 B0", "pair 0 has 257 candidates, 256 are the most"),
            (vec![vec![cost(u64::MAX, 1, 0)]], "F0 B0", "add up to more than 2^63"),
        ] {
            let error = TuningProblem::new(pairs, &order(actions), Bytes::ZERO, Bytes::ZERO).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
