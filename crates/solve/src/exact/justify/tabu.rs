//! Tabu search with estimated moves on the critical path.
//!
//! A move takes an action to another position within its block, a run of actions without idle time on
//! the critical path (Nowicki and Smutnicki, 1996; Balas and Vazacopoulos, 1998). The end after a move
//! is estimated from the heads and tails of the moved actions, so that a step simulates one order
//! instead of one per move. Queues of sends are ignored; the caller simulates the result.

use std::collections::BTreeMap;

use super::pass::{Listed, Machine};
use planscope_core::random::Random;

/// Minimum number of steps for which a move must not be reverted.
const TENURE: u64 = 10;
/// Steps without an improvement before the search restarts from the best order with random swaps.
const PATIENCE: u64 = 3000;
/// Actions per end of a block that are moved to either end.
const REACH: usize = 8;

/// A move of the action at `from` to `to` in the order of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Move {
    rank: usize,
    from: usize,
    to: usize,
}

/// Orders of all ranks with heads and tails.
pub(super) struct Tabu<'a> {
    machine: &'a Machine,
    previous: Vec<Option<(usize, u64)>>,
    orders: Vec<Vec<usize>>,
    position: Vec<usize>,
    /// Earliest start per action, in ns.
    head: Vec<u64>,
    /// Time from the end of an action to the iteration end, in ns.
    tail: Vec<u64>,
    /// Actions in an order in which all predecessors come first.
    sorted: Vec<usize>,
    open: Vec<u8>,
    end: u64,
    best: (u64, Vec<Vec<usize>>),
    /// Pairs (a, b) for which a must not move before b, with the last step.
    forbidden: BTreeMap<(usize, usize), u64>,
    step: u64,
    improved: u64,
}

impl<'a> Tabu<'a> {
    /// Starts from a schedule. Returns `None` if it does not run.
    pub(super) fn new(machine: &'a Machine, listed: &Listed) -> Option<Self> {
        let mut previous = vec![None; machine.len()];
        for action in 0..machine.len() {
            if let Some((next, send)) = machine.next(action) {
                previous[next] = Some((action, send));
            }
        }
        let orders = machine.orders(listed);
        let mut tabu = Self {
            machine,
            previous,
            position: vec![0; machine.len()],
            head: vec![0; machine.len()],
            tail: vec![0; machine.len()],
            sorted: Vec::with_capacity(machine.len()),
            open: vec![0; machine.len()],
            end: 0,
            best: (u64::MAX, orders.clone()),
            orders,
            forbidden: BTreeMap::new(),
            step: 0,
            improved: 0,
        };
        tabu.place();
        tabu.end = tabu.evaluate()?;
        tabu.best.0 = tabu.end;
        Some(tabu)
    }

    /// Returns the schedule with the smallest end.
    pub(super) fn finish(mut self) -> Listed {
        self.orders.clone_from(&self.best.1);
        self.place();
        let end = self.evaluate().unwrap_or(u64::MAX);
        Listed { end, starts: self.head, places: self.position }
    }

    /// Runs `steps` steps.
    pub(super) fn run(&mut self, steps: u64, random: &mut Random) {
        for _ in 0..steps {
            self.step += 1;
            if self.step - self.improved > PATIENCE || !self.advance(random) {
                self.restart(random);
            }
            if self.end < self.best.0 {
                self.best.0 = self.end;
                self.best.1.clone_from(&self.orders);
                self.improved = self.step;
            }
        }
    }

    /// Applies the move with the smallest estimated end. Returns false if there is none.
    fn advance(&mut self, random: &mut Random) -> bool {
        let mut selected: Option<((bool, u64), Move)> = None;
        let mut heads = Vec::new();
        for candidate in self.moves(random) {
            let Some(end) = self.estimate(candidate, &mut heads) else { continue };
            let key = (self.is_forbidden(candidate) && end >= self.best.0, end);
            if selected.is_none_or(|(smallest, _)| key < smallest) {
                selected = Some((key, candidate));
            }
        }
        let Some((_, Move { rank, from, to })) = selected else { return false };
        let moved = self.orders[rank][from];
        for at in from.min(to)..=from.max(to) {
            let other = self.orders[rank][at];
            if other != moved {
                // The reverse of the new order is forbidden.
                let pair = if to > from { (moved, other) } else { (other, moved) };
                self.forbidden.insert(pair, self.step + TENURE + random.below(TENURE));
            }
        }
        self.shift(Move { rank, from, to });
        if let Some(end) = self.evaluate() {
            self.end = end;
        } else {
            self.shift(Move { rank, from: to, to: from });
            self.end = self.evaluate().unwrap_or(u64::MAX);
        }
        true
    }

    /// Continues from the best order with some random swaps of neighbors.
    fn restart(&mut self, random: &mut Random) {
        self.orders.clone_from(&self.best.1);
        self.place();
        self.forbidden.clear();
        self.improved = self.step;
        self.end = self.evaluate().unwrap_or(u64::MAX);
        let mut heads = Vec::new();
        for _ in 0..5 + random.below(10) {
            let rank = random.below(self.orders.len() as u64) as usize;
            if self.orders[rank].len() < 2 {
                continue;
            }
            let from = random.below(self.orders[rank].len() as u64 - 1) as usize;
            let swap = Move { rank, from, to: from + 1 };
            if self.estimate(swap, &mut heads).is_some() {
                self.shift(swap);
                if self.evaluate().is_none() {
                    self.shift(swap);
                }
            }
        }
        self.end = self.evaluate().unwrap_or(u64::MAX);
    }

    fn is_forbidden(&self, Move { rank, from, to }: Move) -> bool {
        let moved = self.orders[rank][from];
        (from.min(to)..=from.max(to)).any(|at| {
            let other = self.orders[rank][at];
            let pair = if to > from { (other, moved) } else { (moved, other) };
            other != moved && self.forbidden.get(&pair).is_some_and(|&until| until > self.step)
        })
    }

    /// Returns the moves in the blocks of one critical path.
    fn moves(&self, random: &mut Random) -> Vec<Move> {
        let mut moves = Vec::new();
        let ends = |&action: &usize| self.head[action] + self.machine.time(action) + self.tail[action] == self.end;
        let last: Vec<usize> =
            self.orders.iter().filter_map(|order| order.last().copied()).filter(|action| ends(action)).collect();
        if last.is_empty() {
            return moves;
        }
        let mut action = last[random.below(last.len() as u64) as usize];
        loop {
            let rank = self.machine.rank(action);
            let order = &self.orders[rank];
            let block_end = self.position[action];
            let mut block_start = block_end;
            while block_start > 0 {
                let (before, here) = (order[block_start - 1], order[block_start]);
                let is_after = self.head[before] + self.machine.time(before) == self.head[here];
                let waits = self.arrival(here) == self.head[here];
                if self.head[here] == 0 || !is_after || (waits && random.below(4) == 0) {
                    break;
                }
                block_start -= 1;
            }
            self.block_moves(rank, (block_start, block_end), random, &mut moves);
            let first = order[block_start];
            match self.previous[first] {
                Some((previous, _)) if self.head[first] > 0 && self.arrival(first) == self.head[first] => {
                    action = previous;
                }
                _ => return moves,
            }
        }
    }

    /// Adds the moves of a block: neighbors at its ends, actions near its ends to either end, and a
    /// random action.
    fn block_moves(&self, rank: usize, (start, end): (usize, usize), random: &mut Random, moves: &mut Vec<Move>) {
        if start == end {
            return;
        }
        let mut add = |from: usize, to: usize| {
            let candidate = Move { rank, from, to };
            if from != to && self.keeps_running(candidate) {
                moves.push(candidate);
            }
        };
        add(start, start + 1);
        add(end - 1, end);
        for at in (start + 2..=end).take(REACH) {
            add(at, start);
            add(start, at);
        }
        for at in (start..end.saturating_sub(1)).rev().take(REACH) {
            add(at, end);
            add(end, at);
        }
        if end - start > 4 {
            let at = start + 1 + random.below((end - start - 1) as u64) as usize;
            add(at, start);
            add(at, end);
            add(at, at + 1);
        }
    }

    /// Returns whether a move certainly creates no cycle.
    fn keeps_running(&self, Move { rank, from, to }: Move) -> bool {
        let order = &self.orders[rank];
        let moved = order[from];
        let end = |action: usize| self.head[action] + self.machine.time(action);
        if to > from {
            let Some((next, _)) = self.machine.next(moved) else { return true };
            order[from + 1..=to].iter().all(|&other| other != next && end(next) > self.head[other])
        } else {
            let Some((previous, _)) = self.previous[moved] else { return true };
            order[to..from].iter().all(|&other| {
                let leads = self.machine.next(other);
                other != previous && leads.is_none_or(|(next, _)| next != previous && end(next) > self.head[previous])
            })
        }
    }

    /// Estimates the end after a move, or returns `None` if the rank exceeds its memory. `heads` is a
    /// scratch buffer.
    fn estimate(&self, candidate: Move, heads: &mut Vec<u64>) -> Option<u64> {
        let Move { rank, from, to } = candidate;
        let order = &self.orders[rank];
        let (start, end) = (from.min(to), from.max(to));
        let moved = order[from];
        let at = |index: usize| {
            if index == to {
                moved
            } else if to > from {
                order[index + 1]
            } else {
                order[index - 1]
            }
        };
        if !self.machine.fits(rank, &order[..start], (start..=end).map(at)) {
            return None;
        }
        heads.clear();
        let mut free =
            start.checked_sub(1).map_or(0, |index| self.head[order[index]] + self.machine.time(order[index]));
        for index in start..=end {
            let action = at(index);
            let head = free.max(self.arrival(action));
            free = head + self.machine.time(action);
            heads.push(head);
        }
        let mut behind = order
            .get(end + 1)
            .map_or_else(|| self.machine.behind(rank), |&next| self.machine.time(next) + self.tail[next]);
        let mut longest = 0;
        for index in (start..=end).rev() {
            let action = at(index);
            let tail = behind.max(self.departure(action));
            behind = tail + self.machine.time(action);
            longest = longest.max(heads[index - start] + behind);
        }
        Some(longest)
    }

    /// Arrival of the input of an action.
    fn arrival(&self, action: usize) -> u64 {
        self.previous[action].map_or(0, |(input, send)| self.head[input] + self.machine.time(input) + send)
    }

    /// Time from the end of an action to the iteration end along its microbatch.
    fn departure(&self, action: usize) -> u64 {
        self.machine.next(action).map_or(0, |(next, send)| send + self.machine.time(next) + self.tail[next])
    }

    fn shift(&mut self, Move { rank, from, to }: Move) {
        let order = &mut self.orders[rank];
        let moved = order.remove(from);
        order.insert(to, moved);
        let first = from.min(to);
        for (offset, &action) in order[first..=from.max(to)].iter().enumerate() {
            self.position[action] = first + offset;
        }
    }

    fn place(&mut self) {
        for order in &self.orders {
            for (index, &action) in order.iter().enumerate() {
                self.position[action] = index;
            }
        }
    }

    /// Computes heads and tails. Returns the end, or `None` if the orders deadlock.
    fn evaluate(&mut self) -> Option<u64> {
        let count = self.machine.len();
        self.sorted.clear();
        for action in 0..count {
            self.open[action] = u8::from(self.previous[action].is_some()) + u8::from(self.position[action] > 0);
            if self.open[action] == 0 {
                self.sorted.push(action);
            }
        }
        let mut next = 0;
        while let Some(&action) = self.sorted.get(next) {
            next += 1;
            let (order, index) = (&self.orders[self.machine.rank(action)], self.position[action]);
            let free = index.checked_sub(1).map_or(0, |at| self.head[order[at]] + self.machine.time(order[at]));
            self.head[action] = free.max(self.arrival(action));
            let followers = [self.machine.next(action).map(|(next, _)| next), order.get(index + 1).copied()];
            for follower in followers.into_iter().flatten() {
                self.open[follower] -= 1;
                if self.open[follower] == 0 {
                    self.sorted.push(follower);
                }
            }
        }
        if self.sorted.len() < count {
            return None;
        }
        let mut end = 0;
        for at in (0..count).rev() {
            let action = self.sorted[at];
            let rank = self.machine.rank(action);
            let after = self.orders[rank].get(self.position[action] + 1).copied();
            let behind =
                after.map_or_else(|| self.machine.behind(rank), |after| self.machine.time(after) + self.tail[after]);
            self.tail[action] = behind.max(self.departure(action));
            end = end.max(self.head[action] + self.machine.time(action) + self.tail[action]);
        }
        Some(end)
    }
}
