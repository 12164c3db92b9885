//! Action queue per rank, and selection of the rank with the earliest action.
//!
//! Readiness is monotonic: phases, oldest waves and the times at which ranks become free only
//! increase. Therefore an action moves through a small number of heaps and is never examined in
//! vain.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planscope_core::units::Nanos;

/// A queued action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    /// Time when all inputs are available.
    pub ready: Nanos,
    pub order: Order,
    pub stage: u32,
}

/// Precedence of actions that can start at the same time: backwards, then lower wave, then lower
/// item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    pub is_forward: bool,
    pub wave: u32,
    pub item: u32,
}

/// Start time and precedence.
pub(super) type Key = (Nanos, Order);

/// Queued actions of a rank. Inputs are available or pending.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Time when the rank becomes free.
    pub free: Nanos,
    /// Actions in later phases, by phase.
    later_phases: BinaryHeap<Reverse<(u32, Waiting)>>,
    /// Actions whose inputs arrive after `free`.
    coming: BinaryHeap<Reverse<Waiting>>,
    /// Actions whose inputs are available at `free`.
    here: BinaryHeap<Reverse<(Order, u32, Nanos)>>,
}

impl Queue {
    /// Defers an action to its phase.
    pub(super) fn defer(&mut self, phase: u32, waiting: Waiting) {
        self.later_phases.push(Reverse((phase, waiting)));
    }

    /// Removes a deferred action of a started phase; `None` if there is none.
    pub(super) fn take_up(&mut self, phase: usize) -> Option<Waiting> {
        let Reverse((first, _)) = self.later_phases.peek()?;
        if *first as usize > phase {
            return None;
        }
        self.later_phases.pop().map(|Reverse((_, waiting))| waiting)
    }

    /// Adds an action that depends only on its inputs and on the rank.
    pub(super) fn admit(&mut self, waiting: Waiting) {
        if waiting.ready <= self.free {
            self.here.push(Reverse((waiting.order, waiting.stage, waiting.ready)));
        } else {
            self.coming.push(Reverse(waiting));
        }
    }

    /// Marks the rank as busy until `until`.
    pub(super) fn occupy(&mut self, until: Nanos) {
        self.free = until;
        while self.coming.peek().is_some_and(|Reverse(entry)| entry.ready <= until) {
            if let Some(Reverse(waiting)) = self.coming.pop() {
                self.here.push(Reverse((waiting.order, waiting.stage, waiting.ready)));
            }
        }
    }

    /// Returns the earliest action, or `None` if all actions are blocked by phases or waves.
    pub(super) fn next(&self) -> Option<Key> {
        match (self.here.peek(), self.coming.peek()) {
            (Some(Reverse((order, ..))), _) => Some((self.free, *order)),
            (None, Some(Reverse(upcoming))) => Some((upcoming.ready, upcoming.order)),
            (None, None) => None,
        }
    }

    /// Removes the action returned by [`Self::next`].
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        match self.here.pop() {
            Some(Reverse((order, stage, ready))) => Some(Waiting { ready, order, stage }),
            None => self.coming.pop().map(|Reverse(waiting)| waiting),
        }
    }
}

/// Tournament tree over the ranks, ordered by earliest action. Updates are O(log ranks).
#[derive(Debug)]
pub(super) struct Race {
    /// Keys per rank; [`NEVER`] for blocked ranks and for padding.
    keys: Vec<u128>,
    /// Winners. The children of node p are nodes 2 p and 2 p + 1; children beyond the node array
    /// are ranks.
    winners: Vec<u32>,
}

/// Maximum key.
const NEVER: u128 = u128::MAX;

/// Encodes a key as an integer: time, direction, wave, item. Waves have 31 bits, more than required
/// for any number of microbatches.
fn number(key: Option<Key>) -> u128 {
    key.map_or(NEVER, |(time, Order { is_forward, wave, item })| {
        u128::from(time.get()) << 64 | u128::from(is_forward) << 63 | u128::from(wave) << 32 | u128::from(item)
    })
}

impl Race {
    pub(super) fn new(ranks: usize) -> Self {
        let leaves = ranks.next_power_of_two().max(2);
        let mut winners = vec![0; leaves];
        for node in (1..leaves).rev() {
            winners[node] = if 2 * node < leaves { winners[2 * node] } else { (2 * node - leaves) as u32 };
        }
        Self { keys: vec![NEVER; leaves], winners }
    }

    /// Updates the key of a rank; `None` if all its actions are blocked.
    pub(super) fn set(&mut self, rank: usize, key: Option<Key>) {
        let key = number(key);
        if std::mem::replace(&mut self.keys[rank], key) == key {
            return;
        }
        let leaves = self.keys.len();
        // Replay the matches from the leaf to the root.
        let mut node = leaves / 2 + rank / 2;
        let mut pair = [rank as u32 & !1, rank as u32 | 1];
        loop {
            let winner = if self.keys[pair[1] as usize] < self.keys[pair[0] as usize] { pair[1] } else { pair[0] };
            let before = std::mem::replace(&mut self.winners[node], winner);
            // If another rank wins this match, both previously and now, the nodes above do not
            // change.
            if node == 1 || (before == winner && winner != rank as u32) {
                return;
            }
            pair = [self.winners[node & !1], self.winners[node | 1]];
            node /= 2;
        }
    }

    /// Returns the rank with the minimum key, the lower index for ties; `None` if all are blocked.
    pub(super) fn first(&self) -> Option<usize> {
        let first = self.winners[1] as usize;
        (self.keys[first] != NEVER).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(is_forward: bool, wave: u32, item: u32) -> Order {
        Order { is_forward, wave, item }
    }

    fn waiting(ready: u64, order: Order) -> Waiting {
        Waiting { ready: Nanos::new(ready), order, stage: 0 }
    }

    /// Available actions are ordered by precedence, regardless of arrival time. Pending actions are
    /// ordered by arrival time.
    #[test]
    fn available_actions_precede_pending_actions() {
        let mut queue = Queue::default();
        queue.occupy(Nanos::new(5));
        for entry in [waiting(9, order(false, 0, 0)), waiting(5, order(true, 1, 3)), waiting(2, order(true, 1, 4))] {
            queue.admit(entry);
        }
        assert_eq!(queue.next(), Some((Nanos::new(5), order(true, 1, 3))));
        assert_eq!(queue.pop(), Some(waiting(5, order(true, 1, 3))));
        // At 9, the backward is also available and precedes the queued forward.
        queue.occupy(Nanos::new(9));
        assert_eq!(queue.pop(), Some(waiting(9, order(false, 0, 0))));
        assert_eq!(queue.pop(), Some(waiting(2, order(true, 1, 4))));
        assert_eq!((queue.next(), queue.pop()), (None, None));
    }

    #[test]
    fn later_phases_wait() {
        let mut queue = Queue::default();
        queue.defer(2, waiting(0, order(true, 0, 0)));
        queue.defer(1, waiting(7, order(true, 0, 1)));
        assert_eq!((queue.next(), queue.take_up(0)), (None, None));
        assert_eq!(queue.take_up(1), Some(waiting(7, order(true, 0, 1))));
        assert_eq!(queue.take_up(1), None);
        assert_eq!(queue.take_up(2), Some(waiting(0, order(true, 0, 0))));
    }

    /// Compares with a linear minimum, for up to nine ranks and random key updates.
    #[test]
    fn race_returns_the_rank_with_the_minimum_key() {
        for ranks in 1..10_usize {
            let mut race = Race::new(ranks);
            let mut keys = vec![None; ranks];
            assert_eq!(race.first(), None);
            for step in 0..60_usize {
                let rank = step * 7 % ranks;
                let time = Nanos::new((step * 13 % 5) as u64);
                let key = (step % 4 != 3).then(|| (time, order(step % 2 == 0, (step % 3) as u32, 0)));
                keys[rank] = key;
                race.set(rank, key);
                let minimum = keys.iter().enumerate().filter_map(|(rank, key)| Some(((*key)?, rank))).min();
                assert_eq!(race.first(), minimum.map(|(_, rank)| rank));
            }
        }
    }
}
