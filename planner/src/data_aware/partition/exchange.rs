//! The best exchange of a few items between two buckets.

use super::Load;

/// Items that change sides: places in the two buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Few {
    /// At most two places.
    places: [u32; 2],
    count: u8,
}

impl Few {
    /// The places.
    pub(super) fn places(&self) -> &[u32] {
        &self.places[..usize::from(self.count)]
    }
}

/// A few items of a bucket and what they weigh.
type Group = (Load, Few);

/// Two buckets while items change sides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    /// The higher bucket's items.
    pub from: &'a [Load],
    /// The lower bucket's items.
    pub to: &'a [Load],
    /// What the higher weighs.
    pub from_load: Load,
    /// What the lower weighs.
    pub to_load: Load,
}

/// An exchange that leaves both buckets below a height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    /// The higher of the two buckets then.
    pub height: u64,
    /// Leave the higher bucket.
    pub there: Few,
    /// Come back for them.
    pub back: Few,
}

impl Pair<'_> {
    /// The exchange of at most one item for at most one that leaves both buckets lowest, below `limit`; counts steps.
    pub(super) fn singles(&self, limit: u64, steps: &mut u64) -> Option<Exchange> {
        let mut best = None;
        let mut limit = limit;
        *steps += (self.from.len() * (self.to.len() + 1)) as u64;
        for (there, &out) in self.from.iter().enumerate() {
            let (left, held) = (self.from_load.minus(out), self.to_load.plus(out));
            if left.height() >= limit {
                continue;
            }
            let there = Few { places: [there as u32, 0], count: 1 };
            if held.height() < limit {
                limit = held.height().max(left.height());
                best = Some(Exchange { height: limit, there, back: Few::default() });
            }
            for (back, &into) in self.to.iter().enumerate() {
                let height = left.plus(into).height().max(held.minus(into).height());
                if height < limit {
                    limit = height;
                    let back = Few { places: [back as u32, 0], count: 1 };
                    best = Some(Exchange { height, there, back });
                }
            }
        }
        best
    }

    /// The same with at most two items for at most two. The groups of the lower bucket are sorted by what they take of an
    /// encoder, so that only those that could balance are looked at.
    pub(super) fn doubles(&self, limit: u64, steps: &mut u64) -> Option<Exchange> {
        let (there, mut back) = (groups(self.from), groups(self.to));
        back.sort_unstable_by_key(|(load, few)| (load.encoder, load.backbone, few.places, few.count));
        let mut best = None;
        let mut limit = limit;
        *steps += (there.len() + 8 * back.len()) as u64;
        for &(out, few) in &there {
            let (left, held) = (self.from_load.minus(out), self.to_load.plus(out));
            if left.height() >= limit {
                continue;
            }
            // What comes back weighs at least what leaves the lower bucket below the limit, at most what keeps the higher.
            let least = (held.encoder + 1).saturating_sub(limit);
            let first = back.partition_point(|(load, _)| load.encoder < least);
            for &(into, other) in &back[first..] {
                *steps += 1;
                if left.encoder + into.encoder >= limit {
                    break;
                }
                let height = left.plus(into).height().max(held.minus(into).height());
                if height < limit {
                    limit = height;
                    best = Some(Exchange { height, there: few, back: other });
                }
            }
        }
        best
    }
}

/// Nothing, every item, every two items.
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

    /// 9 + 1 against 2 + 2: no single balances better than 7 + ... ; 9 for 2 + 2 leaves 5 and 9.
    #[test]
    fn two_items_come_back_for_one() {
        let (from, to) = (loads(&[(9, 0), (5, 0)]), loads(&[(2, 0), (2, 0), (1, 0)]));
        let pair = Pair { from: &from, to: &to, from_load: sum(&from), to_load: sum(&to) };
        let mut steps = 0;
        // 14 and 5: 5 for nothing leaves 9 and 10, 5 for 1 leaves 10 and 9.
        let single = pair.singles(14, &mut steps).unwrap();
        assert_eq!((single.height, single.there.places(), single.back.places()), (10, &[1][..], &[][..]));
        // 9 for 2 + 2 leaves 9 and 10 as well; nothing does better, since 19 is odd.
        assert_eq!(pair.doubles(14, &mut steps).unwrap().height, 10);
        assert_eq!(pair.doubles(10, &mut steps), None);
        assert_eq!(pair.singles(10, &mut steps), None);
    }

    /// Every exchange of at most two for two, tried one by one.
    #[test]
    fn no_exchange_is_overlooked() {
        let mut random = crate::random::Random::new(3, 0);
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
            // Singles that only come back are left to the other order of the buckets.
            assert!(found(pair.singles(limit, &mut steps)) >= all(1).min(limit));
        }
    }
}
