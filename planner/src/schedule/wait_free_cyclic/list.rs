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
/// synchronisation and optimizer included.
pub fn list_schedule(
    costs: &PipelineCosts,
    cap: &[Bytes],
    entry: &[usize],
    policy: Policy,
) -> Option<(Schedule, Nanos)> {
    let mut walk = Walk::new(costs, cap, entry, policy);
    walk.run();
    let complete = walk.orders.iter().map(Vec::len).sum::<usize>() == 2 * costs.stages() * costs.microbatches();
    let schedule = Schedule { stages: costs.stages(), microbatches: costs.microbatches(), orders: walk.orders };
    let ends = walk.rank_end.iter().enumerate().map(|(rank, &end)| end + costs.sync[rank] + costs.optimizer[rank]);
    let end = ends.max().unwrap_or(Nanos::ZERO);
    complete.then_some((schedule, end))
}

/// Something that happens at a time: an input arrives at a stage, or a rank becomes free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives(Action),
    Frees(usize),
}

/// Ready forwards by priority, then stage and microbatch.
type ForwardQueue = BinaryHeap<Reverse<((u32, u32, u32), u32, u32)>>;

/// Ready backwards by time of arrival, then deepest stage and microbatch.
type BackwardQueue = BinaryHeap<Reverse<(Nanos, Reverse<u32>, u32)>>;

struct Walk<'a> {
    costs: &'a PipelineCosts,
    cap: &'a [Bytes],
    policy: Policy,
    /// Place of each microbatch in the order of entry.
    position: Vec<u32>,
    in_flight_limit: Vec<u32>,
    events: BinaryHeap<Reverse<(Nanos, Event)>>,
    forwards: Vec<ForwardQueue>,
    backwards: Vec<BackwardQueue>,
    busy: Vec<bool>,
    stream_free: Vec<Nanos>,
    held: Vec<Bytes>,
    in_flight: Vec<u32>,
    last: Vec<ActionKind>,
    rank_end: Vec<Nanos>,
    orders: Vec<Vec<Action>>,
}

impl<'a> Walk<'a> {
    fn new(costs: &'a PipelineCosts, cap: &'a [Bytes], entry: &[usize], policy: Policy) -> Self {
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
        let mut walk = Self {
            costs,
            cap,
            policy,
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
            orders: vec![Vec::with_capacity(2 * chunks * costs.microbatches()); ranks],
        };
        for microbatch in 0..costs.microbatches() {
            walk.arrive(Nanos::ZERO, Action::forward(0, microbatch));
        }
        walk
    }

    fn run(&mut self) {
        self.start_on(0, Nanos::ZERO);
        while let Some(Reverse((time, event))) = self.events.pop() {
            let rank = self.happen(time, event);
            // Everything that happens at the same moment is seen before a rank chooses.
            let more_here = self.events.peek().is_some_and(|Reverse((next, _))| *next == time);
            if more_here {
                let mut ranks = vec![rank];
                while let Some(Reverse((next, _))) = self.events.peek() {
                    if *next != time {
                        break;
                    }
                    let Some(Reverse((_, event))) = self.events.pop() else { break };
                    ranks.push(self.happen(time, event));
                }
                ranks.sort_unstable();
                ranks.dedup();
                for rank in ranks {
                    self.start_on(rank, time);
                }
            } else {
                self.start_on(rank, time);
            }
        }
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
                ForwardOrder::DeepestFirst => (u32::MAX - action.stage, position, 0),
                ForwardOrder::Grouped => (position / self.costs.ranks() as u32, action.stage, position),
            };
            self.forwards[rank].push(Reverse((priority, action.stage, action.microbatch)));
        } else {
            self.backwards[rank].push(Reverse((time, Reverse(action.stage), action.microbatch)));
        }
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
        } else if let Some(Reverse((_, Reverse(stage), microbatch))) = self.backwards[rank].pop() {
            self.run_backward(rank, time, stage as usize, microbatch as usize);
        }
    }

    fn admissible_forward(&self, rank: usize) -> Option<(usize, usize)> {
        let &Reverse((_, stage, microbatch)) = self.forwards[rank].peek()?;
        let (stage, microbatch) = (stage as usize, microbatch as usize);
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
            self.events.push(Reverse((end, Event::Arrives(Action::backward(stage, microbatch)))));
        } else {
            let arrival = self.send(rank, end, self.costs.send_forward[cell]);
            self.events.push(Reverse((arrival, Event::Arrives(Action::forward(stage + 1, microbatch)))));
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
            self.events.push(Reverse((arrival, Event::Arrives(Action::backward(stage - 1, microbatch)))));
        }
    }

    fn occupy(&mut self, rank: usize, time: Nanos, action: Action, duration: Nanos) -> Nanos {
        let end = time + duration;
        self.orders[rank].push(action);
        self.last[rank] = action.kind;
        self.busy[rank] = true;
        self.rank_end[rank] = end;
        self.events.push(Reverse((end, Event::Frees(rank))));
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
