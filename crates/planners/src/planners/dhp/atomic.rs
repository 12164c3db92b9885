//! Stage 1: atomic groups of sequences, by memory (DHP Sec. 4.3) or by time.

use std::collections::{BTreeSet, BinaryHeap};

use super::allocation::{Allocation, allocate};
use super::cost::{GroupCost, Load, Sequence};
use super::degrees::AllowedDegrees;

/// Sequences in a context-parallel group.
#[derive(Debug, Clone, PartialEq)]
pub struct AtomicGroup {
    /// Indices in the global batch.
    pub sequences: Vec<u32>,
    /// Total load.
    pub load: Load,
    /// d_min: the smallest allowed degree with enough memory.
    pub minimum: u32,
}

/// A sequence with precomputed values for grouping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Item {
    /// Index in the global batch.
    pub index: u32,
    /// Load of the sequence.
    pub load: Load,
    /// d_min for the sequence.
    pub minimum: u32,
}

/// Parameters shared by all planning steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    /// Total number of ranks.
    pub ranks: u32,
    /// Token capacity per rank.
    pub tokens_per_rank: u64,
    /// Allowed group degrees.
    pub degrees: &'a AllowedDegrees,
    /// Cost model for groups.
    pub cost: &'a GroupCost,
}

/// Returns the sequences in descending token order; ties keep the batch order. The error is the
/// index of the first sequence that exceeds the capacity of all allowed groups.
pub(crate) fn descending(setting: Setting<'_>, sequences: &[Sequence]) -> Result<Vec<Item>, u32> {
    let mut items = Vec::with_capacity(sequences.len());
    for (index, &sequence) in sequences.iter().enumerate() {
        let index = index as u32;
        let minimum = setting.degrees.minimum(sequence.tokens, setting.tokens_per_rank).ok_or(index)?;
        items.push(Item { index, load: Load::from_sequence(sequence), minimum });
    }
    items.sort_by(|a, b| b.load.tokens.cmp(&a.load.tokens).then(a.index.cmp(&b.index)));
    Ok(items)
}

/// Bins for best-fit decreasing.
#[derive(Debug, Default)]
pub(crate) struct Bins {
    /// Current groups.
    pub groups: Vec<AtomicGroup>,
    /// Sum of the minimum degrees.
    pub ranks: u64,
    /// Free tokens and index for each bin that is not full.
    free: BTreeSet<(u64, usize)>,
}

impl Bins {
    /// Adds a sequence to the fullest bin with enough space, or opens a new bin. Returns false if a
    /// new bin would bring the total above `ranks` ranks.
    ///
    /// Sequences must be added in descending token order. Then a bin with enough space also has at
    /// least the item's minimum degree, because the bin's degree is allowed and has capacity for
    /// the item.
    pub(crate) fn put(&mut self, item: Item, tokens_per_rank: u64, ranks: u64) -> bool {
        let tokens = item.load.tokens;
        if let Some(&bin) = self.free.range((tokens, 0)..).next() {
            self.free.remove(&bin);
            let (free, index) = bin;
            let group = &mut self.groups[index];
            group.sequences.push(item.index);
            group.load = group.load.and(item.load);
            if free > tokens {
                self.free.insert((free - tokens, index));
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

/// Groups by best-fit decreasing, BFD (stage 1 in DHP Sec. 4.3). Each sequence is in exactly one
/// group (DHP Eq. 5). Returns `None` if the sequences need more ranks than available.
pub(crate) fn by_memory(setting: Setting<'_>, items: &[Item]) -> Option<Vec<AtomicGroup>> {
    let mut bins = Bins::default();
    for &item in items {
        if !bins.put(item, setting.tokens_per_rank, u64::from(setting.ranks)) {
            return None;
        }
    }
    Some(bins.groups)
}

/// Number of bisection steps in [`by_time`]. Eight steps reduce the distance to the bound below 1
/// %.
const TARGETS: usize = 8;

/// Groups the sequences by time on all ranks and allocates the degrees.
///
/// Grouping by memory fills a part of the ranks and uses the rest for larger degrees, which adds
/// communication. This function instead bisects a target time. A sequence that exceeds the target
/// on one rank gets the smallest degree that meets the target. The remaining ranks become groups of
/// degree 1. All other sequences are assigned in descending length order to the group with the
/// earliest finish time and enough memory. Returns `None` if no target fits into memory.
pub(crate) fn by_time(
    setting: Setting<'_>,
    items: &[Item],
    bound: f64,
    known: f64,
) -> Option<(Vec<AtomicGroup>, Allocation)> {
    let (mut low, mut high) = (bound, known);
    let mut best: Option<(f64, Vec<BinIndex>)> = None;
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
    let mut group_by_bin: Vec<Option<usize>> = vec![None; setting.ranks as usize];
    for (item, bin_index) in items.iter().zip(&places) {
        let group = *group_by_bin[bin_index.0 as usize].get_or_insert_with(|| {
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

/// Bin index for a sequence.
#[derive(Debug, Clone, Copy)]
struct BinIndex(u32);

/// A group under construction.
#[derive(Debug, Clone, Copy)]
struct Bin {
    degree: u32,
    load: Load,
    free_tokens: u64,
}

/// Number of full bins to skip before a target is rejected. At this point memory is almost full.
const MAX_SKIPPED_BINS: usize = 32;

/// Assigns the sequences for a target time. Returns the makespan and a bin per sequence.
fn spread(setting: Setting<'_>, items: &[Item], target: f64) -> Option<(f64, Vec<BinIndex>)> {
    let mut bins: Vec<Bin> = Vec::with_capacity(setting.ranks as usize);
    let mut places = vec![BinIndex(u32::MAX); items.len()];
    let mut left = setting.ranks;
    for (item, bin_index) in items.iter().zip(&mut places) {
        if item.minimum == 1 && setting.cost.seconds(item.load, 1) <= target {
            continue;
        }
        let degree = degree_for(setting, *item, target);
        left = left.checked_sub(degree)?;
        *bin_index = BinIndex(bins.len() as u32);
        let free_tokens = u64::from(degree).saturating_mul(setting.tokens_per_rank) - item.load.tokens;
        bins.push(Bin { degree, load: item.load, free_tokens });
    }
    bins.extend((0..left).map(|_| Bin { degree: 1, load: Load::default(), free_tokens: setting.tokens_per_rank }));
    let seconds = |bin: &Bin| if bin.load.tokens == 0 { 0.0 } else { setting.cost.seconds(bin.load, bin.degree) };
    let mut earliest: BinaryHeap<Earliest> =
        bins.iter().enumerate().map(|(index, bin)| Earliest::new(seconds(bin), index)).collect();
    let mut passed = Vec::new();
    for (item, bin_index) in items.iter().zip(&mut places) {
        if bin_index.0 != u32::MAX {
            continue;
        }
        while let Some(next) =
            earliest.peek().filter(|next| bins[next.bin_index()].free_tokens < item.load.tokens).copied()
        {
            earliest.pop();
            passed.push(next);
            if passed.len() > MAX_SKIPPED_BINS {
                return None;
            }
        }
        let mut top = earliest.peek_mut()?;
        let found = top.bin_index();
        let bin = &mut bins[found];
        bin.load = bin.load.and(item.load);
        bin.free_tokens -= item.load.tokens;
        *bin_index = BinIndex(found as u32);
        *top = Earliest::new(seconds(&bins[found]), found);
        drop(top);
        earliest.extend(passed.drain(..));
    }
    Some((bins.iter().map(seconds).fold(0.0, f64::max), places))
}

/// Returns the smallest degree for which the sequence meets the target time. If no degree meets it,
/// returns the fastest degree; ties are resolved to the smaller.
///
/// Time is a decreasing function of the degree from 2 to the ranks per node, and again above, so
/// both ranges are bisected.
pub(crate) fn degree_for(setting: Setting<'_>, item: Item, target: f64) -> u32 {
    let list = setting.degrees.list();
    let from = list.partition_point(|&degree| degree < item.minimum);
    let two = list.partition_point(|&degree| degree < 2).max(from);
    let beyond = list.partition_point(|&degree| degree <= setting.cost.ranks_per_node).max(two);
    let end = list.partition_point(|&degree| degree <= setting.ranks).max(beyond);
    let mut fastest = (f64::INFINITY, item.minimum);
    for stretch in [from..two, two..beyond, beyond..end] {
        let degrees = &list[stretch];
        let Some(&max_degree) = degrees.last() else { continue };
        let seconds = setting.cost.seconds(item.load, max_degree);
        if seconds <= target {
            let first = degrees.partition_point(|&degree| setting.cost.seconds(item.load, degree) > target);
            return degrees[first.min(degrees.len() - 1)];
        }
        if seconds < fastest.0 {
            fastest = (seconds, max_degree);
        }
    }
    fastest.1
}

/// Heap entry; the top is the bin with the earliest finish time. For non-negative floats, the bit
/// patterns have the same order as the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Earliest(std::cmp::Reverse<(u64, usize)>);

impl Earliest {
    fn new(seconds: f64, bin_index: usize) -> Self {
        Self(std::cmp::Reverse((seconds.to_bits(), bin_index)))
    }

    const fn bin_index(&self) -> usize {
        self.0.0.1
    }
}
