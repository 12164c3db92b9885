//! What waits on a rank, and which rank goes on first.
//!
//! Actions become free to go and stay so: phases and oldest waves only advance, and so does the time at which a rank is free.
//! Therefore each action moves through a few heaps and is never looked at in vain.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Nanos;

/// An action that waits on its rank for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    /// When its inputs are there.
    pub ready: Nanos,
    pub order: Order,
    pub stage: u32,
}

/// Among actions that can start at once: backwards, then earlier waves, then earlier items go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    pub is_forward: bool,
    pub wave: u32,
    pub item: u32,
}

/// When an action can start, and its order among those that can start at once.
pub(super) type Key = (Nanos, Order);

/// The actions of a rank whose inputs are there or on their way.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// When the rank has done what it does now.
    pub free: Nanos,
    /// Those of later phases, by phase.
    later_phases: BinaryHeap<Reverse<(u32, Waiting)>>,
    /// Those whose inputs come after the rank is free.
    coming: BinaryHeap<Reverse<Waiting>>,
    /// Those whose inputs are there by then.
    here: BinaryHeap<Reverse<(Order, u32, Nanos)>>,
}

impl Queue {
    /// Keeps an action until its phase.
    pub(super) fn put_off(&mut self, phase: u32, what: Waiting) {
        self.later_phases.push(Reverse((phase, what)));
    }

    /// An action of a phase that has begun; `None` when there is no more.
    pub(super) fn take_up(&mut self, phase: usize) -> Option<Waiting> {
        let Reverse((first, _)) = self.later_phases.peek()?;
        if *first as usize > phase {
            return None;
        }
        self.later_phases.pop().map(|Reverse((_, what))| what)
    }

    /// An action that nothing but its inputs and the rank keeps from starting.
    pub(super) fn admit(&mut self, what: Waiting) {
        if what.ready <= self.free {
            self.here.push(Reverse((what.order, what.stage, what.ready)));
        } else {
            self.coming.push(Reverse(what));
        }
    }

    /// The rank is busy until then.
    pub(super) fn occupy(&mut self, until: Nanos) {
        self.free = until;
        while self.coming.peek().is_some_and(|Reverse(what)| what.ready <= until) {
            if let Some(Reverse(what)) = self.coming.pop() {
                self.here.push(Reverse((what.order, what.stage, what.ready)));
            }
        }
    }

    /// What the rank does next; nothing while all waits for phases or waves.
    pub(super) fn next(&self) -> Option<Key> {
        match (self.here.peek(), self.coming.peek()) {
            (Some(Reverse((order, ..))), _) => Some((self.free, *order)),
            (None, Some(Reverse(what))) => Some((what.ready, what.order)),
            (None, None) => None,
        }
    }

    /// Takes what [`Self::next`] names.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        match self.here.pop() {
            Some(Reverse((order, stage, ready))) => Some(Waiting { ready, order, stage }),
            None => self.coming.pop().map(|Reverse(what)| what),
        }
    }
}

/// The first of many ranks, kept as their keys change one by one: a tree of matches, at most O(log ranks) a change.
#[derive(Debug)]
pub(super) struct Race {
    /// Keys of the ranks, [`NEVER`] for those that wait and for those that fill up the tree.
    keys: Vec<u128>,
    /// Winners of the matches; that at place p is between the winners at 2 p and 2 p + 1, or of the ranks behind the last.
    winners: Vec<u32>,
}

/// No key is greater.
const NEVER: u128 = u128::MAX;

/// A key as one number: time, then direction, wave and item. Waves have 31 bits, far more than there are microbatches.
fn number(key: Option<Key>) -> u128 {
    key.map_or(NEVER, |(time, Order { is_forward, wave, item })| {
        u128::from(time.get()) << 64 | u128::from(is_forward) << 63 | u128::from(wave) << 32 | u128::from(item)
    })
}

impl Race {
    pub(super) fn new(ranks: usize) -> Self {
        let leaves = ranks.next_power_of_two().max(2);
        let mut winners = vec![0; leaves];
        for place in (1..leaves).rev() {
            winners[place] = if 2 * place < leaves { winners[2 * place] } else { (2 * place - leaves) as u32 };
        }
        Self { keys: vec![NEVER; leaves], winners }
    }

    /// A rank can go on at another moment, or not at all.
    pub(super) fn set(&mut self, rank: usize, key: Option<Key>) {
        let key = number(key);
        if std::mem::replace(&mut self.keys[rank], key) == key {
            return;
        }
        let leaves = self.keys.len();
        // The one that went through before, and the one beside it, from the ranks to the top.
        let mut place = leaves / 2 + rank / 2;
        let mut pair = [rank as u32 & !1, rank as u32 | 1];
        loop {
            let winner = if self.keys[pair[1] as usize] < self.keys[pair[0] as usize] { pair[1] } else { pair[0] };
            let before = std::mem::replace(&mut self.winners[place], winner);
            // Where another rank won before and wins still, nothing changes further up.
            if place == 1 || (before == winner && winner != rank as u32) {
                return;
            }
            pair = [self.winners[place & !1], self.winners[place | 1]];
            place /= 2;
        }
    }

    /// The rank that goes on first, the lower of equals; `None` when all wait.
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

    /// What is here goes by its order, whenever it came; what is coming by its time.
    #[test]
    fn what_is_here_goes_before_what_is_coming() {
        let mut queue = Queue::default();
        queue.occupy(Nanos::new(5));
        for what in [waiting(9, order(false, 0, 0)), waiting(5, order(true, 1, 3)), waiting(2, order(true, 1, 4))] {
            queue.admit(what);
        }
        assert_eq!(queue.next(), Some((Nanos::new(5), order(true, 1, 3))));
        assert_eq!(queue.pop(), Some(waiting(5, order(true, 1, 3))));
        // At 9 the backward is here too, and goes before the forward that has been waiting.
        queue.occupy(Nanos::new(9));
        assert_eq!(queue.pop(), Some(waiting(9, order(false, 0, 0))));
        assert_eq!(queue.pop(), Some(waiting(2, order(true, 1, 4))));
        assert_eq!((queue.next(), queue.pop()), (None, None));
    }

    #[test]
    fn later_phases_wait() {
        let mut queue = Queue::default();
        queue.put_off(2, waiting(0, order(true, 0, 0)));
        queue.put_off(1, waiting(7, order(true, 0, 1)));
        assert_eq!((queue.next(), queue.take_up(0)), (None, None));
        assert_eq!(queue.take_up(1), Some(waiting(7, order(true, 0, 1))));
        assert_eq!(queue.take_up(1), None);
        assert_eq!(queue.take_up(2), Some(waiting(0, order(true, 0, 0))));
    }

    /// Against a plain minimum, for every number of ranks up to nine and keys that come and go.
    #[test]
    fn the_first_rank_is_the_least_key() {
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
                let least = keys.iter().enumerate().filter_map(|(rank, key)| Some(((*key)?, rank))).min();
                assert_eq!(race.first(), least.map(|(_, rank)| rank));
            }
        }
    }
}
