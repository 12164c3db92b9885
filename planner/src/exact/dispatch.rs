//! A schedule that obeys all that is known at a node, made quickly: candidates for the best.

use super::node::{Node, bit, members};
use super::shop::{Set, Shop, is_forward};
use crate::schedule::{Action, Schedule};

/// What of an order is known to have run.
struct Progress<'a> {
    shop: &'a Shop,
    done: Set,
    end: Vec<u64>,
    free: Vec<u64>,
    held: Vec<u64>,
    orders: Vec<Vec<usize>>,
}

/// An active schedule (Giffler and Thompson, 1960) that prefers what has most to run behind it: its orders and its end
/// with sends that never wait for each other. `None` where memory stops it.
pub(super) fn dispatch(shop: &Shop, node: &Node) -> Option<(Vec<Vec<usize>>, u64)> {
    let ranks = shop.on_rank.len();
    let mut progress = Progress {
        shop,
        done: 0,
        end: vec![0; shop.len()],
        free: vec![0; ranks],
        held: vec![0; ranks],
        orders: vec![Vec::new(); ranks],
    };
    let mut last = 0;
    let mut left: Set = (0..shop.len()).map(bit).fold(0, |set, own| set | own);
    while left != 0 {
        let action = progress.next(node, left)?;
        left &= !bit(action);
        progress.run(action);
        last = last.max(progress.end[action] + shop.behind[action]);
    }
    Some((progress.orders, last))
}

impl Progress<'_> {
    /// The action that would end first, or one of its rank that would delay it and has more behind it.
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
        let own = if is_forward(action) { self.shop.kept[action] } else { self.shop.transient[action] };
        self.held[rank].saturating_add(own) <= self.shop.room[rank]
    }

    fn run(&mut self, action: usize) {
        let rank = self.shop.rank[action];
        self.end[action] = self.start(action) + self.shop.time[action];
        self.free[rank] = self.end[action];
        self.done |= bit(action);
        self.orders[rank].push(action);
        if is_forward(action) {
            self.held[rank] += self.shop.kept[action];
        } else {
            self.held[rank] -= self.shop.kept[action];
        }
    }
}

/// The orders of a node where nothing is open any more.
pub(super) fn settled(shop: &Shop, node: &Node) -> Vec<Vec<usize>> {
    let of = |&own: &Set| {
        let mut order: Vec<usize> = members(own).collect();
        order.sort_unstable_by_key(|&action| (node.before[action] & own).count_ones());
        order
    };
    shop.on_rank.iter().map(of).collect()
}

/// Orders of numbers as a schedule.
pub(super) fn schedule(shop: &Shop, orders: &[Vec<usize>], (stages, microbatches): (usize, usize)) -> Schedule {
    let of = |order: &Vec<usize>| order.iter().map(|&action| shop.actions[action]).collect::<Vec<Action>>();
    Schedule { stages, microbatches, orders: orders.iter().map(of).collect() }
}
