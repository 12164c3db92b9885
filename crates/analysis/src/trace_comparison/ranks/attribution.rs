//! Attribution of waits to the ranks whose own time causes them.
//!
//! The rank that arrives last in a collective may have waited in an earlier collective of another
//! process group. Then its delay goes back to the rank that it waited for, as in the delay analysis
//! of Böhme et al., 2010.

use std::collections::BTreeMap;

use planscope_core::timeline::covered::Covered;

use super::super::recorded::{Activity, Recorded};
use super::clocks::Clocks;
use super::matching::{Arrival, Matched};

/// Most earlier collectives of a rank that are searched for the last one that two ranks share.
const MAX_BACK: usize = 1024;

/// Waits by the rank index that causes them, in ns.
pub(super) type Caused = BTreeMap<usize, u64>;

/// The part of a wait of a rank that its device does not hide.
#[derive(Debug)]
pub(super) struct Exposed {
    /// Index of the collective.
    pub(super) collective: usize,
    /// Index of the rank that waits.
    pub(super) rank: usize,
    /// Causes of the exposed part.
    pub(super) causes: Caused,
}

/// The wait of a rank in a collective.
struct Held {
    /// Index of the collective.
    collective: usize,
    /// End on the clock of the rank.
    end_ns: u64,
    /// Part of the wait during which the device runs no kernel and no copy: it delays the rank.
    exposed_ns: u64,
    /// Causes of the exposed part.
    causes: Caused,
}

/// Busy intervals of a device outside of communication.
struct Busy<'r> {
    recorded: &'r Recorded,
    /// Longest slice: slices that begin earlier than this before an interval are not in it.
    longest_ns: u64,
}

impl<'r> Busy<'r> {
    fn new(recorded: &'r Recorded) -> Self {
        let own = recorded.slices.iter().filter(|slice| slice.activity != Activity::Communication);
        Self { recorded, longest_ns: own.map(|slice| slice.duration_ns).max().unwrap_or(0) }
    }

    /// Returns the part of an interval in ns in which the device computes or copies.
    fn within_ns(&self, start_ns: u64, end_ns: u64) -> u64 {
        let slices = &self.recorded.slices;
        let from = slices.partition_point(|slice| slice.start_ns.saturating_add(self.longest_ns) < start_ns);
        let inside = slices[from..]
            .iter()
            .take_while(|slice| slice.start_ns < end_ns)
            .filter(|slice| slice.activity != Activity::Communication && slice.end_ns() > start_ns)
            .map(|slice| (slice.start_ns.max(start_ns), slice.end_ns().min(end_ns)));
        Covered::by(inside.collect()).length_ns()
    }
}

/// Returns the causes of the waits of each collective, whose sum is the sum of its waits, and the exposed waits of all
/// ranks.
///
/// The wait of a rank for the last rank is split at the last collective that both share: as far as
/// the last rank waited longer since then than the other one, the wait has the causes of these
/// waits. The rest is the last rank's own. Waits that computation hides delay nothing.
pub(super) fn attributed(recorded: &[&Recorded], matched: &[Matched], clocks: &Clocks) -> (Vec<Caused>, Vec<Exposed>) {
    let busy: Vec<Busy<'_>> = recorded.iter().map(|rank| Busy::new(rank)).collect();
    let mut held: Vec<Vec<Held>> = recorded.iter().map(|_| Vec::new()).collect();
    let mut caused = vec![Caused::new(); matched.len()];
    let aligned_ns =
        |arrival: &Arrival| i128::from(arrival.end_ns) - i128::from(clocks.offset_ns[arrival.rank].unwrap_or_default());
    let mut order: Vec<usize> = (0..matched.len()).collect();
    order.sort_by_key(|&index| (aligned_ns(&matched[index].arrivals[0]), index));
    for index in order {
        let arrivals = &matched[index].arrivals;
        let Some(last) = arrivals.iter().min_by_key(|arrival| arrival.duration_ns) else { continue };
        let found: Vec<Caused> = arrivals.iter().map(|own| causes(own, last, &held, matched)).collect();
        for (own, causes) in arrivals.iter().zip(found) {
            for (&rank, ns) in &causes {
                *caused[index].entry(rank).or_default() += ns;
            }
            let wait_ns = own.duration_ns - last.duration_ns;
            let start_ns = own.end_ns.saturating_sub(own.duration_ns);
            // Waits of several streams at the same time count once.
            let free_ns = held[own.rank].last().map_or(0, |before| before.end_ns);
            let from_ns = start_ns.max(free_ns).min(start_ns + wait_ns);
            let hidden_ns = busy[own.rank].within_ns(from_ns, start_ns + wait_ns);
            let exposed_ns = (start_ns + wait_ns - from_ns).saturating_sub(hidden_ns);
            let causes = scaled(&causes, exposed_ns);
            held[own.rank].push(Held { collective: index, end_ns: own.end_ns, exposed_ns, causes });
        }
    }
    let exposed = |(rank, held): (usize, Vec<Held>)| {
        let of = move |Held { collective, causes, .. }| Exposed { collective, rank, causes };
        held.into_iter().map(of)
    };
    (caused, held.into_iter().enumerate().flat_map(exposed).collect())
}

/// Returns the causes of the wait of `own` for `last`.
fn causes(own: &Arrival, last: &Arrival, held: &[Vec<Held>], matched: &[Matched]) -> Caused {
    let wait_ns = own.duration_ns - last.duration_ns;
    let mut causes = Caused::new();
    if wait_ns == 0 {
        return causes;
    }
    let start_ns = |arrival: &Arrival| arrival.end_ns.saturating_sub(arrival.duration_ns);
    // Collectives that end after the start of this one, on another stream, do not delay it.
    let before = |arrival: &Arrival| {
        let start_ns = start_ns(arrival);
        held[arrival.rank].iter().rev().take(MAX_BACK).filter(move |held| held.end_ns <= start_ns)
    };
    let is_shared = |held: &&Held| matched[held.collective].arrivals.iter().any(|arrival| arrival.rank == own.rank);
    let shared = before(last).find(is_shared).map(|held| held.collective);
    let since = |arrival: &Arrival| before(arrival).take_while(|held| Some(held.collective) != shared);
    let own_ns: u64 = since(own).map(|held| held.exposed_ns).sum();
    let (mut last_ns, mut earlier) = (0_u64, Caused::new());
    for held in since(last) {
        last_ns += held.exposed_ns;
        for (&rank, ns) in &held.causes {
            *earlier.entry(rank).or_default() += ns;
        }
    }
    let passed_on_ns = last_ns.saturating_sub(own_ns).min(wait_ns);
    causes = scaled(&earlier, passed_on_ns);
    *causes.entry(last.rank).or_default() += wait_ns - passed_on_ns;
    causes
}

/// Scales causes to the sum `total_ns`. The largest cause takes what rounding leaves.
fn scaled(causes: &Caused, total_ns: u64) -> Caused {
    let sum: u128 = causes.values().map(|&ns| u128::from(ns)).sum();
    let Some((&largest, _)) = causes.iter().max_by_key(|(rank, ns)| (**ns, std::cmp::Reverse(**rank))) else {
        return Caused::new();
    };
    let part = |ns: u64| u64::try_from(u128::from(ns) * u128::from(total_ns) / sum.max(1)).unwrap_or(total_ns);
    let mut scaled: Caused = causes.iter().map(|(&rank, &ns)| (rank, part(ns))).filter(|(_, ns)| *ns > 0).collect();
    let rest_ns = total_ns - scaled.values().sum::<u64>();
    *scaled.entry(largest).or_default() += rest_ns;
    scaled
}
