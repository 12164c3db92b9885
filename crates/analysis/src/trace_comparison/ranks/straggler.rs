//! The rank that holds up the others, and the reason.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::recorded::{Activity, ByName, Recorded};
use super::super::{median, signed};
use super::{RankWait, is_common};

/// Maximum number of kernels in the result.
const MAX_KERNELS: usize = 20;
/// A straggler causes at least this multiple of the wait that each rank causes if all cause the
/// same.
const STANDS_OUT: f64 = 1.5;
/// Waits below this share of the time of all ranks do not make a straggler.
const MIN_SHARE: f64 = 0.01;
/// A reason has an excess of at least this share of the mean wait that the straggler causes in another rank. Smaller
/// excesses are noise.
const MIN_EXCESS: f64 = 0.2;

/// What the straggler spends more time on than the other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The same kernels take longer: a slower device.
    SlowerKernels,
    /// It runs more kernels, or other kernels: more work.
    MoreWork,
    /// The device has nothing to do: the host launches late, for example because of data loading.
    Host,
    /// Copies between host and device.
    Copies,
    /// It spends hardly more time on any of these than the others.
    Unknown,
}

/// A kernel that takes longer on the straggler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct KernelExcess {
    /// Name without addresses.
    pub name: String,
    /// Type.
    pub activity: Activity,
    /// Sum of durations on the straggler.
    pub time_ns: u64,
    /// Median over the other ranks.
    pub median_ns: u64,
    /// Difference.
    pub excess_ns: i64,
    /// Number of slices on the straggler.
    pub count: u64,
    /// Median over the other ranks.
    pub median_count: u64,
}

/// The rank that holds up the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Straggler {
    /// Rank.
    pub rank: u32,
    /// Share of all waits that it causes.
    pub caused_share: f64,
    /// Share of the collectives in which it arrives last.
    pub last_share: f64,
    /// Share of the steps in which it causes the longest wait; `None` without steps.
    pub step_share: Option<f64>,
    /// Compute time minus the median of the other ranks.
    pub excess_compute_ns: i64,
    /// Time without device activity minus the median of the other ranks.
    pub excess_idle_ns: i64,
    /// Time of copies minus the median of the other ranks.
    pub excess_copy_ns: i64,
    /// Time of kernels that all ranks run equally often, divided by the median of the other ranks.
    pub same_kernels_ratio: Option<f64>,
    /// Most likely reason.
    pub cause: Cause,
    /// Kernels and copies that take longer than on the median rank, largest difference first.
    pub kernels: Vec<KernelExcess>,
}

/// Finds the straggler; `None` if no rank stands out.
pub(super) fn find(
    recorded: &[&Recorded],
    ranks: &[RankWait],
    common: &BTreeSet<u64>,
    collectives: u64,
    steps: u64,
) -> Option<Straggler> {
    let (index, worst) =
        ranks.iter().enumerate().max_by_key(|(_, rank)| (rank.caused_ns, std::cmp::Reverse(rank.rank)))?;
    let wait_ns: u64 = ranks.iter().map(|rank| rank.waited_ns).sum();
    let span_ns: u64 = ranks.iter().map(|rank| rank.span_ns).sum();
    let caused_share = share(worst.caused_ns, wait_ns);
    let is_short = (wait_ns as f64) < MIN_SHARE * span_ns as f64;
    if wait_ns == 0 || is_short || caused_share < STANDS_OUT / ranks.len() as f64 {
        return None;
    }
    let excess = |own: u64, time: fn(&RankWait) -> u64| {
        signed(own, median(ranks.iter().filter(|rank| rank.rank != worst.rank).map(time).collect()))
    };
    let excess_compute_ns = excess(worst.compute_ns, |rank| rank.compute_ns);
    let excess_idle_ns = excess(worst.idle_ns, |rank| rank.idle_ns);
    let excess_copy_ns = excess(worst.copy_ns, |rank| rank.copy_ns);
    let all = kernels(recorded, index, common);
    let (same, other): (Vec<&KernelExcess>, Vec<&KernelExcess>) = all
        .iter()
        .filter(|kernel| kernel.activity == Activity::Compute)
        .partition(|kernel| kernel.count == kernel.median_count);
    let sum =
        |kernels: &[&KernelExcess], time: fn(&KernelExcess) -> u64| kernels.iter().map(|kernel| time(kernel)).sum();
    let (own_ns, median_ns): (u64, u64) = (sum(&same, |kernel| kernel.time_ns), sum(&same, |kernel| kernel.median_ns));
    let total = |kernels: &[&KernelExcess]| kernels.iter().map(|kernel| kernel.excess_ns).sum::<i64>();
    let compute = if total(&same) >= total(&other) { Cause::SlowerKernels } else { Cause::MoreWork };
    let causes = [(excess_compute_ns, compute), (excess_idle_ns, Cause::Host), (excess_copy_ns, Cause::Copies)];
    let smallest = MIN_EXCESS * worst.caused_ns as f64 / (ranks.len() - 1) as f64;
    let is_reason = |(excess, _): &(i64, Cause)| *excess > 0 && *excess as f64 >= smallest;
    let cause = causes.into_iter().rev().max_by_key(|(excess, _)| *excess).filter(is_reason);
    let mut longer: Vec<KernelExcess> = all.iter().filter(|kernel| kernel.excess_ns > 0).cloned().collect();
    longer.sort_by_key(|kernel| std::cmp::Reverse(kernel.excess_ns));
    longer.truncate(MAX_KERNELS);
    Some(Straggler {
        rank: worst.rank,
        caused_share,
        last_share: share(worst.last, collectives),
        step_share: (steps > 0).then(|| share(worst.last_steps, steps)),
        excess_compute_ns,
        excess_idle_ns,
        excess_copy_ns,
        same_kernels_ratio: (median_ns > 0).then(|| own_ns as f64 / median_ns as f64),
        cause: cause.map_or(Cause::Unknown, |(_, cause)| cause),
        kernels: longer,
    })
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Compares time and count of all compute kernels and copies with the median of the other ranks.
fn kernels(recorded: &[&Recorded], index: usize, common: &BTreeSet<u64>) -> Vec<KernelExcess> {
    let by_rank: Vec<ByName<'_>> = recorded
        .iter()
        .map(|rank| rank.by_name(|slice| slice.activity != Activity::Communication && is_common(common, slice.step)))
        .collect();
    let keys: BTreeSet<_> = by_rank.iter().flat_map(ByName::keys).copied().collect();
    let row = |key: (Activity, &str)| {
        let of = |rank: usize| by_rank[rank].get(&key).copied().unwrap_or_default();
        let others = |value: fn((u64, u64)) -> u64| {
            median((0..by_rank.len()).filter(|&rank| rank != index).map(|rank| value(of(rank))).collect())
        };
        let (time_ns, count) = of(index);
        let (median_ns, median_count) = (others(|(time, _)| time), others(|(_, count)| count));
        let excess_ns = signed(time_ns, median_ns);
        KernelExcess { name: key.1.to_owned(), activity: key.0, time_ns, median_ns, excess_ns, count, median_count }
    };
    keys.into_iter().map(row).collect()
}
