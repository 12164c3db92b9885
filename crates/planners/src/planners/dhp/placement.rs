//! Maps groups to ranks, within a node if possible.

use super::batch::{Group, GroupProblem, Grouping, Microbatch};
use super::cost::Load;

/// A group with its ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedGroup {
    /// Index of the group in the microbatch.
    pub group: u32,
    /// Ranks in ring order, ascending.
    pub ranks: Vec<u32>,
    /// Number of nodes used.
    pub nodes: u32,
}

/// Placement of the groups in a microbatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Groups in the order of their first ranks.
    pub groups: Vec<PlacedGroup>,
    /// Time of the slowest group after placement, in seconds. A group that crosses nodes uses the
    /// bandwidth between nodes, even if a single node has enough ranks.
    pub seconds: f64,
    /// Number of groups that use more nodes than necessary.
    pub cut: u32,
}

/// Maps the groups of a microbatch to ranks.
///
/// Groups with at least one full node are placed first, on consecutive ranks from a node start, in
/// ascending order of unused ranks on the last node. Smaller groups follow in descending order,
/// best fit into the free ranks of a node. Groups that do not fit into a single node get the
/// remaining ranks, on as few nodes as possible; this happens only if almost all ranks are used.
pub fn assign_ranks(problem: GroupProblem<'_>, microbatch: &Microbatch) -> Placement {
    let node = problem.cost.ranks_per_node.max(1);
    let degrees: Vec<u32> = microbatch.groups.iter().map(|group| group.degree).collect();
    let mut placed: Vec<PlacedGroup> = group_ranks(&degrees, problem.ranks, node)
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

/// Returns the seconds for a group at link bandwidth `bandwidth`.
fn placed_seconds(problem: GroupProblem<'_>, microbatch: &Microbatch, group: usize, bandwidth: f64) -> f64 {
    let Group { sequences, degree, .. } = &microbatch.groups[group];
    let loads = sequences.iter().map(|&index| Load::from_sequence(problem.sequences[index as usize]));
    let time = |load| problem.cost.parts_at(load, *degree, bandwidth).total();
    if microbatch.grouping == Grouping::Sequential { loads.map(time).sum() } else { time(loads.sum()) }
}

/// Returns the index and ranks of groups with these degrees.
pub(crate) fn group_ranks(degrees: &[u32], ranks: u32, node: u32) -> Vec<(usize, Vec<u32>)> {
    let mut order: Vec<usize> = (0..degrees.len()).collect();
    order.sort_by_key(|&group| {
        let degree = degrees[group];
        let rest = (node - degree % node) % node;
        if degree >= node { (0, rest, u32::MAX - degree) } else { (1, u32::MAX - degree, 0) }
    });
    // Free ranks per node; allocated in ascending order.
    let mut free: Vec<std::ops::Range<u32>> =
        (0..ranks.div_ceil(node)).map(|at| at * node..((at + 1) * node).min(ranks)).collect();
    let mut found = Vec::with_capacity(degrees.len());
    let mut homeless = Vec::new();
    // Groups with at least one full node use the nodes before this index.
    let mut fresh = 0;
    for group in order {
        let degree = degrees[group];
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
        let mut needed = degrees[group];
        let mut taken = Vec::with_capacity(needed as usize);
        while needed > 0 {
            let Some(widest) =
                free.iter_mut().rev().max_by_key(|free| free.end - free.start).filter(|free| free.start < free.end)
            else {
                break;
            };
            let end = widest.end.min(widest.start + needed);
            taken.extend(widest.start..end);
            needed -= end - widest.start;
            widest.start = end;
        }
        taken.sort_unstable();
        found.push((group, taken));
    }
    found
}
