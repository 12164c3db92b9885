//! Ranks that are slower than the others, from timers of all ranks.

use std::collections::BTreeMap;

use api::run::RunPoint;
use planner::run_comparison::{Phase, Timed, phase_times};

use super::RunContext;

/// Most ranks that a note lists.
const MAX_LISTED: usize = 8;

/// True for timers of work. Timers of communication contain waits, which are longer on fast ranks.
fn is_work(timer: &str) -> bool {
    let phases = phase_times(&[Timed { name: timer, seconds: 1.0 }]);
    phases.iter().any(|times| matches!(times.phase, Phase::Forward | Phase::Backward | Phase::Data))
}

/// Ranks that are slower than the median of the ranks in most steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlowRanks {
    ranks: Vec<u32>,
    /// Timers in which they are slow.
    timers: Vec<String>,
    place: Place,
}

/// Size of the parts of a job, in ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sizes {
    /// Ranks of the job.
    world: u32,
    /// Ranks of a pipeline stage. Ranks of a stage are consecutive.
    stage: u32,
    /// Ranks of a node.
    node: u32,
}

/// What the slow ranks have in common. Numbers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// One rank.
    Rank,
    /// All ranks of a pipeline stage, and of no other one.
    Stage { stage: u32, is_last: bool },
    /// All ranks of a node, and of no other one.
    Node(u32),
    /// Other ranks.
    Several,
}

impl SlowRanks {
    /// Finds the slow ranks of the `selected` steps. `None` if no rank is slow in most steps.
    pub(super) fn find(selected: &[&RunPoint], context: &RunContext) -> Option<Self> {
        let cluster = &context.scenario.scenario().cluster;
        let world = cluster.devices();
        let stages = context.planned.layout.pipeline.max(1);
        Self::of(selected, Sizes { world, stage: world / stages, node: cluster.devices_per_node })
    }

    fn of(selected: &[&RunPoint], sizes: Sizes) -> Option<Self> {
        let mut counts: BTreeMap<&str, BTreeMap<u32, usize>> = BTreeMap::new();
        for phase in selected.iter().flat_map(|point| &point.phases).filter(|phase| is_work(&phase.name)) {
            for &rank in &phase.slow_ranks {
                *counts.entry(&phase.name).or_default().entry(rank).or_default() += 1;
            }
        }
        let of_timer = |counts: &BTreeMap<u32, usize>| -> Vec<u32> {
            counts.iter().filter(|(_, count)| 2 * **count > selected.len()).map(|(&rank, _)| rank).collect()
        };
        let ranks = counts.values().map(of_timer).max_by_key(Vec::len).filter(|ranks| !ranks.is_empty())?;
        let is_same = |counts: &BTreeMap<u32, usize>| of_timer(counts) == ranks;
        let timers = counts.iter().filter(|(_, counts)| is_same(counts)).map(|(&name, _)| name.to_owned()).collect();
        let place = Place::of(&ranks, sizes);
        Some(Self { ranks, timers, place })
    }

    /// Whether the slow ranks are those of the last pipeline stage.
    pub(super) fn are_last_stage(&self) -> bool {
        matches!(self.place, Place::Stage { is_last: true, .. })
    }

    /// Names the slow ranks and what to compare first.
    pub(super) fn note(&self) -> String {
        let Self { ranks, timers, place } = self;
        let (first, last) = (ranks.first().copied().unwrap_or(0), ranks.last().copied().unwrap_or(0));
        let (who, advice) = match place {
            Place::Rank => (format!("Rank {first} is"), "Compare its device with the others first."),
            Place::Stage { stage, .. } => (
                format!("All ranks of the pipeline stage {stage} (ranks {first} to {last}) are"),
                "Compare the layers of the stages and the work of their first and last operators first.",
            ),
            Place::Node(node) => (
                format!("All ranks of the node {node} (ranks {first} to {last}) are"),
                "Compare clocks, power and other processes of this node with the others first.",
            ),
            Place::Several => {
                let listed: Vec<String> = ranks.iter().take(MAX_LISTED).map(u32::to_string).collect();
                let more = if ranks.len() > MAX_LISTED { " and others" } else { "" };
                (
                    format!("{} ranks ({}{more}) are", ranks.len(), listed.join(", ")),
                    "Compare what they have in common: stage, node, place in their group.",
                )
            }
        };
        format!("{who} at least 10\u{202f}% slower than the median of the ranks in: {}. {advice}", timers.join(", "))
    }
}

impl Place {
    fn of(ranks: &[u32], sizes: Sizes) -> Self {
        let (Some(&first), Some(&last)) = (ranks.first(), ranks.last()) else { return Self::Several };
        let is_block = |size: u32| {
            size > 1
                && size < sizes.world
                && ranks.len() as u32 == size
                && first % size == 0
                && last == first + size - 1
        };
        if ranks.len() == 1 {
            Self::Rank
        } else if is_block(sizes.stage) {
            Self::Stage { stage: first / sizes.stage, is_last: last + 1 == sizes.world }
        } else if is_block(sizes.node) {
            Self::Node(first / sizes.node)
        } else {
            Self::Several
        }
    }
}

#[cfg(test)]
mod tests {
    use api::run::PhaseTime;

    use super::*;

    const SIZES: Sizes = Sizes { world: 16, stage: 8, node: 4 };

    fn point(slow_ranks: &[u32]) -> RunPoint {
        let phase =
            PhaseTime { name: "forward-compute".to_owned(), slow_ranks: slow_ranks.to_vec(), ..PhaseTime::default() };
        RunPoint { phases: vec![phase], ..RunPoint::default() }
    }

    fn note(slow_ranks: &[u32]) -> String {
        let points = [point(slow_ranks), point(slow_ranks), point(&[1])];
        SlowRanks::of(&points.iter().collect::<Vec<_>>(), SIZES).unwrap().note()
    }

    #[test]
    fn slow_ranks_are_named_with_their_place() {
        assert!(note(&[5]).starts_with("Rank 5 is at least"), "{}", note(&[5]));
        assert!(note(&[5]).contains("forward-compute. Compare its device"));
        let stage: Vec<u32> = (8..16).collect();
        assert!(note(&stage).starts_with("All ranks of the pipeline stage 1 (ranks 8 to 15) are"), "{}", note(&stage));
        assert!(note(&[4, 5, 6, 7]).starts_with("All ranks of the node 1 (ranks 4 to 7) are"));
        assert!(note(&[3, 9]).starts_with("2 ranks (3, 9) are"));
        assert_eq!(SlowRanks::of(&[&point(&[]), &point(&[2])], SIZES), None);
        // Fast ranks wait longer in the reduction of gradients.
        let mut waits = point(&[0]);
        waits.phases[0].name = "all-grads-sync".to_owned();
        assert_eq!(SlowRanks::of(&[&waits], SIZES), None);
    }

    #[test]
    fn the_last_stage_is_known() {
        let is_last = |ranks: &[u32]| SlowRanks::of(&[&point(ranks)], SIZES).unwrap().are_last_stage();
        assert!(is_last(&(8..16).collect::<Vec<_>>()) && !is_last(&(0..8).collect::<Vec<_>>()) && !is_last(&[15]));
    }
}
