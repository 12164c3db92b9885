//! List scheduling of split backwards in time order.
//!
//! The rounds of [`super::builder`] run one forward and one input gradient per rank and microbatch.
//! If memory holds fewer activations than there are ranks, the rounds leave ranks idle although their
//! next action is available. Here a free rank runs what is available: an input gradient, else a
//! forward that fits into memory, else a weight gradient. All actions of a kind run in microbatch
//! order, so that memory cannot block all ranks.

use super::builder::Rank;
use super::{Built, Cap, Remaining, change};
use planscope_core::action::{Action, ActionKind};
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

/// Rules for the two choices that are open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// A weight gradient waits if a known arrival would be delayed by it, unless memory needs it.
    pub keep_free: bool,
    /// A forward waits if a known gradient would be delayed by it.
    pub gradients_first: bool,
}

impl Rules {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [false, true].into_iter().flat_map(|keep_free| {
            [false, true].into_iter().map(move |gradients_first| Self { keep_free, gradients_first })
        })
    }
}

struct List<'a> {
    costs: &'a PipelineCosts,
    caps: &'a [Cap],
    released: &'a [Bytes],
    rules: Rules,
    ranks: Vec<Rank>,
    /// Arrival of the input per cell; `None` if the producer has not started.
    forward_input: Vec<Option<Nanos>>,
    gradient: Vec<Option<Nanos>>,
    remaining: Remaining,
    /// True if the iteration ends too late for certain.
    is_late: bool,
}

/// Builds the schedule. Ranks act in order of the time at which they can. Returns `None` if the iteration ends later
/// than `before`.
pub(super) fn list_schedule(
    costs: &PipelineCosts,
    caps: &[Cap],
    released: &[Bytes],
    rules: Rules,
    before: Option<Nanos>,
) -> Option<Built> {
    let cells = costs.flows.cells();
    let mut list = List {
        costs,
        caps,
        released,
        rules,
        ranks: vec![Rank::default(); costs.ranks()],
        forward_input: vec![None; cells],
        gradient: vec![None; cells],
        remaining: Remaining::new(costs, before),
        is_late: false,
    };
    for microbatch in 0..costs.microbatches() {
        list.forward_input[costs.cell(0, microbatch)] = Some(Nanos::ZERO);
    }
    // An action changes the next action of its rank and of the rank that it sends to.
    let mut next: Vec<Option<(Nanos, ActionKind)>> = (0..costs.ranks()).map(|rank| list.next(rank)).collect();
    while let Some((rank, kind)) = earliest(&next) {
        let receiver = list.run(rank, kind);
        if list.is_late {
            return None;
        }
        next[rank] = list.next(rank);
        if let Some(receiver) = receiver {
            next[receiver] = list.next(receiver);
        }
    }
    Some(Built {
        start: list.ranks.iter().map(|rank| rank.start).collect(),
        end: list.ranks.iter().map(|rank| rank.free).collect(),
        orders: list.ranks.into_iter().map(|rank| rank.order).collect(),
    })
}

/// Returns the first rank with the earliest start, and its action.
fn earliest(next: &[Option<(Nanos, ActionKind)>]) -> Option<(usize, ActionKind)> {
    let mut first: Option<(Nanos, usize, ActionKind)> = None;
    for (rank, action) in next.iter().enumerate() {
        if let &Some((start, kind)) = action
            && first.is_none_or(|(earliest, ..)| start < earliest)
        {
            first = Some((start, rank, kind));
        }
    }
    first.map(|(_, rank, kind)| (rank, kind))
}

impl List<'_> {
    /// Returns the next action of a rank and its start, or `None` if the rank has to wait for another.
    fn next(&self, rank: usize) -> Option<(Nanos, ActionKind)> {
        let state = &self.ranks[rank];
        let microbatches = self.costs.microbatches();
        let cell = |next: usize| (next < microbatches).then(|| self.costs.cell(rank, next));
        let at = |arrivals: &[Option<Nanos>], cell: Option<usize>| Some(arrivals[cell?]?.max(state.free));
        let (forward_cell, input_cell) = (cell(state.forwards), cell(state.inputs));
        let has_weight_grad = state.weights < state.inputs;
        let cap = self.caps[rank];
        let gradient = at(&self.gradient, input_cell);
        let input_fits = input_cell
            .is_none_or(|cell| state.allocated + self.costs.transient[cell] <= cap.capacity || !has_weight_grad);
        let forward = at(&self.forward_input, forward_cell);
        let forward_fits = forward_cell
            .is_some_and(|cell| state.allocated + self.costs.activation[cell] + cap.reserved <= cap.capacity);
        let delays = |start: Nanos, duration: Nanos, arrival: Option<Nanos>| {
            arrival.is_some_and(|arrival| start + duration > arrival)
        };
        let forward_duration = forward_cell.map_or(Nanos::ZERO, |cell| self.costs.forward[cell]);
        let forward_start = forward.filter(|&start| {
            forward_fits
                && gradient.is_none_or(|gradient| start < gradient)
                && !(self.rules.gradients_first && input_fits && delays(start, forward_duration, gradient))
        });
        let chosen = match (forward_start, gradient) {
            (Some(start), _) => Some((start, ActionKind::Forward)),
            (None, Some(start)) if input_fits => Some((start, ActionKind::InputGrad)),
            _ => None,
        };
        if !has_weight_grad {
            return chosen;
        }
        let weight = self.costs.weight_grad[self.costs.cell(rank, state.weights)];
        // Memory blocks an action that is available.
        let is_needed = gradient.is_some_and(|start| start <= state.free && !input_fits)
            || forward.is_some_and(|start| start <= state.free && !forward_fits);
        let runs_weight_grad = match chosen {
            None => true,
            Some((start, _)) if start <= state.free => false,
            Some((start, _)) => is_needed || !self.rules.keep_free || state.free + weight <= start,
        };
        if runs_weight_grad { Some((state.free, ActionKind::WeightGrad)) } else { chosen }
    }

    /// Runs an action, and returns the other rank that receives its result.
    fn run(&mut self, rank: usize, kind: ActionKind) -> Option<usize> {
        let costs = self.costs;
        let state = &mut self.ranks[rank];
        let microbatch = state.count(kind);
        let cell = costs.cell(rank, microbatch);
        let (arrival, duration, send) = match kind {
            ActionKind::Forward => (self.forward_input[cell], costs.forward[cell], costs.send_forward[cell]),
            ActionKind::InputGrad => (self.gradient[cell], costs.input_grad[cell], costs.send_backward[cell]),
            ActionKind::WeightGrad | ActionKind::Backward => (None, costs.weight_grad[cell], Nanos::ZERO),
        };
        let start = state.free.max(arrival.unwrap_or(Nanos::ZERO));
        if state.order.is_empty() {
            state.start = start;
        }
        let (taken, given) = change(kind, cell, costs, self.released);
        state.allocated = (state.allocated + taken).saturating_sub(given);
        let end = start + duration;
        let mut sent = end;
        if send > Nanos::ZERO {
            sent = end.max(state.stream_free) + send;
            state.stream_free = sent;
        }
        state.free = end;
        state.order.push(Action::new(kind, rank, microbatch));
        self.is_late |= self.remaining.run(rank, duration, end);
        match kind {
            ActionKind::Forward if rank + 1 < costs.ranks() => {
                self.forward_input[cell + 1] = Some(sent);
                Some(rank + 1)
            }
            ActionKind::Forward => {
                self.gradient[cell] = Some(end);
                None
            }
            ActionKind::InputGrad if rank > 0 => {
                self.gradient[cell - 1] = Some(sent);
                Some(rank - 1)
            }
            ActionKind::InputGrad | ActionKind::WeightGrad | ActionKind::Backward => None,
        }
    }
}
