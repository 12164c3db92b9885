//! Node graph with dependencies.

use std::collections::HashMap;

use super::super::build::Builder;
use super::super::kind::Kind;
use super::super::{Limits, TraceError};

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) id: Option<u64>,
    pub(super) name: String,
    pub(super) kind: u64,
    /// Data dependencies.
    pub(super) data: Vec<u64>,
    /// Control dependencies.
    pub(super) control: Vec<u64>,
    /// Start time; zero means unknown.
    pub(super) start_ns: Option<u64>,
    pub(super) duration_ns: Option<u64>,
    pub(super) on_host: bool,
}

impl Node {
    pub(super) fn dependencies(&self) -> usize {
        self.data.len() + self.control.len()
    }
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    index: HashMap<u64, usize>,
    nodes: Vec<Node>,
    edges: usize,
}

/// Maximum start time, 292 years, so that start plus duration fits in 64 bits.
const LAST_NS: u64 = i64::MAX as u64;

/// Lane names in the single process.
const LANES: [&str; 3] = ["host", "compute", "communication"];

impl Graph {
    pub(super) fn push(&mut self, mut node: Node, builder: &mut Builder<'_>, limits: &Limits) {
        let Some(id) = node.id else { return builder.report.skip("a node without an id") };
        if self.index.contains_key(&id) {
            return builder.report.skip("a node with the id of another");
        }
        if self.nodes.len() >= limits.events || self.edges + node.dependencies() > 4 * limits.events {
            return builder.report.skip("there are more nodes or dependencies than can be stored");
        }
        node.name.truncate(builder.clip(&node.name).len());
        self.edges += node.dependencies();
        self.index.insert(id, self.nodes.len());
        self.nodes.push(node);
    }

    /// Converts nodes to slices.
    pub(super) fn lay(&self, builder: &mut Builder<'_>) -> Result<(), TraceError> {
        let earliest = self.earliest(builder)?;
        let timed = self.nodes.iter().any(|node| node.start_ns.is_some_and(|start| start > 0));
        if !timed && !self.nodes.is_empty() {
            builder.report.assume("no node says when it started; each starts when what it depends on is done");
        }
        for (node, earliest) in self.nodes.iter().zip(earliest) {
            let kind = match (node.on_host, node.kind) {
                (true, _) => Kind::Cpu,
                (false, 4) => Kind::Compute,
                (false, 5..=7) => Kind::Communication,
                (false, _) => Kind::Other,
            };
            let lane = match kind {
                Kind::Cpu | Kind::Other => LANES[0],
                Kind::Compute => LANES[1],
                _ => LANES[2],
            };
            let start = if timed { node.start_ns.unwrap_or_default() } else { earliest };
            let Some(thread) = builder.thread(("0", "0"), (lane, lane)) else { continue };
            if node.duration_ns.is_none() {
                builder.report.problem("a node without a duration");
            }
            let name = builder.name(&node.name);
            builder.slice(thread, start, node.duration_ns.unwrap_or_default(), name, kind);
        }
        Ok(())
    }

    /// Computes the earliest start per node in nanoseconds. Control dependencies on a cycle are
    /// ignored and counted.
    fn earliest(&self, builder: &mut Builder<'_>) -> Result<Vec<u64>, TraceError> {
        let mut before: Vec<Vec<u32>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let known = |id: &u64| self.index.get(id).map(|&at| at as u32);
            let all = || node.data.iter().chain(&node.control);
            for _ in all().filter(|id| !self.index.contains_key(*id)) {
                builder.report.problem("a dependency on a node that is not there");
            }
            before.push(all().filter_map(known).collect());
        }
        let (earliest, waiting) = self.order(&before);
        if waiting.is_empty() {
            return Ok(earliest);
        }
        // A cycle lies within a single component. Afterwards only data dependency cycles remain.
        let component = components(&before);
        let mut ignored = 0_u64;
        for (at, node) in self.nodes.iter().enumerate() {
            let dependencies = &mut before[at];
            let data = node.data.iter().filter(|id| self.index.contains_key(id)).count();
            let mut position = 0;
            dependencies.retain(|&other| {
                position += 1;
                let stays = position <= data || component[other as usize] != component[at];
                ignored += u64::from(!stays);
                stays
            });
        }
        let (earliest, waiting) = self.order(&before);
        if !waiting.is_empty() {
            return Err(TraceError::Cycle { nodes: self.cycle(&before, &waiting) });
        }
        builder.report.assume(&format!(
            "{ignored} control dependencies lie on cycles and are ignored; data dependencies decide the order there"
        ));
        Ok(earliest)
    }

    /// Returns the earliest start per node, and the nodes on or after a cycle.
    fn order(&self, before: &[Vec<u32>]) -> (Vec<u64>, Vec<usize>) {
        let mut waiting: Vec<usize> = before.iter().map(Vec::len).collect();
        let mut waited_for: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (at, before) in before.iter().enumerate() {
            for &other in before {
                waited_for[other as usize].push(at as u32);
            }
        }
        let mut earliest = vec![0_u64; self.nodes.len()];
        let mut ready: Vec<usize> = (0..self.nodes.len()).filter(|&at| waiting[at] == 0).collect();
        while let Some(at) = ready.pop() {
            let end = earliest[at].saturating_add(self.nodes[at].duration_ns.unwrap_or_default()).min(LAST_NS);
            for &next in &waited_for[at] {
                let next = next as usize;
                earliest[next] = earliest[next].max(end);
                waiting[next] -= 1;
                if waiting[next] == 0 {
                    ready.push(next);
                }
            }
        }
        let stuck = (0..self.nodes.len()).filter(|&at| waiting[at] > 0).collect();
        (earliest, stuck)
    }

    /// Returns the node identifiers of a cycle. Walking backwards from any stuck node eventually
    /// enters a cycle.
    fn cycle(&self, before: &[Vec<u32>], stuck: &[usize]) -> Vec<u64> {
        let previous =
            |at: usize| before[at].iter().map(|&other| other as usize).find(|other| stuck.binary_search(other).is_ok());
        let mut seen = vec![false; self.nodes.len()];
        let mut at = stuck.first().copied().unwrap_or_default();
        while !std::mem::replace(&mut seen[at], true) {
            match previous(at) {
                Some(next) => at = next,
                None => break,
            }
        }
        let first = at;
        let mut nodes = Vec::new();
        loop {
            nodes.push(self.nodes[at].id.unwrap_or_default());
            match previous(at) {
                Some(next) if next != first => at = next,
                _ => return nodes,
            }
        }
    }
}

/// Computes strongly connected components (Tarjan, 1972), without recursion.
fn components(next: &[Vec<u32>]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let count = next.len();
    let (mut order, mut lowest, mut component) = (vec![NONE; count], vec![0_u32; count], vec![NONE; count]);
    let (mut stack, mut visited, mut found) = (Vec::new(), 0, 0);
    for root in 0..count {
        if order[root] != NONE {
            continue;
        }
        let mut path = vec![(root, 0_usize)];
        while let Some(&mut (at, ref mut edge)) = path.last_mut() {
            if *edge == 0 {
                (order[at], lowest[at]) = (visited, visited);
                visited += 1;
                stack.push(at);
            }
            if let Some(&other) = next[at].get(*edge) {
                *edge += 1;
                let other = other as usize;
                if order[other] == NONE {
                    path.push((other, 0));
                } else if component[other] == NONE {
                    lowest[at] = lowest[at].min(order[other]);
                }
                continue;
            }
            path.pop();
            if let Some(&(above, _)) = path.last() {
                lowest[above] = lowest[above].min(lowest[at]);
            }
            if lowest[at] == order[at] {
                while let Some(member) = stack.pop() {
                    component[member] = found;
                    if member == at {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}
