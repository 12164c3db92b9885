//! V-shaped schedules that repeat a pattern. The lifetime of a microbatch in the pattern determines
//! the memory per rank (Qi et al., 2024, "Pipeline Parallelism with Controllable Memory").

use std::collections::VecDeque;

use super::zbv::v_stages;
use super::{Action, ActionKind, Schedule};

/// Pattern period in slots: F, I and W for two chunks.
const PERIOD: usize = 6;
/// Actions placed by the offsets, as (kind, chunk).
const PLACED: [(ActionKind, usize); 4] =
    [(ActionKind::Forward, 0), (ActionKind::Forward, 1), (ActionKind::InputGrad, 1), (ActionKind::InputGrad, 0)];

/// Slots on a rank for microbatch 0: F of chunk 0, F of chunk 1, I of chunk 1, I of chunk 0. Their
/// remainders modulo 6 must differ, so that microbatches never share a slot.
pub(super) type Offsets = [usize; 4];

/// Rule for the order of F and I on a rank. Times are in half slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Policy {
    /// Delay of each placed action relative to its slot in the pattern.
    delays: [usize; 4],
    /// Number of pending actions of the delayed order that a rank considers. 1 is the strict order.
    window: usize,
}

/// The strict order of the pattern first, so that it remains if no other order is faster. The
/// others shorten the start and the end: a rank runs a later action if the input of the next one is
/// missing. A late F of chunk 0 leaves the first microbatches a free way down and up the V. The
/// third policy helps V-Min only.
const POLICIES: [Policy; 3] = [
    Policy { delays: [0; 4], window: 1 },
    Policy { delays: [3, 0, 0, 0], window: 2 },
    Policy { delays: [0, 3, 3, 0], window: 3 },
];

/// Creates a schedule from the offsets per rank.
///
/// Microbatch k is placed 6 k slots after microbatch 0. This determines the order of F and I per
/// rank. In steady state, W uses the two free slots. Where the pattern has unused slots, at the
/// start and the end, actions start earlier: the order is simulated with equal times, and actions
/// run as soon as their inputs are available. W runs if no other action is ready, or if a forward
/// would exceed the pattern's peak memory. Of the orders that the policies give, the one with the
/// earliest end for equal times is used. All of them keep the pattern's peak memory.
pub(super) fn repeated(offsets: &[Offsets], microbatches: usize) -> Schedule {
    let orders = POLICIES.iter().filter_map(|&policy| simulated(offsets, microbatches, policy));
    let (_, orders) = orders.min_by_key(|&(end, _)| end).expect("the strict order never blocks");
    Schedule { stages: 2 * offsets.len(), microbatches, orders }
}

/// Simulates a policy with equal times. Returns the end in slots and the orders, or `None` if all
/// ranks block.
fn simulated(offsets: &[Offsets], microbatches: usize, policy: Policy) -> Option<(usize, Vec<Vec<Action>>)> {
    let ranks = offsets.len();
    let cap = offsets.iter().map(max_activations).max().unwrap_or(0);
    let mut rows: Vec<Row> = offsets
        .iter()
        .enumerate()
        .map(|(rank, offsets)| Row::new(v_stages(rank, ranks), offsets, microbatches, policy))
        .collect();
    let mut ready = Ready::new(ranks, microbatches);
    let mut left = 3 * PLACED.len() / 2 * ranks * microbatches;
    let mut now = 1;
    while left > 0 {
        let before = left;
        for row in &mut rows {
            if let Some(action) = row.take(&ready, now, cap) {
                ready.note(action, now + 1);
                left -= 1;
            }
        }
        if left == before {
            return None;
        }
        now += 1;
    }
    Some((now, rows.into_iter().map(|row| row.order).collect()))
}

/// Slots for W of chunk 1 and W of chunk 0: the earliest free slots after the respective I.
fn weight_slots(offsets: &Offsets) -> [usize; 2] {
    let mut taken = [false; PERIOD];
    for offset in offsets {
        taken[offset % PERIOD] = true;
    }
    [offsets[2], offsets[3]].map(|input| {
        let slot = (input + 1..=input + PERIOD).find(|slot| !taken[slot % PERIOD]);
        let slot = slot.expect("four actions leave two of six slots free");
        taken[slot % PERIOD] = true;
        slot
    })
}

/// Maximum number of chunk activations in the repeated pattern. An activation lives from F to the
/// end of W.
fn max_activations(offsets: &Offsets) -> usize {
    let [late, early] = weight_slots(offsets);
    let lives = [(offsets[0], early), (offsets[1], late)];
    // A lifetime of n slots overlaps n / 6 repetitions. The phase determines the rounding.
    let activations = |phase: usize| -> usize {
        let live = |(start, end): (usize, usize)| {
            let age = (phase + PERIOD - start % PERIOD) % PERIOD;
            (end - start + PERIOD - age) / PERIOD
        };
        lives.into_iter().map(live).sum()
    };
    (0..PERIOD).map(activations).max().unwrap_or(0)
}

/// Slot at which an input becomes available, from 1; 0 if pending.
struct Ready {
    stages: usize,
    forward: Vec<usize>,
    input: Vec<usize>,
}

impl Ready {
    fn new(ranks: usize, microbatches: usize) -> Self {
        let stages = 2 * ranks;
        Self { stages, forward: vec![0; stages * microbatches], input: vec![0; stages * microbatches] }
    }

    fn note(&mut self, action: Action, end: usize) {
        let cell = action.microbatch as usize * self.stages + action.stage as usize;
        match action.kind {
            ActionKind::Forward => self.forward[cell] = end,
            ActionKind::InputGrad => self.input[cell] = end,
            ActionKind::Backward | ActionKind::WeightGrad => {}
        }
    }

    /// Returns whether the input of F or I is available.
    fn has_input(&self, action: Action, now: usize) -> bool {
        let stage = action.stage as usize;
        let cell = action.microbatch as usize * self.stages + stage;
        let at = match action.kind {
            ActionKind::Forward if stage == 0 => return true,
            ActionKind::Forward => self.forward[cell - 1],
            _ if stage + 1 == self.stages => self.forward[cell],
            _ => self.input[cell + 1],
        };
        at != 0 && at <= now
    }
}

/// State of a rank.
struct Row {
    order: Vec<Action>,
    /// Remaining F and I in reverse order.
    left: Vec<Action>,
    /// Number of actions at the end of `left` that may run.
    window: usize,
    /// Pending W.
    waiting: VecDeque<Action>,
    in_flight: usize,
}

impl Row {
    fn new(stages: [usize; 2], offsets: &Offsets, microbatches: usize, policy: Policy) -> Self {
        let mut slots = Vec::with_capacity(PLACED.len() * microbatches);
        for microbatch in 0..microbatches {
            for ((&(kind, chunk), offset), delay) in PLACED.iter().zip(offsets).zip(policy.delays) {
                let slot = offset + PERIOD * microbatch;
                slots.push(((2 * slot + delay, slot), Action::new(kind, stages[chunk], microbatch)));
            }
        }
        slots.sort_unstable_by_key(|&(place, _)| std::cmp::Reverse(place));
        let left: Vec<Action> = slots.into_iter().map(|(_, action)| action).collect();
        let order = Vec::with_capacity(left.len() / 2 * 3);
        Self { order, left, window: policy.window, waiting: VecDeque::new(), in_flight: 0 }
    }

    /// Selects the action for slot `now`.
    fn take(&mut self, ready: &Ready, now: usize, cap: usize) -> Option<Action> {
        let action = match self.position(ready, now, cap) {
            Some(position) => self.left.remove(position),
            None => self.waiting.pop_front()?,
        };
        let (stage, microbatch) = (action.stage as usize, action.microbatch as usize);
        match action.kind {
            ActionKind::Forward => self.in_flight += 1,
            ActionKind::InputGrad => self.waiting.push_back(Action::weight_grad(stage, microbatch)),
            ActionKind::Backward | ActionKind::WeightGrad => self.in_flight -= 1,
        }
        self.order.push(action);
        Some(action)
    }

    /// Returns the position in `left` of the first action in the window that can run. A forward
    /// leaves memory for all earlier forwards, so that none of them blocks.
    fn position(&self, ready: &Ready, now: usize, cap: usize) -> Option<usize> {
        let mut stored = self.in_flight;
        let pending = self.left.iter().enumerate().rev().take(self.window);
        for (position, &action) in pending {
            let is_forward = action.kind == ActionKind::Forward;
            if ready.has_input(action, now) && (!is_forward || stored < cap) {
                return Some(position);
            }
            stored += usize::from(is_forward);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets 0, 7, 8, 15 (V-Min, p = 4, rank 0) leave slots 4 and 5: W of chunk 1 at 10, W of
    /// chunk 0 at 17. Chunk 0 lives for 18 slots and chunk 1 for 4, so three activations plus one.
    #[test]
    fn the_free_slots_take_the_weight_gradients() {
        let offsets = [0, 7, 8, 15];
        assert_eq!(weight_slots(&offsets), [10, 17]);
        assert_eq!(max_activations(&offsets), 4);
    }

    /// Closed form of the end for equal times, in slots: 6 m plus the bubble of the strict order.
    /// The chosen order is never behind it and stays within the pattern's peak memory.
    #[test]
    fn no_grid_point_is_behind_the_strict_order() {
        for ranks in 1..13_usize {
            for microbatches in [1, 2, ranks, 2 * ranks - 1, 2 * ranks, 3 * ranks + 1] {
                for pattern in [super::super::v_half::offsets, super::super::v_min::offsets] {
                    let offsets: Vec<Offsets> = (0..ranks).map(|rank| pattern(rank, ranks)).collect();
                    let (strict, _) = simulated(&offsets, microbatches, POLICIES[0]).unwrap();
                    let ends = POLICIES.iter().filter_map(|&policy| simulated(&offsets, microbatches, policy));
                    let end = ends.map(|(end, _)| end).min().unwrap();
                    assert!(end <= strict, "p {ranks} m {microbatches}: {end} > {strict}");
                    let cap = offsets.iter().map(max_activations).max().unwrap();
                    for order in repeated(&offsets, microbatches).orders {
                        let mut stored = 0;
                        let peak = order.iter().map(|action| match action.kind {
                            ActionKind::Forward => {
                                stored += 1;
                                stored
                            }
                            ActionKind::WeightGrad => {
                                stored -= 1;
                                stored
                            }
                            ActionKind::InputGrad | ActionKind::Backward => stored,
                        });
                        assert!(peak.max().unwrap() <= cap);
                    }
                }
            }
        }
    }
}
