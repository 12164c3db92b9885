//! Matches the collectives of several ranks.
//!
//! Collectives of a process group are matched by sequence number if the traces contain it,
//! otherwise by order in the step, otherwise by order in the trace.

use std::collections::{BTreeMap, BTreeSet};

use super::super::recorded::Recorded;

/// A collective kernel on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::trace_comparison) struct Arrival {
    /// Index of the rank.
    pub(in crate::trace_comparison) rank: usize,
    /// End on the clock of the rank.
    pub(in crate::trace_comparison) end_ns: u64,
    pub(in crate::trace_comparison) duration_ns: u64,
}

/// A collective on at least two ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::trace_comparison) struct Matched {
    pub(super) operation: String,
    pub(super) group: String,
    pub(super) number: u64,
    pub(super) step: Option<u64>,
    /// By rank index.
    pub(in crate::trace_comparison) arrivals: Vec<Arrival>,
}

/// Kernel of a collective before matching.
struct Kernel {
    arrival: Arrival,
    sequence: Option<u64>,
    step: Option<u64>,
}

/// Step, sequence number or 0, position.
type Key = (Option<u64>, u64, u64);

/// Returns the collectives in the order of their ends on the first of their ranks, and whether the ranks have
/// different numbers of them.
pub(super) fn matched(recorded: &[&Recorded], notes: &mut Vec<String>) -> (Vec<Matched>, bool) {
    let mut by_group: BTreeMap<(&str, &str), Vec<Kernel>> = BTreeMap::new();
    let (mut rooted, mut nameless) = (0_u64, false);
    for (rank, trace) in recorded.iter().enumerate() {
        for slice in &trace.slices {
            let Some(call) = slice.call.and_then(|call| trace.calls.get(call as usize)) else { continue };
            if !call.waits_for_all {
                rooted += 1;
                continue;
            }
            nameless |= call.group.is_empty();
            let arrival = Arrival { rank, end_ns: slice.end_ns(), duration_ns: slice.duration_ns };
            let kernel = Kernel { arrival, sequence: call.sequence, step: slice.step };
            by_group.entry((&call.group, &call.operation)).or_default().push(kernel);
        }
    }
    if rooted > 0 {
        notes.push(format!(
            "{rooted} kernels of sends, receives and operations with a root are not used: they do not wait for all ranks."
        ));
    }
    if nameless {
        notes.push(
            "The traces do not name process groups: collectives are matched by operation and order, as if all ranks were in one group."
                .to_owned(),
        );
    }
    let unequal = unequal(&by_group, recorded);
    let are_unequal = unequal.is_some();
    notes.extend(unequal);
    let mut found = Vec::new();
    let mut alone = 0_u64;
    for ((group, operation), kernels) in by_group {
        for (key, arrivals) in occurrences(&kernels) {
            if arrivals.len() < 2 {
                alone += 1;
                continue;
            }
            let (step, number, position) = key;
            let step = step.or_else(|| {
                let first = kernels.iter().find(|kernel| kernel.arrival == arrivals[0]);
                first.and_then(|kernel| kernel.step)
            });
            let number = if number > 0 { number } else { position };
            found.push(Matched { operation: operation.to_owned(), group: group.to_owned(), number, step, arrivals });
        }
    }
    if alone > 0 {
        notes.push(format!("{alone} collectives occur on one of the ranks only and are not used."));
    }
    found.sort_by_key(|matched| (matched.arrivals[0].end_ns, matched.arrivals[0].rank));
    (found, are_unequal)
}

/// Returns a note about the operation of a group with different numbers of collectives on its ranks.
fn unequal(by_group: &BTreeMap<(&str, &str), Vec<Kernel>>, recorded: &[&Recorded]) -> Option<String> {
    by_group.iter().find_map(|((group, operation), kernels)| {
        let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
        for kernel in kernels {
            *counts.entry(kernel.arrival.rank).or_default() += 1;
        }
        let (least, most) = (counts.iter().min_by_key(|it| it.1)?, counts.iter().max_by_key(|it| it.1)?);
        let group = if group.is_empty() { String::new() } else { format!(" of group {group}") };
        (least.1 < most.1).then(|| {
            format!(
                "The traces have different numbers of collectives: {operation}{group} on rank {}: {}, rank {}: {}. \
                 They can cover different steps, or a rank can have another schedule.",
                recorded[*most.0].rank, most.1, recorded[*least.0].rank, least.1
            )
        })
    })
}

/// Groups the kernels of an operation by occurrence.
fn occurrences(kernels: &[Kernel]) -> BTreeMap<Key, Vec<Arrival>> {
    let by_sequence = kernels.iter().all(|kernel| kernel.sequence.is_some());
    let by_step = !by_sequence && kernels.iter().all(|kernel| kernel.step.is_some());
    let mut positions: BTreeMap<(usize, Option<u64>, u64), u64> = BTreeMap::new();
    let mut found: BTreeMap<Key, Vec<Arrival>> = BTreeMap::new();
    // Kernels are in the order of ranks, then starts.
    for kernel in kernels {
        let sequence = kernel.sequence.filter(|_| by_sequence).unwrap_or_default();
        let step = kernel.step.filter(|_| by_step);
        let position = positions.entry((kernel.arrival.rank, step, sequence)).or_default();
        found.entry((step, sequence, *position)).or_default().push(kernel.arrival);
        *position += 1;
    }
    if by_step {
        // A step that begins or ends in the middle on one rank has other positions there.
        let mut complete: BTreeMap<u64, BTreeMap<usize, u64>> = BTreeMap::new();
        for ((rank, step, _), count) in positions {
            complete.entry(step.unwrap_or_default()).or_default().insert(rank, count);
        }
        let uneven: BTreeSet<u64> = complete
            .into_iter()
            .filter(|(_, counts)| counts.values().collect::<BTreeSet<_>>().len() > 1)
            .map(|(step, _)| step)
            .collect();
        found.retain(|(step, ..), _| step.is_none_or(|step| !uneven.contains(&step)));
    }
    found
}
