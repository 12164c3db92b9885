//! Branch and bound: optimal partition for small problems.

use super::Load;

/// Result of branch and bound.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    /// Best known partition.
    pub partition: Vec<Vec<u32>>,
    /// True if the partition is optimal.
    pub proven: bool,
    /// Number of steps used.
    pub steps: u64,
}

struct Search<'a> {
    loads: &'a [Load],
    /// Item indices in descending height order.
    order: Vec<u32>,
    /// Suffix sums of the loads in this order.
    left: Vec<Load>,
    /// Suffix minima of the loads, per dimension.
    min_loads: Vec<Load>,
    reached: Vec<Load>,
    placed: Vec<usize>,
    best: Option<Vec<usize>>,
    best_height: u64,
    bound: u64,
    steps: u64,
    limit: u64,
}

/// Searches for a partition with a smaller height than `known`, down to `bound`. The step limit is
/// `limit`.
///
/// Items are placed in descending height order. Buckets are tried in ascending order of the
/// resulting height; among buckets with equal load, only the first is tried. A branch is pruned if
/// the remaining items do not fit in the usable space below the current minimum height. Space is
/// usable if the smallest remaining item fits in it.
pub(crate) fn settle(loads: &[Load], buckets: usize, bound: u64, known: Vec<Vec<u32>>, limit: u64) -> Settled {
    let mut order: Vec<u32> = (0..loads.len() as u32).collect();
    let sum = |load: Load| load.encoder + load.backbone;
    order.sort_by_key(|&item| std::cmp::Reverse((loads[item as usize].height(), sum(loads[item as usize]))));
    let mut left = vec![Load::default(); order.len() + 1];
    let mut min_loads = vec![Load { encoder: u64::MAX, backbone: u64::MAX }; order.len() + 1];
    for (index, &item) in order.iter().enumerate().rev() {
        let load = loads[item as usize];
        left[index] = left[index + 1].plus(load);
        min_loads[index] = Load {
            encoder: min_loads[index + 1].encoder.min(load.encoder),
            backbone: min_loads[index + 1].backbone.min(load.backbone),
        };
    }
    let height =
        |bucket: &Vec<u32>| bucket.iter().fold(Load::default(), |sum, &item| sum.plus(loads[item as usize])).height();
    let best_height = known.iter().map(height).max().unwrap_or(0);
    let mut search = Search {
        loads,
        placed: Vec::with_capacity(order.len()),
        order,
        left,
        min_loads,
        reached: vec![Load::default(); buckets],
        best: None,
        best_height,
        bound,
        steps: 0,
        limit,
    };
    search.assign_next();
    let proven = search.steps < limit || search.best_height <= bound;
    let Some(best) = search.best else { return Settled { partition: known, proven, steps: search.steps } };
    let mut partition = vec![Vec::new(); buckets];
    for (&item, bucket) in search.order.iter().zip(best) {
        partition[bucket].push(item);
    }
    Settled { partition, proven, steps: search.steps }
}

impl Search<'_> {
    /// Places the next item in all buckets that can improve the height.
    fn assign_next(&mut self) {
        let depth = self.placed.len();
        let Some(&item) = self.order.get(depth) else {
            self.best_height = self.reached.iter().map(|load| load.height()).max().unwrap_or(0);
            self.best = Some(self.placed.clone());
            return;
        };
        self.steps += self.reached.len() as u64;
        if !self.has_space(depth) {
            return;
        }
        let load = self.loads[item as usize];
        let mut into: Vec<(u64, usize)> = Vec::new();
        for (bucket, &reached) in self.reached.iter().enumerate() {
            let height = reached.plus(load).height();
            if height < self.best_height && !self.reached[..bucket].contains(&reached) {
                into.push((height, bucket));
            }
        }
        into.sort_unstable();
        for (height, bucket) in into {
            if self.best_height <= self.bound || self.steps >= self.limit {
                return;
            }
            if height >= self.best_height {
                continue;
            }
            let before = self.reached[bucket];
            self.reached[bucket] = before.plus(load);
            self.placed.push(bucket);
            self.assign_next();
            self.placed.pop();
            self.reached[bucket] = before;
        }
    }

    /// Returns true if the remaining items can fit below `best_height`. A bucket without space for
    /// the smallest remaining item is not counted.
    fn has_space(&self, depth: usize) -> bool {
        let (left, min_load) = (self.left[depth], self.min_loads[depth]);
        let max_height = self.best_height.saturating_sub(1);
        let mut space = Load::default();
        for &reached in &self.reached {
            // `best_height` can decrease after this bucket is filled.
            if reached.height() > max_height {
                return false;
            }
            let free = Load { encoder: max_height - reached.encoder, backbone: max_height - reached.backbone };
            if free.encoder >= min_load.encoder && free.backbone >= min_load.backbone {
                space = space.plus(free);
            }
        }
        space.encoder >= left.encoder && space.backbone >= left.backbone
    }
}
