//! Branch and bound over the order of pairs of actions.

use super::dispatch::{dispatch, schedule, settled};
use super::node::{Node, bit, members};
use super::shop::{Set, Shop};
use super::{Budget, Ending};
use crate::cost::PipelineCosts;
use crate::ranking::Watch;
use crate::schedule::Schedule;
use crate::simulate::{StepEnd, execute};
use crate::units::Nanos;

/// Nodes between two looks at the watch, some milliseconds.
const LOOK: u64 = 64;

/// The best schedule so far, and what is proven of it.
pub(super) struct Search<'a> {
    pub costs: &'a PipelineCosts,
    pub shop: &'a Shop,
    pub budget: Budget,
    pub watch: &'a dyn Watch,
    pub best: Schedule,
    pub end: u64,
    /// No schedule ends earlier.
    pub bound: u64,
    pub nodes: u64,
}

impl Search<'_> {
    /// Searches until the best is proven to be near enough, or the budget is used up.
    pub(super) fn run(&mut self) -> Ending {
        if let Some(ending) = self.ending() {
            return ending;
        }
        let root = Node::root(self.shop);
        if let Err(ending) = self.raise_bound(&root) {
            return ending;
        }
        let mut open = vec![root];
        loop {
            // Whatever is better than the best stands below an open node.
            let least = open.iter().map(|node| node.bound).min().unwrap_or(u64::MAX).min(self.end);
            if open.is_empty() || self.is_near(least) {
                self.bound = self.bound.max(least);
            }
            if let Some(ending) = self.ending() {
                self.bound = self.bound.max(least);
                return self.proven().unwrap_or(ending);
            }
            let Some(node) = open.pop() else { return Ending::Optimal };
            if let Some(node) = self.look(node) {
                self.branch(&node, &mut open);
            }
        }
    }

    /// Why the search ends now, if it does.
    fn ending(&self) -> Option<Ending> {
        self.proven().or_else(|| {
            if self.nodes >= self.budget.nodes {
                Some(Ending::Nodes)
            } else if self.nodes.is_multiple_of(LOOK) && self.watch.is_over() {
                Some(Ending::Time)
            } else {
                None
            }
        })
    }

    fn proven(&self) -> Option<Ending> {
        if self.bound >= self.end {
            Some(Ending::Optimal)
        } else if self.is_near(self.bound) {
            Some(Ending::WithinGap)
        } else {
            None
        }
    }

    fn is_near(&self, bound: u64) -> bool {
        bound < self.end && crate::proof::relative_gap(self.end, bound) <= self.budget.gap
    }

    /// The largest end by which nothing can be concluded to be done, by bisection.
    fn raise_bound(&mut self, root: &Node) -> Result<(), Ending> {
        let (mut refuted, mut open) = (self.bound.saturating_sub(1), self.end);
        while open - refuted > 1 {
            if let Some(ending) = self.ending() {
                return Err(ending);
            }
            self.nodes += 1;
            let middle = refuted + (open - refuted) / 2;
            let mut trial = root.clone();
            if trial.conclude(self.shop, middle) {
                open = middle;
                self.improve(&trial);
                open = open.min(self.end);
            } else {
                refuted = middle;
                self.bound = self.bound.max(middle + 1);
            }
        }
        Ok(())
    }

    /// What is left of a node that can hold something better.
    fn look(&mut self, mut node: Node) -> Option<Node> {
        if node.bound >= self.end {
            return None;
        }
        self.nodes += 1;
        if !node.conclude(self.shop, self.end - 1) {
            return None;
        }
        self.improve(&node);
        (node.bound < self.end).then_some(node)
    }

    /// Keeps the node's own quick schedule where that is better than the best.
    fn improve(&mut self, node: &Node) {
        if let Some((orders, end)) = dispatch(self.shop, node)
            && end < self.end
        {
            self.offer(&orders);
        }
    }

    fn offer(&mut self, orders: &[Vec<usize>]) {
        let found = schedule(self.shop, orders, (self.costs.stages(), self.costs.microbatches()));
        if let Some(end) = end_of(&found, self.costs)
            && end.get() < self.end
        {
            self.end = end.get();
            self.best = found;
        }
    }

    /// Both orders of the pair of which neither leaves much time, the likelier one on top.
    fn branch(&mut self, node: &Node, open: &mut Vec<Node>) {
        let limit = self.end - 1;
        let Some((one, other)) = tightest(self.shop, node, limit) else {
            self.offer(&settled(self.shop, node));
            return;
        };
        for (first, then) in [(other, one), (one, other)] {
            let mut child = node.clone();
            if child.put(first, then) {
                open.push(child);
            }
        }
    }
}

/// The open pair with the least slack in both orders together (after Smith and Cheng, 1993), the looser order first.
fn tightest(shop: &Shop, node: &Node, limit: u64) -> Option<(usize, usize)> {
    let mut best: Option<((u64, u64), usize, usize)> = None;
    for one in 0..shop.len() {
        let later = if one + 1 < shop.len() { Set::MAX << (one + 1) } else { 0 };
        for other in members(node.open(shop, one) & later) {
            let forth = node.slack(shop, limit, one, other).unwrap_or(0);
            let back = node.slack(shop, limit, other, one).unwrap_or(0);
            let key = (forth + back, forth.min(back));
            if best.as_ref().is_none_or(|(least, ..)| key < *least) {
                best = Some(if forth >= back { (key, one, other) } else { (key, other, one) });
            }
        }
    }
    debug_assert!(best.is_none_or(|(_, one, other)| node.after[one] & bit(other) == 0), "the pair is open");
    best.map(|(_, one, other)| (one, other))
}

/// End of the iteration, if the orders run at all.
pub(super) fn end_of(schedule: &Schedule, costs: &PipelineCosts) -> Option<Nanos> {
    let execution = execute(schedule, costs).ok()?;
    Some(StepEnd::of(costs.ranks(), std::iter::once(&execution)).iteration_end(costs))
}
