//! Stage 2: exact degree allocation for a microbatch, near-linear time (DHP Eq. 11, DHP Alg. 1).

use std::collections::BinaryHeap;

use super::atomic::{AtomicGroup, Item, Setting, degree_for};
use super::cost::{GroupCost, Load};
use super::degrees::AllowedDegrees;

/// Degrees for the groups in a microbatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// Degree per group, in input order.
    pub degrees: Vec<u32>,
    /// Time of the slowest group, in seconds (DHP Eq. 2).
    pub makespan: f64,
}

/// Returns the degrees that minimize the makespan on `ranks` ranks. The sum of the degrees does not
/// exceed `ranks` (DHP Eq. 6). Returns `None` if the sum of the minimum degrees does.
///
/// DHP Alg. 1 fills a table over groups, ranks and degrees (DHP Eq. 11). This function finds the
/// same optimum with a greedy method. All groups start at their minimum degree. While ranks remain,
/// the slowest group moves to the next degree that reduces the time.
///
/// Proof: each group always has the smallest degree whose time does not exceed the current
/// makespan, because it stopped at the first degree below an earlier, larger makespan. Therefore no
/// smaller makespan is possible with fewer ranks than the next step. If the next step exceeds the
/// remaining ranks, the current makespan is optimal. The proof makes no assumption about time as a
/// function of degree, which can increase when a group crosses a node boundary.
///
/// Each degree per group is evaluated once, and only if enough ranks remain. The complexity is
/// O((K' + N) log K') for K' groups, instead of O(K' N²).
pub fn allocate(cost: &GroupCost, groups: &[AtomicGroup], degrees: &AllowedDegrees, ranks: u32) -> Option<Allocation> {
    let list = degrees.list();
    let mut selected = Vec::with_capacity(groups.len());
    let mut spare = u64::from(ranks);
    for group in groups {
        spare = spare.checked_sub(u64::from(group.minimum))?;
        selected.push(degrees.position(u64::from(group.minimum))?);
    }
    // For non-negative floats, the bit patterns have the same order as the values.
    let mut slowest: BinaryHeap<(u64, usize)> = groups
        .iter()
        .zip(&selected)
        .enumerate()
        .map(|(group_index, (group, &at))| (cost.seconds(group.load, list[at]).to_bits(), group_index))
        .collect();
    while let Some((time, index)) = slowest.pop() {
        let (load, at) = (groups[index].load, selected[index]);
        let affordable = |degree: &&u32| u64::from(**degree - list[at]) <= spare;
        let faster = list[at + 1..]
            .iter()
            .take_while(affordable)
            .position(|&degree| cost.seconds(load, degree).to_bits() < time);
        let Some(further) = faster else {
            slowest.push((time, index));
            break;
        };
        let next = at + 1 + further;
        spare -= u64::from(list[next] - list[at]);
        selected[index] = next;
        slowest.push((cost.seconds(load, list[next]).to_bits(), index));
    }
    let makespan = slowest.peek().map_or(0.0, |&(time, _)| f64::from_bits(time));
    Some(Allocation { degrees: selected.into_iter().map(|at| list[at]).collect(), makespan })
}

/// Returns a lower bound in seconds for the makespan on `ranks` ranks, valid for all groupings.
/// `sequences` contains pairs of load and d_min.
///
/// The bound is the maximum of two terms. First, the total work divided by all ranks, because the
/// computation time of a group is not below work / degree. Second, the minimum time of a
/// single-sequence group, for the longest sequence and for the sequence with the maximum attention
/// work.
pub fn makespan_bound(
    cost: &GroupCost,
    sequences: impl Iterator<Item = (Load, u32)>,
    degrees: &AllowedDegrees,
    ranks: u32,
) -> f64 {
    let mut total = Load::default();
    let (mut max_length, mut heaviest) = (None::<(Load, u32)>, None::<(Load, u32)>);
    for (load, minimum) in sequences {
        total = total.and(load);
        if max_length.is_none_or(|known| load.tokens > known.0.tokens) {
            max_length = Some((load, minimum));
        }
        if heaviest.is_none_or(|heaviest| load.squares > heaviest.0.squares) {
            heaviest = Some((load, minimum));
        }
    }
    let Some(max_item) = max_length else { return 0.0 };
    let isolated_time = |(load, minimum): (Load, u32)| {
        let setting = Setting { ranks, tokens_per_rank: 0, degrees, cost };
        let degree = degree_for(setting, Item { index: 0, load, minimum }, f64::NEG_INFINITY);
        cost.seconds(load, degree)
    };
    let shared = cost.work(total) / f64::from(ranks.max(1)) + cost.b1;
    shared.max(isolated_time(max_item)).max(heaviest.map_or(0.0, isolated_time))
}
