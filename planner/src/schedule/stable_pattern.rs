//! V-shaped schedules that repeat one pattern: the memory of a rank follows from how long the pattern holds a
//! microbatch (Qi et al., 2024, "Pipeline Parallelism with Controllable Memory").

use std::collections::VecDeque;

use super::zbv::v_stages;
use super::{Action, ActionKind, Schedule};

/// Slots after which the pattern repeats: F, I and W of two chunks.
const PERIOD: usize = 6;
/// Of the four actions that the offsets place: kind and chunk.
const PLACED: [(ActionKind, usize); 4] =
    [(ActionKind::Forward, 0), (ActionKind::Forward, 1), (ActionKind::InputGrad, 1), (ActionKind::InputGrad, 0)];

/// Slots of F of chunk 0, F of chunk 1, I of chunk 1 and I of chunk 0 of microbatch 0 on one rank; no two leave the same
/// remainder by six, so that no two microbatches meet in a slot.
pub(super) type Offsets = [usize; 4];

/// Builds a schedule from the offsets of every rank.
///
/// Microbatch k follows microbatch 0 by 6 k slots; that is the order of F and I on each rank, and in steady state the two
/// free slots take W. Where the pattern leaves slots free, at both ends, nothing waits for them: the order is run with
/// all times equal, each action as soon as its input is there, W whenever nothing else is ready, or when a forward
/// would not fit what the repeated pattern holds at its fullest.
pub(super) fn repeated(offsets: &[Offsets], microbatches: usize) -> Schedule {
    let ranks = offsets.len();
    let cap = offsets.iter().map(held_at_most).max().unwrap_or(0);
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

/// Slots of the two W, of chunk 1 and of chunk 0: the first free ones behind their I.
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

/// Most activations of one chunk that the repeated pattern holds, each from its F to the end of its W.
fn held_at_most(offsets: &Offsets) -> usize {
    let [late, early] = weight_slots(offsets);
    let lives = [(offsets[0], early), (offsets[1], late)];
    // A life of n slots is that of a microbatch in n / 6 repetitions at once, one more or less by the phase.
    let held = |phase: usize| -> usize {
        let live = |(start, end): (usize, usize)| {
            let age = (phase + PERIOD - start % PERIOD) % PERIOD;
            (end - start + PERIOD - age) / PERIOD
        };
        lives.into_iter().map(live).sum()
    };
    (0..PERIOD).map(held).max().unwrap_or(0)
}

/// When inputs are there, in slots from 1; 0 is never.
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

    /// Whether the input of a forward or an input gradient is there.
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

/// One rank: what it has run, and what is left.
struct Row {
    order: Vec<Action>,
    /// F and I left, the next one last.
    left: Vec<Action>,
    /// W of the I that have run.
    waiting: VecDeque<Action>,
    held: usize,
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
        Self { order: Vec::with_capacity(left.len() / 2 * 3), left, waiting: VecDeque::new(), held: 0 }
    }

    /// What the rank runs in a slot.
    fn take(&mut self, ready: &Ready, now: usize, cap: usize) -> Option<Action> {
        let fits = |action: &Action| action.kind != ActionKind::Forward || self.held < cap;
        let next = self.left.last().copied().filter(|action| ready.has_input(*action, now) && fits(action));
        let action = if next.is_some() { self.left.pop() } else { self.waiting.pop_front() }?;
        let (stage, microbatch) = (action.stage as usize, action.microbatch as usize);
        match action.kind {
            ActionKind::Forward => self.held += 1,
            ActionKind::InputGrad => self.waiting.push_back(Action::weight_grad(stage, microbatch)),
            ActionKind::Backward | ActionKind::WeightGrad => self.held -= 1,
        }
        self.order.push(action);
        Some(action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets 0, 7, 8, 15 (V-Min, p = 4, rank 0) leave the slots 4 and 5: W of chunk 1 at 10, of chunk 0 at 17. Chunk 0
    /// lives 18 slots, chunk 1 lives 4: three microbatches and one at once.
    #[test]
    fn the_free_slots_take_the_weight_gradients() {
        let offsets = [0, 7, 8, 15];
        assert_eq!(weight_slots(&offsets), [10, 17]);
        assert_eq!(held_at_most(&offsets), 4);
    }
}
