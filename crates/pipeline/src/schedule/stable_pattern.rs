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

/// Creates a schedule from the offsets per rank.
///
/// Microbatch k is placed 6 k slots after microbatch 0. This determines the order of F and I per
/// rank. In steady state, W uses the two free slots. Where the pattern has unused slots, at the
/// start and the end, actions start earlier: the order is simulated with equal times, and actions
/// run as soon as their inputs are available. W runs if no other action is ready, or if a forward
/// would exceed the pattern's peak memory.
pub(super) fn repeated(offsets: &[Offsets], microbatches: usize) -> Schedule {
    let ranks = offsets.len();
    let cap = offsets.iter().map(max_activations).max().unwrap_or(0);
    let mut rows: Vec<Row> =
        offsets.iter().enumerate().map(|(rank, offsets)| Row::new(rank, ranks, offsets, microbatches)).collect();
    let mut ready = Ready::new(ranks, microbatches);
    let mut left = 3 * PLACED.len() / 2 * ranks * microbatches;
    let mut now = 1;
    while left > 0 {
        for row in &mut rows {
            if let Some(action) = row.take(&ready, now, cap) {
                ready.note(action, now + 1);
                left -= 1;
            }
        }
        now += 1;
    }
    Schedule { stages: 2 * ranks, microbatches, orders: rows.into_iter().map(|row| row.order).collect() }
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
    /// Pending W.
    waiting: VecDeque<Action>,
    in_flight: usize,
}

impl Row {
    fn new(rank: usize, ranks: usize, offsets: &Offsets, microbatches: usize) -> Self {
        let stages = v_stages(rank, ranks);
        let mut slots = Vec::with_capacity(PLACED.len() * microbatches);
        for microbatch in 0..microbatches {
            for (&(kind, chunk), offset) in PLACED.iter().zip(offsets) {
                slots.push((offset + PERIOD * microbatch, Action::new(kind, stages[chunk], microbatch)));
            }
        }
        slots.sort_unstable_by_key(|&(slot, _)| std::cmp::Reverse(slot));
        let left: Vec<Action> = slots.into_iter().map(|(_, action)| action).collect();
        Self { order: Vec::with_capacity(left.len() / 2 * 3), left, waiting: VecDeque::new(), in_flight: 0 }
    }

    /// Selects the action for slot `now`.
    fn take(&mut self, ready: &Ready, now: usize, cap: usize) -> Option<Action> {
        let fits = |action: &Action| action.kind != ActionKind::Forward || self.in_flight < cap;
        let next = self.left.last().copied().filter(|action| ready.has_input(*action, now) && fits(action));
        let action = if next.is_some() { self.left.pop() } else { self.waiting.pop_front() }?;
        let (stage, microbatch) = (action.stage as usize, action.microbatch as usize);
        match action.kind {
            ActionKind::Forward => self.in_flight += 1,
            ActionKind::InputGrad => self.waiting.push_back(Action::weight_grad(stage, microbatch)),
            ActionKind::Backward | ActionKind::WeightGrad => self.in_flight -= 1,
        }
        self.order.push(action);
        Some(action)
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
}
