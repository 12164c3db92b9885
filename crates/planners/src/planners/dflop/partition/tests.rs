#![allow(clippy::float_cmp, reason = "small sums of numbers that are exact, or the same sum twice")]

use proptest::prelude::*;

use super::*;
use planscope_core::random::Random;

fn items(loads: &[(f64, f64)]) -> Vec<Item> {
    loads.iter().map(|&(encoder, backbone)| Item { encoder, backbone }).collect()
}

fn dealt(items: &[Item], buckets: usize) -> Partitioned {
    partition(items, buckets, PartitionSettings::default()).unwrap()
}

/// Returns the optimal C_max by full enumeration.
fn optimal_makespan(items: &[Item], buckets: usize) -> f64 {
    let count = buckets.pow(items.len() as u32);
    let makespan = |mut number: usize| {
        let mut sums = vec![(0.0_f64, 0.0_f64); buckets];
        for item in items {
            let bucket = &mut sums[number % buckets];
            *bucket = (bucket.0 + item.encoder, bucket.1 + item.backbone);
            number /= buckets;
        }
        sums.into_iter().map(|(encoder, backbone)| encoder.max(backbone)).fold(0.0, f64::max)
    };
    (0..count).map(makespan).fold(f64::INFINITY, f64::min)
}

/// Mixed dataset: a single image with few tiles, several images, or a video with more frames. Text
/// length and number of tiles are independent.
fn mixed(count: usize, seed: u32) -> Vec<Item> {
    let mut random = Random::new(seed, 0);
    (0..count)
        .map(|_| {
            let tiles = match random.below(3) {
                0 => 1 + random.below(10),
                1 => 2 + random.below(12),
                _ => 8 + random.below(56),
            } as f64;
            let text = libm::exp(5.0 + random.normal());
            Item { encoder: tiles * 0.01, backbone: (tiles * 196.0 + text) * 5e-5 }
        })
        .collect()
}

#[test]
fn invalid_inputs_are_rejected() {
    for (loads, buckets, expected) in [
        (&[(1.0, 1.0)][..], 0, PartitionError::NoBuckets),
        (&[(1.0, 1.0), (f64::NAN, 0.0)], 1, PartitionError::Load { item: 1 }),
        (&[(-1.0, 1.0)], 1, PartitionError::Load { item: 0 }),
        (&[(0.0, f64::INFINITY)], 1, PartitionError::Load { item: 0 }),
    ] {
        let found = partition(&items(loads), buckets, PartitionSettings::default());
        assert_eq!(found, Err(expected), "{loads:?}");
    }
}

#[test]
fn empty_and_extreme_inputs_are_partitioned() {
    let nothing = dealt(&[], 3);
    assert_eq!((nothing.makespan, nothing.gap, nothing.optimality), (0.0, 0.0, Optimality::Optimal));
    assert_eq!(nothing.buckets, vec![Vec::<u32>::new(); 3]);
    let free = dealt(&items(&[(0.0, 0.0), (0.0, 0.0)]), 2);
    assert_eq!((free.makespan, free.optimality), (0.0, Optimality::Optimal));
    for size in [1e-300, 1e300] {
        let scaled = dealt(&items(&[(size, 0.0), (size, 0.0), (0.0, size)]), 2);
        assert!((scaled.makespan / size - 1.0).abs() < 1e-12, "{}", scaled.makespan);
    }
    let single_bucket = dealt(&items(&[(1.0, 2.0), (3.0, 1.0)]), 1);
    assert_eq!((single_bucket.makespan, single_bucket.optimality), (4.0, Optimality::Optimal));
}

/// Two encoder-heavy and two backbone-heavy items. The optimum combines (8, 1) and (1, 8): C_max 9.
/// A single load dimension does not lead to this result.
#[test]
fn both_loads_count() {
    let result = dealt(&items(&[(8.0, 1.0), (8.0, 1.0), (1.0, 8.0), (1.0, 8.0)]), 2);
    assert_eq!((result.makespan, result.optimality), (9.0, Optimality::Optimal));
    for bucket in &result.buckets {
        assert_eq!(bucket.len(), 2);
        assert!(bucket[0] < 2 && bucket[1] >= 2, "{bucket:?}");
    }
}

/// LPT on (5, 5, 4, 4, 3, 3, 3) with three buckets gives 5 + 3 + 3 = 11. The optimum is 5 + 4, 5 +
/// 4, 3 + 3 + 3 = 9.
#[test]
fn the_search_improves_on_lpt() {
    let result = dealt(&items(&[5.0, 5.0, 4.0, 4.0, 3.0, 3.0, 3.0].map(|load| (load, 0.5))), 3);
    assert_eq!((result.start, result.makespan, result.bound), (11.0, 9.0, 9.0));
}

#[test]
fn a_mixed_batch_is_dealt_to_within_a_thousandth() {
    for (count, buckets) in [(512, 16), (2048, 64), (2048, 128)] {
        let result = dealt(&mixed(count, 1), buckets);
        assert!(result.gap <= 1e-3, "{count} items, {buckets} buckets: gap {}", result.gap);
        assert!(result.start >= result.makespan && result.makespan >= result.bound);
    }
}

#[test]
fn steps_end_the_search() {
    let items = mixed(500, 2);
    for steps in [0, 1, 1000, 100_000] {
        let settings = PartitionSettings { steps, gap: 0.0 };
        let result = partition(&items, 40, settings).unwrap();
        assert!(result.makespan <= result.start);
        // The search completes the current pair of buckets after the limit.
        assert!(result.steps <= steps + 100_000, "{} of {steps}", result.steps);
        assert_eq!(result, partition(&items, 40, settings).unwrap(), "the same again");
    }
}

proptest! {
    /// For few items the result is optimal and proven.
    #[test]
    fn few_items_are_dealt_as_well_as_can_be(
        loads in prop::collection::vec((0_u32..40, 0_u32..40), 1..9),
        buckets in 1_usize..4,
    ) {
        let loads: Vec<_> = loads.into_iter().map(|(e, l)| (f64::from(e), f64::from(l))).collect();
        let items = items(&loads);
        let (result, best) = (dealt(&items, buckets), optimal_makespan(&items, buckets));
        prop_assert_eq!(result.makespan, best);
        prop_assert_eq!(result.optimality, Optimality::Optimal);
        prop_assert_eq!(result.bound, best);
    }

    /// Without search steps, the bound is still a valid lower bound.
    #[test]
    fn no_partition_is_below_the_bound(
        loads in prop::collection::vec((0_u32..40, 0_u32..40), 1..9),
        buckets in 1_usize..4,
    ) {
        let loads: Vec<_> = loads.into_iter().map(|(e, l)| (f64::from(e), f64::from(l))).collect();
        let items = items(&loads);
        let result = partition(&items, buckets, PartitionSettings { steps: 0, gap: 0.0 }).unwrap();
        prop_assert!(result.bound <= optimal_makespan(&items, buckets));
    }

    /// Each item is in exactly one bucket, C_max matches the buckets, and it is between the bound
    /// and the LPT value.
    #[test]
    fn every_item_is_dealt_once(
        loads in prop::collection::vec((0.0_f64..10.0, 0.0_f64..10.0), 0..120),
        buckets in 1_usize..20,
    ) {
        let items = items(&loads);
        let settings = PartitionSettings { steps: 200_000, gap: 0.001 };
        let result = partition(&items, buckets, settings).unwrap();
        let mut seen: Vec<u32> = result.buckets.iter().flatten().copied().collect();
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..items.len() as u32).collect::<Vec<_>>());
        prop_assert_eq!(result.makespan, partition_makespan(&items, &result.buckets));
        prop_assert!(result.bound <= result.makespan && result.makespan <= result.start * (1.0 + 1e-12));
    }
}

/// The check runs before item 0 and every 64th item: 16 times for 1,000 items, and once before the
/// search.
#[test]
fn a_partition_stops_on_request() {
    let items: Vec<Item> = (0..1_000).map(|at| Item { encoder: f64::from(at), backbone: 1.0 }).collect();
    let stopped_at = |look: usize| {
        let looks = std::cell::Cell::new(0);
        let stops = || {
            looks.set(looks.get() + 1);
            looks.get() >= look
        };
        (partition_until(&items, 10, PartitionSettings::default(), &stops).err(), looks.get())
    };
    assert_eq!(stopped_at(1), (Some(PartitionError::Stopped), 1));
    assert_eq!(stopped_at(17), (Some(PartitionError::Stopped), 17));
    assert_eq!(stopped_at(usize::MAX), (None, 17));
}
