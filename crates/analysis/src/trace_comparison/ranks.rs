//! Waits between ranks in collectives, and the straggler.
//!
//! A collective that needs all ranks ends on all of them at the same time. So the rank with the
//! shortest kernel arrives last, and every other rank waits for the difference between its kernel
//! and the shortest. This needs no common clock. Clocks are aligned on the ends for the common axis.
//! If the last rank waited itself in an earlier collective, the wait goes back to the rank that it
//! waited for.

mod attribution;
mod clocks;
mod matching;
mod shared_part;
mod straggler;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::recorded::{Recorded, Usage};
use attribution::Caused;
use matching::Matched;
use shared_part::SharedPart;
pub use straggler::{Cause, KernelExcess, Straggler};

/// Reason why ranks cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RanksError {
    /// Fewer than two ranks.
    #[error("{0} rank with device slices; at least two are needed")]
    TooFew(usize),
    /// Two traces with the same rank.
    #[error("rank {rank} is in {first} and in {second}; set the rank of one of them")]
    SameRank {
        /// The rank.
        rank: u32,
        /// First trace.
        first: String,
        /// Second trace.
        second: String,
    },
    /// No collective occurs on two ranks.
    #[error("no collective occurs in two of the traces: {0}")]
    NothingShared(String),
}

/// Waits and times of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankWait {
    /// Rank.
    pub rank: u32,
    /// File or trace.
    pub name: String,
    /// Time from the first start to the last end on the device.
    pub span_ns: u64,
    /// Time with a compute kernel.
    pub compute_ns: u64,
    /// Time with a communication kernel, waits included.
    pub communication_ns: u64,
    /// Time with a copy or a fill.
    pub copy_ns: u64,
    /// Time without device activity.
    pub idle_ns: u64,
    /// Time in collectives before the last rank arrives.
    pub waited_ns: u64,
    /// Time with a communication kernel, waits included, and without a compute kernel.
    pub exposed_ns: u64,
    /// Sum of the waits that go back to this rank: it arrives last because of its own time, not because
    /// it waited in an earlier collective.
    pub caused_ns: u64,
    /// Sum of the times between the second-last arrival and its own in collectives in which it arrives
    /// last: the wait that ends if only this rank becomes faster.
    pub late_ns: u64,
    /// Number of collectives in which this rank arrives last.
    pub last: u64,
    /// Number of steps in which this rank causes the longest wait.
    pub last_steps: u64,
    /// Clock of the trace minus clock of the first rank; `None` without a shared collective.
    pub clock_ns: Option<i64>,
}

/// Wait of a rank in a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Wait {
    /// Rank.
    pub rank: u32,
    /// Time from its arrival to the last arrival.
    pub wait_ns: u64,
}

/// A collective on several ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Occurrence {
    /// Operation, for example "allreduce".
    pub operation: String,
    /// Process group; empty if the traces do not name it.
    pub group: String,
    /// Sequence number, otherwise position in the step or the trace.
    pub number: u64,
    /// Step on the first of its ranks.
    pub step: Option<u64>,
    /// End on the clock of its first rank.
    pub end_ns: u64,
    /// Duration on the last rank: the collective without waits.
    pub transfer_ns: u64,
    /// Rank that arrives first.
    pub first: u32,
    /// Rank that arrives last.
    pub last: u32,
    /// Sum of all waits.
    pub wait_ns: u64,
    /// Wait of every rank.
    pub waits: Vec<Wait>,
}

/// Waits in an operation of a process group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GroupWait {
    /// Process group.
    pub group: String,
    /// Operation.
    pub operation: String,
    /// Number of collectives.
    pub collectives: u64,
    /// Sum of all waits.
    pub wait_ns: u64,
    /// Sum of the durations without waits.
    pub transfer_ns: u64,
    /// Rank that causes the longest wait.
    pub last: u32,
    /// Wait that this rank causes.
    pub caused_ns: u64,
}

/// Waits in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepWait {
    /// Step number.
    pub step: u64,
    /// Sum of all waits.
    pub wait_ns: u64,
    /// Rank that causes the longest wait.
    pub last: u32,
    /// Wait that this rank causes.
    pub caused_ns: u64,
}

/// Waits between the ranks of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankReport {
    /// The rank that holds up the others; `None` if no rank stands out.
    pub straggler: Option<Straggler>,
    /// All ranks.
    pub ranks: Vec<RankWait>,
    /// Operations by process group, longest wait first.
    pub groups: Vec<GroupWait>,
    /// Steps in order.
    pub steps: Vec<StepWait>,
    /// Number of collectives that occur on several ranks.
    pub collectives: u64,
    /// Sum of all waits.
    pub wait_ns: u64,
    /// Collectives with the longest waits.
    pub longest: Vec<Occurrence>,
    /// Median deviation of the ends of a collective after the clocks are aligned.
    pub clock_deviation_ns: u64,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Ranks in order with their matched collectives.
pub(super) struct Joined<'r> {
    pub(super) recorded: Vec<&'r Recorded>,
    pub(super) matched: Vec<Matched>,
    pub(super) clocks: clocks::Clocks,
    notes: Vec<String>,
    /// True if the ranks have different numbers of collectives of an operation.
    are_unequal: bool,
}

impl<'r> Joined<'r> {
    /// Matches the collectives of all ranks.
    pub(super) fn new(recorded: &'r [Recorded]) -> Result<Self, RanksError> {
        let mut recorded: Vec<&Recorded> = recorded.iter().collect();
        recorded.sort_by_key(|rank| rank.rank);
        if recorded.len() < 2 {
            return Err(RanksError::TooFew(recorded.len()));
        }
        if let Some(pair) = recorded.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
            let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
            return Err(RanksError::SameRank { rank: pair[0].rank, first, second });
        }
        let mut notes: Vec<String> = recorded.iter().filter_map(|rank| rank.duplicates_note()).collect();
        notes.extend(missing(&recorded));
        let (matched, are_unequal) = matching::matched(&recorded, &mut notes);
        if matched.is_empty() {
            return Err(RanksError::NothingShared(if notes.is_empty() {
                "they have no communication kernels".to_owned()
            } else {
                notes.join(" ")
            }));
        }
        let clocks = clocks::align(recorded.len(), &matched);
        Ok(Self { recorded, matched, clocks, notes, are_unequal })
    }
}

/// Most ranks that a note lists.
const MAX_LISTED: usize = 16;

/// Returns a note about the ranks of the job without a trace, if the traces state their number.
fn missing(recorded: &[&Recorded]) -> Option<String> {
    let world = recorded.iter().filter_map(|rank| rank.world_size).max()?;
    let is_missing = |rank: &u32| recorded.iter().all(|own| own.rank != *rank);
    let count = (0..world).filter(is_missing).count();
    let listed: Vec<String> = (0..world).filter(is_missing).take(MAX_LISTED).map(|rank| rank.to_string()).collect();
    let more = if count > MAX_LISTED { " and others" } else { "" };
    (count > 0).then(|| {
        format!(
            "Of {world} ranks, these have no trace: {}{more}. A rank without a trace can be the one that the others \
             wait for.",
            listed.join(", ")
        )
    })
}

/// Finds the waits between ranks. `longest` is the maximum number of collectives in the report.
///
/// # Errors
/// Fewer than two ranks, two traces of the same rank, or no collective in common.
pub fn ranks(recorded: &[Recorded], longest: usize) -> Result<RankReport, RanksError> {
    let Joined { recorded, matched, clocks, mut notes, are_unequal } = Joined::new(recorded)?;
    let alone = clocks.offset_ns.iter().filter(|offset| offset.is_none()).count();
    if alone > 0 {
        notes.push(format!(
            "{alone} ranks share no collective with rank {}; their clocks are not aligned.",
            recorded[0].rank
        ));
    }
    let (causes, mut exposed) = attribution::attributed(&recorded, &matched, &clocks);
    let common = SharedPart::new(&recorded, &matched, are_unequal);
    let compared = |index: &usize| common.has(&matched[*index]);
    exposed.retain(|wait| compared(&wait.collective));
    let (occurrences, causes): (Vec<Occurrence>, Vec<Caused>) = (0..matched.len())
        .zip(causes)
        .filter(|(index, _)| compared(index))
        .map(|(index, causes)| (occurrence(&matched[index], &recorded), causes))
        .unzip();
    if occurrences.is_empty() {
        return Err(RanksError::NothingShared("the traces have no step in common".to_owned()));
    }
    if occurrences.len() < matched.len() {
        notes.push(format!(
            "{} collectives outside of the part that all traces have are not compared.",
            matched.len() - occurrences.len()
        ));
    }
    let of_rank = |(rank, ns): (usize, u64)| (recorded[rank].rank, ns);
    let attributed: Vec<Attributed<'_>> = occurrences
        .iter()
        .zip(causes)
        .map(|(occurrence, causes)| Attributed { occurrence, causes: causes.into_iter().map(of_rank).collect() })
        .collect();
    let steps = steps(&attributed);
    let groups = groups(&attributed);
    let rank = |index: usize| {
        let recorded = recorded[index];
        let usage = Usage::of(recorded.slices.iter().filter(|slice| common.has_slice(index, slice)));
        rank_wait(recorded, usage, clocks.offset_ns[index], &attributed, &steps)
    };
    let ranks: Vec<RankWait> = (0..recorded.len()).map(rank).collect();
    let counts = straggler::Counts { collectives: occurrences.len() as u64, steps: steps.len() as u64 };
    let straggler = straggler::find(&recorded, &ranks, &common, &exposed, counts);
    if straggler.is_none() {
        notes.push("No rank stands out: the waits are short, or spread over the ranks.".to_owned());
    }
    let mut report = RankReport {
        straggler,
        ranks,
        groups,
        steps,
        collectives: occurrences.len() as u64,
        wait_ns: occurrences.iter().map(|occurrence| occurrence.wait_ns).sum(),
        longest: occurrences,
        clock_deviation_ns: clocks.deviation_ns,
        notes,
    };
    report.longest.sort_by_key(|occurrence| (std::cmp::Reverse(occurrence.wait_ns), occurrence.end_ns));
    report.longest.truncate(longest);
    Ok(report)
}

fn occurrence(matched: &Matched, recorded: &[&Recorded]) -> Occurrence {
    let rank = |arrival: &matching::Arrival| recorded[arrival.rank].rank;
    let arrivals = &matched.arrivals;
    let (mut first, mut last) = (&arrivals[0], &arrivals[0]);
    for arrival in &arrivals[1..] {
        first = if arrival.duration_ns > first.duration_ns { arrival } else { first };
        last = if arrival.duration_ns < last.duration_ns { arrival } else { last };
    }
    let wait =
        |arrival: &matching::Arrival| Wait { rank: rank(arrival), wait_ns: arrival.duration_ns - last.duration_ns };
    let waits: Vec<Wait> = arrivals.iter().map(wait).collect();
    Occurrence {
        operation: matched.operation.clone(),
        group: matched.group.clone(),
        number: matched.number,
        step: matched.step,
        end_ns: arrivals[0].end_ns,
        transfer_ns: last.duration_ns,
        first: rank(first),
        last: rank(last),
        wait_ns: waits.iter().map(|wait| wait.wait_ns).sum(),
        waits,
    }
}

/// A collective with the waits by the rank that causes them, in ns.
struct Attributed<'o> {
    occurrence: &'o Occurrence,
    causes: BTreeMap<u32, u64>,
}

/// Returns the rank that causes the longest wait, and this wait. Without waits it is a rank that arrives last.
fn most(attributed: &[&Attributed<'_>]) -> (u32, u64) {
    let mut caused: BTreeMap<u32, u64> = BTreeMap::new();
    for collective in attributed {
        caused.entry(collective.occurrence.last).or_default();
        for (&rank, ns) in &collective.causes {
            *caused.entry(rank).or_default() += ns;
        }
    }
    caused.into_iter().max_by_key(|&(rank, wait)| (wait, std::cmp::Reverse(rank))).unwrap_or_default()
}

fn steps(attributed: &[Attributed<'_>]) -> Vec<StepWait> {
    let mut by_step: BTreeMap<u64, Vec<&Attributed<'_>>> = BTreeMap::new();
    for collective in attributed {
        if let Some(step) = collective.occurrence.step {
            by_step.entry(step).or_default().push(collective);
        }
    }
    let step = |(step, own): (u64, Vec<&Attributed<'_>>)| {
        let (last, caused_ns) = most(&own);
        StepWait { step, wait_ns: own.iter().map(|collective| collective.occurrence.wait_ns).sum(), last, caused_ns }
    };
    by_step.into_iter().map(step).collect()
}

fn groups(attributed: &[Attributed<'_>]) -> Vec<GroupWait> {
    let mut by_group: BTreeMap<(&str, &str), Vec<&Attributed<'_>>> = BTreeMap::new();
    for collective in attributed {
        let Occurrence { group, operation, .. } = collective.occurrence;
        by_group.entry((group, operation)).or_default().push(collective);
    }
    let group = |((group, operation), own): ((&str, &str), Vec<&Attributed<'_>>)| {
        let (last, caused_ns) = most(&own);
        GroupWait {
            group: group.to_owned(),
            operation: operation.to_owned(),
            collectives: own.len() as u64,
            wait_ns: own.iter().map(|collective| collective.occurrence.wait_ns).sum(),
            transfer_ns: own.iter().map(|collective| collective.occurrence.transfer_ns).sum(),
            last,
            caused_ns,
        }
    };
    let mut groups: Vec<GroupWait> = by_group.into_iter().map(group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.wait_ns));
    groups
}

fn rank_wait(
    recorded: &Recorded,
    usage: Usage,
    clock_ns: Option<i64>,
    attributed: &[Attributed<'_>],
    steps: &[StepWait],
) -> RankWait {
    let mut rank = RankWait {
        rank: recorded.rank,
        name: recorded.name.clone(),
        span_ns: usage.span,
        compute_ns: usage.compute,
        communication_ns: usage.communication,
        copy_ns: usage.copies,
        idle_ns: usage.span - usage.busy,
        waited_ns: 0,
        exposed_ns: usage.exposed,
        caused_ns: 0,
        late_ns: 0,
        last: 0,
        last_steps: steps.iter().filter(|step| step.last == recorded.rank && step.wait_ns > 0).count() as u64,
        clock_ns,
    };
    for Attributed { occurrence, causes } in attributed {
        rank.caused_ns += causes.get(&recorded.rank).copied().unwrap_or_default();
        let own = occurrence.waits.iter().find(|wait| wait.rank == recorded.rank);
        rank.waited_ns += own.map_or(0, |wait| wait.wait_ns);
        if occurrence.last == recorded.rank && occurrence.wait_ns > 0 {
            rank.last += 1;
            let others = occurrence.waits.iter().filter(|wait| wait.rank != recorded.rank);
            rank.late_ns += others.map(|wait| wait.wait_ns).min().unwrap_or_default();
        }
    }
    rank
}

#[cfg(test)]
mod tests;
