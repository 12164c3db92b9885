//! Builds an automatic schedule in rounds: forwards of a microbatch in rank order, then input
//! gradients in reverse rank order.

use super::{Built, Cap, Heuristics, Remaining, change};
use planscope_core::action::{Action, ActionKind};
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

/// State of a rank.
#[derive(Debug, Clone, Default)]
pub(super) struct Rank {
    pub order: Vec<Action>,
    /// Number of completed forwards, input gradients and weight gradients, each in microbatch
    /// order.
    pub forwards: usize,
    pub inputs: usize,
    pub weights: usize,
    pub start: Nanos,
    pub free: Nanos,
    pub stream_free: Nanos,
    /// Idle time since the first action.
    waited: Nanos,
    pub allocated: Bytes,
}

impl Rank {
    /// Returns the microbatch for the next action of `kind` and increments the counter.
    pub(super) const fn count(&mut self, kind: ActionKind) -> usize {
        let next = match kind {
            ActionKind::Forward => &mut self.forwards,
            ActionKind::InputGrad => &mut self.inputs,
            ActionKind::WeightGrad | ActionKind::Backward => &mut self.weights,
        };
        *next += 1;
        *next - 1
    }
}

/// A partially built schedule. The times equal simulated times, because actions are added after
/// their dependencies.
pub(super) struct Builder<'a> {
    costs: &'a PipelineCosts,
    caps: &'a [Cap],
    released: &'a [Bytes],
    heuristics: Heuristics,
    ranks: Vec<Rank>,
    /// Forward end times per cell. `forward_arrival` is the output's arrival at the next stage.
    forward_end: Vec<Nanos>,
    forward_arrival: Vec<Nanos>,
    /// Arrival of the gradient at the previous stage, per cell.
    gradient_arrival: Vec<Nanos>,
    /// Maximum idle time of any rank.
    max_wait: Nanos,
    remaining: Remaining,
    /// True if the iteration ends too late for certain.
    is_late: bool,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        costs: &'a PipelineCosts,
        caps: &'a [Cap],
        released: &'a [Bytes],
        heuristics: Heuristics,
    ) -> Self {
        let column = || vec![Nanos::ZERO; costs.flows.cells()];
        Self {
            costs,
            caps,
            released,
            heuristics,
            ranks: vec![Rank::default(); costs.ranks()],
            forward_end: column(),
            forward_arrival: column(),
            gradient_arrival: column(),
            max_wait: Nanos::ZERO,
            remaining: Remaining::new(costs, None),
            is_late: false,
        }
    }

    /// Builds the schedule. Returns `None` if the iteration ends later than `before`.
    pub(super) fn build(mut self, before: Option<Nanos>) -> Option<Built> {
        self.remaining.before = before;
        let count = self.ranks.len();
        if self.costs.microbatches() > 0 {
            self.warm_up();
        }
        for microbatch in 1..self.costs.microbatches() {
            let gradients = self.gradient_estimates(microbatch);
            for (rank, &gradient) in gradients.iter().enumerate() {
                self.next_forward(rank, microbatch, gradient);
            }
            (0..count).rev().for_each(|rank| self.next_input_grad(rank));
            if self.is_late {
                return None;
            }
        }
        for rank in 0..count {
            while self.has_weight_grad(rank) {
                self.run(rank, ActionKind::WeightGrad);
            }
        }
        Some(Built {
            start: self.ranks.iter().map(|rank| rank.start).collect(),
            end: self.ranks.iter().map(|rank| rank.free).collect(),
            orders: self.ranks.into_iter().map(|rank| rank.order).collect(),
        })
    }

    /// Runs the warm-up forwards and the input gradient of microbatch 0 on all ranks.
    fn warm_up(&mut self) {
        let count = self.ranks.len();
        (0..count).for_each(|rank| self.run(rank, ActionKind::Forward));
        let mut depths = vec![1; count];
        let last = self.costs.cell(count - 1, 0);
        let mut gradient = self.ranks[count - 1].free + self.costs.input_grad[last];
        for rank in (0..count - 1).rev() {
            gradient += self.costs.send_backward[self.costs.cell(rank + 1, 0)];
            let (depth, free) = self.forwards_until(rank, gradient);
            depths[rank] = depth;
            gradient = gradient.max(free) + self.costs.input_grad[self.costs.cell(rank, 0)];
        }
        for rank in 0..count {
            if rank > 0 && depths[rank - 1] < self.costs.microbatches() {
                // Fewer forwards than the previous rank. Otherwise the memory would be full if
                // gradients arrive late, and a forward that the previous rank runs after microbatch
                // 0's gradient would never arrive.
                depths[rank] = depths[rank].min(depths[rank - 1] - 1).max(1);
            }
            (1..depths[rank]).for_each(|_| self.run(rank, ActionKind::Forward));
        }
        (0..count).rev().for_each(|rank| self.run(rank, ActionKind::InputGrad));
    }

    /// Returns the number of warm-up forwards, and their end time.
    fn forwards_until(&self, rank: usize, gradient: Nanos) -> (usize, Nanos) {
        let (mut depth, mut free, mut allocated) = (1, self.ranks[rank].free, self.ranks[rank].allocated);
        while depth < self.costs.microbatches() {
            let cell = self.costs.cell(rank, depth);
            let end = free + self.costs.forward[cell];
            allocated += self.costs.activation[cell];
            let in_time = if self.heuristics.fill_before_first { free < gradient } else { end <= gradient };
            if !in_time || allocated + self.caps[rank].reserved > self.caps[rank].capacity {
                break;
            }
            (depth, free) = (depth + 1, end);
        }
        (depth, free)
    }

    /// Returns the earliest arrival of a microbatch's gradient on each rank, assuming no other
    /// actions.
    fn gradient_estimates(&self, microbatch: usize) -> Vec<Nanos> {
        let count = self.ranks.len();
        let mut at = vec![Nanos::ZERO; count];
        for rank in (0..count).rev() {
            let cell = self.costs.cell(rank, microbatch);
            let must = self.ranks[rank].forwards <= microbatch;
            let forward = if must { self.costs.forward[cell] } else { Nanos::ZERO };
            if rank + 1 == count {
                at[rank] = self.ranks[rank].free + forward;
            }
            if rank > 0 {
                let start = at[rank].max(self.ranks[rank].free + forward);
                at[rank - 1] = start + self.costs.input_grad[cell] + self.costs.send_backward[cell];
            }
        }
        at
    }

    /// Runs the forward of a round. Skips it if none is available, memory is full, or the gradient
    /// has precedence. The forward of microbatch `round` always runs, because all earlier memory
    /// can be released.
    fn next_forward(&mut self, rank: usize, round: usize, gradient: Nanos) {
        let next = self.ranks[rank].forwards;
        let must = next <= round;
        let is_there = next < self.costs.microbatches() && (rank == 0 || next < self.ranks[rank - 1].forwards);
        if !is_there || (!must && self.heuristics.gradients_first && self.gradient_would_wait(rank, gradient)) {
            return;
        }
        let cell = self.costs.cell(rank, next);
        let cap = self.caps[rank];
        while self.ranks[rank].allocated + self.costs.activation[cell] + cap.reserved > cap.capacity {
            if !self.has_weight_grad(rank) {
                debug_assert!(!must, "one microbatch alone fits");
                return;
            }
            self.run(rank, ActionKind::WeightGrad);
        }
        self.fill_until(rank, self.forward_time(rank, cell));
        self.run(rank, ActionKind::Forward);
    }

    /// Returns whether the following rank has enough work and a forward would end after the
    /// gradient arrives.
    fn gradient_would_wait(&self, rank: usize, gradient: Nanos) -> bool {
        let rank_state = &self.ranks[rank];
        let is_ahead = self.ranks.get(rank + 1).is_some_and(|next| rank_state.forwards >= next.forwards + 2);
        is_ahead && rank_state.free + self.costs.forward[self.costs.cell(rank, rank_state.forwards)] > gradient
    }

    fn next_input_grad(&mut self, rank: usize) {
        let cell = self.costs.cell(rank, self.ranks[rank].inputs);
        while self.ranks[rank].allocated + self.costs.transient[cell] > self.caps[rank].capacity
            && self.has_weight_grad(rank)
        {
            self.run(rank, ActionKind::WeightGrad);
        }
        self.fill_until(rank, self.gradient_time(rank, cell));
        self.run(rank, ActionKind::InputGrad);
    }

    /// Returns the arrival time of a forward's input.
    fn forward_time(&self, rank: usize, cell: usize) -> Nanos {
        if rank == 0 { Nanos::ZERO } else { self.forward_arrival[cell - 1] }
    }

    /// Returns the arrival time of an input gradient's input.
    fn gradient_time(&self, rank: usize, cell: usize) -> Nanos {
        if rank + 1 == self.ranks.len() { self.forward_end[cell] } else { self.gradient_arrival[cell + 1] }
    }

    fn has_weight_grad(&self, rank: usize) -> bool {
        self.ranks[rank].weights < self.ranks[rank].inputs
    }

    /// Runs weight gradients in the idle time up to `arrival`.
    fn fill_until(&mut self, rank: usize, arrival: Nanos) {
        while self.has_weight_grad(rank) {
            let rank_state = &self.ranks[rank];
            let cell = self.costs.cell(rank, rank_state.weights);
            let gap = arrival.saturating_sub(rank_state.free);
            let fits = gap >= self.costs.weight_grad[cell];
            let exceeds_max_wait = rank_state.waited + gap > self.max_wait;
            if gap == Nanos::ZERO || !(fits || (self.heuristics.fill_short_gaps && exceeds_max_wait)) {
                return;
            }
            self.run(rank, ActionKind::WeightGrad);
        }
    }

    /// Adds an action of `kind` on a rank.
    fn run(&mut self, rank: usize, kind: ActionKind) {
        let costs = self.costs;
        let microbatch = self.ranks[rank].count(kind);
        let cell = costs.cell(rank, microbatch);
        let (taken, given) = change(kind, cell, costs, self.released);
        let (input, duration, send) = match kind {
            ActionKind::Forward => (self.forward_time(rank, cell), costs.forward[cell], costs.send_forward[cell]),
            ActionKind::InputGrad => {
                (self.gradient_time(rank, cell), costs.input_grad[cell], costs.send_backward[cell])
            }
            ActionKind::WeightGrad | ActionKind::Backward => (Nanos::ZERO, costs.weight_grad[cell], Nanos::ZERO),
        };
        let rank_state = &mut self.ranks[rank];
        rank_state.allocated = (rank_state.allocated + taken).saturating_sub(given);
        let start = rank_state.free.max(input);
        if rank_state.order.is_empty() {
            rank_state.start = start;
        } else {
            rank_state.waited += start - rank_state.free;
            self.max_wait = self.max_wait.max(rank_state.waited);
        }
        let end = start + duration;
        let mut arrival = end;
        if send > Nanos::ZERO {
            arrival = end.max(rank_state.stream_free) + send;
            rank_state.stream_free = arrival;
        }
        rank_state.free = end;
        rank_state.order.push(Action::new(kind, rank, microbatch));
        self.is_late |= self.remaining.run(rank, duration, end);
        match kind {
            ActionKind::Forward => (self.forward_end[cell], self.forward_arrival[cell]) = (end, arrival),
            ActionKind::InputGrad => self.gradient_arrival[cell] = arrival,
            ActionKind::WeightGrad | ActionKind::Backward => {}
        }
    }
}
