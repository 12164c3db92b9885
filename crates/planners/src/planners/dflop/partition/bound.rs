//! Lower bounds for C_max.
//!
//! Any mix w = (p e + (4 - p) l) / 4 of the two loads is bounded by C_max in each bucket. Therefore
//! lower bounds for the one-dimensional problem with loads w are valid. For five mixes, the module
//! computes:
//!
//! - the mean load;
//! - the maximum item;
//! - for k = 1, 2, ..., the sum over the k + 1 lightest among the k m + 1 heaviest items, because
//!   some bucket contains k + 1 such items;
//! - the maximum C for which the items need more than m bins with size C, by the bound L2 of
//!   Martello and Toth (1990), found by bisection.

use super::Load;

/// Denominator of the mix weights.
const QUARTERS: u64 = 4;

/// Returns a lower bound for the maximum height of `buckets` buckets. `reached` is the height in a
/// known partition.
pub(crate) fn lower_bound(loads: &[Load], buckets: usize, reached: u64) -> u64 {
    let heaviest = loads.iter().map(|load| load.height()).max().unwrap_or(0);
    (0..=QUARTERS).fold(heaviest, |bound, part| {
        if bound >= reached {
            return bound;
        }
        let mix = |load: &Load| part * load.encoder + (QUARTERS - part) * load.backbone;
        let mut weights: Vec<u64> = loads.iter().map(mix).collect();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        let mix_bound = weight_bound(&weights, buckets as u64, bound * QUARTERS, reached * QUARTERS);
        bound.max(mix_bound.div_ceil(QUARTERS))
    })
}

/// Returns a lower bound for the maximum bucket sum. `weights` are in descending order; `known` is
/// a valid lower bound, `reached` a valid upper bound.
fn weight_bound(weights: &[u64], buckets: u64, known: u64, reached: u64) -> u64 {
    let sums = prefix_sums(weights);
    let total = sums[weights.len()];
    let mut bound = known.max(total.div_ceil(buckets));
    let mut share = 1_usize;
    while let Some(&last) = sums.get(share * buckets as usize + 1) {
        bound = bound.max(last - sums[share * buckets as usize - share]);
        share += 1;
    }
    // Bisect for the maximum infeasible size, from below.
    let (mut low, mut high) = (bound, reached);
    while low < high {
        let size = low + (high - low) / 2;
        if bins(weights, &sums, size) > buckets {
            low = size + 1;
        } else {
            high = size;
        }
    }
    low
}

/// Returns the L2 lower bound for the number of bins of the given size. No weight exceeds `size`.
fn bins(weights: &[u64], sums: &[u64], size: u64) -> u64 {
    // Items above half the bin size need separate bins.
    let large = weights.partition_point(|&weight| weight > size / 2);
    let mut max_bins = large as u64;
    // For a given threshold: items that leave less free space accept no other item, and items below
    // the threshold are ignored.
    let mut isolated = large;
    for last in large..weights.len() {
        let threshold = weights[last];
        if threshold == 0 {
            break;
        }
        if weights.get(last + 1) == Some(&threshold) {
            continue;
        }
        while isolated > 0 && weights[isolated - 1] <= size - threshold {
            isolated -= 1;
        }
        let free_space = (large - isolated) as u64 * size - (sums[large] - sums[isolated]);
        let small = sums[last + 1] - sums[large];
        max_bins = max_bins.max(large as u64 + small.saturating_sub(free_space).div_ceil(size));
    }
    max_bins
}

/// Returns the sums of the first 0, 1, ... values.
fn prefix_sums(values: &[u64]) -> Vec<u64> {
    let mut sums = vec![0];
    sums.extend(values.iter().scan(0, |sum, &value| {
        *sum += value;
        Some(*sum)
    }));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(bound: &[u64], buckets: u64) -> u64 {
        weight_bound(bound, buckets, bound[0], bound.iter().sum())
    }

    #[test]
    fn each_bound_applies_where_it_is_the_maximum() {
        for (loads, buckets, expected) in [
            // Mean: 13 / 2.
            (&[4, 3, 3, 3][..], 2, 7),
            // Maximum item.
            (&[20, 1, 1], 2, 20),
            // A bucket contains two of the three heaviest items: 6 + 6.
            (&[7, 6, 6], 2, 12),
            // A bucket contains three of the five heaviest items: 4 + 4 + 4.
            (&[4, 4, 4, 4, 4], 2, 12),
            // With bin size 19, an item with weight 12 has no space for an 8, and the items with
            // weight 8 need two more bins: 4 > 3. The other bounds do not exceed 16.
            (&[12, 12, 8, 8, 8], 3, 20),
        ] {
            assert_eq!(weights(loads, buckets), expected, "{loads:?}");
        }
    }

    #[test]
    fn mixed_loads_bound_more_than_either() {
        let loads = [(9, 5), (5, 9), (6, 6)].map(|(encoder, backbone)| Load { encoder, backbone });
        // The sums encoder + backbone are 14, 14 and 12. A bucket contains two of the three items:
        // lower bound 26 / 2 = 13. Encoder load only: 5 + 6 = 11.
        assert_eq!(lower_bound(&loads, 2, 20), 13);
    }
}
