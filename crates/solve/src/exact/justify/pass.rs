//! List scheduling of a pipeline forward or backward in time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planscope_core::action::{Action, ActionKind, Schedule};
use planscope_core::units::Bytes;
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::simulate::execute;

/// Direction of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the first forward to the last backward.
    Forward,
    /// From the last backward to the first forward.
    Backward,
}

/// A pipeline for list scheduling. Cell `c` has the forward `2 c` and the backward `2 c + 1`.
#[derive(Debug)]
pub(super) struct Machine {
    /// Parity of the action that stores an activation: 0 forward in time, 1 backward in time.
    storing: usize,
    stages: usize,
    microbatches: usize,
    rank: Vec<usize>,
    /// Time of an action, in ns.
    time: Vec<u64>,
    /// Next action of the microbatch and the transfer time, in ns.
    next: Vec<Option<(usize, u64)>>,
    /// First action of each microbatch.
    first: Vec<usize>,
    /// Activation bytes per cell.
    stored: Vec<u64>,
    /// Bytes in use only while the backward of a cell runs.
    transient: Vec<u64>,
    /// Bytes per rank, without static memory.
    capacity: Vec<u64>,
    /// Time per rank after its last action, in ns.
    behind: Vec<u64>,
}

/// A list schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Iteration end, in ns.
    pub end: u64,
    /// Start per action, in ns.
    pub starts: Vec<u64>,
    /// Position of an action in the order of its rank, or any number that increases with it. Actions
    /// without duration can have equal starts.
    pub places: Vec<usize>,
}

/// State of a rank.
#[derive(Debug, Clone, Default)]
struct Rank {
    /// Available actions by priority: those that store an activation, and those that release one.
    available: [BinaryHeap<(i64, Reverse<usize>)>; 2],
    running: Option<usize>,
    /// End of the running action, in ns.
    end: u64,
    allocated: u64,
    in_flight: usize,
    stream_free: u64,
}

impl Machine {
    /// Builds the machine for a pipeline in which every microbatch visits all stages in order.
    pub(super) fn new(costs: &PipelineCosts, limit: Bytes, direction: Direction) -> Self {
        let (stages, microbatches) = (costs.stages(), costs.microbatches());
        let is_backward = direction == Direction::Backward;
        let count = 2 * stages * microbatches;
        let mut machine = Self {
            storing: usize::from(is_backward),
            stages,
            microbatches,
            rank: vec![0; count],
            time: vec![0; count],
            next: vec![None; count],
            first: (0..microbatches)
                .map(|microbatch| 2 * costs.cell(0, microbatch) + usize::from(is_backward))
                .collect(),
            stored: costs.activation.iter().map(|bytes| bytes.get()).collect(),
            transient: costs.transient.iter().map(|bytes| bytes.get()).collect(),
            capacity: costs.static_memory.iter().map(|&bytes| limit.saturating_sub(bytes).get()).collect(),
            behind: (0..costs.ranks()).map(|rank| (costs.sync[rank] + costs.optimizer[rank]).get()).collect(),
        };
        for cell in costs.cells() {
            let (forward, backward) = (2 * cell.index, 2 * cell.index + 1);
            for action in [forward, backward] {
                machine.rank[action] = costs.rank_for_stage(cell.stage);
            }
            machine.time[forward] = costs.forward[cell.index].get();
            machine.time[backward] = costs.backward(cell.index).get();
            let links = if cell.stage + 1 < stages {
                let other = costs.cell(cell.stage + 1, cell.microbatch);
                let sends = (costs.send_forward[cell.index].get(), costs.send_backward[other].get());
                vec![(forward, 2 * other, sends.0), (2 * other + 1, backward, sends.1)]
            } else {
                vec![(forward, backward, 0)]
            };
            for (from, into, send) in links {
                let (from, into) = if is_backward { (into, from) } else { (from, into) };
                machine.next[from] = Some((into, send));
            }
        }
        machine
    }

    /// Number of actions.
    pub(super) fn len(&self) -> usize {
        self.time.len()
    }

    pub(super) fn ranks(&self) -> usize {
        self.capacity.len()
    }

    pub(super) const fn microbatches(&self) -> usize {
        self.microbatches
    }

    pub(super) fn rank(&self, action: usize) -> usize {
        self.rank[action]
    }

    /// Time of an action, in ns.
    pub(super) fn time(&self, action: usize) -> u64 {
        self.time[action]
    }

    pub(super) fn microbatch(&self, action: usize) -> usize {
        action / 2 / self.stages
    }

    /// Schedules all actions. A free rank runs the available action with the highest `priority` that
    /// fits into memory, with at most `depth` activations in flight per rank. Returns `None` if memory
    /// blocks all ranks.
    pub(super) fn run(&self, priority: &[i64], depth: Option<&[usize]>) -> Option<Listed> {
        let mut ranks = vec![Rank::default(); self.ranks()];
        let (mut starts, mut places, mut place) = (vec![0; self.len()], vec![0; self.len()], 0);
        // Results in transfer, by arrival.
        let mut sent: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        for &action in &self.first {
            ranks[self.rank[action]].add(action, priority, self.storing);
        }
        let (mut now, mut left) = (0, self.len());
        let mut free: Vec<usize> = (0..self.ranks()).collect();
        loop {
            for &rank in &free {
                let depth = depth.map_or(usize::MAX, |depth| depth[rank]);
                if let Some(action) = self.take(&mut ranks[rank], rank, depth) {
                    starts[action] = now;
                    places[action] = place;
                    place += 1;
                    ranks[rank].end = now + self.time[action];
                }
            }
            free.clear();
            let running = ranks.iter().filter(|rank| rank.running.is_some()).map(|rank| rank.end);
            let arrival = sent.peek().map(|&Reverse((arrival, _))| arrival);
            let Some(next) = running.chain(arrival).min() else { break };
            now = next;
            for rank in 0..ranks.len() {
                if ranks[rank].end != now || ranks[rank].running.is_none() {
                    continue;
                }
                let Some(action) = ranks[rank].running.take() else { continue };
                left -= 1;
                self.release(&mut ranks[rank], action);
                free.push(rank);
                match self.next[action] {
                    Some((next, send)) if send > 0 => {
                        let arrival = now.max(ranks[rank].stream_free) + send;
                        ranks[rank].stream_free = arrival;
                        sent.push(Reverse((arrival, next)));
                    }
                    Some((next, _)) => {
                        free.push(self.rank[next]);
                        ranks[self.rank[next]].add(next, priority, self.storing);
                    }
                    None => {}
                }
            }
            while let Some(&Reverse((arrival, action))) = sent.peek()
                && arrival <= now
            {
                sent.pop();
                free.push(self.rank[action]);
                ranks[self.rank[action]].add(action, priority, self.storing);
            }
        }
        let ends = ranks.iter().zip(&self.behind).map(|(rank, behind)| rank.end + behind);
        let end = ends.max().unwrap_or(0);
        (left == 0).then_some(Listed { end, starts, places })
    }

    /// Takes the action that a free rank runs next.
    fn take(&self, rank: &mut Rank, number: usize, depth: usize) -> Option<usize> {
        if rank.running.is_some() {
            return None;
        }
        let (store, release) = (rank.available[0].peek().copied(), rank.available[1].peek().copied());
        let fits = |bytes: u64| rank.allocated.saturating_add(bytes) <= self.capacity[number];
        let needs = |action: usize| {
            let kept = if action % 2 == self.storing { self.stored[action / 2] } else { 0 };
            if action % 2 == 1 { kept.saturating_add(self.transient[action / 2]) } else { kept }
        };
        let store = store.filter(|&(_, Reverse(action))| rank.in_flight < depth && fits(needs(action)));
        let release = release.filter(|&(_, Reverse(action))| fits(needs(action)));
        let (_, Reverse(action)) = store.max(release)?;
        let is_storing = action % 2 == self.storing;
        rank.available[usize::from(!is_storing)].pop();
        if is_storing {
            rank.allocated += self.stored[action / 2];
            rank.in_flight += 1;
        }
        rank.running = Some(action);
        Some(action)
    }

    fn release(&self, rank: &mut Rank, action: usize) {
        if action % 2 != self.storing {
            rank.allocated -= self.stored[action / 2];
            rank.in_flight -= 1;
        }
    }

    /// Next action of the microbatch and the transfer time in ns.
    pub(super) fn next(&self, action: usize) -> Option<(usize, u64)> {
        self.next[action]
    }

    /// Time after the last action of a rank, in ns.
    pub(super) fn behind(&self, rank: usize) -> u64 {
        self.behind[rank]
    }

    /// Returns whether actions fit into the memory of a rank after those `before` them. Only forward in
    /// time.
    pub(super) fn fits(&self, rank: usize, before: &[usize], mut then: impl Iterator<Item = usize>) -> bool {
        let mut allocated = 0_u64;
        for &action in before {
            if action.is_multiple_of(2) {
                allocated += self.stored[action / 2];
            } else {
                allocated -= self.stored[action / 2];
            }
        }
        then.all(|action| {
            let bytes = self.stored[action / 2];
            if action.is_multiple_of(2) {
                allocated += bytes;
                return allocated <= self.capacity[rank];
            }
            // A backward before its forward is no order; the simulation refuses it.
            let peak = allocated.saturating_add(self.transient[action / 2]);
            allocated = allocated.saturating_sub(bytes);
            peak <= self.capacity[rank]
        })
    }

    /// Returns the actions of each rank in order.
    pub(super) fn orders(&self, listed: &Listed) -> Vec<Vec<usize>> {
        let mut orders: Vec<Vec<usize>> = vec![Vec::new(); self.ranks()];
        for action in 0..self.len() {
            orders[self.rank[action]].push(action);
        }
        for order in &mut orders {
            order.sort_by_key(|&action| listed.places[action]);
        }
        orders
    }

    /// Returns the schedule with the order of a list schedule.
    pub(super) fn schedule(&self, listed: &Listed) -> Schedule {
        let named = |action: usize| {
            let (microbatch, stage) = (action / 2 / self.stages, action / 2 % self.stages);
            if action.is_multiple_of(2) {
                Action::forward(stage, microbatch)
            } else {
                Action::backward(stage, microbatch)
            }
        };
        let orders = self.orders(listed).into_iter().map(|order| order.into_iter().map(named).collect()).collect();
        Schedule { stages: self.stages, microbatches: self.microbatches, orders }
    }

    /// Returns a schedule without split backwards that ends at `end` ns, or `None` if it does not run.
    pub(super) fn listed(&self, end: u64, schedule: &Schedule, costs: &PipelineCosts) -> Option<Listed> {
        let execution = execute(schedule, costs).ok()?;
        let mut listed = Listed { end, starts: vec![0; self.len()], places: vec![0; self.len()] };
        for (order, times) in schedule.orders.iter().zip(&execution.start) {
            for (place, (action, start)) in order.iter().zip(times).enumerate() {
                let cell = costs.cell(action.stage as usize, action.microbatch as usize);
                let index = 2 * cell + usize::from(action.kind != ActionKind::Forward);
                (listed.starts[index], listed.places[index]) = (start.get(), place);
            }
        }
        Some(listed)
    }
}

impl Rank {
    fn add(&mut self, action: usize, priority: &[i64], storing: usize) {
        self.available[usize::from(action % 2 != storing)].push((priority[action], Reverse(action)));
    }
}
