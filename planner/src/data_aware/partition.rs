//! The online microbatch scheduler of DFLOP: a global batch to buckets that are equally heavy for encoder and backbone.
//!
//! Every item takes e seconds of an encoder stage and l seconds of a backbone stage. They are dealt to m buckets so that
//! C_max = max over buckets of max(sum of e, sum of l) is small (DFLOP, Eq. 6): vector scheduling in two dimensions, which is
//! NP-hard. The paper runs an integer program under a time limit and falls back to longest processing time first (LPT). Here
//! LPT is the start of a local search, [`Load::bound`] says how far from the best the result can be, and small problems are
//! settled by branch and bound. All of them count steps, so the same question has the same answer everywhere.

mod bound;
mod branch;
mod descent;
mod exchange;
mod start;
#[cfg(test)]
mod tests;

use crate::proof::{Proof, relative_gap};

use bound::lower_bound;
use branch::settle;
use descent::Descent;

/// Items up to which branch and bound is tried: beyond them it hardly ever ends.
const MOST_SETTLED: usize = 40;
/// Share of the steps that branch and bound may take.
const SETTLING_SHARE: u64 = 2;
/// The sum of all loads of a dimension, at most, in whole steps of the scale: exact in an `f64`, and four times as much
/// fits a `u64` with room to spare.
const SCALE_BITS: i32 = 52;

/// One item of a global batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Item {
    /// What it adds to an encoder stage, in seconds.
    pub encoder: f64,
    /// What it adds to a backbone stage, in seconds.
    pub backbone: f64,
}

/// When a search is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartitionSettings {
    /// Pairs of loads that may be compared; about a hundred million pass in a second.
    pub steps: u64,
    /// Distance from the bound that is good enough, (C_max - bound) / C_max.
    pub gap: f64,
}

impl Default for PartitionSettings {
    fn default() -> Self {
        Self { steps: 5_000_000, gap: 0.0 }
    }
}

/// Items in buckets.
#[derive(Debug, Clone, PartialEq)]
pub struct Partitioned {
    /// Of every bucket its items, ascending. A bucket is empty where more items would not lower C_max.
    pub buckets: Vec<Vec<u32>>,
    /// C_max of Eq. 6, in seconds.
    pub longest: f64,
    /// C_max of LPT, with which the search began.
    pub start: f64,
    /// No partition has a smaller C_max.
    pub bound: f64,
    /// (C_max - bound) / C_max.
    pub gap: f64,
    /// What that proves.
    pub proof: Proof,
    /// Steps taken.
    pub steps: u64,
}

/// Why items cannot be dealt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// It was to stop.
    #[error("the partition was stopped")]
    Stopped,
    /// No buckets.
    #[error("there are no buckets")]
    NoBuckets,
    /// A load that is no time.
    #[error("item {item} takes no finite time of at least 0")]
    Load {
        /// Its place.
        item: usize,
    },
}

/// An item's loads in whole steps of a common scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
struct Load {
    encoder: u64,
    backbone: u64,
}

impl Load {
    /// The larger of the two: what a bucket of that load is to Eq. 6.
    fn height(self) -> u64 {
        self.encoder.max(self.backbone)
    }

    fn plus(self, other: Self) -> Self {
        Self { encoder: self.encoder + other.encoder, backbone: self.backbone + other.backbone }
    }

    fn minus(self, other: Self) -> Self {
        Self { encoder: self.encoder - other.encoder, backbone: self.backbone - other.backbone }
    }
}

/// Deals `items` to `buckets` buckets.
///
/// # Errors
/// Where there are no buckets, and for loads that are negative or not finite.
pub fn partition(items: &[Item], buckets: usize, settings: PartitionSettings) -> Result<Partitioned, PartitionError> {
    partition_until(items, buckets, settings, &|| false)
}

/// The same, unless it is to stop. It is asked while LPT deals the items, and before and after the search.
///
/// # Errors
/// Those of [`partition`], and [`PartitionError::Stopped`].
pub fn partition_until(
    items: &[Item],
    buckets: usize,
    settings: PartitionSettings,
    stops: &dyn Fn() -> bool,
) -> Result<Partitioned, PartitionError> {
    if buckets == 0 {
        return Err(PartitionError::NoBuckets);
    }
    let is_time = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
    if let Some(item) = items.iter().position(|item| !is_time(item.encoder) || !is_time(item.backbone)) {
        return Err(PartitionError::Load { item });
    }
    let scale = Scale::of(items);
    let loads: Vec<Load> = items.iter().map(|&item| scale.load(item)).collect();
    let first = start::longest_first(&loads, buckets, stops).ok_or(PartitionError::Stopped)?;
    let start = longest(items, &first);
    let mut search = Descent::new(&loads, buckets, first, settings.steps);
    let bound = lower_bound(&loads, buckets, search.best());
    if stops() {
        return Err(PartitionError::Stopped);
    }
    let enough = good_enough(bound, settings.gap);
    // Small problems are settled; what is left of the steps, or all of them, goes to the search.
    if loads.len() <= MOST_SETTLED && search.best() > enough {
        search.run(enough, settings.steps / 8);
        let settled = settle(&loads, buckets, bound, search.partition(), settings.steps / SETTLING_SHARE);
        search.take(settled.partition, settled.steps);
        if settled.proven {
            let best = search.best();
            return Ok(scale.answer(items, start, search, best, settings.gap));
        }
    }
    search.run(enough, settings.steps);
    Ok(scale.answer(items, start, search, bound, settings.gap))
}

/// The largest height that is within `gap` of the bound.
fn good_enough(bound: u64, gap: f64) -> u64 {
    (bound as f64 / (1.0 - gap.clamp(0.0, 0.999))).floor() as u64
}

/// C_max of buckets, each summed in ascending order, so that it does not depend on the way that led to them.
fn longest(items: &[Item], buckets: &[Vec<u32>]) -> f64 {
    let of = |bucket: &Vec<u32>| {
        let mut bucket = bucket.clone();
        bucket.sort_unstable();
        let sum = |part: fn(&Item) -> f64| bucket.iter().map(|&item| part(&items[item as usize])).sum::<f64>();
        sum(|item| item.encoder).max(sum(|item| item.backbone))
    };
    buckets.iter().map(of).fold(0.0, f64::max)
}

/// Seconds to whole steps and back, by a power of two, which is exact.
struct Scale {
    /// Steps of a second.
    steps: f64,
}

impl Scale {
    fn of(items: &[Item]) -> Self {
        let sum = |part: fn(&Item) -> f64| items.iter().map(part).sum::<f64>();
        let most = sum(|item| item.encoder).max(sum(|item| item.backbone));
        // An exponent that a denormal, or a sum beyond all numbers, would need does not exist.
        let exponent = if most > 0.0 { SCALE_BITS - 1 - libm::ilogb(most) } else { 0 };
        Self { steps: libm::ldexp(1.0, exponent.clamp(-1000, 1000)) }
    }

    /// Rounded down, so that what is a bound of the rounded loads is a bound of the loads.
    fn load(&self, item: Item) -> Load {
        let steps = |seconds: f64| (seconds * self.steps).floor() as u64;
        Load { encoder: steps(item.encoder), backbone: steps(item.backbone) }
    }

    fn answer(&self, items: &[Item], start: f64, search: Descent<'_>, bound: u64, gap: f64) -> Partitioned {
        let (value, steps) = (search.best(), search.steps());
        let mut buckets = search.into_partition();
        for bucket in &mut buckets {
            bucket.sort_unstable();
        }
        let longest = longest(items, &buckets);
        Partitioned {
            buckets,
            longest,
            start,
            bound: (bound as f64 / self.steps).min(longest),
            gap: relative_gap(value, bound),
            proof: Proof::of(value, bound, gap),
            steps,
        }
    }
}
