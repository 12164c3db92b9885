//! A search node: precedence relations, constraint propagation.

use super::one_machine::{Window, interruptible_end, raise_heads};
use super::shop::{Set, Shop, is_forward};

/// Relations that hold for all schedules below a node.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Earliest start per action.
    pub head: Vec<u64>,
    /// Minimum time from an action's end to the iteration end.
    pub tail: Vec<u64>,
    /// Predecessors per action for all ranks, transitively closed.
    pub before: Vec<Set>,
    /// Successors per action for all ranks, transitively closed.
    pub after: Vec<Set>,
    /// Lower bound on the iteration end.
    pub bound: u64,
    /// Assumed maximum iteration end during propagation.
    pub limit: u64,
}

/// Iterates through a set in ascending order.
pub(super) fn members(set: Set) -> impl Iterator<Item = usize> {
    let mut rest = set;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let first = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            first
        })
    })
}

pub(super) const fn bit(action: usize) -> Set {
    1 << action
}

impl Node {
    /// Root node: contains only data dependencies, and symmetry breaking between identical
    /// microbatches.
    pub(super) fn root(shop: &Shop) -> Self {
        let count = shop.len();
        let tail = shop.behind.clone();
        let mut node = Self {
            head: vec![0; count],
            tail,
            before: vec![0; count],
            after: vec![0; count],
            bound: 0,
            limit: u64::MAX,
        };
        for (action, needs) in shop.needs.iter().enumerate() {
            for &(input, _) in needs {
                node.put(input, action);
            }
        }
        for &(first, other) in &shop.twins {
            node.put(2 * first, 2 * other);
        }
        node
    }

    /// Adds a relation. Returns `false` if it contradicts existing relations.
    pub(super) fn put(&mut self, first: usize, then: usize) -> bool {
        if first == then || self.before[first] & bit(then) != 0 {
            return false;
        }
        if self.after[first] & bit(then) == 0 {
            let (left, right) = (self.before[first] | bit(first), self.after[then] | bit(then));
            members(left).for_each(|action| self.after[action] |= right);
            members(right).for_each(|action| self.before[action] |= left);
        }
        true
    }

    /// Returns the actions on the same rank that are still unordered relative to `action`.
    pub(super) fn open(&self, shop: &Shop, action: usize) -> Set {
        shop.on_rank[shop.rank[action]] & !(self.before[action] | self.after[action] | bit(action))
    }

    /// Propagation score: sum of all heads and tails.
    pub(super) fn score(&self) -> u64 {
        self.head.iter().chain(&self.tail).sum()
    }

    /// Propagates, assuming an iteration end by `limit`. Returns `false` if no schedule satisfies
    /// it.
    pub(super) fn conclude(&mut self, shop: &Shop, limit: u64) -> bool {
        self.limit = limit;
        loop {
            self.raise_heads(shop);
            self.raise_tails(shop);
            let late = |action: usize| self.head[action] + shop.time[action] + self.tail[action] > limit;
            if (0..shop.len()).any(late) {
                return false;
            }
            match self.order_pairs(shop, limit) {
                None => return false,
                Some(true) => continue,
                Some(false) => {}
            }
            match self.enforce_memory_limit(shop) {
                None => return false,
                Some(true) => continue,
                Some(false) => {}
            }
            match self.find_edges(shop, limit) {
                None => return false,
                Some(true) => {}
                Some(false) => break,
            }
        }
        self.bound = self.bound.max(self.end_bound(shop));
        true
    }

    /// Raises heads from data dependencies and from predecessors on the same rank.
    fn raise_heads(&mut self, shop: &Shop) {
        let mut order: Vec<usize> = (0..shop.len()).collect();
        order.sort_unstable_by_key(|&action| (self.before[action].count_ones(), action));
        // Scheduled actions per rank, sorted by head.
        let mut done: Vec<Vec<usize>> = vec![Vec::new(); shop.on_rank.len()];
        for action in order {
            let arrives = shop.needs[action].iter().map(|&(input, lag)| self.head[input] + shop.time[input] + lag);
            let mut head = arrives.max().unwrap_or(0).max(self.head[action]);
            let scheduled = &mut done[shop.rank[action]];
            let mut end = 0;
            for &other in scheduled.iter().filter(|&&other| self.before[action] & bit(other) != 0) {
                end = self.head[other].max(end) + shop.time[other];
            }
            head = head.max(end);
            self.head[action] = head;
            let position = scheduled.partition_point(|&other| self.head[other] <= head);
            scheduled.insert(position, action);
        }
    }

    /// Symmetric to [`Self::raise_heads`].
    fn raise_tails(&mut self, shop: &Shop) {
        let mut order: Vec<usize> = (0..shop.len()).collect();
        order.sort_unstable_by_key(|&action| (self.after[action].count_ones(), action));
        let mut done: Vec<Vec<usize>> = vec![Vec::new(); shop.on_rank.len()];
        for action in order {
            let leaves = shop.feeds[action].iter().map(|&(output, lag)| lag + shop.time[output] + self.tail[output]);
            let mut tail = leaves.max().unwrap_or(0).max(self.tail[action]);
            let scheduled = &mut done[shop.rank[action]];
            let mut end = 0;
            for &other in scheduled.iter().filter(|&&other| self.after[action] & bit(other) != 0) {
                end = self.tail[other].max(end) + shop.time[other];
            }
            tail = tail.max(end);
            self.tail[action] = tail;
            let position = scheduled.partition_point(|&other| self.tail[other] <= tail);
            scheduled.insert(position, action);
        }
    }

    /// Slack until `limit` if `first` runs directly before `then`. Returns `None` if that order
    /// exceeds `limit`.
    pub(super) fn slack(&self, shop: &Shop, limit: u64, first: usize, then: usize) -> Option<u64> {
        limit.checked_sub(self.head[first] + shop.time[first] + shop.time[then] + self.tail[then])
    }

    /// Orders pairs if the opposite order exceeds the limit. Returns `None` if neither order is
    /// possible, otherwise whether a relation changed.
    fn order_pairs(&mut self, shop: &Shop, limit: u64) -> Option<bool> {
        let mut learnt = false;
        for first in 0..shop.len() {
            let later = if first + 1 < shop.len() { Set::MAX << (first + 1) } else { 0 };
            for other in members(self.open(shop, first) & later) {
                let forth = self.slack(shop, limit, first, other).is_some();
                let back = self.slack(shop, limit, other, first).is_some();
                let put = match (forth, back) {
                    (true, true) => continue,
                    (true, false) => self.put(first, other),
                    (false, true) => self.put(other, first),
                    (false, false) => false,
                };
                if !put {
                    return None;
                }
                learnt = true;
            }
        }
        Some(learnt)
    }

    /// Runs edge finding on all ranks, forward and backward in time.
    fn find_edges(&mut self, shop: &Shop, limit: u64) -> Option<bool> {
        let (mut by_head, mut by_due) = (Vec::new(), Vec::new());
        let mut windows = Vec::new();
        let mut learnt = false;
        for &rank_actions in &shop.on_rank {
            windows.clear();
            windows.extend(members(rank_actions).map(|action| Window {
                head: self.head[action],
                time: shop.time[action],
                due: limit - self.tail[action],
            }));
            if !raise_heads(&mut windows, &mut by_head, &mut by_due) {
                return None;
            }
            for (action, window) in members(rank_actions).zip(&windows) {
                learnt |= window.head > self.head[action];
                self.head[action] = window.head;
            }
            windows.clear();
            windows.extend(members(rank_actions).map(|action| Window {
                head: self.tail[action],
                time: shop.time[action],
                due: limit - self.head[action],
            }));
            if !raise_heads(&mut windows, &mut by_head, &mut by_due) {
                return None;
            }
            for (action, window) in members(rank_actions).zip(&windows) {
                learnt |= window.head > self.tail[action];
                self.tail[action] = window.head;
            }
        }
        Some(learnt)
    }

    /// Orders actions that would exceed the memory limit on a rank. Returns `None` if the limit is
    /// already exceeded.
    ///
    /// While an action runs, the rank stores the action's cell, plus all cells that certainly
    /// overlap it: the forward must precede the action, the backward must follow it.
    fn enforce_memory_limit(&mut self, shop: &Shop) -> Option<bool> {
        let mut learnt = false;
        for &rank in &shop.tight {
            let rank_actions = shop.on_rank[rank];
            for action in members(rank_actions) {
                let (before, after) = (self.before[action], self.after[action]);
                let known = |set: Set, number: usize| set & bit(number) != 0;
                let forwards = || members(rank_actions).filter(|&other| is_forward(other) && other / 2 != action / 2);
                let overlapping = forwards().filter(|&forward| known(before, forward) && known(after, forward + 1));
                let stored_bytes: u64 = overlapping.map(|forward| shop.stored[forward]).sum();
                let free_bytes =
                    shop.capacity[rank].checked_sub(stored_bytes + shop.stored[action] + shop.transient[action])?;
                for forward in forwards().filter(|&forward| shop.stored[forward] > free_bytes) {
                    let backward = forward + 1;
                    let (entered, left) = (known(before, forward), known(after, backward));
                    let is_open = |other: usize| !known(before | after, other);
                    let put = if entered && is_open(backward) {
                        self.put(backward, action)
                    } else if left && is_open(forward) {
                        self.put(action, forward)
                    } else {
                        continue;
                    };
                    if !put {
                        return None;
                    }
                    learnt = true;
                }
            }
        }
        Some(learnt)
    }

    /// Lower bound on the iteration end, derived from heads, tails, preemptive bounds.
    fn end_bound(&self, shop: &Shop) -> u64 {
        let mut bound = 0;
        for &rank_actions in &shop.on_rank {
            let mut actions: Vec<_> =
                members(rank_actions).map(|action| (self.head[action], shop.time[action], self.tail[action])).collect();
            bound = bound.max(interruptible_end(&mut actions));
        }
        bound
    }
}
