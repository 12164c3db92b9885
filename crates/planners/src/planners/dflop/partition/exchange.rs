//! Best exchange of up to two items between two buckets.

use super::Load;

/// Positions in a bucket of the items to exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Few {
    /// Up to two positions.
    places: [u32; 2],
    count: u8,
}

impl Few {
    /// Returns the positions.
    pub(crate) fn places(&self) -> &[u32] {
        &self.places[..usize::from(self.count)]
    }
}

/// Total load and positions for a group of up to two items.
type Group = (Load, Few);

/// Two buckets for an exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    /// Item loads in the higher bucket.
    pub from: &'a [Load],
    /// Item loads in the lower bucket.
    pub to: &'a [Load],
    /// Total load of the higher bucket.
    pub from_load: Load,
    /// Total load of the lower bucket.
    pub to_load: Load,
}

/// An exchange that moves the two buckets below a height limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// Maximum height of the two buckets after the exchange.
    pub height: u64,
    /// Items that move from the higher to the lower bucket.
    pub there: Few,
    /// Items that move from the lower to the higher bucket.
    pub back: Few,
}

impl Pair<'_> {
    /// Returns the exchange of one item for zero or one item that minimizes the maximum height, if
    /// that is below `limit`. Adds to `steps`.
    pub(crate) fn singles(&self, limit: u64, steps: &mut u64) -> Option<Exchange> {
        let mut best = None;
        let mut limit = limit;
        *steps += (self.from.len() * (self.to.len() + 1)) as u64;
        for (there, &out) in self.from.iter().enumerate() {
            let (left, received) = (self.from_load.minus(out), self.to_load.plus(out));
            if left.height() >= limit {
                continue;
            }
            let there = Few { places: [there as u32, 0], count: 1 };
            if received.height() < limit {
                limit = received.height().max(left.height());
                best = Some(Exchange { height: limit, there, back: Few::default() });
            }
            for (back, &into) in self.to.iter().enumerate() {
                let height = left.plus(into).height().max(received.minus(into).height());
                if height < limit {
                    limit = height;
                    let back = Few { places: [back as u32, 0], count: 1 };
                    best = Some(Exchange { height, there, back });
                }
            }
        }
        best
    }

    /// Same as [`Self::singles`] for up to two items per direction. The groups in the lower bucket
    /// are sorted by encoder load, so the scan covers only the range that can balance.
    pub(crate) fn doubles(&self, limit: u64, steps: &mut u64) -> Option<Exchange> {
        let (there, mut back) = (groups(self.from), groups(self.to));
        back.sort_unstable_by_key(|(load, few)| (load.encoder, load.backbone, few.places, few.count));
        let mut best = None;
        let mut limit = limit;
        *steps += (there.len() + 8 * back.len()) as u64;
        for &(out, few) in &there {
            let (left, received) = (self.from_load.minus(out), self.to_load.plus(out));
            if left.height() >= limit {
                continue;
            }
            // The returned group must be heavy enough to bring the lower bucket below the limit,
            // and light enough to keep the higher bucket below it.
            let min_encoder = (received.encoder + 1).saturating_sub(limit);
            let first = back.partition_point(|(load, _)| load.encoder < min_encoder);
            for &(into, other) in &back[first..] {
                *steps += 1;
                if left.encoder + into.encoder >= limit {
                    break;
                }
                let height = left.plus(into).height().max(received.minus(into).height());
                if height < limit {
                    limit = height;
                    best = Some(Exchange { height, there: few, back: other });
                }
            }
        }
        best
    }
}

/// Returns the empty group, all single items and all pairs.
fn groups(loads: &[Load]) -> Vec<Group> {
    let mut groups = vec![(Load::default(), Few::default())];
    for (first, &load) in loads.iter().enumerate() {
        groups.push((load, Few { places: [first as u32, 0], count: 1 }));
        for (second, &other) in loads.iter().enumerate().skip(first + 1) {
            groups.push((load.plus(other), Few { places: [first as u32, second as u32], count: 2 }));
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(values: &[(u64, u64)]) -> Vec<Load> {
        values.iter().map(|&(encoder, backbone)| Load { encoder, backbone }).collect()
    }

    fn sum(loads: &[Load]) -> Load {
        loads.iter().fold(Load::default(), |sum, &load| sum.plus(load))
    }

    /// 9 + 5 against 2 + 2 + 1. Exchanging 9 for 2 + 2 leaves heights 9 and 10.
    #[test]
    fn two_items_are_exchanged_for_a_single_item() {
        let (from, to) = (loads(&[(9, 0), (5, 0)]), loads(&[(2, 0), (2, 0), (1, 0)]));
        let pair = Pair { from: &from, to: &to, from_load: sum(&from), to_load: sum(&to) };
        let mut steps = 0;
        // Heights 14 and 5: moving 5 results in 9 and 10; exchanging 5 for 1 results in 10 and 9.
        let single = pair.singles(14, &mut steps).unwrap();
        assert_eq!((single.height, single.there.places(), single.back.places()), (10, &[1][..], &[][..]));
        // Exchanging 9 for 2 + 2 also results in 9 and 10. This is optimal because the sum 19 is
        // odd.
        assert_eq!(pair.doubles(14, &mut steps).unwrap().height, 10);
        assert_eq!(pair.doubles(10, &mut steps), None);
        assert_eq!(pair.singles(10, &mut steps), None);
    }

    /// Compares the result to full enumeration of all exchanges of up to two items.
    #[test]
    fn no_exchange_is_overlooked() {
        let mut random = planscope_core::random::Random::new(3, 0);
        for _ in 0..200 {
            let mut draw = |count| -> Vec<Load> {
                (0..count).map(|_| Load { encoder: random.below(50), backbone: random.below(50) }).collect()
            };
            let (from, to) = (draw(5), draw(4));
            let pair = Pair { from: &from, to: &to, from_load: sum(&from), to_load: sum(&to) };
            let limit = pair.from_load.height().max(pair.to_load.height());
            let after = |out: Load, into: Load| {
                let left = pair.from_load.minus(out).plus(into).height();
                left.max(pair.to_load.plus(out).minus(into).height())
            };
            let all = |wanted: u8| {
                let few = |side: &[Load]| groups(side).into_iter().filter(move |(_, few)| few.count <= wanted);
                let backs: Vec<_> = few(&to).collect();
                few(&from).flat_map(|(out, _)| backs.iter().map(move |&(into, _)| after(out, into))).min().unwrap()
            };
            let mut steps = 0;
            let found = |exchange: Option<Exchange>| exchange.map_or(limit, |exchange| exchange.height);
            assert_eq!(found(pair.doubles(limit, &mut steps)), all(2).min(limit));
            // `singles` always moves an item out of the higher bucket. Moves in the other direction
            // only are found if the buckets are swapped.
            assert!(found(pair.singles(limit, &mut steps)) >= all(1).min(limit));
        }
    }
}
