//! Workload-balanced packing of variable length for one context-parallel degree (WLB-LLM, arXiv 2503.17924).

use std::collections::BTreeSet;

use super::atomic::{AtomicGroup, Item};
use super::baseline::{fitting_items, one_degree_plan};
use super::batch::{BatchPlan, GroupError, GroupProblem};
use super::cost::Load;

/// Numbers of microbatches to try beyond the smallest.
const MORE: usize = 3;

/// Plans one degree for all groups, N / degree groups side by side, packed by work instead of tokens.
///
/// Sequences are assigned in descending order of work, each to the packed sequence with the least work that has memory
/// for it. Long sequences (outliers) therefore share their packed sequence with little, and each packed sequence gets
/// as few of them as possible. Packed sequences are sorted by work before they become microbatches, so that those of a
/// microbatch are similar. The number of microbatches is the smallest that memory allows, or up to three more,
/// whichever has the lowest estimate. The degree must divide N.
pub fn variable_length_plan(problem: GroupProblem<'_>, degree: u32) -> Result<BatchPlan, GroupError> {
    let (items, capacity) = fitting_items(problem, degree)?;
    let side_by_side = (problem.ranks / degree).max(1) as usize;
    let total: u64 = items.iter().map(|item| item.load.tokens).sum();
    let fewest = total.div_ceil(capacity.max(1)).div_ceil(side_by_side as u64).max(1) as usize;
    let mut best: Option<BatchPlan> = None;
    let (mut count, mut found) = (fewest, 0);
    while found <= MORE && count <= items.len().max(fewest) {
        if let Some(packed) = packed(problem, &items, count * side_by_side, capacity, degree) {
            found += 1;
            let plan = one_degree_plan(problem, degree, packed.chunks(side_by_side).map(<[AtomicGroup]>::to_vec));
            if best.as_ref().is_none_or(|best| plan.seconds < best.seconds) {
                best = Some(plan);
            }
        }
        count += 1;
    }
    // One sequence in each packed sequence always fits.
    best.ok_or(GroupError::Empty)
}

/// Assigns the sequences to `count` packed sequences; `None` if memory does not suffice. Packed sequences are in
/// descending order of work, without empty ones.
fn packed(
    problem: GroupProblem<'_>,
    items: &[Item],
    count: usize,
    capacity: u64,
    degree: u32,
) -> Option<Vec<AtomicGroup>> {
    let mut order: Vec<Item> = items.to_vec();
    let work = |load: Load| problem.cost.work(load);
    order.sort_by(|a, b| work(b.load).total_cmp(&work(a.load)).then(a.index.cmp(&b.index)));
    let empty = AtomicGroup { sequences: Vec::new(), load: Load::default(), minimum: degree };
    let mut groups = vec![empty; count];
    // Groups in ascending order of work. For non-negative floats, the bit patterns have the order of the values.
    let mut by_work: BTreeSet<(u64, usize)> = (0..count).map(|group| (0, group)).collect();
    for item in order {
        let has_memory = |&&(_, group): &&(u64, usize)| groups[group].load.tokens + item.load.tokens <= capacity;
        let &(before, least) = by_work.iter().find(has_memory)?;
        let group = &mut groups[least];
        group.sequences.push(item.index);
        group.load = group.load.and(item.load);
        by_work.remove(&(before, least));
        by_work.insert((work(group.load).to_bits(), least));
    }
    groups.retain(|group| !group.sequences.is_empty());
    groups.sort_by(|a, b| work(b.load).total_cmp(&work(a.load)).then(a.sequences.cmp(&b.sequences)));
    for group in &mut groups {
        let minimum = problem.degrees.minimum(group.load.tokens, problem.tokens_per_rank);
        group.minimum = minimum.map_or(degree, |minimum| minimum.min(degree));
    }
    Some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planners::dhp::{AllowedDegrees, DegreeRule, Exchange, GroupCost, Sequence, static_plan};

    /// Two ranks, four sequences of 8 and 24 of 2 tokens. With attention only, a sequence of 8 costs 64 and one of 2
    /// costs 4. Packed by tokens, two sequences of 8 share a microbatch with little else; packed by work, each of the
    /// two packed sequences has two long and twelve short ones.
    #[test]
    fn work_is_balanced_instead_of_tokens() {
        let lengths: Vec<u64> = [vec![8; 4], vec![2; 24]].concat();
        let sequences: Vec<Sequence> = lengths.iter().map(|&tokens| Sequence::causal(tokens)).collect();
        let degrees = AllowedDegrees::new(DegreeRule::Any, None, 2);
        let cost = GroupCost {
            a1: 1.0,
            a2: 0.0,
            a3: 0.0,
            b1: 0.0,
            b2: 0.0,
            within_node: 1.0,
            across_nodes: 1.0,
            ranks_per_node: 2,
            exchange: Exchange::Ring,
        };
        let problem =
            GroupProblem { sequences: &sequences, ranks: 2, tokens_per_rank: 48, degrees: &degrees, cost: &cost };
        let (packed, fixed) = (variable_length_plan(problem, 1).unwrap(), static_plan(problem, 1).unwrap());
        // 2 x 64 + 12 x 4.
        assert!((packed.seconds - 176.0).abs() < 1e-9, "{packed:?}");
        assert!(packed.seconds < fixed.seconds, "{} and {}", packed.seconds, fixed.seconds);
        let error = variable_length_plan(GroupProblem { tokens_per_rank: 4, ..problem }, 1);
        assert!(matches!(error, Err(GroupError::TooLong { tokens: 8, .. })), "{error:?}");
    }
}
