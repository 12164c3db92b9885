//! Local search over pipelines, with microbatches packed again after each move.
//!
//! The dispatch balances a lower bound of the pipelines (Hydraulis Eq. 3). Packed microbatches do not reach this bound
//! equally. Therefore sequences of the slowest packed pipeline move to other pipelines, or change places.

use super::dealing::{Dealt, seconds};
use super::profile::Profiled;
use crate::planners::hydraulis::{PackingSettings, SchemeCost, pack};

/// Packings per call.
const PACKINGS: usize = 400;
/// Pipelines that receive sequences, the fastest first.
const RECEIVERS: usize = 4;
/// Moves and exchanges between two pipelines that are packed.
const PROPOSALS: usize = 4;
/// Smallest relative gain of a move.
const MIN_GAIN: f64 = 1e-6;

/// A sequence that leaves the slowest pipeline, and one that comes back.
#[derive(Debug, Clone, Copy)]
struct Proposal {
    sequence: u32,
    back: Option<u32>,
    /// Estimated time of the slower of both pipelines, in seconds.
    seconds: f64,
}

/// Moves sequences until no proposal makes the slowest pipeline faster.
pub(super) fn rebalance(schemes: &[Profiled], mut dealt: Vec<Dealt>, lengths: &[u64]) -> Vec<Dealt> {
    let mut left = PACKINGS;
    while let Some(slowest) = (0..dealt.len()).max_by(|&a, &b| dealt[a].estimated_s.total_cmp(&dealt[b].estimated_s)) {
        let limit = dealt[slowest].estimated_s * (1.0 - MIN_GAIN);
        let mut others: Vec<usize> = (0..dealt.len()).filter(|&other| other != slowest).collect();
        others.sort_by(|&a, &b| dealt[a].estimated_s.total_cmp(&dealt[b].estimated_s).then(a.cmp(&b)));
        let better = others.into_iter().take(RECEIVERS).find_map(|receiver| {
            let pair = (&dealt[slowest], &dealt[receiver]);
            proposals(schemes, pair, lengths, limit).into_iter().find_map(|proposal| {
                left = left.checked_sub(2)?;
                let (gives, takes) = exchanged(schemes, pair, lengths, proposal)?;
                (gives.estimated_s.max(takes.estimated_s) < limit).then_some((receiver, gives, takes))
            })
        });
        let Some((receiver, gives, takes)) = better else { break };
        (dealt[slowest], dealt[receiver]) = (gives, takes);
    }
    dealt
}

/// The moves and exchanges with the best estimates, if the times of the microbatches grow and shrink with the work.
fn proposals(schemes: &[Profiled], (from, to): (&Dealt, &Dealt), lengths: &[u64], limit: f64) -> Vec<Proposal> {
    let (giving, taking) = (&schemes[from.scheme].cost, &schemes[to.scheme].cost);
    let rate = |dealt: &Dealt, cost: &SchemeCost| {
        let work: f64 = dealt.microbatches.iter().flatten().map(|&index| cost.work(lengths[index as usize])).sum();
        // A pipeline without sequences takes the time of its first one on every stage.
        if work > 0.0 { dealt.estimated_s / work } else { f64::from(cost.pp) }
    };
    let (giving_rate, taking_rate) = (rate(from, giving), rate(to, taking));
    let mut found = Vec::new();
    let mut propose = |sequence: u32, back: Option<u32>| {
        let tokens = lengths[sequence as usize];
        if tokens > taking.max_len || back.is_some_and(|back| lengths[back as usize] >= tokens) {
            return;
        }
        let work = |cost: &SchemeCost| cost.work(tokens) - back.map_or(0.0, |back| cost.work(lengths[back as usize]));
        let gives = from.estimated_s - giving_rate * work(giving);
        let takes = to.estimated_s + taking_rate * work(taking);
        let seconds = gives.max(takes);
        if seconds < limit {
            found.push(Proposal { sequence, back, seconds });
        }
    };
    for &sequence in from.microbatches.iter().flatten() {
        propose(sequence, None);
        for &back in to.microbatches.iter().flatten() {
            propose(sequence, Some(back));
        }
    }
    found.sort_by(|a, b| {
        a.seconds.total_cmp(&b.seconds).then(a.back.is_some().cmp(&b.back.is_some())).then(a.sequence.cmp(&b.sequence))
    });
    found.dedup_by_key(|proposal| lengths[proposal.sequence as usize]);
    found.truncate(PROPOSALS);
    found
}

/// Both pipelines after a proposal, packed again.
fn exchanged(
    schemes: &[Profiled],
    (from, to): (&Dealt, &Dealt),
    lengths: &[u64],
    Proposal { sequence, back, .. }: Proposal,
) -> Option<(Dealt, Dealt)> {
    let own = |dealt: &Dealt, without: Option<u32>, with: Option<u32>| -> Vec<u32> {
        let all = dealt.microbatches.iter().flatten().copied();
        let mut sequences: Vec<u32> = all.filter(|&other| Some(other) != without).chain(with).collect();
        sequences.sort_unstable();
        sequences
    };
    let gives = packed(schemes, from, &own(from, Some(sequence), back), lengths)?;
    let takes = packed(schemes, to, &own(to, back, Some(sequence)), lengths)?;
    Some((gives, takes))
}

/// Packs the sequences of a pipeline, without branch and bound.
fn packed(schemes: &[Profiled], dealt: &Dealt, sequences: &[u32], lengths: &[u64]) -> Option<Dealt> {
    let cost = &schemes[dealt.scheme].cost;
    let own: Vec<u64> = sequences.iter().map(|&index| lengths[index as usize]).collect();
    let microbatches = if own.is_empty() {
        Vec::new()
    } else {
        let packing = pack(&own, cost, PackingSettings { nodes: 0, ..PackingSettings::default() }).ok()?;
        let original = |list: Vec<u32>| list.into_iter().map(|index| sequences[index as usize]).collect();
        packing.microbatches.into_iter().map(original).collect()
    };
    let estimated_s = seconds(cost, &microbatches, lengths);
    Some(Dealt { microbatches, estimated_s, ..dealt.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::model::presets;
    use planscope_cost::cost::Partition;
    use planscope_plan::plan::Scheme;

    /// Work is l, c is 1, MaxLen is 10. Pipelines with lengths 6, 4 | 6 and 4, 4 take 18 and 9. After the sequence of 4 has
    /// moved, they take 14 and 15: Eq. 1 prefers three microbatches of 4 to 8 and 4, because it counts the slowest for
    /// each.
    #[test]
    fn a_sequence_of_the_slowest_pipeline_moves() {
        let cost = SchemeCost { tp: 1, pp: 1, cp: 1, a: 0.0, b: 1.0, c: 1.0, max_len: 10, util_len: 0 };
        let model = presets::model("llama-2-7b").unwrap();
        let partition = Partition::even(&model, 1).unwrap();
        let scheme = Scheme { tensor: 1, pipeline: 1, context: 1 };
        let schemes = [Profiled { scheme, partition, cost, error: (0.0, 0.0) }];
        let lengths = [6, 4, 6, 4, 4];
        let dealt = |microbatches: Vec<Vec<u32>>| {
            let estimated_s = seconds(&cost, &microbatches, &lengths);
            Dealt { scheme: 0, phase: 0, microbatches, estimated_s }
        };
        let before = vec![dealt(vec![vec![0, 1], vec![2]]), dealt(vec![vec![3, 4]])];
        assert_eq!(before.iter().map(|dealt| dealt.estimated_s).collect::<Vec<_>>(), [18.0, 9.0]);
        let after = rebalance(&schemes, before, &lengths);
        let mut all: Vec<u32> = after.iter().flat_map(|dealt| dealt.microbatches.concat()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        assert!(after.iter().all(|dealt| dealt.estimated_s <= 15.0), "{after:?}");
    }
}
