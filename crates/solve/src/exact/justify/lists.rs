//! Initial schedules for the passes: list schedules with fixed rules.

use super::pass::{Listed, Machine};
use planscope_core::host::Cancellation;
use planscope_cost::cost::PipelineCosts;

/// Activations in flight per rank, relative to the ranks from this one to the last: 1 as in 1F1B, and
/// more, which bridges uneven times. The last entry sets no limit.
const DEPTHS: [Option<f64>; 6] = [Some(1.0), Some(1.5), Some(2.0), Some(3.0), Some(4.0), None];

/// Preference of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Backwards, then forwards, each in the entry order.
    Backwards,
    /// Forwards, then backwards, each in the entry order.
    Forwards,
    /// Longest remaining time of the microbatch.
    Remaining,
}

/// Returns the list schedules.
pub(super) fn list_schedules(machine: &Machine, costs: &PipelineCosts, cancellation: &dyn Cancellation) -> Vec<Listed> {
    let remaining = remaining_times(machine, costs);
    // A value above all priorities within a kind of action.
    let step = remaining.iter().copied().max().unwrap_or(0).max(machine.len().cast_signed() as i64) + 1;
    let depths: Vec<Option<Vec<usize>>> = DEPTHS.iter().map(|depth| depth.map(|depth| limits(costs, depth))).collect();
    let mut found = Vec::new();
    for entry in entry_orders(machine, &remaining) {
        let mut place = vec![0; entry.len()];
        for (position, &microbatch) in (0_i64..).zip(&entry) {
            place[microbatch] = position;
        }
        for rule in [Rule::Backwards, Rule::Forwards, Rule::Remaining] {
            let priority: Vec<i64> = (0..machine.len())
                .map(|action| {
                    let (is_forward, place) = (action % 2 == 0, place[machine.microbatch(action)]);
                    match rule {
                        Rule::Backwards if is_forward => -place,
                        Rule::Backwards => step - place,
                        Rule::Forwards if is_forward => step - place,
                        Rule::Forwards => -place,
                        Rule::Remaining => remaining[action],
                    }
                })
                .collect();
            for depth in &depths {
                if cancellation.is_over() {
                    return found;
                }
                found.extend(machine.run(&priority, depth.as_deref()));
            }
        }
    }
    found
}

/// Time of a microbatch from an action to its last backward, without waiting, in ns.
fn remaining_times(machine: &Machine, costs: &PipelineCosts) -> Vec<i64> {
    let mut remaining = vec![0; machine.len()];
    for microbatch in 0..costs.microbatches() {
        let mut time = 0;
        let stages = costs.stages();
        let actions = (0..stages).map(|stage| (stage, 1)).chain((0..stages).rev().map(|stage| (stage, 0)));
        for (stage, parity) in actions {
            let action = 2 * costs.cell(stage, microbatch) + parity;
            time += machine.time(action).cast_signed();
            remaining[action] = time;
        }
    }
    remaining
}

/// Orders in which the microbatches enter: as given, ascending, short microbatches at both ends, and
/// some short ones first, then descending.
fn entry_orders(machine: &Machine, remaining: &[i64]) -> Vec<Vec<usize>> {
    let count = machine.microbatches();
    let stages = machine.len() / 2 / count.max(1);
    let given: Vec<usize> = (0..count).collect();
    let mut ascending = given.clone();
    ascending.sort_by_key(|&microbatch| (remaining[2 * stages * microbatch], microbatch));
    let mut both_ends: Vec<usize> = ascending.iter().copied().step_by(2).collect();
    both_ends.extend(ascending.iter().skip(1).step_by(2).rev());
    let (short, long) = ascending.split_at(machine.ranks().min(count));
    let descending: Vec<usize> = short.iter().chain(long.iter().rev()).copied().collect();
    vec![given, ascending, both_ends, descending]
}

/// Limits on the activations in flight for a depth.
fn limits(costs: &PipelineCosts, depth: f64) -> Vec<usize> {
    let (ranks, chunks) = (costs.ranks(), costs.stages() / costs.ranks());
    (0..ranks).map(|rank| ((ranks * chunks - rank) as f64 * depth).ceil() as usize).collect()
}
