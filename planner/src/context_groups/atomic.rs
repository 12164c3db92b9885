//! Stage 1: sequences to atomic groups, by memory (DHP, section 4.3) or by time.

use std::collections::{BTreeSet, BinaryHeap};

use super::allocation::{Allocation, allocate};
use super::cost::{GroupCost, Load, Sequence};
use super::degrees::AllowedDegrees;

/// Sequences that share one context-parallel group.
#[derive(Debug, Clone, PartialEq)]
pub struct AtomicGroup {
    /// Their places in the global batch.
    pub sequences: Vec<u32>,
    /// What they ask for together.
    pub load: Load,
    /// d_min: the smallest allowed degree that holds them.
    pub minimum: u32,
}

/// A sequence on its way into a group: what grouping asks of it again and again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Item {
    /// Its place in the global batch.
    pub index: u32,
    /// What it asks for.
    pub load: Load,
    /// d_min of it alone.
    pub minimum: u32,
}

/// What every step of planning a batch needs to know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    /// Ranks there are.
    pub ranks: u32,
    /// Tokens that one rank has memory for.
    pub tokens_per_rank: u64,
    /// Degrees a group may have.
    pub degrees: &'a AllowedDegrees,
    /// What a group costs.
    pub cost: &'a GroupCost,
}

/// The sequences in the order of packing: most tokens first, equal ones in the order of the batch. The first that no group
/// can hold is the error.
pub(super) fn descending(setting: Setting<'_>, sequences: &[Sequence]) -> Result<Vec<Item>, u32> {
    let mut items = Vec::with_capacity(sequences.len());
    for (index, &sequence) in sequences.iter().enumerate() {
        let index = index as u32;
        let minimum = setting.degrees.minimum(sequence.tokens, setting.tokens_per_rank).ok_or(index)?;
        items.push(Item { index, load: Load::of(sequence), minimum });
    }
    items.sort_by(|a, b| b.load.tokens.cmp(&a.load.tokens).then(a.index.cmp(&b.index)));
    Ok(items)
}

/// Bins that best fit decreasing fills one sequence at a time.
#[derive(Debug, Default)]
pub(super) struct Bins {
    /// The groups so far.
    pub groups: Vec<AtomicGroup>,
    /// Sum of their minimum degrees.
    pub ranks: u64,
    /// Free tokens and place of every bin that has some left.
    free: BTreeSet<(u64, usize)>,
}

impl Bins {
    /// Puts a sequence into the fullest bin that it fits into, or opens one, unless the bins would then need more than
    /// `ranks` ranks; says whether it was put.
    ///
    /// Comes after every longer one. A bin with room for it has at least its own minimum degree, because the bin's
    /// degree is one that is allowed and has room for it.
    pub(super) fn put(&mut self, item: Item, tokens_per_rank: u64, ranks: u64) -> bool {
        let tokens = item.load.tokens;
        if let Some(&bin) = self.free.range((tokens, 0)..).next() {
            self.free.remove(&bin);
            let (free, place) = bin;
            let group = &mut self.groups[place];
            group.sequences.push(item.index);
            group.load = group.load.and(item.load);
            if free > tokens {
                self.free.insert((free - tokens, place));
            }
            return true;
        }
        if self.ranks + u64::from(item.minimum) > ranks {
            return false;
        }
        self.ranks += u64::from(item.minimum);
        let free = u64::from(item.minimum).saturating_mul(tokens_per_rank) - tokens;
        if free > 0 {
            self.free.insert((free, self.groups.len()));
        }
        self.groups.push(AtomicGroup { sequences: vec![item.index], load: item.load, minimum: item.minimum });
        true
    }
}

/// Best-fit decreasing: as few ranks as memory allows; none where the sequences need more than there are.
pub(super) fn by_memory(setting: Setting<'_>, items: &[Item]) -> Option<Vec<AtomicGroup>> {
    let mut bins = Bins::default();
    for &item in items {
        if !bins.put(item, setting.tokens_per_rank, u64::from(setting.ranks)) {
            return None;
        }
    }
    Some(bins.groups)
}

/// Targets that [`by_time`] tries. Halving the distance to the bound eight times leaves less than a hundredth of it.
const TARGETS: usize = 8;

/// Groups over all ranks, sequences that need company kept apart where that is faster, with their degrees.
///
/// Grouping by memory fills as few ranks as possible and leaves the others to larger degrees, which cost communication. Here
/// a target of time is halved in: sequences that would miss it on one rank get the degree that they need for it, all
/// ranks left become groups of one, and every other sequence goes, longest first, to the group that is done first and
/// has memory. None where no target can be met within memory.
pub(super) fn by_time(
    setting: Setting<'_>,
    items: &[Item],
    bound: f64,
    known: f64,
) -> Option<(Vec<AtomicGroup>, Allocation)> {
    let (mut low, mut high) = (bound, known);
    let mut best: Option<(f64, Vec<Place>)> = None;
    for _ in 0..TARGETS {
        if high - low <= 1e-4 * low {
            break;
        }
        let target = f64::midpoint(low, high);
        match spread(setting, items, target) {
            Some((reached, places)) => {
                if reached <= target {
                    high = target;
                } else {
                    low = target;
                }
                if best.as_ref().is_none_or(|best| reached < best.0) {
                    best = Some((reached, places));
                }
            }
            None => low = target,
        }
    }
    let (_, places) = best?;
    let mut groups: Vec<AtomicGroup> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; setting.ranks as usize];
    for (item, place) in items.iter().zip(&places) {
        let group = *group_of[place.0 as usize].get_or_insert_with(|| {
            groups.push(AtomicGroup { sequences: Vec::new(), load: Load::default(), minimum: 1 });
            groups.len() - 1
        });
        groups[group].sequences.push(item.index);
        groups[group].load = groups[group].load.and(item.load);
    }
    for group in &mut groups {
        group.minimum = setting.degrees.minimum(group.load.tokens, setting.tokens_per_rank)?;
    }
    let allocation = allocate(setting.cost, &groups, setting.degrees, setting.ranks)?;
    Some((groups, allocation))
}

/// The bin that a sequence stands in.
#[derive(Debug, Clone, Copy)]
struct Place(u32);

/// A group that sequences are dealt to.
#[derive(Debug, Clone, Copy)]
struct Bin {
    degree: u32,
    load: Load,
    room: u64,
}

/// Bins without room that are looked past before a target is given up; memory is nearly full then.
const PASSED: usize = 32;

/// Deals sequences under a target; the makespan reached and where each sequence stands.
fn spread(setting: Setting<'_>, items: &[Item], target: f64) -> Option<(f64, Vec<Place>)> {
    let mut bins: Vec<Bin> = Vec::with_capacity(setting.ranks as usize);
    let mut places = vec![Place(u32::MAX); items.len()];
    let mut left = setting.ranks;
    for (item, place) in items.iter().zip(&mut places) {
        if item.minimum == 1 && setting.cost.seconds(item.load, 1) <= target {
            continue;
        }
        let degree = degree_for(setting, *item, target);
        left = left.checked_sub(degree)?;
        *place = Place(bins.len() as u32);
        let room = u64::from(degree).saturating_mul(setting.tokens_per_rank) - item.load.tokens;
        bins.push(Bin { degree, load: item.load, room });
    }
    bins.extend((0..left).map(|_| Bin { degree: 1, load: Load::default(), room: setting.tokens_per_rank }));
    let seconds = |bin: &Bin| if bin.load.tokens == 0 { 0.0 } else { setting.cost.seconds(bin.load, bin.degree) };
    let mut earliest: BinaryHeap<Earliest> =
        bins.iter().enumerate().map(|(place, bin)| Earliest::new(seconds(bin), place)).collect();
    let mut passed = Vec::new();
    for (item, place) in items.iter().zip(&mut places) {
        if place.0 != u32::MAX {
            continue;
        }
        while let Some(next) = earliest.peek().filter(|next| bins[next.place()].room < item.load.tokens).copied() {
            earliest.pop();
            passed.push(next);
            if passed.len() > PASSED {
                return None;
            }
        }
        let mut top = earliest.peek_mut()?;
        let found = top.place();
        let bin = &mut bins[found];
        bin.load = bin.load.and(item.load);
        bin.room -= item.load.tokens;
        *place = Place(found as u32);
        *top = Earliest::new(seconds(&bins[found]), found);
        drop(top);
        earliest.extend(passed.drain(..));
    }
    Some((bins.iter().map(seconds).fold(0.0, f64::max), places))
}

/// The smallest degree at which a sequence alone meets the target, or else its fastest, the smaller of equals.
///
/// Time falls with the degree from 2 to a node's ranks and again beyond them, so each stretch is searched by halves.
pub(super) fn degree_for(setting: Setting<'_>, item: Item, target: f64) -> u32 {
    let list = setting.degrees.list();
    let from = list.partition_point(|&degree| degree < item.minimum);
    let two = list.partition_point(|&degree| degree < 2).max(from);
    let beyond = list.partition_point(|&degree| degree <= setting.cost.ranks_per_node).max(two);
    let end = list.partition_point(|&degree| degree <= setting.ranks).max(beyond);
    let mut fastest = (f64::INFINITY, item.minimum);
    for stretch in [from..two, two..beyond, beyond..end] {
        let degrees = &list[stretch];
        let Some(&largest) = degrees.last() else { continue };
        let seconds = setting.cost.seconds(item.load, largest);
        if seconds <= target {
            let first = degrees.partition_point(|&degree| setting.cost.seconds(item.load, degree) > target);
            return degrees[first.min(degrees.len() - 1)];
        }
        if seconds < fastest.0 {
            fastest = (seconds, largest);
        }
    }
    fastest.1
}

/// A bin in a heap whose top is the one done first. Times are not negative, so their bits have their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Earliest(std::cmp::Reverse<(u64, usize)>);

impl Earliest {
    fn new(seconds: f64, place: usize) -> Self {
        Self(std::cmp::Reverse((seconds.to_bits(), place)))
    }

    const fn place(&self) -> usize {
        self.0.0.1
    }
}
