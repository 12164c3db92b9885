//! Completes a prefix repeatedly and selects the best completion (rollouts in PipeWeaver Alg. 1).

use super::Goal;
use super::space::Space;
use planscope_core::random::Random;
use planscope_core::units::Nanos;
use planscope_pipeline::schedule::dual_queue::{Interleaver, Interleaving};

/// Completions per prefix.
pub(crate) const TRIES: u32 = 10;
/// Key distance between adjacent guide positions, so that random keys fit in between.
const STEP: u64 = 1024;

/// Per-worker state: reusable buffers, and the most recent result.
pub(crate) struct Bench<'a> {
    interleaver: Interleaver<'a>,
    keys: Vec<u64>,
    sequence: Vec<u32>,
    /// Best ranking in the most recent job.
    pub best: Option<(Vec<u32>, Nanos)>,
    /// Rankings interleaved in the most recent job.
    pub rollouts: u32,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(interleaving: &'a Interleaving<'a>) -> Self {
        let interleaver = Interleaver::new(interleaving);
        Self { interleaver, keys: Vec::new(), sequence: Vec::new(), best: None, rollouts: 0 }
    }

    /// Resets the result.
    pub(crate) fn clear(&mut self) {
        self.best = None;
        self.rollouts = 0;
    }

    /// Completes a prefix `tries` times: in the guide's order, after moving some groups, after
    /// perturbing all groups, and in random order.
    pub(crate) fn complete(
        &mut self,
        space: &Space,
        prefix: &[u32],
        guide: &[u32],
        tries: u32,
        goal: Goal,
        random: &mut Random,
    ) {
        for attempt in 0..tries {
            self.draw_keys(space, guide, attempt, random);
            let mut sequence = std::mem::take(&mut self.sequence);
            space.complete(prefix, &self.keys, &mut sequence);
            self.see(space, &sequence, goal);
            self.sequence = sequence;
        }
    }

    /// Interleaves a ranking and updates the incumbent.
    pub(crate) fn see(&mut self, space: &Space, sequence: &[u32], goal: Goal) {
        let end = self.interleaver.end(&space.priorities(sequence));
        self.rollouts += 1;
        if self.best.as_ref().is_none_or(|&(_, best)| goal.prefers(end, best)) {
            self.best = Some((sequence.to_vec(), end));
        }
    }

    fn draw_keys(&mut self, space: &Space, guide: &[u32], attempt: u32, random: &mut Random) {
        let groups = space.len() / 2;
        self.keys.clear();
        if attempt >= 8 {
            self.keys.extend((0..2 * groups).map(|_| random.below(u64::MAX)));
            return;
        }
        self.keys.resize(2 * groups, 0);
        let margin = groups as u64 * STEP;
        for (index, &group) in guide.iter().enumerate() {
            let (half, position) = (index / groups.max(1), index % groups.max(1));
            self.keys[half * groups + group as usize] = margin + position as u64 * STEP;
        }
        match attempt {
            0 => {}
            1..=5 => {
                for _ in 0..=attempt / 2 {
                    let moved = random.below(2 * groups as u64) as usize;
                    self.keys[moved] = margin + random.below(groups as u64) * STEP + STEP / 2;
                }
            }
            _ => {
                let width = STEP as f64 * if attempt == 6 { 1.0 } else { 4.0 };
                for key in &mut self.keys {
                    let shaken = *key as f64 + random.normal() * width;
                    *key = shaken.max(0.0) as u64;
                }
            }
        }
    }
}
