//! Longest processing time first, in two dimensions.

use super::Load;

/// Items between two questions whether to stop; each looks at every bucket.
const ASKED_EVERY: usize = 64;

/// Items by height, the highest first, each to the bucket that is lowest with it, of equals to the one with less of both
/// loads together: the fallback of DFLOP, section 3.4.2. Nothing where it is to stop.
pub(super) fn longest_first(loads: &[Load], buckets: usize, stops: &dyn Fn() -> bool) -> Option<Vec<Vec<u32>>> {
    let mut order: Vec<u32> = (0..loads.len() as u32).collect();
    order.sort_by_key(|&item| std::cmp::Reverse((loads[item as usize].height(), sum(loads[item as usize]))));
    let mut filled = vec![Vec::new(); buckets];
    let mut reached = vec![Load::default(); buckets];
    for (place, item) in order.into_iter().enumerate() {
        if place % ASKED_EVERY == 0 && stops() {
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
