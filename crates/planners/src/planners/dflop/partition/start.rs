//! Longest processing time first (LPT) in two dimensions.

use super::Load;

/// Items between two cancellation checks. Each item scans all buckets.
const ITEMS_PER_CHECK: usize = 64;

/// Assigns the items in descending height order to the bucket with the lowest resulting height;
/// ties are resolved to the smaller load sum (the fallback in DFLOP Sec. 3.4.2). Returns `None` if
/// `stops` returns true.
pub(crate) fn lpt_buckets(loads: &[Load], buckets: usize, stops: &dyn Fn() -> bool) -> Option<Vec<Vec<u32>>> {
    let mut order: Vec<u32> = (0..loads.len() as u32).collect();
    order.sort_by_key(|&item| std::cmp::Reverse((loads[item as usize].height(), sum(loads[item as usize]))));
    let mut filled = vec![Vec::new(); buckets];
    let mut reached = vec![Load::default(); buckets];
    for (index, item) in order.into_iter().enumerate() {
        if index % ITEMS_PER_CHECK == 0 && stops() {
            return None;
        }
        let load = loads[item as usize];
        let with = |bucket: &usize| (reached[*bucket].plus(load).height(), sum(reached[*bucket]), *bucket);
        let lowest = (0..buckets).min_by_key(with).unwrap_or(0);
        reached[lowest] = reached[lowest].plus(load);
        filled[lowest].push(item);
    }
    Some(filled)
}

fn sum(load: Load) -> u64 {
    load.encoder + load.backbone
}
