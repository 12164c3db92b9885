//! Assignment of a global batch to a strategy (Hydraulis Sec. 6), and selection of the fastest
//! strategy (Hydraulis Sec. 4).

use super::dispatch::{Dispatch, DispatchError, DispatchSettings, PRICES, dispatch, dispatch_bound};
use super::packing::{Packing, PackingSettings, pack};
use super::scheme::SchemeCost;

/// A global batch, dispatched to pipelines and packed into microbatches.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Sequences per pipeline.
    pub dispatch: Dispatch,
    /// Microbatches per pipeline; values are sequence indices in the global batch. `None` for a
    /// pipeline without sequences.
    pub packings: Vec<Option<Packing>>,
    /// Maximum pipeline time in seconds (Hydraulis Eq. 1).
    pub seconds: f64,
}

impl Assignment {
    /// Returns the seconds per pipeline; 0 for a pipeline without sequences.
    pub fn pipeline_seconds(&self) -> impl Iterator<Item = f64> + '_ {
        self.packings.iter().map(|packing| packing.as_ref().map_or(0.0, |packing| packing.seconds))
    }
}

/// Dispatches and packs a global batch: the two-stage assignment in Hydraulis Sec. 6.
pub fn assign(
    lengths: &[u64],
    pipelines: &[SchemeCost],
    dispatching: DispatchSettings,
    packing: PackingSettings,
) -> Result<Assignment, DispatchError> {
    let dispatch = dispatch(lengths, pipelines, dispatching)?;
    let packed = dispatch.pipelines.iter().zip(pipelines).map(|(places, scheme)| {
        let pipeline_lengths: Vec<u64> = places.iter().map(|&index| lengths[index as usize]).collect();
        // `dispatch` has validated the input, so `pack` fails only for a pipeline without
        // sequences.
        let mut packed = pack(&pipeline_lengths, scheme, packing).ok()?;
        for sequence in packed.microbatches.iter_mut().flatten() {
            *sequence = places[*sequence as usize];
        }
        Some(packed)
    });
    let packings: Vec<Option<Packing>> = packed.collect();
    let seconds = packings.iter().flatten().map(|packing| packing.seconds).fold(0.0, f64::max);
    Ok(Assignment { dispatch, packings, seconds })
}

/// Result for a candidate strategy.
#[derive(Debug, Clone, PartialEq)]
pub enum CandidateResult {
    /// Assigned; predicted seconds.
    Seconds(f64),
    /// Not assigned; lower bound in seconds. The bound is not below the time of another candidate,
    /// or the step limit was reached.
    LowerBound(f64),
    /// The strategy cannot process the batch.
    Impossible(DispatchError),
}

/// Strategy chosen for a global batch.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategySelection {
    /// Index in the candidate list.
    pub strategy: u32,
    /// Assignment under this strategy.
    pub assignment: Assignment,
    /// Result per candidate.
    pub candidates: Vec<CandidateResult>,
}

/// Maximum branch-and-bound steps per candidate, for dispatch and for packing per pipeline. The
/// limit is low because the number of candidates is large.
const QUICK: u64 = 500;

/// Price rounds for a candidate's initial bound.
const FIRST_PRICES: u32 = 6;
/// Maximum greedy steps per candidate (sequences times pipelines times trials), and minimum trials.
/// With a large number of sequences per pipeline, all orders lead to similar results.
const GREEDY_STEPS: u64 = 10_000_000;
const MIN_TRIALS: u64 = 4;
/// Maximum steps over all candidates, for the greedy search and the exchanges. With a thousand
/// devices and a batch for which all bounds are similar, there are hundreds of candidates.
const SELECTION_STEPS: u64 = 100_000_000;

/// A candidate that is not assigned yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Lower bound in seconds.
    bound: f64,
    strategy_index: usize,
    /// True if the bound already uses all price rounds.
    is_tight: bool,
}

impl Open {
    /// Returns the position of the candidate with the lowest bound.
    fn first(open: &[Self]) -> Option<usize> {
        let before = |a: &Self, b: &Self| a.bound.total_cmp(&b.bound).then(a.strategy_index.cmp(&b.strategy_index));
        (0..open.len()).min_by(|&a, &b| before(&open[a], &open[b]))
    }
}

/// Returns the extra seconds outside the pipelines for a strategy index: a lower bound, or the
/// exact value if an assignment is given.
pub type ExtraTime<'a> = dyn Fn(usize, Option<&Assignment>) -> f64 + 'a;

/// Assigns a batch under the candidate strategies and returns the one with the minimum time
/// (Hydraulis Sec. 4). Returns `None` if no strategy can process the batch.
///
/// Candidates are processed in ascending order of their dispatch bounds. A candidate is skipped if
/// the bound is not below the current minimum time. The branch-and-bound limit per candidate is
/// low.
pub fn choose(
    lengths: &[u64],
    strategies: &[Vec<SchemeCost>],
    dispatching: DispatchSettings,
    packing: PackingSettings,
) -> Option<StrategySelection> {
    choose_with_extra_time(lengths, strategies, (dispatching, packing), &|_, _| 0.0, 1.0)
}

/// Same as [`choose`], plus an extra time `extra_time` per strategy, which is included in the reported
/// seconds. Also assigns all candidates whose bounds are below `slack` times the minimum time, so
/// that the caller can apply a more accurate model.
pub fn choose_with_extra_time(
    lengths: &[u64],
    strategies: &[Vec<SchemeCost>],
    (dispatching, packing): (DispatchSettings, PackingSettings),
    extra_time: &ExtraTime<'_>,
    slack: f64,
) -> Option<StrategySelection> {
    let bounded = |strategy_index: usize, rounds: u32| {
        dispatch_bound(lengths, &strategies[strategy_index], rounds)
            .map(|bound| bound + extra_time(strategy_index, None))
    };
    let mut candidates = Vec::new();
    let mut open = Vec::new();
    for strategy_index in 0..strategies.len() {
        candidates.push(match bounded(strategy_index, FIRST_PRICES) {
            Ok(bound) => {
                open.push(Open { bound, strategy_index, is_tight: false });
                CandidateResult::LowerBound(bound)
            }
            Err(error) => CandidateResult::Impossible(error),
        });
    }
    let mut best: Option<(usize, f64, Assignment)> = None;
    let mut spent = 0;
    while let Some(first) = Open::first(&open) {
        let Open { bound, strategy_index, is_tight } = open[first];
        if best.as_ref().is_some_and(|(_, best, _)| bound >= *best * slack || spent >= SELECTION_STEPS) {
            break;
        }
        if !is_tight {
            // Tight bounds are expensive, so they are computed only for the candidate that is next
            // in order.
            let bound = bounded(strategy_index, PRICES).unwrap_or(bound);
            open[first] = Open { bound, strategy_index, is_tight: true };
            candidates[strategy_index] = CandidateResult::LowerBound(bound);
            continue;
        }
        open.swap_remove(first);
        let pipelines = &strategies[strategy_index];
        let steps = (lengths.len() * pipelines.len()).max(1) as u64;
        let trials = dispatching.trials.min((GREEDY_STEPS / steps).clamp(MIN_TRIALS, u64::from(u32::MAX)) as u32);
        spent += steps * u64::from(trials);
        let dealing = DispatchSettings { nodes: dispatching.nodes.min(QUICK), trials, ..dispatching };
        let packing = PackingSettings { nodes: packing.nodes.min(QUICK), ..packing };
        let Ok(assignment) = assign(lengths, pipelines, dealing, packing) else { continue };
        spent += assignment.dispatch.looks;
        let seconds = assignment.seconds + extra_time(strategy_index, Some(&assignment));
        candidates[strategy_index] = CandidateResult::Seconds(seconds);
        if best.as_ref().is_none_or(|(_, best, _)| seconds < *best) {
            best = Some((strategy_index, seconds, assignment));
        }
    }
    best.map(|(strategy, _, assignment)| StrategySelection { strategy: strategy as u32, assignment, candidates })
}
