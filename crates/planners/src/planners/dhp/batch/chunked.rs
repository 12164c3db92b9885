//! Microbatches of similar lengths with about equal tokens, as FlexSP cuts them (arXiv 2412.01523).

use super::{
    BatchPlan, Effort, GroupError, GroupProblem, Item, Planned, Setting, Split, fewest_microbatches, finish, group_all,
    prepare, unpacked_bound,
};
use crate::planners::dhp::atomic::Bins;

/// Plans the batch with the smallest number of microbatches that memory allows, and with up to `more` further ones.
/// Sequences are sorted by length, and each microbatch takes the next ones. Returns the plans fastest first.
pub(crate) fn chunked_plans(problem: GroupProblem<'_>, more: u32) -> Result<Vec<BatchPlan>, GroupError> {
    let (setting, items) = prepare(problem)?;
    let bound = unpacked_bound(problem);
    let fewest = fewest_microbatches(setting, &items);
    let mut plans: Vec<BatchPlan> = Vec::new();
    for count in fewest..=fewest.saturating_add(more) {
        let chunks = chunks(setting, &items, count);
        let split = Split::Sorted(chunks.len() as u32);
        if plans.iter().any(|plan| plan.split == split) {
            continue;
        }
        let planned: Vec<Planned> = group_all(setting, &chunks, Effort::Portfolio);
        let seconds = planned.iter().map(|planned| planned.allocation.makespan).sum();
        let microbatches = planned.into_iter().map(|planned| finish(problem, planned)).collect();
        plans.push(BatchPlan { microbatches, seconds, bound, split, tested: vec![(split, seconds)] });
    }
    plans.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(plans)
}

/// Cuts the sequences, in descending length order, into about `count` microbatches. A microbatch is complete at total
/// tokens / `count`, or if its ranks are full.
fn chunks(setting: Setting<'_>, items: &[Item], count: u32) -> Vec<Vec<Item>> {
    let total: u64 = items.iter().map(|item| item.load.tokens).sum();
    let enough = total.div_ceil(u64::from(count.max(1)));
    let ranks = u64::from(setting.ranks);
    let mut microbatches = Vec::new();
    let (mut bins, mut current, mut tokens) = (Bins::default(), Vec::new(), 0);
    for &item in items {
        if tokens >= enough || !bins.put(item, setting.tokens_per_rank, ranks) {
            microbatches.push(std::mem::take(&mut current));
            (bins, tokens) = (Bins::default(), 0);
            // A sequence that fits no microbatch is an error of `prepare`.
            bins.put(item, setting.tokens_per_rank, ranks);
        }
        tokens += item.load.tokens;
        current.push(item);
    }
    microbatches.push(current);
    microbatches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planners::dhp::{AllowedDegrees, DegreeRule, Exchange, GroupCost, Sequence};

    /// Four ranks of 100 tokens: 8 sequences of 90 and 16 of 10 have 880 tokens and need three microbatches. Each takes
    /// four of the long ones, or the short ones.
    #[test]
    fn microbatches_have_similar_lengths() {
        let lengths: Vec<u64> = [vec![90; 8], vec![10; 16]].concat();
        let sequences: Vec<Sequence> = lengths.iter().map(|&tokens| Sequence::causal(tokens)).collect();
        let degrees = AllowedDegrees::new(DegreeRule::PowersOfTwo, None, 4);
        let cost = GroupCost {
            a1: 1e-6,
            a2: 1e-4,
            a3: 1.0,
            b1: 1e-3,
            b2: 1e-3,
            within_node: 1e6,
            across_nodes: 1e5,
            ranks_per_node: 4,
            exchange: Exchange::AllToAll,
        };
        let problem =
            GroupProblem { sequences: &sequences, ranks: 4, tokens_per_rank: 100, degrees: &degrees, cost: &cost };
        let plans = chunked_plans(problem, 2).unwrap();
        for plan in &plans {
            assert!(plan.bound <= plan.seconds, "{plan:?}");
            let mut all: Vec<u32> = Vec::new();
            let mut shortest_before = u64::MAX;
            for microbatch in &plan.microbatches {
                let own: Vec<u32> = microbatch.groups.iter().flat_map(|group| group.sequences.clone()).collect();
                let own_lengths = || own.iter().map(|&index| lengths[index as usize]);
                assert!(own_lengths().max().unwrap() <= shortest_before);
                assert!(own_lengths().sum::<u64>() <= 400);
                shortest_before = own_lengths().min().unwrap();
                all.extend(own);
            }
            all.sort_unstable();
            assert_eq!(all, (0..24).collect::<Vec<u32>>());
        }
    }
}
