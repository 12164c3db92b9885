//! Lower bounds of C_max.
//!
//! Any mix w = (p e + (4 - p) l) / 4 of the two loads is at most C_max in every bucket, so every bound of the one-dimensional
//! problem with loads w holds. For each of five mixes: the mean; the heaviest item; for k = 1, 2, ... the k + 1 lightest of
//! the k m + 1 heaviest items, since some bucket holds that many of them; and the largest C at which the items would need
//! more than m bins of size C by the bound L2 of Martello and Toth (1990), found by bisection.

use super::Load;

/// Mixes of the loads, in quarters.
const QUARTERS: u64 = 4;

/// No partition into `buckets` has a smaller height; `reached` is the height of some partition.
pub(super) fn lower_bound(loads: &[Load], buckets: usize, reached: u64) -> u64 {
    let heaviest = loads.iter().map(|load| load.height()).max().unwrap_or(0);
    (0..=QUARTERS).fold(heaviest, |bound, part| {
        if bound >= reached {
            return bound;
        }
        let mix = |load: &Load| part * load.encoder + (QUARTERS - part) * load.backbone;
        let mut weights: Vec<u64> = loads.iter().map(mix).collect();
        weights.sort_unstable_by(|a, b| b.cmp(a));
        let of_mix = of_weights(&weights, buckets as u64, bound * QUARTERS, reached * QUARTERS);
        bound.max(of_mix.div_ceil(QUARTERS))
    })
}

/// A bound of the largest sum of weights, which are in descending order; `known` is one already.
fn of_weights(weights: &[u64], buckets: u64, known: u64, reached: u64) -> u64 {
    let sums = prefix_sums(weights);
    let total = sums[weights.len()];
    let mut bound = known.max(total.div_ceil(buckets));
    let mut share = 1_usize;
    while let Some(&last) = sums.get(share * buckets as usize + 1) {
        bound = bound.max(last - sums[share * buckets as usize - share]);
        share += 1;
    }
    // The largest size known to be too small, from below.
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

/// Bound L2: the bins of a size that weights, each at most as large, need at least.
fn bins(weights: &[u64], sums: &[u64], size: u64) -> u64 {
    // Those above half the size need a bin each.
    let large = weights.partition_point(|&weight| weight > size / 2);
    let mut most = large as u64;
    // With a threshold: nothing goes beside what leaves less room than it, and what is below it is left out.
    let mut alone = large;
    for last in large..weights.len() {
        let threshold = weights[last];
        if threshold == 0 {
            break;
        }
        if weights.get(last + 1) == Some(&threshold) {
            continue;
        }
        while alone > 0 && weights[alone - 1] <= size - threshold {
            alone -= 1;
        }
        let room = (large - alone) as u64 * size - (sums[large] - sums[alone]);
        let small = sums[last + 1] - sums[large];
        most = most.max(large as u64 + small.saturating_sub(room).div_ceil(size));
    }
    most
}

/// Sums of the first 0, 1, ... values.
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
        of_weights(bound, buckets, bound[0], bound.iter().sum())
    }

    #[test]
    fn each_bound_counts_where_it_is_the_largest() {
        for (loads, buckets, expected) in [
            // The mean, 13 / 2.
            (&[4, 3, 3, 3][..], 2, 7),
            // The heaviest.
            (&[20, 1, 1], 2, 20),
            // Two of the heaviest three share one of two buckets: 6 + 6.
            (&[7, 6, 6], 2, 12),
            // Three of the heaviest five do: 4 + 4 + 4.
            (&[4, 4, 4, 4, 4], 2, 12),
            // In bins of 19 a 12 leaves no room for an 8, and the 8s need two bins more: 4 > 3. All others say at most 16.
            (&[12, 12, 8, 8, 8], 3, 20),
        ] {
            assert_eq!(weights(loads, buckets), expected, "{loads:?}");
        }
    }

    #[test]
    fn a_mix_of_the_loads_bounds_more_than_either() {
        let loads = [(9, 5), (5, 9), (6, 6)].map(|(encoder, backbone)| Load { encoder, backbone });
        // Both together 14, 14 and 12: two of the three share a bucket, at least 26 / 2 = 13. Encoder alone: 5 + 6 = 11.
        assert_eq!(lower_bound(&loads, 2, 20), 13);
    }
}
