//! Stage 2: degrees of the groups of one microbatch (DHP, Eq. 11 and Algorithm 1), exactly and in almost linear time.

use std::collections::BinaryHeap;

use super::atomic::{AtomicGroup, Item, Setting, degree_for};
use super::cost::{GroupCost, Load};
use super::degrees::AllowedDegrees;

/// The degrees of one microbatch's groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// Of every group, in the order given.
    pub degrees: Vec<u32>,
    /// The time of the slowest, in seconds.
    pub makespan: f64,
}

/// The degrees that minimise the makespan within `ranks` ranks; none where the minimum degrees alone are too many.
///
/// The paper fills a table of groups by ranks by degrees. The same optimum without it: start all groups at their minimum;
/// as long as ranks are left, move the slowest group to its next degree that makes it faster. Every group then always has
/// the smallest degree at which it takes no longer than the slowest does now, since it was left at its first degree below
/// a makespan that was larger still. So no choice with a smaller makespan uses fewer ranks than the one step that is
/// tried, and where that step has too few ranks none is left to find. Nothing is asked of how time depends on the degree, which
/// jumps up where a group leaves its node. Each degree of each group is looked at once at most and only degrees that there
/// are ranks for: O((K' + N) log K') for K' groups instead of O(K' N²).
pub fn allocate(cost: &GroupCost, groups: &[AtomicGroup], degrees: &AllowedDegrees, ranks: u32) -> Option<Allocation> {
    let list = degrees.list();
    let mut chosen = Vec::with_capacity(groups.len());
    let mut spare = u64::from(ranks);
    for group in groups {
        spare = spare.checked_sub(u64::from(group.minimum))?;
        chosen.push(degrees.position(u64::from(group.minimum))?);
    }
    // Times are not negative, so their bits have their order.
    let mut slowest: BinaryHeap<(u64, usize)> = groups
        .iter()
        .zip(&chosen)
        .enumerate()
        .map(|(place, (group, &at))| (cost.seconds(group.load, list[at]).to_bits(), place))
        .collect();
    while let Some((time, place)) = slowest.pop() {
        let (load, at) = (groups[place].load, chosen[place]);
        let affordable = |degree: &&u32| u64::from(**degree - list[at]) <= spare;
        let faster = list[at + 1..]
            .iter()
            .take_while(affordable)
            .position(|&degree| cost.seconds(load, degree).to_bits() < time);
        let Some(further) = faster else {
            slowest.push((time, place));
            break;
        };
        let next = at + 1 + further;
        spare -= u64::from(list[next] - list[at]);
        chosen[place] = next;
        slowest.push((cost.seconds(load, list[next]).to_bits(), place));
    }
    let makespan = slowest.peek().map_or(0.0, |&(time, _)| f64::from_bits(time));
    Some(Allocation { degrees: chosen.into_iter().map(|at| list[at]).collect(), makespan })
}

/// No grouping of these sequences, each with its d_min, into groups of `ranks` ranks together has a smaller makespan, in seconds.
///
/// Two reasons: a group computes for at least its work over its degree, so the slowest takes at least all work over all
/// ranks; and the sequence with the most tokens, or the one with the most attention, stands in some group, which takes at
/// least as long as the sequence alone at its best degree.
pub fn makespan_bound(
    cost: &GroupCost,
    sequences: impl Iterator<Item = (Load, u32)>,
    degrees: &AllowedDegrees,
    ranks: u32,
) -> f64 {
    let mut total = Load::default();
    let (mut longest, mut heaviest) = (None::<(Load, u32)>, None::<(Load, u32)>);
    for (load, minimum) in sequences {
        total = total.and(load);
        if longest.is_none_or(|longest| load.tokens > longest.0.tokens) {
            longest = Some((load, minimum));
        }
        if heaviest.is_none_or(|heaviest| load.squares > heaviest.0.squares) {
            heaviest = Some((load, minimum));
        }
    }
    let Some(longest) = longest else { return 0.0 };
    let alone = |(load, minimum): (Load, u32)| {
        let setting = Setting { ranks, tokens_per_rank: 0, degrees, cost };
        let degree = degree_for(setting, Item { index: 0, load, minimum }, f64::NEG_INFINITY);
        cost.seconds(load, degree)
    };
    let shared = cost.work(total) / f64::from(ranks.max(1)) + cost.b1;
    shared.max(alone(longest)).max(heaviest.map_or(0.0, alone))
}
