//! Branch and bound over precedence relations between action pairs.

use super::dispatch::{dispatch, schedule, settled};
use super::node::{Node, members};
use super::shop::{Set, Shop};
use super::{Budget, Ending};
use planscope_core::action::Schedule;
use planscope_core::host::Cancellation;
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::simulate::{StepEnd, execute};

/// Cancellation check interval in nodes, corresponding to several milliseconds.
const LOOK: u64 = 64;
/// Candidate pairs per node for strong branching. `examples/yardstick.rs` solves 43 from 60 random
/// pipelines within 20,000 nodes for 1 or 4 pairs, 47 for 12, 52 for 40, and 43 for all pairs.
const MAX_BRANCH_PAIRS: usize = 40;

/// Search state: incumbent and lower bound.
pub(super) struct Search<'a> {
    pub costs: &'a PipelineCosts,
    pub shop: &'a Shop,
    pub budget: Budget,
    pub cancellation: &'a dyn Cancellation,
    pub best: Schedule,
    pub end: u64,
    /// Lower bound on the iteration end.
    pub bound: u64,
    pub nodes: u64,
    /// Node count at the next cancellation check.
    pub next_look: u64,
}

impl Search<'_> {
    /// Searches until the gap reaches the target or the budget is exhausted.
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
            // Any improvement lies below an open node.
            let min_bound = open.iter().map(|node| node.bound).min().unwrap_or(u64::MAX).min(self.end);
            if open.is_empty() || self.is_near(min_bound) {
                self.bound = self.bound.max(min_bound);
            }
            if let Some(ending) = self.ending() {
                self.bound = self.bound.max(min_bound);
                return self.proven().unwrap_or(ending);
            }
            let Some(node) = open.pop() else { return Ending::Optimal };
            if let Some(node) = self.look(node) {
                self.branch(node, &mut open);
            }
        }
    }

    /// Returns the termination reason, or `None` to continue.
    fn ending(&mut self) -> Option<Ending> {
        if let Some(proven) = self.proven() {
            return Some(proven);
        }
        if self.nodes >= self.budget.nodes {
            return Some(Ending::Nodes);
        }
        (self.is_check_due() && self.cancellation.is_over()).then_some(Ending::Time)
    }

    /// Returns true once per `LOOK` nodes.
    fn is_check_due(&mut self) -> bool {
        let is_time = self.nodes >= self.next_look;
        if is_time {
            self.next_look = self.nodes + LOOK;
        }
        is_time
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
        bound < self.end && planscope_core::optimality::relative_gap(self.end, bound) <= self.budget.gap
    }

    /// Bisects for the minimum end that propagation cannot refute, and raises the bound.
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

    /// Propagates at a node. Returns `None` if the node cannot improve the incumbent.
    fn look(&mut self, mut node: Node) -> Option<Node> {
        if node.bound >= self.end {
            return None;
        }
        if node.limit != self.end - 1 {
            self.nodes += 1;
            if !node.conclude(self.shop, self.end - 1) {
                return None;
            }
        }
        self.improve(&node);
        (node.bound < self.end).then_some(node)
    }

    /// Replaces the incumbent if list scheduling at this node is faster.
    fn improve(&mut self, node: &Node) {
        if let Some((orders, end)) = dispatch(self.shop, node)
            && end < self.end
        {
            self.offer(&orders);
        }
    }

    fn offer(&mut self, orders: &[Vec<usize>]) {
        let found = schedule(self.shop, orders, (self.costs.stages(), self.costs.microbatches()));
        if let Some(end) = schedule_end(&found, self.costs)
            && end.get() < self.end
        {
            self.end = end.get();
            self.best = found;
        }
    }

    /// Branches on a pair. Pushes the more likely child last, so that the search explores it next.
    ///
    /// Strong branching tests both orders for the tightest pairs. A refuted order fixes the
    /// opposite order at the node. Otherwise the function selects the pair that maximizes the
    /// minimum propagation score in its children.
    fn branch(&mut self, mut node: Node, open: &mut Vec<Node>) {
        loop {
            let limit = self.end - 1;
            let pairs = tightest(self.shop, &node, limit);
            if pairs.is_empty() {
                self.offer(&settled(self.shop, &node));
                return;
            }
            let mut selected: Option<(u64, Node, Node)> = None;
            let mut learnt = None;
            for (likely, other) in pairs {
                match (self.child(&node, likely, other, limit), self.child(&node, other, likely, limit)) {
                    (None, None) => return,
                    (Some(only), None) | (None, Some(only)) => {
                        learnt = Some(only);
                        break;
                    }
                    (Some(first), Some(two)) => {
                        let score = first.score().min(two.score());
                        if selected.as_ref().is_none_or(|(best_score, ..)| score > *best_score) {
                            selected = Some((score, first, two));
                        }
                    }
                }
            }
            if let Some(only) = learnt {
                node = only;
                continue;
            }
            if let Some((_, likely, other)) = selected {
                open.extend([other, likely]);
            }
            return;
        }
    }

    /// Returns the child node that adds `first` before `then`, or `None` if it cannot improve the
    /// incumbent.
    fn child(&mut self, node: &Node, first: usize, then: usize, limit: u64) -> Option<Node> {
        self.nodes += 1;
        let mut child = node.clone();
        (child.put(first, then) && child.conclude(self.shop, limit)).then_some(child)
    }
}

/// Returns the open pairs that have minimum total slack in both orders (after Smith and Cheng,
/// 1993). Each pair is listed in the order with more slack.
fn tightest(shop: &Shop, node: &Node, limit: u64) -> Vec<(usize, usize)> {
    let mut pairs: Vec<((u64, u64), usize, usize)> = Vec::new();
    for first in 0..shop.len() {
        let later = if first + 1 < shop.len() { Set::MAX << (first + 1) } else { 0 };
        for other in members(node.open(shop, first) & later) {
            let forth = node.slack(shop, limit, first, other).unwrap_or(0);
            let back = node.slack(shop, limit, other, first).unwrap_or(0);
            let key = (forth + back, forth.min(back));
            pairs.push(if forth >= back { (key, first, other) } else { (key, other, first) });
        }
    }
    pairs.sort_unstable();
    pairs.truncate(MAX_BRANCH_PAIRS);
    pairs.into_iter().map(|(_, earlier, other)| (earlier, other)).collect()
}

/// Iteration end, or `None` if the orders deadlock.
pub(super) fn schedule_end(schedule: &Schedule, costs: &PipelineCosts) -> Option<Nanos> {
    let execution = execute(schedule, costs).ok()?;
    Some(StepEnd::from_executions(costs.ranks(), std::iter::once(&execution)).iteration_end(costs))
}
