//! Groups on ranks: contiguous, and inside one node where they can be.

use super::batch::{Group, GroupProblem, Grouping, Microbatch};
use super::cost::Load;

/// A group and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedGroup {
    /// Its place among the groups of the microbatch.
    pub group: u32,
    /// Its ranks are this one and those after it, as many as its degree.
    pub first_rank: u32,
    /// Nodes that it touches.
    pub nodes: u32,
}

/// Where the groups of a microbatch stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// In the order of ranks.
    pub groups: Vec<PlacedGroup>,
    /// The time of the slowest group where it stands: a group that is cut by the border of two nodes although one node
    /// could hold it sends at the rate between nodes.
    pub seconds: f64,
    /// Groups that touch more nodes than they need to.
    pub cut: u32,
}

/// Places a microbatch's groups on consecutive ranks.
///
/// Groups of a whole number of nodes come first, those of a node and more after them, each followed by what fills its last
/// node best, and smaller ones go best fit into nodes, largest first. Only what fits into no node's rest is cut by a
/// border, which can happen where the ranks are nearly all used.
pub fn place(problem: GroupProblem<'_>, microbatch: &Microbatch) -> Placement {
    let node = problem.cost.ranks_per_node.max(1);
    let order = order(&microbatch.groups, problem.ranks, node);
    let mut placed = Vec::with_capacity(order.len());
    let (mut seconds, mut cut) = (0.0_f64, 0);
    for (group, first) in order {
        let degree = microbatch.groups[group].degree;
        let nodes = (first + degree - 1) / node - first / node + 1;
        cut += u32::from(nodes > degree.div_ceil(node));
        let bandwidth = if nodes > 1 { problem.cost.across_nodes } else { problem.cost.within_node };
        seconds = seconds.max(placed_seconds(problem, microbatch, group, bandwidth));
        placed.push(PlacedGroup { group: group as u32, first_rank: first, nodes });
    }
    placed.sort_by_key(|placed| placed.first_rank);
    Placement { groups: placed, seconds, cut }
}

/// Seconds of a group over links of `bandwidth`.
fn placed_seconds(problem: GroupProblem<'_>, microbatch: &Microbatch, group: usize, bandwidth: f64) -> f64 {
    let Group { sequences, degree, .. } = &microbatch.groups[group];
    let loads = sequences.iter().map(|&place| Load::of(problem.sequences[place as usize]));
    let time = |load| problem.cost.parts_at(load, *degree, bandwidth).total();
    if microbatch.grouping == Grouping::OneByOne { loads.map(time).sum() } else { time(loads.sum()) }
}

/// Of every group its place and its first rank.
fn order(groups: &[Group], ranks: u32, node: u32) -> Vec<(usize, u32)> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    // Whole nodes first, then what leaves the least of its last node, then single-node groups from large to small.
    order.sort_by_key(|&group| {
        let degree = groups[group].degree;
        let rest = (node - degree % node) % node;
        if degree >= node { (0, rest, u32::MAX - degree) } else { (1, u32::MAX - degree, 0) }
    });
    // Runs of free ranks inside nodes, and the rank from which all nodes are free.
    let mut rests: Vec<(u32, u32)> = Vec::new();
    let mut fresh = 0;
    let mut found = Vec::with_capacity(groups.len());
    let mut homeless = Vec::new();
    for group in order {
        let degree = groups[group].degree;
        let fitting = rests.iter_mut().filter(|(_, free)| *free >= degree);
        if let Some(rest) = fitting.min_by_key(|(first, free)| (*free, *first)) {
            found.push((group, rest.0));
            *rest = (rest.0 + degree, rest.1 - degree);
        } else if fresh + degree <= ranks {
            found.push((group, fresh));
            let end = (fresh + degree).div_ceil(node) * node;
            let end = end.min(ranks);
            if end > fresh + degree {
                rests.push((fresh + degree, end - fresh - degree));
            }
            fresh = end;
        } else {
            homeless.push(group);
        }
    }
    if homeless.is_empty() { found } else { consecutive(groups) }
}

/// One group after the other, largest first: always fits, and cuts where it must.
fn consecutive(groups: &[Group]) -> Vec<(usize, u32)> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&group| std::cmp::Reverse(groups[group].degree));
    let mut next = 0;
    let starts = order.into_iter().map(|group| {
        let first = next;
        next += groups[group].degree;
        (group, first)
    });
    starts.collect()
}
