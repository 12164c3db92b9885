//! Nodes and what they wait for.

use std::collections::HashMap;

use super::super::build::Builder;
use super::super::kind::Kind;
use super::super::{Limits, TraceError};

/// A node.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// Its number.
    pub(super) id: Option<u64>,
    /// Its name.
    pub(super) name: String,
    /// Its type.
    pub(super) kind: u64,
    /// Nodes that must be done before it.
    pub(super) dependencies: Vec<u64>,
    /// When it started; zero says nothing.
    pub(super) start_ns: Option<u64>,
    /// How long it took.
    pub(super) duration_ns: Option<u64>,
    /// Whether it ran on the host.
    pub(super) on_host: bool,
}

/// The nodes of a trace.
#[derive(Debug, Default)]
pub(super) struct Graph {
    index: HashMap<u64, usize>,
    nodes: Vec<Node>,
    edges: usize,
}

/// Last time at which anything may start: 292 years, so that no start and duration are too much for 64 bits together.
const LAST_NS: u64 = i64::MAX as u64;

/// The lanes of the one process, by what runs on them.
const LANES: [&str; 3] = ["host", "compute", "communication"];

impl Graph {
    /// Adds a node.
    pub(super) fn push(&mut self, mut node: Node, builder: &mut Builder<'_>, limits: &Limits) {
        let Some(id) = node.id else { return builder.report.skip("a node without an id") };
        if self.index.contains_key(&id) {
            return builder.report.skip("a node with the id of another");
        }
        if self.nodes.len() >= limits.events || self.edges + node.dependencies.len() > 4 * limits.events {
            return builder.report.skip("there are more nodes or dependencies than are kept");
        }
        node.name.truncate(builder.clip(&node.name).len());
        self.edges += node.dependencies.len();
        self.index.insert(id, self.nodes.len());
        self.nodes.push(node);
    }

    /// Makes slices of the nodes.
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

    /// When each node can start at the earliest, in nanoseconds.
    fn earliest(&self, builder: &mut Builder<'_>) -> Result<Vec<u64>, TraceError> {
        let mut waiting = vec![0_usize; self.nodes.len()];
        let mut waited_for: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for id in &node.dependencies {
                match self.index.get(id) {
                    Some(&before) => {
                        waiting[at] += 1;
                        waited_for[before].push(at as u32);
                    }
                    None => builder.report.problem("a dependency on a node that is not there"),
                }
            }
        }
        let mut earliest = vec![0_u64; self.nodes.len()];
        let mut ready: Vec<usize> = (0..self.nodes.len()).filter(|&at| waiting[at] == 0).collect();
        let mut done = 0;
        while let Some(at) = ready.pop() {
            done += 1;
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
        if done < self.nodes.len() {
            return Err(TraceError::Cycle { nodes: self.cycle(&waiting) });
        }
        Ok(earliest)
    }

    /// A circle among the nodes that still wait: from any of them, going back long enough ends in one.
    fn cycle(&self, waiting: &[usize]) -> Vec<u64> {
        let before = |at: usize| {
            let known = self.nodes[at].dependencies.iter().filter_map(|id| self.index.get(id).copied());
            known.into_iter().find(|&before| waiting[before] > 0)
        };
        let mut seen = vec![false; self.nodes.len()];
        let mut at = waiting.iter().position(|&waiting| waiting > 0).unwrap_or_default();
        while !std::mem::replace(&mut seen[at], true) {
            match before(at) {
                Some(next) => at = next,
                None => break,
            }
        }
        let first = at;
        let mut nodes = Vec::new();
        loop {
            nodes.push(self.nodes[at].id.unwrap_or_default());
            match before(at) {
                Some(next) if next != first => at = next,
                _ => return nodes,
            }
        }
    }
}
