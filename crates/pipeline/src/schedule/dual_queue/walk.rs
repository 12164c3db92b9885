//! A single interleaving run (iterative scheduling in PipeWeaver Sec. 6.2).

use super::banker::Banker;
use super::queue::Queue;
use super::{Interleaving, Priorities};
use planscope_core::action::{Action, Schedule};
use planscope_core::units::{Bytes, Nanos};

const NEVER: Nanos = Nanos::new(u64::MAX);

/// Rank, stage and microbatch of a cell.
#[derive(Debug, Clone, Copy)]
struct CellLocation {
    rank: u32,
    stage: u32,
    microbatch: u32,
}

/// Next action of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Next {
    start: Nanos,
    forward: bool,
}

/// Cached next action of a rank.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// Must be computed again.
    Stale,
    /// The action, or `None` if the rank cannot run any.
    Fresh(Option<Next>),
}

#[derive(Debug, Clone)]
struct Rank {
    free: Nanos,
    stream: Nanos,
    allocated: Bytes,
    /// True if the last action was a forward.
    was_forward: bool,
    forwards: Queue,
    backwards: Queue,
    next: Known,
    /// Number of forwards on all ranks when `next` was computed.
    looked_after: u32,
    order: Vec<Action>,
}

impl Rank {
    /// Returns whether released memory could change the rank's next action. It cannot if a backward
    /// is due, or if a forward starts as soon as the rank is free.
    fn depends_on_released_memory(&self) -> bool {
        let Known::Fresh(Some(next)) = self.next else { return true };
        next.start > self.free || !(next.forward || self.was_forward)
    }
}

#[derive(Debug)]
pub(super) struct Walk<'a> {
    interleaving: &'a Interleaving<'a>,
    places: Vec<CellLocation>,
    ranks: Vec<Rank>,
    /// Number of pending inputs per microbatch, and the latest arrival so far.
    inputs: Vec<(u32, Nanos)>,
    /// Number of pending gradients per microbatch, including the end of its last forward.
    gradients: Vec<(u32, Nanos)>,
    forward_end: Vec<Nanos>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(interleaving: &'a Interleaving<'a>) -> Self {
        let costs = interleaving.costs;
        let places = costs
            .cells()
            .map(|cell| CellLocation {
                rank: costs.rank_for_stage(cell.stage) as u32,
                stage: cell.stage as u32,
                microbatch: cell.microbatch as u32,
            })
            .collect();
        let rank = Rank {
            free: Nanos::ZERO,
            stream: Nanos::ZERO,
            allocated: Bytes::ZERO,
            was_forward: false,
            forwards: Queue::default(),
            backwards: Queue::default(),
            next: Known::Stale,
            looked_after: 0,
            order: Vec::new(),
        };
        Self {
            interleaving,
            places,
            ranks: vec![rank; costs.ranks()],
            inputs: Vec::new(),
            gradients: Vec::new(),
            forward_end: vec![NEVER; costs.flows.cells()],
        }
    }

    /// Runs from the start. Returns false if memory limits block all ranks.
    pub(super) fn run(&mut self, priorities: &Priorities, mut banker: Option<Banker>) -> bool {
        self.reset(priorities);
        let mut left = 2 * self.places.len();
        // Number of forwards run.
        let mut lent = 0;
        while left > 0 {
            let mut best: Option<(usize, Next)> = None;
            for rank in 0..self.ranks.len() {
                let next = if let Known::Fresh(next) = self.ranks[rank].next {
                    next
                } else {
                    let next = self.look(rank, banker.as_ref());
                    self.ranks[rank].next = Known::Fresh(next);
                    self.ranks[rank].looked_after = lent;
                    next
                };
                if let Some(next) = next
                    && best.is_none_or(|(_, first)| next.start < first.start)
                {
                    best = Some((rank, next));
                }
            }
            let Some((rank, next)) = best else { return false };
            if banker.is_some() && next.forward && self.ranks[rank].looked_after != lent {
                // Later allocations by other ranks may forbid this forward.
                let again = self.look(rank, banker.as_ref());
                self.ranks[rank].next = Known::Fresh(again);
                self.ranks[rank].looked_after = lent;
                if again != Some(next) {
                    continue;
                }
            }
            if next.forward {
                self.forward(rank, next.start, priorities, banker.as_mut());
            } else {
                self.backward(rank, next.start, priorities, banker.as_mut());
            }
            left -= 1;
            lent += u32::from(next.forward);
            if banker.is_some() && !next.forward {
                // Other ranks can allocate the released memory.
                for rank in self.ranks.iter_mut().filter(|rank| rank.depends_on_released_memory()) {
                    rank.next = Known::Stale;
                }
            }
        }
        true
    }

    fn reset(&mut self, priorities: &Priorities) {
        let flows = &self.interleaving.costs.flows;
        for rank in &mut self.ranks {
            (rank.free, rank.stream, rank.allocated) = (Nanos::ZERO, Nanos::ZERO, Bytes::ZERO);
            rank.was_forward = false;
            rank.forwards.clear();
            rank.backwards.clear();
            rank.next = Known::Stale;
            rank.order.clear();
        }
        self.inputs.clear();
        self.gradients.clear();
        for microbatch in 0..flows.microbatches() {
            self.inputs.push((flows.inputs(microbatch).len() as u32, Nanos::ZERO));
            self.gradients.push((flows.outputs(microbatch).len() as u32 + 1, Nanos::ZERO));
            if flows.inputs(microbatch).is_empty() {
                self.offer_forward(flows.microbatch_cells(microbatch).start, Nanos::ZERO, priorities);
            }
        }
    }

    /// Computes a rank's next action and start time.
    fn look(&mut self, rank: usize, banker: Option<&Banker>) -> Option<Next> {
        let (allocated, free, was_forward) = {
            let rank = &mut self.ranks[rank];
            rank.forwards.receive(rank.free);
            rank.backwards.receive(rank.free);
            (rank.allocated, rank.free, rank.was_forward)
        };
        let may_run = self.may_run(rank, allocated, banker);
        let Rank { forwards, backwards, .. } = &self.ranks[rank];
        let backward = backwards.has(|_| true);
        if backward && was_forward {
            // A backward is due, regardless of available forwards.
            return Some(Next { start: free, forward: false });
        }
        match (forwards.has(&may_run), backward) {
            (true, _) => return Some(Next { start: free, forward: true }),
            (false, true) => return Some(Next { start: free, forward: false }),
            (false, false) => {}
        }
        match (forwards.next_arrival(&may_run), backwards.next_arrival(|_| true)) {
            (Some(start), backward) if backward.is_none_or(|backward| start < backward) => {
                Some(Next { start, forward: true })
            }
            (_, backward) => backward.map(|start| Next { start, forward: false }),
        }
    }

    /// Returns a filter for the forwards that fit on a rank with `allocated` allocated bytes.
    fn may_run<'b>(&'b self, rank: usize, allocated: Bytes, banker: Option<&'b Banker>) -> impl Fn(u32) -> bool + 'b {
        let (interleaving, places) = (self.interleaving, &self.places);
        let cap = interleaving.caps[rank];
        move |cell: u32| {
            let bytes = interleaving.costs.activation[cell as usize];
            let microbatch = places[cell as usize].microbatch as usize;
            allocated + bytes <= cap
                && banker.is_none_or(|banker| banker.may_allocate(&interleaving.caps, microbatch, rank, bytes.get()))
        }
    }

    fn forward(&mut self, rank: usize, start: Nanos, priorities: &Priorities, banker: Option<&mut Banker>) {
        let costs = self.interleaving.costs;
        let flows = &costs.flows;
        let mut forwards = std::mem::take(&mut self.ranks[rank].forwards);
        forwards.receive(start);
        let cell = forwards.take(self.may_run(rank, self.ranks[rank].allocated, banker.as_deref()));
        self.ranks[rank].forwards = forwards;
        let cell = cell.expect("what was looked at may run") as usize;
        let CellLocation { stage, microbatch, .. } = self.places[cell];
        let microbatch = microbatch as usize;
        let end = self.occupy(rank, start, Action::forward(stage as usize, microbatch), costs.forward[cell]);
        self.ranks[rank].allocated += costs.activation[cell];
        self.ranks[rank].was_forward = true;
        if let Some(banker) = banker {
            banker.forward(&self.interleaving.caps, microbatch, rank, costs.activation[cell].get());
        }
        self.forward_end[cell] = end;
        let arrival = self.send(rank, end, costs.send_forward[cell]);
        if cell + 1 < flows.microbatch_cells(microbatch).end {
            self.offer_forward(cell + 1, arrival, priorities);
            return;
        }
        self.expect_gradient(microbatch, end, priorities);
        for &output in flows.outputs(microbatch) {
            let (left, latest) = &mut self.inputs[output as usize];
            *left -= 1;
            *latest = (*latest).max(arrival);
            if *left == 0 {
                let latest = *latest;
                self.offer_forward(flows.microbatch_cells(output as usize).start, latest, priorities);
            }
        }
    }

    fn backward(&mut self, rank: usize, start: Nanos, priorities: &Priorities, banker: Option<&mut Banker>) {
        let costs = self.interleaving.costs;
        let flows = &costs.flows;
        let backwards = &mut self.ranks[rank].backwards;
        backwards.receive(start);
        let cell = backwards.take(|_| true).expect("what was looked at is there") as usize;
        let CellLocation { stage, microbatch, .. } = self.places[cell];
        let microbatch = microbatch as usize;
        let end = self.occupy(rank, start, Action::backward(stage as usize, microbatch), costs.backward(cell));
        // Release the memory immediately, because the rank is busy until the end of the backward.
        let allocated = &mut self.ranks[rank].allocated;
        *allocated = allocated.saturating_sub(costs.activation[cell]);
        self.ranks[rank].was_forward = false;
        if let Some(banker) = banker {
            banker.backward(microbatch, rank, costs.activation[cell].get());
        }
        let arrival = self.send(rank, end, costs.send_backward[cell]);
        if cell > flows.microbatch_cells(microbatch).start {
            let at = arrival.max(self.forward_end[cell - 1]);
            self.offer_backward(cell - 1, at, priorities);
            return;
        }
        for &input in flows.inputs(microbatch) {
            self.expect_gradient(input as usize, arrival, priorities);
        }
    }

    /// Records that a dependency of a microbatch's last backward is available at `time`.
    fn expect_gradient(&mut self, microbatch: usize, time: Nanos, priorities: &Priorities) {
        let (left, latest) = &mut self.gradients[microbatch];
        *left -= 1;
        *latest = (*latest).max(time);
        if *left == 0 {
            let latest = *latest;
            self.offer_backward(self.interleaving.costs.flows.microbatch_cells(microbatch).end - 1, latest, priorities);
        }
    }

    /// Enqueues a forward. In a group, deeper stages have precedence, then lower sub-microbatches.
    fn offer_forward(&mut self, cell: usize, arrival: Nanos, priorities: &Priorities) {
        let CellLocation { rank, stage, microbatch } = self.places[cell];
        let group = self.interleaving.groups[microbatch as usize] as usize;
        let preference = (u64::from(priorities.forward[group]) << 40) | (u64::from(0xF_FFFF - stage) << 20);
        let rank = &mut self.ranks[rank as usize];
        rank.forwards.push(arrival, (preference | u64::from(microbatch & 0xF_FFFF), cell as u32));
        rank.next = Known::Stale;
    }

    /// Enqueues a backward. In a group, shallower stages have precedence, because they are closer
    /// to completion.
    fn offer_backward(&mut self, cell: usize, arrival: Nanos, priorities: &Priorities) {
        let CellLocation { rank, stage, microbatch } = self.places[cell];
        let group = self.interleaving.groups[microbatch as usize] as usize;
        let preference = (u64::from(priorities.backward[group]) << 40) | (u64::from(stage) << 20);
        let rank = &mut self.ranks[rank as usize];
        rank.backwards.push(arrival, (preference | u64::from(microbatch & 0xF_FFFF), cell as u32));
        rank.next = Known::Stale;
    }

    fn occupy(&mut self, rank: usize, start: Nanos, action: Action, duration: Nanos) -> Nanos {
        let rank = &mut self.ranks[rank];
        rank.order.push(action);
        rank.free = start.max(rank.free) + duration;
        rank.next = Known::Stale;
        rank.free
    }

    fn send(&mut self, rank: usize, ready: Nanos, duration: Nanos) -> Nanos {
        if duration == Nanos::ZERO {
            return ready;
        }
        let rank = &mut self.ranks[rank];
        rank.stream = rank.stream.max(ready) + duration;
        rank.stream
    }

    /// Returns the iteration time of this replica.
    pub(super) fn end(&self) -> Nanos {
        let costs = self.interleaving.costs;
        let ends =
            self.ranks.iter().enumerate().map(|(rank, state)| state.free + costs.sync[rank] + costs.optimizer[rank]);
        ends.max().unwrap_or(Nanos::ZERO)
    }

    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            stages: self.interleaving.costs.stages(),
            microbatches: self.interleaving.costs.microbatches(),
            orders: self.ranks.iter().map(|rank| rank.order.clone()).collect(),
        }
    }
}
