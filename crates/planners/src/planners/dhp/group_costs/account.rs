//! Group statistics for an iteration: degrees in DHP notation, estimates, and pool hits.

use std::collections::{BTreeMap, BTreeSet};

use planscope_core::units::Nanos;
use planscope_core::workload::Sequence;
use planscope_plan::outcome::{DegreeGroups, IterationGroups, MicrobatchGroups};
use planscope_plan::plan::ReplicaPlan;

/// Assumed creation time of a communication group, in s. A small communicator needs some tenths of
/// a second.
const CREATION_S: f64 = 0.1;

/// Communication groups of a run. Each is created once.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    created: BTreeSet<Vec<u32>>,
}

impl Accounts {
    /// Returns the statistics of the next iteration. `work` contains busy time and number of groups
    /// per rank.
    pub(crate) fn next(
        &mut self,
        plan: &ReplicaPlan,
        sequences: &[Sequence],
        work: &[(Nanos, usize)],
    ) -> IterationGroups {
        let (mut hits, mut misses) = (0, 0);
        let shared = plan.groups().iter().filter(|group| group.ranks.len() > 1);
        let requested: BTreeSet<(u32, &[u32])> = shared.map(|group| (group.microbatch, &*group.ranks)).collect();
        for (_, ranks) in requested {
            if self.created.contains(ranks) {
                hits += 1;
            } else {
                self.created.insert(ranks.to_vec());
                misses += 1;
            }
        }
        let count = plan.groups().iter().map(|group| group.microbatch + 1).max().unwrap_or(0);
        let microbatches: Vec<_> = (0..count).map(|number| microbatch(plan, sequences, number, work.len())).collect();
        let total: Nanos = work.iter().map(|entry| entry.0).sum();
        IterationGroups {
            estimated_s: microbatches.iter().map(|microbatch| microbatch.estimated_s).sum(),
            busiest_s: work.iter().map(|entry| entry.0).max().unwrap_or(Nanos::ZERO).secs(),
            mean_s: total.secs() / work.len().max(1) as f64,
            pool_hits: hits,
            pool_misses: misses,
            creation_s: f64::from(misses) * CREATION_S,
            microbatches,
        }
    }
}

fn microbatch(plan: &ReplicaPlan, sequences: &[Sequence], number: u32, ranks: usize) -> MicrobatchGroups {
    let mut active = vec![Nanos::ZERO; ranks];
    let mut by_degree: BTreeMap<u32, DegreeGroups> = BTreeMap::new();
    let mut distinct: BTreeSet<(u32, &[u32])> = BTreeSet::new();
    for (own, group) in plan.microbatches.iter().zip(plan.groups()).filter(|(_, group)| group.microbatch == number) {
        for &rank in &group.ranks {
            active[rank as usize] += group.estimate;
        }
        let degree = group.degree();
        let entry = by_degree.entry(degree).or_insert_with(|| DegreeGroups {
            degree,
            groups: 0,
            sequences: 0,
            tokens: 0,
            shortest: u32::MAX,
            longest: 0,
            estimated_s: 0.0,
        });
        // Ranks that process several sequences sequentially count as a single group.
        entry.groups += u32::from(distinct.insert((degree, &group.ranks)));
        for &sequence in own {
            let tokens = sequences[sequence as usize].computed_tokens;
            entry.sequences += 1;
            entry.tokens += u64::from(tokens);
            entry.shortest = entry.shortest.min(tokens);
            entry.longest = entry.longest.max(tokens);
        }
        let group_end = group.ranks.iter().map(|&rank| active[rank as usize]).max().unwrap_or(Nanos::ZERO);
        entry.estimated_s = entry.estimated_s.max(group_end.secs());
    }
    let degrees: Vec<DegreeGroups> = by_degree.into_values().rev().collect();
    let notation: Vec<String> = degrees.iter().map(|entry| format!("<{}>x{}", entry.degree, entry.groups)).collect();
    MicrobatchGroups {
        notation: notation.join(" "),
        estimated_s: active.iter().copied().max().unwrap_or(Nanos::ZERO).secs(),
        idle_ranks: active.iter().filter(|time| **time == Nanos::ZERO).count() as u32,
        degrees,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::action::Schedule;
    use planscope_core::training::ContextExchange;
    use planscope_plan::plan::{ReplicaKind, SequenceGroup};

    fn sequences(tokens: &[u32]) -> Vec<Sequence> {
        let sequence = |&tokens: &u32| Sequence { computed_tokens: tokens, tokens, samples: 1, ..Sequence::default() };
        tokens.iter().map(sequence).collect()
    }

    fn plan(groups: &[(&[u32], u32, &[u32], u64)]) -> ReplicaPlan {
        let microbatches = groups.iter().map(|(.., members, _)| members.to_vec()).collect();
        let schedule = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
        let group = |&(ranks, microbatch, _, milliseconds): &(&[u32], u32, &[u32], u64)| SequenceGroup {
            ranks: ranks.to_vec(),
            microbatch,
            gang: 0,
            exchange: ContextExchange::Ring,
            estimate: Nanos::new(milliseconds * 1_000_000),
        };
        ReplicaPlan::new(microbatches, ReplicaKind::Groups(groups.iter().map(group).collect()), schedule)
    }

    /// Four ranks. Microbatch 1: a pair takes 30 ms, a rank 20 ms, and a rank is idle. Microbatch
    /// 2: the same pair; the remaining two ranks run sequential sequences of 10 ms and 15 ms.
    #[test]
    fn statistics_for_a_small_run() {
        let sequences = sequences(&[100, 50, 200, 10, 20]);
        let plan = plan(&[
            (&[0, 1], 0, &[0, 1], 30),
            (&[2], 0, &[2], 20),
            (&[0, 1], 1, &[0], 12),
            (&[2, 3], 1, &[3], 10),
            (&[2, 3], 1, &[4], 15),
        ]);
        let mut accounts = Accounts::default();
        let work = [42, 42, 45, 25].map(|duration| (Nanos::new(duration * 1_000_000), 1));
        let first = accounts.next(&plan, &sequences, &work);
        let notations: Vec<&str> = first.microbatches.iter().map(|microbatch| microbatch.notation.as_str()).collect();
        assert_eq!(notations, ["<2>x1 <1>x1", "<2>x2"]);
        assert_eq!(first.microbatches.iter().map(|microbatch| microbatch.idle_ranks).collect::<Vec<_>>(), [1, 0]);
        let milliseconds = |seconds: f64| (seconds * 1e3).round();
        let estimates: Vec<f64> =
            first.microbatches.iter().map(|microbatch| milliseconds(microbatch.estimated_s)).collect();
        assert_eq!(estimates, [30.0, 25.0]);
        let pair = &first.microbatches[0].degrees[0];
        assert_eq!((pair.sequences, pair.tokens, pair.shortest, pair.longest), (2, 150, 50, 100));
        assert_eq!((milliseconds(first.estimated_s), milliseconds(first.busiest_s)), (55.0, 45.0));
        assert!((first.mean_s - 0.0385).abs() < 1e-12);
        // Two groups are created. Microbatch 2 reuses a group.
        assert_eq!((first.pool_misses, first.pool_hits), (2, 1));
        let second = accounts.next(&plan, &sequences, &work);
        assert_eq!((second.pool_misses, second.pool_hits, second.creation_s), (0, 3, 0.0));
    }
}
