//! Groups on ranks: inside one node where they can be.

use super::batch::{Group, GroupProblem, Grouping, Microbatch};
use super::cost::Load;

/// A group and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedGroup {
    /// Its place among the groups of the microbatch.
    pub group: u32,
    /// Its ranks in the order of the ring, ascending.
    pub ranks: Vec<u32>,
    /// Nodes that it touches.
    pub nodes: u32,
}

/// Where the groups of a microbatch stand.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// In the order of their first ranks.
    pub groups: Vec<PlacedGroup>,
    /// The time of the slowest group where it stands: a group on two nodes although one could hold it sends at the rate
    /// between nodes.
    pub seconds: f64,
    /// Groups that touch more nodes than they need to.
    pub cut: u32,
}

/// Places a microbatch's groups on ranks.
///
/// Groups of a node and more come first, on consecutive ranks from the start of a node, those that leave the least of their
/// last node before others; smaller ones follow, largest first, into the node whose free ranks they fill best. What then
/// fits into no node gets the free ranks there are, fewest nodes first; that happens only where nearly all ranks are used.
pub fn place(problem: GroupProblem<'_>, microbatch: &Microbatch) -> Placement {
    let node = problem.cost.ranks_per_node.max(1);
    let mut placed: Vec<PlacedGroup> = ranks_of(&microbatch.groups, problem.ranks, node)
        .into_iter()
        .map(|(group, ranks)| {
            let nodes = ranks.windows(2).filter(|pair| pair[0] / node != pair[1] / node).count() as u32 + 1;
            PlacedGroup { group: group as u32, ranks, nodes }
        })
        .collect();
    placed.sort_by(|a, b| a.ranks.cmp(&b.ranks));
    let (mut seconds, mut cut) = (0.0_f64, 0);
    for group in &placed {
        cut += u32::from(group.nodes > (group.ranks.len() as u32).div_ceil(node));
        let bandwidth = if group.nodes > 1 { problem.cost.across_nodes } else { problem.cost.within_node };
        seconds = seconds.max(placed_seconds(problem, microbatch, group.group as usize, bandwidth));
    }
    Placement { groups: placed, seconds, cut }
}

/// Seconds of a group over links of `bandwidth`.
fn placed_seconds(problem: GroupProblem<'_>, microbatch: &Microbatch, group: usize, bandwidth: f64) -> f64 {
    let Group { sequences, degree, .. } = &microbatch.groups[group];
    let loads = sequences.iter().map(|&place| Load::of(problem.sequences[place as usize]));
    let time = |load| problem.cost.parts_at(load, *degree, bandwidth).total();
    if microbatch.grouping == Grouping::OneByOne { loads.map(time).sum() } else { time(loads.sum()) }
}

/// Of every group its place and its ranks.
fn ranks_of(groups: &[Group], ranks: u32, node: u32) -> Vec<(usize, Vec<u32>)> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&group| {
        let degree = groups[group].degree;
        let rest = (node - degree % node) % node;
        if degree >= node { (0, rest, u32::MAX - degree) } else { (1, u32::MAX - degree, 0) }
    });
    // Free ranks of every node; a node's ranks are taken from the first on.
    let mut free: Vec<std::ops::Range<u32>> =
        (0..ranks.div_ceil(node)).map(|at| at * node..((at + 1) * node).min(ranks)).collect();
    let mut found = Vec::with_capacity(groups.len());
    let mut homeless = Vec::new();
    // Nodes before this one have been begun by groups of a node and more.
    let mut fresh = 0;
    for group in order {
        let degree = groups[group].degree;
        if degree >= node && fresh as u32 * node + degree <= ranks {
            let first = fresh as u32 * node;
            let last = first + degree;
            for begun in &mut free[fresh..last.div_ceil(node) as usize] {
                begun.start = last.min(begun.end);
            }
            fresh = last.div_ceil(node) as usize;
            found.push((group, (first..last).collect()));
            continue;
        }
        let fitting = free.iter_mut().filter(|free| free.end - free.start >= degree);
        match fitting.min_by_key(|free| free.end - free.start) {
            Some(free) => {
                found.push((group, (free.start..free.start + degree).collect()));
                free.start += degree;
            }
            None => homeless.push(group),
        }
    }
    for group in homeless {
        let mut needed = groups[group].degree;
        let mut taken = Vec::with_capacity(needed as usize);
        while needed > 0 {
            let Some(most) =
                free.iter_mut().rev().max_by_key(|free| free.end - free.start).filter(|free| free.start < free.end)
            else {
                break;
            };
            let end = most.end.min(most.start + needed);
            taken.extend(most.start..end);
            needed -= end - most.start;
            most.start = end;
        }
        taken.sort_unstable();
        found.push((group, taken));
    }
    found
}
