//! Fast list scheduling that respects the relations at a node. It provides candidates for the
//! incumbent.

use super::node::{Node, bit, members};
use super::shop::{Set, Shop, is_forward};
use planscope_core::action::{Action, Schedule};

/// State during list scheduling.
struct Progress<'a> {
    shop: &'a Shop,
    done: Set,
    end: Vec<u64>,
    free: Vec<u64>,
    allocated: Vec<u64>,
    orders: Vec<Vec<usize>>,
}

/// Builds an active schedule (Giffler and Thompson, 1960). Priority: longest tail. Returns the
/// orders and the end, which ignores queueing between sends. Returns `None` if memory blocks all
/// ready actions.
pub(super) fn dispatch(shop: &Shop, node: &Node) -> Option<(Vec<Vec<usize>>, u64)> {
    let ranks = shop.on_rank.len();
    let mut progress = Progress {
        shop,
        done: 0,
        end: vec![0; shop.len()],
        free: vec![0; ranks],
        allocated: vec![0; ranks],
        orders: vec![Vec::new(); ranks],
    };
    let mut last = 0;
    let mut left: Set = (0..shop.len()).map(bit).fold(0, |set, action| set | action);
    while left != 0 {
        let action = progress.next(node, left)?;
        left &= !bit(action);
        progress.run(action);
        last = last.max(progress.end[action] + shop.behind[action]);
    }
    Some((progress.orders, last))
}

impl Progress<'_> {
    /// Selects the ready action that has the earliest end, or a conflicting action on the same rank
    /// that has a longer tail.
    fn next(&self, node: &Node, left: Set) -> Option<usize> {
        let ready = members(left).filter(|&action| node.before[action] & !self.done == 0 && self.fits(action));
        let ready: Vec<(usize, u64)> = ready.map(|action| (action, self.start(action))).collect();
        let &(first, start) = ready.iter().min_by_key(|&&(action, start)| (start + self.shop.time[action], action))?;
        let (rank, end) = (self.shop.rank[first], start + self.shop.time[first]);
        let rivals =
            ready.iter().filter(|&&(action, start)| self.shop.rank[action] == rank && (start < end || action == first));
        rivals
            .max_by_key(|&&(action, start)| {
                (node.tail[action] + self.shop.time[action], std::cmp::Reverse((start, action)))
            })
            .map(|&(action, _)| action)
    }

    fn start(&self, action: usize) -> u64 {
        let arrives = self.shop.needs[action].iter().map(|&(input, lag)| self.end[input] + lag);
        arrives.max().unwrap_or(0).max(self.free[self.shop.rank[action]])
    }

    fn fits(&self, action: usize) -> bool {
        let rank = self.shop.rank[action];
        let needed = if is_forward(action) { self.shop.stored[action] } else { self.shop.transient[action] };
        self.allocated[rank].saturating_add(needed) <= self.shop.capacity[rank]
    }

    fn run(&mut self, action: usize) {
        let rank = self.shop.rank[action];
        self.end[action] = self.start(action) + self.shop.time[action];
        self.free[rank] = self.end[action];
        self.done |= bit(action);
        self.orders[rank].push(action);
        if is_forward(action) {
            self.allocated[rank] += self.shop.stored[action];
        } else {
            self.allocated[rank] -= self.shop.stored[action];
        }
    }
}

/// Extracts the orders from a node that has no open pairs.
pub(super) fn settled(shop: &Shop, node: &Node) -> Vec<Vec<usize>> {
    let rank_order = |&rank_actions: &Set| {
        let mut order: Vec<usize> = members(rank_actions).collect();
        order.sort_unstable_by_key(|&action| (node.before[action] & rank_actions).count_ones());
        order
    };
    shop.on_rank.iter().map(rank_order).collect()
}

/// Converts action indices to a schedule.
pub(super) fn schedule(shop: &Shop, orders: &[Vec<usize>], (stages, microbatches): (usize, usize)) -> Schedule {
    let rank_order = |order: &Vec<usize>| order.iter().map(|&action| shop.actions[action]).collect::<Vec<Action>>();
    Schedule { stages, microbatches, orders: orders.iter().map(rank_order).collect() }
}
