//! Improvement of large pipelines by justification (after Li and Willis, 1992; Tormos and Lova,
//! 2001).
//!
//! A pass schedules the pipeline backward in time, in descending order of the current ends, and then
//! forward, in ascending order of the starts of the backward schedule. Both directions use list
//! scheduling: a free rank runs the available action with the highest priority that fits into
//! memory. Backward in time, a pipeline is again a pipeline whose backwards come first. The passes
//! add noise to the order and keep the fastest schedule. They start from several list schedules,
//! because a pass rarely changes the overall shape of a schedule. Passes on the fastest schedule
//! alternate with rounds of tabu search, which moves single actions.

mod lists;
mod pass;
mod tabu;

use super::branch::schedule_end;
use lists::list_schedules;
use pass::{Direction, Listed, Machine};
use planscope_core::action::Schedule;
use planscope_core::host::Cancellation;
use planscope_core::random::Random;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;
use tabu::Tabu;

/// Number of initial schedules for the first passes.
const STARTS: usize = 12;
/// Minimum and maximum number of passes that are shared by the initial schedules. After them, only the
/// fastest schedule is improved.
const SHARED_PASSES: (u64, u64) = (60, 1200);
/// Actions in shared passes, which limits their number for large pipelines.
const SHARED_ACTIONS: u64 = 5_000_000;
/// Passes between two rounds of tabu search.
const ROUND: u64 = 400;
/// Tabu steps that count as one pass; they take about as long.
const STEPS_PER_PASS: u64 = 4;
/// Passes that a round of tabu search counts as, done in parts with a look at the clock.
const TABU_PASSES: u64 = 400;
const TABU_PART: u64 = 4;
/// Amplitudes of the noise, in mean action times.
const NOISE: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];
/// A pass may continue from a schedule that is longer than the best by this ratio.
const ACCEPTED: f64 = 1.002;

/// Limits of the improvement.
pub(super) struct Limits<'a> {
    /// Maximum number of passes.
    pub passes: u64,
    /// The improvement stops at this end or earlier.
    pub target: Nanos,
    /// Stops the improvement between two passes.
    pub cancellation: &'a dyn Cancellation,
}

/// Result of the improvement.
pub(super) struct Justified {
    /// Fastest schedule found, at most as long as the given one.
    pub schedule: Schedule,
    /// Its iteration end.
    pub end: Nanos,
    /// Passes run.
    pub passes: u64,
}

/// A schedule to improve.
#[derive(Debug, Clone)]
struct Lineage {
    best: Listed,
    /// Starts from which the next pass continues.
    current: Vec<u64>,
}

/// Improves a schedule. It is returned unchanged if not every microbatch visits all stages in order.
///
/// The result depends only on the arguments, unless the cancellation stops it.
pub(super) fn justify(
    costs: &PipelineCosts,
    limit: Bytes,
    (end, schedule): (Nanos, Schedule),
    seed: u32,
    limits: &Limits<'_>,
) -> Justified {
    let mut found = Justified { schedule, end, passes: 0 };
    let is_done = |found: &Justified| {
        found.end <= limits.target || found.passes >= limits.passes || limits.cancellation.is_over()
    };
    if !costs.flows.is_cyclic() || is_done(&found) {
        return found;
    }
    let forward = Machine::new(costs, limit, Direction::Forward);
    let backward = Machine::new(costs, limit, Direction::Backward);
    let mut lineages: Vec<Lineage> = Vec::new();
    let offer = |found: &mut Justified, listed: &Listed| {
        if listed.end < found.end.get() {
            let schedule = forward.schedule(listed);
            if let Some(end) = schedule_end(&schedule, costs).filter(|&end| end < found.end) {
                (found.schedule, found.end) = (schedule, end);
            }
        }
    };
    lineages.extend(forward.listed(found.end.get(), &found.schedule, costs).map(Lineage::new));
    for listed in list_schedules(&forward, costs, limits.cancellation) {
        offer(&mut found, &listed);
        lineages.push(Lineage::new(listed));
    }
    lineages.sort_by_key(|lineage| lineage.best.end);
    lineages.dedup_by_key(|lineage| lineage.best.end);
    lineages.truncate(STARTS);
    let mut random = Random::new(seed, 1);
    let mut noise = Noise::new(&forward);
    let mut order = vec![0; forward.len()];
    let mut next_round = (SHARED_ACTIONS / forward.len() as u64).clamp(SHARED_PASSES.0, SHARED_PASSES.1);
    while !is_done(&found) && !lineages.is_empty() {
        if found.passes >= next_round {
            lineages.sort_by_key(|lineage| lineage.best.end);
            lineages.truncate(1);
            if let Some(mut tabu) = Tabu::new(&forward, &lineages[0].best) {
                let last = found.passes + TABU_PASSES;
                while found.passes < last && !is_done(&found) {
                    let passes = TABU_PART.min(limits.passes - found.passes);
                    tabu.run(STEPS_PER_PASS * passes, &mut random);
                    found.passes += passes;
                }
                let listed = tabu.finish();
                offer(&mut found, &listed);
                if listed.end < lineages[0].best.end {
                    lineages[0] = Lineage::new(listed);
                }
            }
            next_round = found.passes + ROUND;
            continue;
        }
        // Each initial schedule first gets a pass without noise.
        let amplitude = match found.passes {
            early if early < STARTS as u64 => 0.0,
            _ => NOISE[random.below(NOISE.len() as u64) as usize],
        };
        let number = (found.passes % lineages.len() as u64) as usize;
        found.passes += 1;
        let lineage = &mut lineages[number];
        noise.draw(&mut random, amplitude);
        for (action, place) in order.iter_mut().enumerate() {
            *place = (lineage.current[action] + forward.time(action)).cast_signed() + noise.of(&forward, action);
        }
        let Some(mirrored) = backward.run(&order, None) else {
            lineage.current.clone_from(&lineage.best.starts);
            continue;
        };
        for (action, place) in order.iter_mut().enumerate() {
            *place = (mirrored.starts[action] + forward.time(action)).cast_signed() - mirrored.end.cast_signed();
        }
        let Some(listed) = forward.run(&order, None) else {
            lineage.current.clone_from(&lineage.best.starts);
            continue;
        };
        offer(&mut found, &listed);
        lineage.continue_from(listed, &mut random);
    }
    found
}

impl Lineage {
    fn new(best: Listed) -> Self {
        Self { current: best.starts.clone(), best }
    }

    /// Continues from the new schedule if it is the fastest, sometimes if it is only slightly longer,
    /// and sometimes from the fastest.
    fn continue_from(&mut self, listed: Listed, random: &mut Random) {
        if listed.end < self.best.end {
            *self = Self::new(listed);
        } else if listed.end as f64 <= self.best.end as f64 * ACCEPTED && random.below(2) == 0 {
            self.current = listed.starts;
        } else if random.below(2) == 0 {
            self.current.clone_from(&self.best.starts);
        }
    }
}

/// Random shifts of the order in a pass, in ns: independent per action or equal for all actions of a
/// microbatch, on all ranks or on a third of them.
struct Noise {
    mean: f64,
    actions: Vec<i64>,
    microbatches: Vec<i64>,
    is_active: Vec<bool>,
    by_microbatch: bool,
}

impl Noise {
    fn new(machine: &Machine) -> Self {
        let total: u64 = (0..machine.len()).map(|action| machine.time(action)).sum();
        Self {
            mean: total as f64 / machine.len().max(1) as f64,
            actions: vec![0; machine.len()],
            microbatches: vec![0; machine.microbatches()],
            is_active: vec![true; machine.ranks()],
            by_microbatch: false,
        }
    }

    /// Draws the shifts for a pass.
    fn draw(&mut self, random: &mut Random, amplitude: f64) {
        self.by_microbatch = random.below(2) == 0;
        let on_all_ranks = random.below(2) == 0;
        for is_active in &mut self.is_active {
            *is_active = on_all_ranks || random.below(3) == 0;
        }
        let shifts = if self.by_microbatch { &mut self.microbatches } else { &mut self.actions };
        for shift in shifts {
            *shift = ((2.0 * random.unit() - 1.0) * amplitude * self.mean) as i64;
        }
    }

    fn of(&self, machine: &Machine, action: usize) -> i64 {
        match (self.is_active[machine.rank(action)], self.by_microbatch) {
            (false, _) => 0,
            (true, true) => self.microbatches[machine.microbatch(action)],
            (true, false) => self.actions[action],
        }
    }
}

#[cfg(test)]
mod tests;
