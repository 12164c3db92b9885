//! Online microbatch scheduler: splits a global batch into buckets with balanced encoder and
//! backbone load (DFLOP Sec. 3.4.2).
//!
//! Item d takes e seconds on an encoder stage and l seconds on a backbone stage. The scheduler
//! assigns the items to m buckets and minimizes C_max, the maximum over buckets of max(sum of e,
//! sum of l) (DFLOP Eq. 6). This is vector scheduling in two dimensions, which is NP-hard. The
//! paper uses an integer program with a time limit and falls back to longest processing time first
//! (LPT). Here LPT is the initial solution for a local search, [`Partitioned::bound`] measures the
//! distance to the optimum, and branch and bound solves small problems exactly. The limits count
//! steps instead of wall-clock time, so the result is deterministic.

mod bound;
mod branch;
mod descent;
mod exchange;
mod start;
#[cfg(test)]
mod tests;

use planscope_core::optimality::{Optimality, relative_gap};

use bound::lower_bound;
use branch::settle;
use descent::Descent;

/// Maximum number of items for branch and bound. With more items it rarely completes.
const MAX_SETTLED: usize = 40;
/// Branch and bound uses up to 1 / `EXACT_STEP_DIVISOR` of the step limit.
const EXACT_STEP_DIVISOR: u64 = 2;
/// Bits for the sum of all loads per dimension, in integer scale units. The sum is exact in an
/// `f64`, and four times the sum fits in a `u64`.
const SCALE_BITS: i32 = 52;

/// One item in a global batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Item {
    /// Seconds added to an encoder stage.
    pub encoder: f64,
    /// Seconds added to a backbone stage.
    pub backbone: f64,
}

/// Stop criteria for the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartitionSettings {
    /// Maximum number of load pairs to compare. 100 million comparisons take about 1 s.
    pub steps: u64,
    /// Target relative gap, (C_max - bound) / C_max.
    pub gap: f64,
}

impl Default for PartitionSettings {
    fn default() -> Self {
        Self { steps: 5_000_000, gap: 0.0 }
    }
}

/// Result of a partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Partitioned {
    /// Item indices per bucket, ascending. A bucket can be empty if an item in it would not reduce
    /// C_max.
    pub buckets: Vec<Vec<u32>>,
    /// C_max in seconds (DFLOP Eq. 6).
    pub makespan: f64,
    /// C_max for the initial LPT solution, in seconds.
    pub start: f64,
    /// Lower bound for C_max in any partition, in seconds.
    pub bound: f64,
    /// Relative gap, (C_max - bound) / C_max.
    pub gap: f64,
    /// Optimality status that follows from the gap.
    pub optimality: Optimality,
    /// Number of steps used.
    pub steps: u64,
}

/// Error for items that cannot be partitioned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// The `stops` callback returned true.
    #[error("the partition was stopped")]
    Stopped,
    /// There are no buckets.
    #[error("there are no buckets")]
    NoBuckets,
    /// A load is negative or not finite.
    #[error("item {item} takes no finite time of at least 0")]
    Load {
        /// Index of the item.
        item: usize,
    },
}

/// Item loads in integer units with a common scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
struct Load {
    encoder: u64,
    backbone: u64,
}

impl Load {
    /// Returns the maximum dimension, the term in DFLOP Eq. 6.
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

/// Partitions `items` into `buckets` buckets.
///
/// # Errors
/// If `buckets` is zero, or a load is negative or not finite.
pub fn partition(items: &[Item], buckets: usize, settings: PartitionSettings) -> Result<Partitioned, PartitionError> {
    partition_until(items, buckets, settings, &|| false)
}

/// Same as [`partition`], with a cancellation check. `stops` is called during LPT, and before the
/// search.
///
/// # Errors
/// The errors from [`partition`], and [`PartitionError::Stopped`].
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
    let scale = Scale::new(items);
    let loads: Vec<Load> = items.iter().map(|&item| scale.load(item)).collect();
    let first = start::lpt_buckets(&loads, buckets, stops).ok_or(PartitionError::Stopped)?;
    let start = partition_makespan(items, &first);
    let mut search = Descent::new(&loads, buckets, first, settings.steps);
    let bound = lower_bound(&loads, buckets, search.best());
    if stops() {
        return Err(PartitionError::Stopped);
    }
    let enough = good_enough(bound, settings.gap);
    // Branch and bound solves small problems exactly. The local search uses the remaining steps.
    if loads.len() <= MAX_SETTLED && search.best() > enough {
        search.run(enough, settings.steps / 8);
        let settled = settle(&loads, buckets, bound, search.partition(), settings.steps / EXACT_STEP_DIVISOR);
        search.take(settled.partition, settled.steps);
        if settled.proven {
            let best = search.best();
            return Ok(scale.build_result(items, start, search, best, settings.gap));
        }
    }
    search.run(enough, settings.steps);
    Ok(scale.build_result(items, start, search, bound, settings.gap))
}

/// Moves an item from the largest bucket to each empty bucket, because a pipeline cannot run empty
/// microbatches.
pub(crate) fn fill_empty(buckets: &mut [Vec<u32>]) {
    while let Some(empty) = buckets.iter().position(Vec::is_empty) {
        let fullest = (0..buckets.len()).max_by_key(|&bucket| (buckets[bucket].len(), std::cmp::Reverse(bucket)));
        let Some(item) =
            fullest.filter(|&fullest_bucket| buckets[fullest_bucket].len() > 1).and_then(|index| buckets[index].pop())
        else {
            return;
        };
        buckets[empty].push(item);
    }
}

/// Returns the maximum height within `gap` of the bound.
fn good_enough(bound: u64, gap: f64) -> u64 {
    (bound as f64 / (1.0 - gap.clamp(0.0, 0.999))).floor() as u64
}

/// Returns C_max. Each bucket is summed in ascending index order, so the floating-point result does
/// not depend on the search path.
fn partition_makespan(items: &[Item], buckets: &[Vec<u32>]) -> f64 {
    let bucket_height = |bucket: &Vec<u32>| {
        let mut bucket = bucket.clone();
        bucket.sort_unstable();
        let sum = |part: fn(&Item) -> f64| bucket.iter().map(|&item| part(&items[item as usize])).sum::<f64>();
        sum(|item| item.encoder).max(sum(|item| item.backbone))
    };
    buckets.iter().map(bucket_height).fold(0.0, f64::max)
}

/// Conversion between seconds and integer units by a power of two, which is exact.
struct Scale {
    /// Units per second.
    steps: f64,
}

impl Scale {
    fn new(items: &[Item]) -> Self {
        let sum = |part: fn(&Item) -> f64| items.iter().map(part).sum::<f64>();
        let max_sum = sum(|item| item.encoder).max(sum(|item| item.backbone));
        // The exponent is clamped, because denormal values and overflowing sums need an exponent
        // outside the `f64` range.
        let exponent = if max_sum > 0.0 { SCALE_BITS - 1 - libm::ilogb(max_sum) } else { 0 };
        Self { steps: libm::ldexp(1.0, exponent.clamp(-1000, 1000)) }
    }

    /// Rounds down, so a lower bound for the rounded loads is a lower bound for the exact loads.
    fn load(&self, item: Item) -> Load {
        let steps = |seconds: f64| (seconds * self.steps).floor() as u64;
        Load { encoder: steps(item.encoder), backbone: steps(item.backbone) }
    }

    fn build_result(&self, items: &[Item], start: f64, search: Descent<'_>, bound: u64, gap: f64) -> Partitioned {
        let (value, steps) = (search.best(), search.steps());
        let mut buckets = search.into_partition();
        for bucket in &mut buckets {
            bucket.sort_unstable();
        }
        let makespan = partition_makespan(items, &buckets);
        Partitioned {
            buckets,
            makespan,
            start,
            bound: (bound as f64 / self.steps).min(makespan),
            gap: relative_gap(value, bound),
            optimality: Optimality::classify(value, bound, gap),
            steps,
        }
    }
}
