//! List scheduling in time: a free rank never waits while something it may do is ready.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cost::PipelineCosts;
use crate::schedule::{Action, ActionKind, Schedule};
use crate::units::{Bytes, Nanos};

/// Which of several ready forwards of a rank goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardOrder {
    /// The deepest chunk: drains what is in flight before it lets more in.
    DeepestFirst,
    /// Groups of as many microbatches as ranks run through one chunk after the other, as the interleaved
    /// schedule does.
    Grouped,
}

/// How a rank chooses among what is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Which forward goes first.
    pub forward_order: ForwardOrder,
    /// Activations that a rank may hold beyond those of the fixed schedule's warm-up; `None`: as memory allows.
    pub extra_in_flight: Option<u32>,
}

/// Builds the order of every rank; microbatch `entry[0]` enters first.
///
/// A forward starts only while the rank's activations stay within its cap, a backward always may. With one chunk
/// that cannot deadlock as long as each microbatch alone fits: the last rank always can go on, and by induction
/// so can the one before it. With several chunks it can, when early chunks take the memory that later chunks of
/// the same microbatches need; then, as when a microbatch alone does not fit, there is no schedule: `None`.
///
/// `cap` is what each rank may hold above its static memory. With the schedule comes the end of the iteration,
/// synchronisation and optimizer included. A schedule that does not end before `before` is given up as soon as that is
/// certain: `None` too.
pub fn list_schedule(
    costs: &PipelineCosts,
    cap: &[Bytes],
    entry: &[usize],
    policy: Policy,
    before: Nanos,
) -> Option<(Schedule, Nanos)> {
    let mut walk = Walk::new(costs, cap, entry, policy);
    walk.run(before);
    let complete = walk.orders.iter().map(Vec::len).sum::<usize>() == 2 * costs.stages() * costs.microbatches();
    let schedule = Schedule { stages: costs.stages(), microbatches: costs.microbatches(), orders: walk.orders };
    let ends = walk.rank_end.iter().enumerate().map(|(rank, &end)| end + costs.sync[rank] + costs.optimizer[rank]);
    let end = ends.max().unwrap_or(Nanos::ZERO);
    (complete && end < before).then_some((schedule, end))
}

/// Something that happens: an input arrives at a stage, or a rank becomes free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Arrives(Action),
    Frees(usize),
}

/// What is compared as one number, the least first: heaps are where the time of a search goes.
type Queue = BinaryHeap<Reverse<u128>>;

/// A moment and what happens then, as one number that grows with the time; at one moment the order does not matter.
fn moment(time: Nanos, event: Event) -> u128 {
    let (kind, stage, microbatch) = match event {
        Event::Frees(rank) => (0, rank as u32, 0),
        Event::Arrives(Action { kind: ActionKind::Forward, stage, microbatch, .. }) => (1, stage, microbatch),
        Event::Arrives(Action { stage, microbatch, .. }) => (2, stage, microbatch),
    };
    u128::from(time.get()) << 64 | kind << 62 | u128::from(stage) << 32 | u128::from(microbatch)
}

/// The moment and what happens then.
fn happening(moment: u128) -> (Nanos, Event) {
    let (stage, microbatch) = ((moment >> 32) as usize & 0x3fff_ffff, moment as u32 as usize);
    let event = match moment >> 62 & 3 {
        0 => Event::Frees(stage),
        1 => Event::Arrives(Action::forward(stage, microbatch)),
        _ => Event::Arrives(Action::backward(stage, microbatch)),
    };
    (Nanos::new((moment >> 64) as u64), event)
}

/// Three numbers as one, compared one after the other.
fn three(first: u32, second: u32, third: u32) -> u128 {
    u128::from(first) << 64 | u128::from(second) << 32 | u128::from(third)
}

struct Walk<'a> {
    costs: &'a PipelineCosts,
    cap: &'a [Bytes],
    policy: Policy,
    /// Microbatches in the order of entry.
    entry: &'a [usize],
    /// Place of each microbatch in that order.
    position: Vec<u32>,
    in_flight_limit: Vec<u32>,
    /// What is to happen, by [`moment`].
    events: Queue,
    /// Ready forwards of every rank, by priority.
    forwards: Vec<Queue>,
    /// Ready backwards of every rank, by time of arrival, then deepest stage and microbatch.
    backwards: Vec<Queue>,
    busy: Vec<bool>,
    stream_free: Vec<Nanos>,
    held: Vec<Bytes>,
    in_flight: Vec<u32>,
    last: Vec<ActionKind>,
    rank_end: Vec<Nanos>,
    /// What every rank is still to do, synchronisation and optimizer included.
    left: Vec<Nanos>,
    /// The latest of all ends that are certain by now: a rank's last action and what it is still to do.
    certain_end: Nanos,
    orders: Vec<Vec<Action>>,
}

impl<'a> Walk<'a> {
    fn new(costs: &'a PipelineCosts, cap: &'a [Bytes], entry: &'a [usize], policy: Policy) -> Self {
        let ranks = costs.ranks();
        let mut position = vec![0; costs.microbatches()];
        for (place, &microbatch) in entry.iter().enumerate() {
            position[microbatch] = place as u32;
        }
        let chunks = costs.stages() / ranks;
        let in_flight_limit = (0..ranks)
            .map(|rank| match policy.extra_in_flight {
                None => u32::MAX,
                Some(extra) if chunks == 1 => (ranks - rank) as u32 + extra,
                Some(extra) => (2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1) as u32 + extra,
            })
            .collect();
        let mut left: Vec<Nanos> = (0..ranks).map(|rank| costs.sync[rank] + costs.optimizer[rank]).collect();
        for cell in costs.cells() {
            left[costs.rank_of(cell.stage)] += costs.forward[cell.index] + costs.backward(cell.index);
        }
        let mut walk = Self {
            costs,
            cap,
            policy,
            entry,
            position,
            in_flight_limit,
            events: BinaryHeap::new(),
            forwards: vec![BinaryHeap::new(); ranks],
            backwards: vec![BinaryHeap::new(); ranks],
            busy: vec![false; ranks],
            stream_free: vec![Nanos::ZERO; ranks],
            held: vec![Bytes::ZERO; ranks],
            in_flight: vec![0; ranks],
            last: vec![ActionKind::Backward; ranks],
            rank_end: vec![Nanos::ZERO; ranks],
            left,
            certain_end: Nanos::ZERO,
            orders: vec![Vec::with_capacity(2 * chunks * costs.microbatches()); ranks],
        };
        for microbatch in 0..costs.microbatches() {
            walk.arrive(Nanos::ZERO, Action::forward(0, microbatch));
        }
        walk
    }

    fn run(&mut self, before: Nanos) {
        self.start_on(0, Nanos::ZERO);
        let mut ranks = Vec::new();
        while let Some(Reverse(next)) = self.events.pop() {
            if self.certain_end >= before {
                return;
            }
            let (time, event) = happening(next);
            let rank = self.happen(time, event);
            // Everything that happens at the same moment is seen before a rank chooses.
            if !self.is_next_at(next) {
                self.start_on(rank, time);
                continue;
            }
            ranks.clear();
            ranks.push(rank);
            while self.is_next_at(next) {
                let Some(Reverse(same)) = self.events.pop() else { break };
                ranks.push(self.happen(time, happening(same).1));
            }
            ranks.sort_unstable();
            ranks.dedup();
            for &rank in &ranks {
                self.start_on(rank, time);
            }
        }
    }

    /// Whether something else happens at the same moment.
    fn is_next_at(&self, moment: u128) -> bool {
        self.events.peek().is_some_and(|Reverse(next)| next >> 64 == moment >> 64)
    }

    /// Takes note of an event and returns the rank it concerns.
    fn happen(&mut self, time: Nanos, event: Event) -> usize {
        match event {
            Event::Frees(rank) => {
                self.busy[rank] = false;
                rank
            }
            Event::Arrives(action) => {
                self.arrive(time, action);
                self.costs.rank_of(action.stage as usize)
            }
        }
    }

    fn arrive(&mut self, time: Nanos, action: Action) {
        let rank = self.costs.rank_of(action.stage as usize);
        if action.kind == ActionKind::Forward {
            let position = self.position[action.microbatch as usize];
            let priority = match self.policy.forward_order {
                ForwardOrder::DeepestFirst => three(0, u32::MAX - action.stage, position),
                ForwardOrder::Grouped => three(position / self.costs.ranks() as u32, action.stage, position),
            };
            self.forwards[rank].push(Reverse(priority));
        } else {
            let latest_first = u32::MAX - action.stage;
            let time = u128::from(time.get());
            self.backwards[rank].push(Reverse(time << 64 | three(0, latest_first, action.microbatch)));
        }
    }

    /// Stage and microbatch of a ready forward.
    fn forward_of(&self, priority: u128) -> (usize, usize) {
        let (stage, position) = ((priority >> 32) as u32, priority as u32);
        let stage = match self.policy.forward_order {
            ForwardOrder::DeepestFirst => u32::MAX - stage,
            ForwardOrder::Grouped => stage,
        };
        (stage as usize, self.entry[position as usize])
    }

    /// Lets a free rank take the next action, if there is one it may take.
    fn start_on(&mut self, rank: usize, time: Nanos) {
        if self.busy[rank] {
            return;
        }
        let forward = self.admissible_forward(rank);
        let backward_ready = !self.backwards[rank].is_empty();
        let take_forward = match (forward.is_some(), backward_ready) {
            (false, false) => return,
            (true, true) => self.last[rank] != ActionKind::Forward,
            (forward_only, _) => forward_only,
        };
        if take_forward {
            self.forwards[rank].pop();
            let (stage, microbatch) = forward.expect("a forward is taken only where one is admissible");
            self.run_forward(rank, time, stage, microbatch);
        } else if let Some(Reverse(ready)) = self.backwards[rank].pop() {
            let stage = u32::MAX - (ready >> 32) as u32;
            self.run_backward(rank, time, stage as usize, ready as u32 as usize);
        }
    }

    fn admissible_forward(&self, rank: usize) -> Option<(usize, usize)> {
        let &Reverse(priority) = self.forwards[rank].peek()?;
        let (stage, microbatch) = self.forward_of(priority);
        let activation = self.costs.activation[self.costs.cell(stage, microbatch)];
        let fits = self.held[rank] + activation <= self.cap[rank] && self.in_flight[rank] < self.in_flight_limit[rank];
        fits.then_some((stage, microbatch))
    }

    fn run_forward(&mut self, rank: usize, time: Nanos, stage: usize, microbatch: usize) {
        let cell = self.costs.cell(stage, microbatch);
        self.held[rank] += self.costs.activation[cell];
        self.in_flight[rank] += 1;
        let end = self.occupy(rank, time, Action::forward(stage, microbatch), self.costs.forward[cell]);
        if stage + 1 == self.costs.stages() {
            self.events.push(Reverse(moment(end, Event::Arrives(Action::backward(stage, microbatch)))));
        } else {
            let arrival = self.send(rank, end, self.costs.send_forward[cell]);
            self.events.push(Reverse(moment(arrival, Event::Arrives(Action::forward(stage + 1, microbatch)))));
        }
    }

    fn run_backward(&mut self, rank: usize, time: Nanos, stage: usize, microbatch: usize) {
        let cell = self.costs.cell(stage, microbatch);
        let end = self.occupy(rank, time, Action::backward(stage, microbatch), self.costs.backward(cell));
        // The rank is busy until then, so its memory may be given back at once.
        self.held[rank] = self.held[rank].saturating_sub(self.costs.activation[cell]);
        self.in_flight[rank] -= 1;
        if stage > 0 {
            let arrival = self.send(rank, end, self.costs.send_backward[cell]);
            self.events.push(Reverse(moment(arrival, Event::Arrives(Action::backward(stage - 1, microbatch)))));
        }
    }

    fn occupy(&mut self, rank: usize, time: Nanos, action: Action, duration: Nanos) -> Nanos {
        let end = time + duration;
        self.orders[rank].push(action);
        self.last[rank] = action.kind;
        self.busy[rank] = true;
        self.rank_end[rank] = end;
        self.left[rank] = self.left[rank].saturating_sub(duration);
        self.certain_end = self.certain_end.max(end + self.left[rank]);
        self.events.push(Reverse(moment(end, Event::Frees(rank))));
        end
    }

    fn send(&mut self, rank: usize, ready: Nanos, duration: Nanos) -> Nanos {
        if duration == Nanos::ZERO {
            return ready;
        }
        let arrival = ready.max(self.stream_free[rank]) + duration;
        self.stream_free[rank] = arrival;
        arrival
    }
}
