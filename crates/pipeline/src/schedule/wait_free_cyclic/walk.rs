//! Event simulation for list scheduling.
//!
//! A rank has no more than one running action, and sends arrive in sending order. Therefore the
//! next event time is the minimum over a single value per rank.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::ground::Ground;
use super::list::{ForwardOrder, Found, Policy};
use planscope_core::action::{Action, ActionKind, Schedule};
use planscope_core::units::{Bytes, Nanos};

/// No event.
const NEVER: Nanos = Nanos::new(u64::MAX);

/// Constants of a walk.
struct Rules<'a> {
    ground: &'a Ground,
    cap: &'a [Bytes],
    policy: Policy,
    /// Entry order of microbatches.
    entry: &'a [usize],
    /// Priority offset per microbatch, see [`places`].
    places: Vec<u64>,
    in_flight_limit: Vec<u32>,
}

/// State of a walk.
#[derive(Clone)]
pub(super) struct State {
    /// Number of entered microbatches. The walk can have examined the following entry, but no later
    /// entries.
    entered: usize,
    /// Next event time per rank: the end of the running action, or the arrival of a send.
    moments: Vec<Nanos>,
    ranks: Vec<Rank>,
    /// Lowest stage per microbatch whose backward has started.
    back_at: Vec<u32>,
    /// Lower bound on the iteration time: maximum over ranks of (end of the latest action +
    /// remaining work + shortest way back).
    certain_end: Nanos,
    /// True if the limit of activations in flight (and not memory) delayed a forward.
    is_limited: bool,
}

#[derive(Clone)]
struct Rank {
    /// End time of the running action, or [`NEVER`].
    free: Nanos,
    /// Action that becomes ready at this time.
    handed: Option<Action>,
    /// Pending sends: (arrival time, action).
    sent: VecDeque<(Nanos, Action)>,
    stream_free: Nanos,
    /// Ready forwards for all stages except the first, by priority.
    forwards: BinaryHeap<Reverse<u64>>,
    /// Ready backwards, by arrival time, then deepest stage, then microbatch.
    backwards: VecDeque<(Nanos, Reverse<u32>, u32)>,
    allocated: Bytes,
    in_flight: u32,
    last: ActionKind,
    /// End time of the latest action.
    end: Nanos,
    /// Remaining work.
    left: Nanos,
    /// Index of the first unfinished microbatch in `return_times`.
    shortest: usize,
    order: Vec<Action>,
}

impl State {
    pub(super) const fn entered(&self) -> usize {
        self.entered
    }
}

/// A simulated walk.
pub(super) struct Walk<'a> {
    rules: Rules<'a>,
    state: State,
}

impl<'a> Walk<'a> {
    /// Creates a walk at time zero.
    pub(super) fn new(ground: &'a Ground, cap: &'a [Bytes], entry: &'a [usize], policy: Policy) -> Self {
        let rank = |rank: usize| Rank {
            free: NEVER,
            handed: None,
            sent: VecDeque::new(),
            stream_free: Nanos::ZERO,
            forwards: BinaryHeap::new(),
            backwards: VecDeque::new(),
            allocated: Bytes::ZERO,
            in_flight: 0,
            last: ActionKind::Backward,
            end: Nanos::ZERO,
            left: ground.work(rank),
            shortest: 0,
            order: Vec::with_capacity(2 * ground.stages() / ground.ranks() * ground.microbatches()),
        };
        let state = State {
            entered: 0,
            moments: vec![NEVER; ground.ranks()],
            ranks: (0..ground.ranks()).map(rank).collect(),
            back_at: vec![ground.stages() as u32; ground.microbatches()],
            certain_end: Nanos::ZERO,
            is_limited: false,
        };
        let mut walk = Self::from(ground, cap, entry, policy, state);
        walk.start_on(ground.rank_for_stage(0), Nanos::ZERO);
        walk
    }

    /// Resumes from the state of another walk. The entry orders must be equal up to the next
    /// microbatch to enter (inclusive).
    pub(super) fn from(ground: &'a Ground, cap: &'a [Bytes], entry: &'a [usize], policy: Policy, state: State) -> Self {
        let ranks = ground.ranks();
        let places = places(entry, policy.forward_order, ranks);
        let chunks = ground.stages() / ranks;
        let in_flight_limit = (0..ranks)
            .map(|rank| match policy.extra_in_flight {
                None => u32::MAX,
                Some(extra) if chunks == 1 => (ranks - rank) as u32 + extra,
                Some(extra) => (2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1) as u32 + extra,
            })
            .collect();
        Self { rules: Rules { ground, cap, policy, entry, places, in_flight_limit }, state }
    }

    /// Runs to the end. Stops if the lower bound on the end reaches `before`. Calls `pass` with
    /// each consistent state.
    pub(super) fn run(&mut self, before: Nanos, mut pass: impl FnMut(&State)) {
        let mut woken = vec![false; self.state.ranks.len()];
        loop {
            pass(&self.state);
            let next = self.state.moments.iter().copied().min().unwrap_or(NEVER);
            if next == NEVER || self.state.certain_end >= before {
                return;
            }
            // Process all simultaneous events before ranks select actions.
            for rank in 0..woken.len() {
                if self.state.moments[rank] == next {
                    self.happen(rank, next, &mut woken);
                }
            }
            for (rank, woken) in woken.iter_mut().enumerate() {
                if std::mem::take(woken) {
                    self.start_on(rank, next);
                }
            }
        }
    }

    /// Returns the schedule if it is complete and ends earlier than `before`, and whether a higher
    /// limit of activations in flight could change it.
    pub(super) fn finish(self, before: Nanos) -> Found {
        let Self { rules: Rules { ground, .. }, state: State { ranks, is_limited, .. } } = self;
        let is_complete =
            ranks.iter().map(|rank| rank.order.len()).sum::<usize>() == 2 * ground.stages() * ground.microbatches();
        let end = ranks.iter().enumerate().map(|(rank, rank_state)| rank_state.end + ground.closing(rank)).max();
        let end = end.unwrap_or(Nanos::ZERO);
        let ordered = (is_complete && end < before).then(|| {
            let orders = ranks.into_iter().map(|rank| rank.order).collect();
            (Schedule { stages: ground.stages(), microbatches: ground.microbatches(), orders }, end)
        });
        Found { ordered, is_limited }
    }

    /// Processes the events of a rank at time `now` and marks affected ranks in `woken`.
    fn happen(&mut self, rank: usize, now: Nanos, woken: &mut [bool]) {
        let rank_state = &mut self.state.ranks[rank];
        if rank_state.free == now {
            rank_state.free = NEVER;
            woken[rank] = true;
            if let Some(action) = rank_state.handed.take() {
                woken[self.arrive(now, action)] = true;
            }
        }
        let later = loop {
            let sender = &mut self.state.ranks[rank];
            match sender.sent.front() {
                Some(&(time, action)) if time == now => {
                    sender.sent.pop_front();
                    woken[self.arrive(now, action)] = true;
                }
                Some(&(time, _)) => break time,
                None => break NEVER,
            }
        };
        self.state.moments[rank] = self.state.ranks[rank].free.min(later);
    }

    /// Adds a ready action and returns its rank.
    fn arrive(&mut self, time: Nanos, action: Action) -> usize {
        let rank = self.rules.ground.rank_for_stage(action.stage as usize);
        let rank_state = &mut self.state.ranks[rank];
        if action.kind == ActionKind::Forward {
            rank_state.forwards.push(Reverse(self.rules.priority(action.stage, action.microbatch)));
        } else {
            let ready = (time, Reverse(action.stage), action.microbatch);
            let later = rank_state.backwards.iter().rev().take_while(|&&other| other > ready).count();
            if later == 0 {
                rank_state.backwards.push_back(ready);
            } else {
                rank_state.backwards.insert(rank_state.backwards.len() - later, ready);
            }
        }
        rank
    }

    /// Starts an admissible action on a free rank, if any.
    fn start_on(&mut self, rank: usize, time: Nanos) {
        if self.state.ranks[rank].free != NEVER {
            return;
        }
        // After a forward, ready backwards always have precedence.
        let rank_state = &self.state.ranks[rank];
        let is_due = rank_state.last == ActionKind::Forward && !rank_state.backwards.is_empty();
        let forward = if is_due { None } else { self.admissible_forward(rank) };
        let updated = &mut self.state.ranks[rank];
        if let Some((stage, microbatch)) = forward {
            if stage == 0 {
                self.state.entered += 1;
            } else {
                updated.forwards.pop();
            }
            self.run_forward(rank, time, stage, microbatch);
        } else if let Some((_, Reverse(stage), microbatch)) = updated.backwards.pop_front() {
            self.run_backward(rank, time, stage as usize, microbatch as usize);
        }
    }

    /// Returns (stage, microbatch) of the forward with the highest precedence, if the rank's limits
    /// admit it.
    fn admissible_forward(&mut self, rank: usize) -> Option<(usize, usize)> {
        let rank_state = &self.state.ranks[rank];
        let next = self.rules.entry.get(self.state.entered).filter(|_| rank == self.rules.ground.rank_for_stage(0));
        let entering = next.map(|&microbatch| self.rules.priority(0, microbatch as u32));
        let there = rank_state.forwards.peek().map(|&Reverse(priority)| priority);
        let first = entering.into_iter().chain(there).min()?;
        let (stage, microbatch) = self.rules.decode_forward(first);
        let fits = rank_state.allocated + self.rules.ground.cell(stage, microbatch).activation <= self.rules.cap[rank];
        let may = rank_state.in_flight < self.rules.in_flight_limit[rank];
        self.state.is_limited |= fits && !may;
        (fits && may).then_some((stage, microbatch))
    }

    fn run_forward(&mut self, rank: usize, time: Nanos, stage: usize, microbatch: usize) {
        let ground = self.rules.ground;
        let cell = ground.cell(stage, microbatch);
        let rank_state = &mut self.state.ranks[rank];
        rank_state.allocated += cell.activation;
        rank_state.in_flight += 1;
        let end = self.occupy(rank, time, Action::forward(stage, microbatch), cell.forward);
        self.ends_certainly(rank, end, ground.return_times(rank)[self.state.ranks[rank].shortest].0);
        if stage + 1 == ground.stages() {
            self.send(rank, end, Nanos::ZERO, Action::backward(stage, microbatch));
        } else {
            self.send(rank, end, cell.send_forward, Action::forward(stage + 1, microbatch));
        }
    }

    fn run_backward(&mut self, rank: usize, time: Nanos, stage: usize, microbatch: usize) {
        let ground = self.rules.ground;
        let cell = ground.cell(stage, microbatch);
        let end = self.occupy(rank, time, Action::backward(stage, microbatch), cell.backward);
        self.state.back_at[microbatch] = stage as u32;
        // Release the memory immediately. The rank is busy during the backward in any case.
        let rank_state = &mut self.state.ranks[rank];
        rank_state.allocated = rank_state.allocated.saturating_sub(cell.activation);
        rank_state.in_flight -= 1;
        let (times, lowest) = (ground.return_times(rank), ground.lowest_stage(rank));
        while times.get(rank_state.shortest).is_some_and(|&(_, other)| self.state.back_at[other as usize] <= lowest) {
            rank_state.shortest += 1;
        }
        // For the final action of a rank, use the way back of this microbatch.
        let way = times.get(rank_state.shortest).map_or_else(|| ground.way_back(stage, microbatch), |&(way, _)| way);
        self.ends_certainly(rank, end, way);
        if stage > 0 {
            self.send(rank, end, cell.send_backward, Action::backward(stage - 1, microbatch));
        }
    }

    fn occupy(&mut self, rank: usize, time: Nanos, action: Action, duration: Nanos) -> Nanos {
        let end = time + duration;
        let rank_state = &mut self.state.ranks[rank];
        rank_state.order.push(action);
        rank_state.last = action.kind;
        rank_state.end = end;
        rank_state.left = rank_state.left.saturating_sub(duration);
        rank_state.free = end;
        self.state.moments[rank] = self.state.moments[rank].min(end);
        end
    }

    /// Updates the lower bound with `end` + remaining work + `way_back`.
    fn ends_certainly(&mut self, rank: usize, end: Nanos, way_back: Nanos) {
        let certain = end + self.state.ranks[rank].left + way_back;
        self.state.certain_end = self.state.certain_end.max(certain);
    }

    /// Sends the result of an action that ends at `ready`. Sends on a rank's stream run in
    /// sequence.
    fn send(&mut self, rank: usize, ready: Nanos, duration: Nanos, next: Action) {
        let rank_state = &mut self.state.ranks[rank];
        if duration == Nanos::ZERO {
            rank_state.handed = Some(next);
            return;
        }
        let arrival = ready.max(rank_state.stream_free) + duration;
        rank_state.stream_free = arrival;
        // `moments` does not change, because this arrival is later than the running action's end.
        rank_state.sent.push_back((arrival, next));
    }
}

impl Rules<'_> {
    /// Priority of a forward, computed from stage and position in the entry order. The minimum has
    /// precedence.
    fn priority(&self, stage: u32, microbatch: u32) -> u64 {
        let (stage, position) = (u64::from(stage), self.places[microbatch as usize]);
        match self.policy.forward_order {
            ForwardOrder::DeepestFirst => (u64::from(u32::MAX) - stage) << 32 | position,
            ForwardOrder::Grouped => position | stage << BITS,
        }
    }

    /// Decodes stage and microbatch from a priority.
    fn decode_forward(&self, priority: u64) -> (usize, usize) {
        let (stage, position) = match self.policy.forward_order {
            ForwardOrder::DeepestFirst => (u32::MAX - (priority >> 32) as u32, priority as u32 as usize),
            ForwardOrder::Grouped => {
                let (group, within) = (priority >> (2 * BITS), priority & MASK);
                ((priority >> BITS & MASK) as u32, group as usize * self.ground.ranks() + within as usize)
            }
        };
        (stage as usize, self.entry[position])
    }
}

/// Bits for a stage, and for a position in a group.
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

/// Returns the priority offset per microbatch from the entry order.
fn places(entry: &[usize], forward_order: ForwardOrder, ranks: usize) -> Vec<u64> {
    let mut places = vec![0; entry.len()];
    match forward_order {
        ForwardOrder::DeepestFirst => {
            for (position, &microbatch) in (0..).zip(entry) {
                places[microbatch] = position;
            }
        }
        ForwardOrder::Grouped => {
            for (group, members) in (0_u64..).zip(entry.chunks(ranks)) {
                for (within, &microbatch) in (0..).zip(members) {
                    places[microbatch] = group << (2 * BITS) | within;
                }
            }
        }
    }
    places
}
