//! The ranks that hold up the others, and the reason.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::recorded::{Activity, ByName, DeviceSlice, Recorded};
use super::super::{median, signed};
use super::RankWait;
use super::attribution::Exposed;
use super::shared_part::SharedPart;

/// Maximum number of kernels in the result.
const MAX_KERNELS: usize = 20;
/// A straggler causes at least this multiple of the wait that each rank causes if all cause the
/// same.
const STANDS_OUT: f64 = 1.5;
/// Waits below this share of the time of all ranks do not make a straggler.
const MIN_SHARE: f64 = 0.01;
/// Ranks that cause this share of the waits stand out, however many they are.
const NEARLY_ALL: f64 = 0.9;
/// A reason has an excess of at least this share of the time that another rank loses. Smaller excesses are noise.
const MIN_EXCESS: f64 = 0.2;
/// Kernels that all ranks run equally often are slower if they take more than this multiple of the median.
const SLOWER_KERNELS: f64 = 1.02;
/// Ranks whose excess differs by at most this share of the excess of the worst rank are equally slow.
const EQUALLY_SLOW: f64 = 0.2;

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
    /// Median over the ranks that are not slow.
    pub median_ns: u64,
    /// Difference.
    pub excess_ns: i64,
    /// Number of slices on the straggler.
    pub count: u64,
    /// Median over the ranks that are not slow.
    pub median_count: u64,
}

/// The rank that holds up the others, and the ranks that are equally slow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Straggler {
    /// Rank that causes the longest waits. Excesses and kernels are those of this rank.
    pub rank: u32,
    /// This rank and the ranks that are as slow, in order: the others gain little if only one of them becomes faster.
    pub slow_ranks: Vec<u32>,
    /// Share of all waits that the slow ranks cause.
    pub caused_share: f64,
    /// Share of the collectives in which a slow rank arrives last.
    pub last_share: f64,
    /// Share of the steps in which a slow rank causes the longest wait; `None` without steps.
    pub step_share: Option<f64>,
    /// Time that another rank communicates without computing because of the slow ranks: about the time that the run loses.
    pub lost_ns: u64,
    /// Compute time minus the median of the ranks that are not slow, as all of the following medians.
    pub excess_compute_ns: i64,
    /// Time without device activity minus the median.
    pub excess_idle_ns: i64,
    /// Time of copies minus the median.
    pub excess_copy_ns: i64,
    /// Time of kernels that all ranks run equally often, divided by the median.
    pub same_kernels_ratio: Option<f64>,
    /// Most likely reason.
    pub cause: Cause,
    /// Kernels and copies that take longer than on the median rank, largest difference first.
    pub kernels: Vec<KernelExcess>,
}

/// Most ranges of ranks that a name lists.
const MAX_RANGES: usize = 16;

impl Straggler {
    /// Names the slow ranks: "rank 5", "ranks 4 to 7", "ranks 1, 3".
    #[must_use]
    pub fn named(&self) -> String {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &rank in &self.slow_ranks {
            match ranges.last_mut() {
                Some((_, to)) if rank == to.saturating_add(1) => *to = rank,
                _ => ranges.push((rank, rank)),
            }
        }
        let range = |&(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from} to {to}") };
        let listed: Vec<String> = ranges.iter().take(MAX_RANGES).map(range).collect();
        let word = if self.slow_ranks.len() > 1 { "ranks" } else { "rank" };
        let more = if ranges.len() > MAX_RANGES { " and others" } else { "" };
        format!("{word} {}{more}", listed.join(", "))
    }
}

/// Numbers of compared collectives and steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) collectives: u64,
    pub(super) steps: u64,
}

/// Finds the slow ranks; `None` if no rank stands out.
pub(super) fn find(
    recorded: &[&Recorded],
    ranks: &[RankWait],
    common: &SharedPart,
    exposed: &[Exposed],
    counts: Counts,
) -> Option<Straggler> {
    let (index, worst) =
        ranks.iter().enumerate().max_by_key(|(_, rank)| (rank.caused_ns, std::cmp::Reverse(rank.rank)))?;
    let slow = equally_slow(ranks, index);
    let sum = |of: fn(&RankWait) -> u64| slow.iter().map(|&index| of(&ranks[index])).sum::<u64>();
    let wait_ns: u64 = ranks.iter().map(|rank| rank.waited_ns).sum();
    let span_ns: u64 = ranks.iter().map(|rank| rank.span_ns).sum();
    let caused_share = share(sum(|rank| rank.caused_ns), wait_ns);
    let is_short = (wait_ns as f64) < MIN_SHARE * span_ns as f64;
    let enough = (STANDS_OUT * slow.len() as f64 / ranks.len() as f64).min(NEARLY_ALL);
    if wait_ns == 0 || is_short || caused_share < enough {
        return None;
    }
    let lost_ns = lost_ns(exposed, &slow, ranks, worst);
    let excess = |time: fn(&RankWait) -> u64| {
        let others = ranks.iter().enumerate().filter(|(index, _)| !slow.contains(index));
        signed(time(worst), median(others.map(|(_, rank)| time(rank)).collect()))
    };
    let excess_compute_ns = excess(|rank| rank.compute_ns);
    let excess_idle_ns = excess(|rank| rank.idle_ns);
    let excess_copy_ns = excess(|rank| rank.copy_ns);
    let all = kernels(recorded, index, &slow, common);
    let (compute, same_kernels_ratio) = compute_cause(&all);
    let causes = [(excess_compute_ns, compute), (excess_idle_ns, Cause::Host), (excess_copy_ns, Cause::Copies)];
    let is_slower = |cause| cause == Cause::SlowerKernels && same_kernels_ratio.is_some_and(|it| it > SLOWER_KERNELS);
    let is_reason = |&(excess, cause): &(i64, Cause)| {
        excess > 0 && (is_slower(cause) || excess as f64 >= MIN_EXCESS * lost_ns as f64)
    };
    let cause = causes.into_iter().rev().max_by_key(|(excess, _)| *excess).filter(is_reason);
    let mut longer: Vec<KernelExcess> = all.into_iter().filter(|kernel| kernel.excess_ns > 0).collect();
    longer.sort_by_key(|kernel| std::cmp::Reverse(kernel.excess_ns));
    longer.truncate(MAX_KERNELS);
    Some(Straggler {
        rank: worst.rank,
        slow_ranks: slow.iter().map(|&index| ranks[index].rank).collect(),
        caused_share,
        last_share: share(sum(|rank| rank.last), counts.collectives),
        step_share: (counts.steps > 0).then(|| share(sum(|rank| rank.last_steps), counts.steps)),
        lost_ns,
        excess_compute_ns,
        excess_idle_ns,
        excess_copy_ns,
        same_kernels_ratio,
        cause: cause.map_or(Cause::Unknown, |(_, cause)| cause),
        kernels: longer,
    })
}

/// Returns the indices of the ranks whose time outside of communication is about that of the worst rank. The excess is
/// measured from the median of the ranks that are nearer to the shortest time, so that half of the ranks can be slow.
fn equally_slow(ranks: &[RankWait], worst: usize) -> Vec<usize> {
    let own_ns = |rank: &RankWait| rank.compute_ns.saturating_add(rank.idle_ns).saturating_add(rank.copy_ns);
    let worst_ns = own_ns(&ranks[worst]);
    let shortest_ns = ranks.iter().map(own_ns).min().unwrap_or_default();
    let middle_ns = shortest_ns + (worst_ns - shortest_ns) / 2;
    let fast: Vec<u64> = ranks.iter().map(own_ns).filter(|own| *own < middle_ns).collect();
    if fast.is_empty() {
        return vec![worst];
    }
    let excess_ns = worst_ns.saturating_sub(median(fast));
    let is_slow = |rank: &RankWait| own_ns(rank) as f64 >= worst_ns as f64 - EQUALLY_SLOW * excess_ns as f64;
    (0..ranks.len()).filter(|&index| index == worst || is_slow(&ranks[index])).collect()
}

/// Returns the time that another rank loses: the mean exposed wait that the slow ranks cause, or the difference of exposed
/// communication if that is larger. The latter contains transfers that computation would hide if no rank were slow.
fn lost_ns(exposed: &[Exposed], slow: &[usize], ranks: &[RankWait], worst: &RankWait) -> u64 {
    let others = exposed.iter().filter(|wait| !slow.contains(&wait.rank));
    let caused = others.flat_map(|wait| slow.iter().filter_map(|rank| wait.causes.get(rank)));
    let waited_ns = caused.sum::<u64>() / (ranks.len() - slow.len()).max(1) as u64;
    let others = ranks.iter().enumerate().filter(|(index, _)| !slow.contains(index));
    let median_ns = median(others.map(|(_, rank)| rank.exposed_ns).collect());
    waited_ns.max(median_ns.saturating_sub(worst.exposed_ns))
}

/// Returns the cause of more compute time, and the time of the kernels that all ranks run equally often divided by the
/// median.
fn compute_cause(all: &[KernelExcess]) -> (Cause, Option<f64>) {
    let (same, other): (Vec<&KernelExcess>, Vec<&KernelExcess>) = all
        .iter()
        .filter(|kernel| kernel.activity == Activity::Compute)
        .partition(|kernel| kernel.count == kernel.median_count);
    let sum =
        |kernels: &[&KernelExcess], time: fn(&KernelExcess) -> u64| kernels.iter().map(|kernel| time(kernel)).sum();
    let (own_ns, median_ns): (u64, u64) = (sum(&same, |kernel| kernel.time_ns), sum(&same, |kernel| kernel.median_ns));
    let total = |kernels: &[&KernelExcess]| kernels.iter().map(|kernel| kernel.excess_ns).sum::<i64>();
    let cause = if total(&same) >= total(&other) { Cause::SlowerKernels } else { Cause::MoreWork };
    (cause, (median_ns > 0).then(|| own_ns as f64 / median_ns as f64))
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Compares time and count of all compute kernels and copies with the median of the ranks that are not slow.
fn kernels(recorded: &[&Recorded], index: usize, slow: &[usize], common: &SharedPart) -> Vec<KernelExcess> {
    let is_compared =
        |rank, slice: &DeviceSlice| slice.activity != Activity::Communication && common.has_slice(rank, slice);
    let by_rank: Vec<ByName<'_>> = recorded
        .iter()
        .enumerate()
        .map(|(rank, recorded)| recorded.by_name(|slice| is_compared(rank, slice)))
        .collect();
    let keys: BTreeSet<_> = by_rank.iter().flat_map(ByName::keys).copied().collect();
    let row = |key: (Activity, &str)| {
        let of = |rank: usize| by_rank[rank].get(&key).copied().unwrap_or_default();
        let others = |value: fn((u64, u64)) -> u64| {
            median((0..by_rank.len()).filter(|rank| !slow.contains(rank)).map(|rank| value(of(rank))).collect())
        };
        let (time_ns, count) = of(index);
        let (median_ns, median_count) = (others(|(time, _)| time), others(|(_, count)| count));
        let excess_ns = signed(time_ns, median_ns);
        KernelExcess { name: key.1.to_owned(), activity: key.0, time_ns, median_ns, excess_ns, count, median_count }
    };
    keys.into_iter().map(row).collect()
}
