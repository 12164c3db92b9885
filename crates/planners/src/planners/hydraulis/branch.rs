//! Exact assignment to a fixed number of microbatches by depth-first branch and bound.

use super::partition::Items;

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Searched {
    /// An assignment whose maximum work is below the limit: a bin index per item.
    Better(Vec<usize>),
    /// No such assignment exists.
    None,
    /// The node budget is exhausted.
    Unknown,
}

/// Searches for an assignment to `bins` bins with at most `limit` work per bin.
///
/// Items are processed in descending length order. Bins are tried in descending work order, so that
/// tight fits come first. Bins of equal work and tokens are tried only once. A branch is pruned if
/// the remaining work exceeds the free work in the bins, or the remaining tokens exceed the free
/// tokens. Bins that are too full for the smallest item are not counted.
pub(crate) fn search(items: &Items, bins: usize, limit: f64, nodes: &mut u64) -> Searched {
    let count = items.work.len();
    let mut after_work = vec![0.0; count + 1];
    let mut after_tokens = vec![0; count + 1];
    for item in (0..count).rev() {
        after_work[item] = after_work[item + 1] + items.work[item];
        after_tokens[item] = after_tokens[item + 1] + items.tokens[item];
    }
    let mut branch = Branch {
        items,
        limit,
        after_work,
        after_tokens,
        work: vec![0.0; bins],
        tokens: vec![0; bins],
        assigned_bins: vec![usize::MAX; count],
    };
    match branch.descend(0, nodes) {
        Some(true) => Searched::Better(branch.assigned_bins),
        Some(false) => Searched::None,
        None => Searched::Unknown,
    }
}

struct Branch<'a> {
    items: &'a Items,
    limit: f64,
    after_work: Vec<f64>,
    after_tokens: Vec<u64>,
    work: Vec<f64>,
    tokens: Vec<u64>,
    assigned_bins: Vec<usize>,
}

impl Branch<'_> {
    /// Returns whether the items from `item` on can be placed; `None` if the node budget is
    /// exhausted.
    fn descend(&mut self, item: usize, nodes: &mut u64) -> Option<bool> {
        let Some(&work) = self.items.work.get(item) else { return Some(true) };
        *nodes = nodes.checked_sub(1)?;
        if self.is_infeasible(item) {
            return Some(false);
        }
        let tokens = self.items.tokens[item];
        let mut order: Vec<usize> = (0..self.work.len())
            .filter(|&bin| self.work[bin] + work <= self.limit && self.tokens[bin] + tokens <= self.items.capacity)
            .collect();
        order.sort_by(|&a, &b| {
            self.work[b].total_cmp(&self.work[a]).then(self.tokens[b].cmp(&self.tokens[a])).then(a.cmp(&b))
        });
        order.dedup_by(|a, b| self.work[*a].to_bits() == self.work[*b].to_bits() && self.tokens[*a] == self.tokens[*b]);
        for bin in order {
            let before = self.work[bin];
            self.work[bin] += work;
            self.tokens[bin] += tokens;
            self.assigned_bins[item] = bin;
            if self.descend(item + 1, nodes)? {
                return Some(true);
            }
            self.work[bin] = before;
            self.tokens[bin] -= tokens;
        }
        Some(false)
    }

    /// Returns true if the remaining items need more work or tokens than the bins have free.
    fn is_infeasible(&self, item: usize) -> bool {
        let (Some(&min_work), Some(&min_tokens)) = (self.items.work.last(), self.items.tokens.last()) else {
            return false;
        };
        let (mut work, mut tokens) = (0.0, 0);
        for bin in 0..self.work.len() {
            let (free_work, free_tokens) = (self.limit - self.work[bin], self.items.capacity - self.tokens[bin]);
            if free_work >= min_work && free_tokens >= min_tokens {
                work += free_work;
                tokens += free_tokens;
            }
        }
        // Tolerance for sums in a different order.
        work * (1.0 + 1e-9) < self.after_work[item] || tokens < self.after_tokens[item]
    }
}
