//! One global batch under a strategy, and the strategy that ends first (Hydraulis, sections 4 and 6).

use super::dispatch::{Dispatch, DispatchError, DispatchSettings, PRICES, dispatch, dispatch_bound};
use super::packing::{Packing, PackingSettings, pack};
use super::scheme::SchemeCost;

/// A global batch dealt to pipelines and packed in each.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Who trains what.
    pub dispatch: Dispatch,
    /// Of every pipeline its microbatches, with places in the global batch; none for a pipeline without sequences.
    pub packings: Vec<Option<Packing>>,
    /// When the slowest pipeline is done, by Eq. 1.
    pub seconds: f64,
}

impl Assignment {
    /// Seconds of every pipeline, 0 for one without sequences.
    pub fn pipeline_seconds(&self) -> impl Iterator<Item = f64> + '_ {
        self.packings.iter().map(|packing| packing.as_ref().map_or(0.0, |packing| packing.seconds))
    }
}

/// Deals and packs: both stages of the assignment.
pub fn assign(
    lengths: &[u64],
    pipelines: &[SchemeCost],
    dispatching: DispatchSettings,
    packing: PackingSettings,
) -> Result<Assignment, DispatchError> {
    let dispatch = dispatch(lengths, pipelines, dispatching)?;
    let packed = dispatch.pipelines.iter().zip(pipelines).map(|(places, scheme)| {
        let own: Vec<u64> = places.iter().map(|&place| lengths[place as usize]).collect();
        // The dispatch saw to it that everything is legal; what is left is a pipeline without sequences.
        let mut packed = pack(&own, scheme, packing).ok()?;
        for place in packed.microbatches.iter_mut().flatten() {
            *place = places[*place as usize];
        }
        Some(packed)
    });
    let packings: Vec<Option<Packing>> = packed.collect();
    let seconds = packings.iter().flatten().map(|packing| packing.seconds).fold(0.0, f64::max);
    Ok(Assignment { dispatch, packings, seconds })
}

/// What became of a candidate strategy.
#[derive(Debug, Clone, PartialEq)]
pub enum Considered {
    /// It was assigned and would take these seconds.
    Seconds(f64),
    /// It was not assigned, because it takes at least these seconds: another takes no more, or others had less and took the effort.
    AtLeast(f64),
    /// It cannot take the batch.
    Impossible(DispatchError),
}

/// The strategy chosen for a global batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Its place among the candidates.
    pub strategy: u32,
    /// What it does.
    pub assignment: Assignment,
    /// Of every candidate what became of it.
    pub candidates: Vec<Considered>,
}

/// Steps of branch and bound that a candidate gets, for each pipeline: candidates are many.
const QUICK: u64 = 500;

/// Rounds of prices for the first bound of a candidate.
const FIRST_PRICES: u32 = 6;
/// Steps of the greedy that a candidate gets over all its trials, sequences times pipelines each, and its least trials: with many
/// sequences for every pipeline, orders differ by little.
const GREEDY_STEPS: u64 = 10_000_000;
const LEAST_TRIALS: u64 = 4;
/// The same over all candidates, with what their moves and exchanges look at: on a thousand devices, with a batch whose bounds are all alike, there are hundreds.
const CHOICE_STEPS: u64 = 100_000_000;

/// A candidate that may yet be assigned.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// It takes at least these seconds.
    bound: f64,
    place: usize,
    /// Whether more rounds of prices would not raise the bound.
    is_tight: bool,
}

impl Open {
    /// Where the candidate with the least bound stands.
    fn first(open: &[Self]) -> Option<usize> {
        let before = |a: &Self, b: &Self| a.bound.total_cmp(&b.bound).then(a.place.cmp(&b.place));
        (0..open.len()).min_by(|&a, &b| before(&open[a], &open[b]))
    }
}

/// What a strategy, by its place, takes beside its pipelines: at least so many seconds, or of an assignment exactly so many.
pub type Beside<'a> = dyn Fn(usize, Option<&Assignment>) -> f64 + 'a;

/// Assigns a batch under every candidate and takes the one that ends first; none where none can take the batch.
///
/// Candidates are assigned in the order of their dispatch bounds, which spares those whose bound is no better than what was found;
/// branch and bound takes few steps for each.
pub fn choose(
    lengths: &[u64],
    strategies: &[Vec<SchemeCost>],
    dispatching: DispatchSettings,
    packing: PackingSettings,
) -> Option<Choice> {
    choose_beside(lengths, strategies, (dispatching, packing), &|_, _| 0.0, 1.0)
}

/// The same where strategies also differ in what they take `beside` their pipelines, which the seconds of candidates then hold too;
/// those whose bounds are below `slack` times the best are assigned as well, for a closer look than an estimate.
pub fn choose_beside(
    lengths: &[u64],
    strategies: &[Vec<SchemeCost>],
    (dispatching, packing): (DispatchSettings, PackingSettings),
    beside: &Beside<'_>,
    slack: f64,
) -> Option<Choice> {
    let bounded = |place: usize, rounds: u32| {
        dispatch_bound(lengths, &strategies[place], rounds).map(|bound| bound + beside(place, None))
    };
    let mut candidates = Vec::new();
    let mut open = Vec::new();
    for place in 0..strategies.len() {
        candidates.push(match bounded(place, FIRST_PRICES) {
            Ok(bound) => {
                open.push(Open { bound, place, is_tight: false });
                Considered::AtLeast(bound)
            }
            Err(error) => Considered::Impossible(error),
        });
    }
    let mut best: Option<(usize, f64, Assignment)> = None;
    let mut spent = 0;
    while let Some(first) = Open::first(&open) {
        let Open { bound, place, is_tight } = open[first];
        if best.as_ref().is_some_and(|(_, best, _)| bound >= *best * slack || spent >= CHOICE_STEPS) {
            break;
        }
        if !is_tight {
            // Tight bounds take time; only those are made that decide which candidate is next.
            let bound = bounded(place, PRICES).unwrap_or(bound);
            open[first] = Open { bound, place, is_tight: true };
            candidates[place] = Considered::AtLeast(bound);
            continue;
        }
        open.swap_remove(first);
        let pipelines = &strategies[place];
        let steps = (lengths.len() * pipelines.len()).max(1) as u64;
        let trials = dispatching.trials.min((GREEDY_STEPS / steps).clamp(LEAST_TRIALS, u64::from(u32::MAX)) as u32);
        spent += steps * u64::from(trials);
        let dealing = DispatchSettings { nodes: dispatching.nodes.min(QUICK), trials, ..dispatching };
        let packing = PackingSettings { nodes: packing.nodes.min(QUICK), ..packing };
        let Ok(assignment) = assign(lengths, pipelines, dealing, packing) else { continue };
        spent += assignment.dispatch.looks;
        let seconds = assignment.seconds + beside(place, Some(&assignment));
        candidates[place] = Considered::Seconds(seconds);
        if best.as_ref().is_none_or(|(_, best, _)| seconds < *best) {
            best = Some((place, seconds, assignment));
        }
    }
    best.map(|(strategy, _, assignment)| Choice { strategy: strategy as u32, assignment, candidates })
}
