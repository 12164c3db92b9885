//! The walk through time of list scheduling.
//!
//! A rank has one action under way at most, and what it sends arrives in the order of sending: the next moment of all is the least of one
//! number for each rank.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::list::{ForwardOrder, Policy};
use crate::cost::PipelineCosts;
use crate::schedule::{Action, ActionKind, Schedule};
use crate::units::{Bytes, Nanos};

/// Nothing is to happen.
const NEVER: Nanos = Nanos::new(u64::MAX);

/// What does not change while time passes.
struct Rules<'a> {
    costs: &'a PipelineCosts,
    cap: &'a [Bytes],
    policy: Policy,
    /// Microbatches in the order of entry.
    entry: &'a [usize],
    /// Of every microbatch by [`places`].
    places: Vec<u64>,
    in_flight_limit: Vec<u32>,
    /// The rank of the first stage.
    first: usize,
}

/// How far a walk has come.
#[derive(Clone)]
pub(super) struct State {
    /// Microbatches that have entered. The next one may have been looked at, later ones have not.
    entered: usize,
    /// When something happens next by what each rank does: its action ends, or what it sent first arrives.
    moments: Vec<Nanos>,
    ranks: Vec<Rank>,
    /// The latest of all ends that are certain by now: a rank's last action and what it is still to do.
    certain_end: Nanos,
}

#[derive(Clone)]
struct Rank {
    /// When the action under way ends, or never.
    free: Nanos,
    /// What that makes ready at once.
    handed: Option<Action>,
    /// What it sent, and when that arrives.
    sent: VecDeque<(Nanos, Action)>,
    stream_free: Nanos,
    /// Ready forwards of all stages but the first, by priority.
    forwards: BinaryHeap<Reverse<u64>>,
    /// Ready backwards, by time of arrival, then deepest stage and microbatch.
    backwards: VecDeque<(Nanos, Reverse<u32>, u32)>,
    held: Bytes,
    in_flight: u32,
    last: ActionKind,
    /// End of its last action.
    end: Nanos,
    /// What it is still to do, synchronisation and optimizer included.
    left: Nanos,
    order: Vec<Action>,
}

impl State {
    /// Microbatches that have entered.
    pub(super) const fn entered(&self) -> usize {
        self.entered
    }
}

/// A walk through time.
pub(super) struct Walk<'a> {
    rules: Rules<'a>,
    state: State,
}

impl<'a> Walk<'a> {
    /// At the beginning.
    pub(super) fn new(costs: &'a PipelineCosts, cap: &'a [Bytes], entry: &'a [usize], policy: Policy) -> Self {
        let ranks = costs.ranks();
        let mut left: Vec<Nanos> = (0..ranks).map(|rank| costs.sync[rank] + costs.optimizer[rank]).collect();
        for cell in costs.cells() {
            left[costs.rank_of(cell.stage)] += costs.forward[cell.index] + costs.backward(cell.index);
        }
        let actions = 2 * (costs.stages() / ranks) * costs.microbatches();
        let rank = |left: Nanos| Rank {
            free: NEVER,
            handed: None,
            sent: VecDeque::new(),
            stream_free: Nanos::ZERO,
            forwards: BinaryHeap::new(),
            backwards: VecDeque::new(),
            held: Bytes::ZERO,
            in_flight: 0,
            last: ActionKind::Backward,
            end: Nanos::ZERO,
            left,
            order: Vec::with_capacity(actions),
        };
        let state = State {
            entered: 0,
            moments: vec![NEVER; ranks],
            ranks: left.into_iter().map(rank).collect(),
            certain_end: Nanos::ZERO,
        };
        let mut walk = Self::from(costs, cap, entry, policy, state);
        walk.start_on(walk.rules.first, Nanos::ZERO);
        walk
    }

    /// From where another walk came to, whose order of entry is the same up to and with the microbatch that was to enter next.
    pub(super) fn from(
        costs: &'a PipelineCosts,
        cap: &'a [Bytes],
        entry: &'a [usize],
        policy: Policy,
        state: State,
    ) -> Self {
        let ranks = costs.ranks();
        let places = places(entry, policy.forward_order, ranks);
        let chunks = costs.stages() / ranks;
        let in_flight_limit = (0..ranks)
            .map(|rank| match policy.extra_in_flight {
                None => u32::MAX,
                Some(extra) if chunks == 1 => (ranks - rank) as u32 + extra,
                Some(extra) => (2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1) as u32 + extra,
            })
            .collect();
        let first = costs.rank_of(0);
        Self { rules: Rules { costs, cap, policy, entry, places, in_flight_limit, first }, state }
    }

    /// To the end, or until it is certain to end no earlier than `before`. `pass` sees every moment at which nothing is half done.
    pub(super) fn run(&mut self, before: Nanos, mut pass: impl FnMut(&State)) {
        let mut woken = vec![false; self.state.ranks.len()];
        loop {
            pass(&self.state);
            let next = self.state.moments.iter().copied().min().unwrap_or(NEVER);
            if next == NEVER || self.state.certain_end >= before {
                return;
            }
            // Everything that happens at the same moment is seen before a rank chooses.
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

    /// The schedule and its end, where all is done and ends before `before`.
    pub(super) fn finish(self, before: Nanos) -> Option<(Schedule, Nanos)> {
        let Self { rules: Rules { costs, .. }, state: State { ranks, .. } } = self;
        let complete =
            ranks.iter().map(|rank| rank.order.len()).sum::<usize>() == 2 * costs.stages() * costs.microbatches();
        let ends = ranks.iter().enumerate().map(|(rank, own)| own.end + costs.sync[rank] + costs.optimizer[rank]);
        let end = ends.max().unwrap_or(Nanos::ZERO);
        let orders = ranks.into_iter().map(|rank| rank.order).collect();
        let schedule = Schedule { stages: costs.stages(), microbatches: costs.microbatches(), orders };
        (complete && end < before).then_some((schedule, end))
    }

    /// Takes note of what happens now by what a rank does, and of the ranks it concerns.
    fn happen(&mut self, rank: usize, now: Nanos, woken: &mut [bool]) {
        let own = &mut self.state.ranks[rank];
        if own.free == now {
            own.free = NEVER;
            woken[rank] = true;
            if let Some(action) = own.handed.take() {
                woken[self.arrive(now, action)] = true;
            }
        }
        let later = loop {
            let own = &mut self.state.ranks[rank];
            match own.sent.front() {
                Some(&(time, action)) if time == now => {
                    own.sent.pop_front();
                    woken[self.arrive(now, action)] = true;
                }
                Some(&(time, _)) => break time,
                None => break NEVER,
            }
        };
        self.state.moments[rank] = self.state.ranks[rank].free.min(later);
    }

    /// Makes an action ready and returns its rank.
    fn arrive(&mut self, time: Nanos, action: Action) -> usize {
        let rank = self.rules.costs.rank_of(action.stage as usize);
        let own = &mut self.state.ranks[rank];
        if action.kind == ActionKind::Forward {
            own.forwards.push(Reverse(self.rules.priority(action.stage, action.microbatch)));
        } else {
            let ready = (time, Reverse(action.stage), action.microbatch);
            let earlier = own.backwards.iter().rev().take_while(|&&other| other > ready).count();
            own.backwards.insert(own.backwards.len() - earlier, ready);
        }
        rank
    }

    /// Lets a free rank take the next action, if there is one it may take.
    fn start_on(&mut self, rank: usize, time: Nanos) {
        if self.state.ranks[rank].free != NEVER {
            return;
        }
        let forward = self.admissible_forward(rank);
        let own = &mut self.state.ranks[rank];
        let take_forward = match (forward.is_some(), own.backwards.is_empty()) {
            (false, true) => return,
            (true, false) => own.last != ActionKind::Forward,
            (forward_only, _) => forward_only,
        };
        if let Some((stage, microbatch)) = forward.filter(|_| take_forward) {
            if stage == 0 {
                self.state.entered += 1;
            } else {
                own.forwards.pop();
            }
            self.run_forward(rank, time, stage, microbatch);
        } else if let Some((_, Reverse(stage), microbatch)) = own.backwards.pop_front() {
            self.run_backward(rank, time, stage as usize, microbatch as usize);
        }
    }

    /// Stage and microbatch of the ready forward that goes first, where the rank may hold it.
    fn admissible_forward(&self, rank: usize) -> Option<(usize, usize)> {
        let own = &self.state.ranks[rank];
        let next = self.rules.entry.get(self.state.entered).filter(|_| rank == self.rules.first);
        let entering = next.map(|&microbatch| self.rules.priority(0, microbatch as u32));
        let there = own.forwards.peek().map(|&Reverse(priority)| priority);
        let first = entering.into_iter().chain(there).min()?;
        let (stage, microbatch) = self.rules.forward_of(first);
        let activation = self.rules.costs.activation[self.rules.costs.cell(stage, microbatch)];
        let fits = own.held + activation <= self.rules.cap[rank] && own.in_flight < self.rules.in_flight_limit[rank];
        fits.then_some((stage, microbatch))
    }

    fn run_forward(&mut self, rank: usize, time: Nanos, stage: usize, microbatch: usize) {
        let costs = self.rules.costs;
        let cell = costs.cell(stage, microbatch);
        let own = &mut self.state.ranks[rank];
        own.held += costs.activation[cell];
        own.in_flight += 1;
        let end = self.occupy(rank, time, Action::forward(stage, microbatch), costs.forward[cell]);
        if stage + 1 == costs.stages() {
            self.send(rank, end, Nanos::ZERO, Action::backward(stage, microbatch));
        } else {
            self.send(rank, end, costs.send_forward[cell], Action::forward(stage + 1, microbatch));
        }
    }

    fn run_backward(&mut self, rank: usize, time: Nanos, stage: usize, microbatch: usize) {
        let costs = self.rules.costs;
        let cell = costs.cell(stage, microbatch);
        let end = self.occupy(rank, time, Action::backward(stage, microbatch), costs.backward(cell));
        // The rank is busy until then, so its memory may be given back at once.
        let own = &mut self.state.ranks[rank];
        own.held = own.held.saturating_sub(costs.activation[cell]);
        own.in_flight -= 1;
        if stage > 0 {
            self.send(rank, end, costs.send_backward[cell], Action::backward(stage - 1, microbatch));
        }
    }

    fn occupy(&mut self, rank: usize, time: Nanos, action: Action, duration: Nanos) -> Nanos {
        let end = time + duration;
        let own = &mut self.state.ranks[rank];
        own.order.push(action);
        own.last = action.kind;
        own.end = end;
        own.left = own.left.saturating_sub(duration);
        self.state.certain_end = self.state.certain_end.max(end + own.left);
        own.free = end;
        self.state.moments[rank] = self.state.moments[rank].min(end);
        end
    }

    /// Lets what an action that ends at `ready` makes reach the next; one after the other on the rank's stream.
    fn send(&mut self, rank: usize, ready: Nanos, duration: Nanos, next: Action) {
        let own = &mut self.state.ranks[rank];
        if duration == Nanos::ZERO {
            own.handed = Some(next);
            return;
        }
        let arrival = ready.max(own.stream_free) + duration;
        own.stream_free = arrival;
        // Not the next moment: the action that makes it has to end before.
        own.sent.push_back((arrival, next));
    }
}

impl Rules<'_> {
    /// The least goes first: a forward by its stage and its microbatch's place in the order of entry.
    fn priority(&self, stage: u32, microbatch: u32) -> u64 {
        let (stage, place) = (u64::from(stage), self.places[microbatch as usize]);
        match self.policy.forward_order {
            ForwardOrder::DeepestFirst => (u64::from(u32::MAX) - stage) << 32 | place,
            ForwardOrder::Grouped => place | stage << BITS,
        }
    }

    /// Stage and microbatch of a ready forward.
    fn forward_of(&self, priority: u64) -> (usize, usize) {
        let (stage, place) = match self.policy.forward_order {
            ForwardOrder::DeepestFirst => (u32::MAX - (priority >> 32) as u32, priority as u32 as usize),
            ForwardOrder::Grouped => {
                let (group, within) = (priority >> (2 * BITS), priority & MASK);
                ((priority >> BITS & MASK) as u32, group as usize * self.costs.ranks() + within as usize)
            }
        };
        (stage as usize, self.entry[place])
    }
}

/// Bits of a stage, and of a place within its group.
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

/// Of every microbatch what its place in the order of entry adds to the priorities of its forwards.
fn places(entry: &[usize], forward_order: ForwardOrder, ranks: usize) -> Vec<u64> {
    let mut places = vec![0; entry.len()];
    match forward_order {
        ForwardOrder::DeepestFirst => {
            for (place, &microbatch) in (0..).zip(entry) {
                places[microbatch] = place;
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
