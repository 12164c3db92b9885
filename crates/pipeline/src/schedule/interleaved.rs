//! Interleaved 1F1B with several model chunks per rank (VPP; Narayanan et al., 2021, Sec. 2.2).

use super::{Action, Schedule};

/// Number of consecutive microbatches per chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// ⌊m / p⌋ groups with `p` or more microbatches. Group sizes differ by 0 or 1. If `p` divides
    /// m, all groups have size `p`.
    Balanced,
    /// Fixed non-zero group size; the final group can be smaller. Groups with fewer than `p`
    /// microbatches can deadlock, which [`crate::simulate::execute`] reports.
    Fixed(usize),
}

impl Grouping {
    /// Returns the group size g in the warm-up formula.
    pub(super) fn max_group_size(self, ranks: usize, sizes: &[usize]) -> usize {
        match self {
            Self::Fixed(group) => group,
            Self::Balanced => sizes.iter().copied().max().unwrap_or(0).max(ranks),
        }
    }
}

/// Creates an interleaved schedule. Each group of microbatches runs through chunk 0, then chunk 1,
/// and so on. Groups run in sequence. Backwards use the reverse chunk order. Rank `r` warms up with
/// `2 (p - r - 1) + (v - 1) g` forwards, where g is the maximum group size.
///
/// For equal times and p dividing m, the bubble is `(p - 1)(F + B) / v` in addition to the ideal `m
/// (F + B)`, with F and B for all chunks of a rank.
pub fn interleaved(ranks: usize, chunks: usize, microbatches: usize, grouping: Grouping) -> Schedule {
    let sizes = group_sizes(ranks, microbatches, grouping);
    let group_size = grouping.max_group_size(ranks, &sizes);
    let table = order_table(chunks, &sizes);
    let total = table.len();
    let orders = (0..ranks).map(|rank| {
        let forward = |index: usize| Action::forward(table[index].0 * ranks + rank, table[index].1);
        let backward = |index: usize| Action::backward((chunks - 1 - table[index].0) * ranks + rank, table[index].1);
        let warm_up = (2 * (ranks - rank - 1) + (chunks - 1) * group_size).min(total);
        let mut order = Vec::with_capacity(2 * total);
        order.extend((0..warm_up).map(forward));
        for steady in 0..total - warm_up {
            order.push(forward(warm_up + steady));
            order.push(backward(steady));
        }
        order.extend((total - warm_up..total).map(backward));
        order
    });
    Schedule { stages: ranks * chunks, microbatches, orders: orders.collect() }
}

/// Returns the group sizes.
pub(super) fn group_sizes(ranks: usize, microbatches: usize, grouping: Grouping) -> Vec<usize> {
    match grouping {
        Grouping::Fixed(group) => {
            let group = group.max(1);
            (0..microbatches.div_ceil(group)).map(|index| group.min(microbatches - index * group)).collect()
        }
        Grouping::Balanced => {
            let groups = (microbatches / ranks).max(1);
            let (each, larger) = (microbatches / groups, microbatches % groups);
            (0..groups).map(|index| each + usize::from(index < larger)).collect()
        }
    }
}

/// Returns (chunk, microbatch) in forward order.
pub(super) fn order_table(chunks: usize, sizes: &[usize]) -> Vec<(usize, usize)> {
    let mut table = Vec::with_capacity(chunks * sizes.iter().sum::<usize>());
    let mut first = 0;
    for size in sizes {
        for chunk in 0..chunks {
            table.extend((first..first + size).map(|microbatch| (chunk, microbatch)));
        }
        first += size;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::execute;
    use planscope_core::units::Nanos;
    use planscope_cost::cost::{PipelineCosts, UniformTimes};

    /// Example in docs/models.md: p = 2, g = 3, m = 5, v = 2.
    #[test]
    fn the_last_group_may_be_short() {
        let table = order_table(2, &group_sizes(2, 5, Grouping::Fixed(3)));
        let microbatches: Vec<usize> = table.iter().map(|entry| entry.1).collect();
        let chunks: Vec<usize> = table.iter().map(|entry| entry.0).collect();
        assert_eq!(microbatches, [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]);
        assert_eq!(chunks, [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]);
    }

    #[test]
    fn balanced_groups_are_no_shorter_than_the_pipeline() {
        assert_eq!(group_sizes(4, 23, Grouping::Balanced), [5, 5, 5, 4, 4]);
        assert_eq!(group_sizes(4, 12, Grouping::Balanced), [4, 4, 4]);
        assert_eq!(group_sizes(4, 3, Grouping::Balanced), [3]);
    }

    /// Exhaustive for small sizes. Includes fixed group sizes >= p with a remainder that is zero or
    /// >= p.
    #[test]
    fn groups_as_long_as_the_pipeline_never_deadlock() {
        let unit = Nanos::new(1);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: unit };
        for (ranks, chunks, microbatches) in
            (1..6).flat_map(|p| (1..4).flat_map(move |v| (1..20).map(move |m| (p, v, m))))
        {
            let costs = PipelineCosts::uniform(ranks, chunks, microbatches, times);
            let balanced = interleaved(ranks, chunks, microbatches, Grouping::Balanced);
            assert!(execute(&balanced, &costs).is_ok(), "p {ranks} v {chunks} m {microbatches}");
            for group in ranks..=microbatches {
                let left = microbatches % group;
                if left == 0 || left >= ranks {
                    let schedule = interleaved(ranks, chunks, microbatches, Grouping::Fixed(group));
                    assert!(execute(&schedule, &costs).is_ok(), "p {ranks} v {chunks} m {microbatches} g {group}");
                }
            }
        }
    }
}
