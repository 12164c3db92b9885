//! Incremental simulation: checkpoint, restore, and changes to a rank's order without a restart, as
//! in SEMU (PipeWeaver Sec. 4.2).
//!
//! Search workers evaluate schedules that differ in a small number of positions. Actions before the
//! first change keep their result. Only later entries of the run log are undone and repeated.

use super::arrivals::{Arrivals, Times};
use super::execution::Deadlock;
use planscope_core::action::{Action, Schedule};
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;

/// Position in the run log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint(usize);

/// A completed action and the data required to undo it.
#[derive(Debug, Clone, Copy)]
struct Ran {
    rank: u32,
    free_before: Nanos,
    stream_before: Nanos,
}

/// Incremental simulation of a schedule, times only. Uses the same rules as [`super::execute`].
#[derive(Debug, Clone)]
pub struct Simulation<'a> {
    arrivals: Arrivals<'a>,
    orders: Vec<Vec<Action>>,
    next: Vec<usize>,
    rank_free: Vec<Nanos>,
    stream_free: Vec<Nanos>,
    log: Vec<Ran>,
    /// Log positions of actions, per rank.
    places: Vec<Vec<u32>>,
    ready: Vec<usize>,
}

impl<'a> Simulation<'a> {
    /// Creates a simulation in the initial state.
    pub fn new(schedule: &Schedule, costs: &'a PipelineCosts) -> Self {
        let ranks = schedule.ranks();
        Self {
            arrivals: Arrivals::none(costs),
            orders: schedule.orders.clone(),
            next: vec![0; ranks],
            rank_free: vec![Nanos::ZERO; ranks],
            stream_free: vec![Nanos::ZERO; ranks],
            log: Vec::with_capacity(schedule.len()),
            places: schedule.orders.iter().map(|order| Vec::with_capacity(order.len())).collect(),
            ready: Vec::new(),
        }
    }

    /// Runs all actions that can run.
    ///
    /// # Errors
    /// If some actions cannot run. The error lists the blocked ranks and actions. Completed actions
    /// are kept.
    pub fn run(&mut self) -> Result<(), Deadlock> {
        self.ready.clear();
        self.ready.extend((0..self.orders.len()).rev());
        while let Some(rank) = self.ready.pop() {
            while let Some(input) = self.arrivals.head_time(&self.orders[rank][self.next[rank]..]) {
                let before = self.next[rank];
                self.step(rank, input);
                for index in before..self.next[rank] {
                    let ready = &mut self.ready;
                    self.arrivals.fed_ranks(self.orders[rank][index], |fed| {
                        if fed != rank {
                            ready.push(fed);
                        }
                    });
                }
            }
        }
        let stuck = (0..self.orders.len()).filter(|&rank| self.next[rank] < self.orders[rank].len());
        let waiting: Vec<_> = stuck.map(|rank| (rank, self.next[rank], self.orders[rank][self.next[rank]])).collect();
        if waiting.is_empty() { Ok(()) } else { Err(Deadlock { waiting }) }
    }

    /// Returns the maximum end time over completed actions.
    pub fn makespan(&self) -> Nanos {
        self.rank_free.iter().copied().max().unwrap_or(Nanos::ZERO)
    }

    /// Returns the end time of a rank's last completed action.
    pub fn rank_end(&self, rank: usize) -> Nanos {
        self.rank_free[rank]
    }

    /// Returns the number of completed actions.
    pub const fn actions(&self) -> usize {
        self.log.len()
    }

    /// Returns the current orders.
    pub fn orders(&self) -> &[Vec<Action>] {
        &self.orders
    }

    /// Returns a checkpoint at the current position.
    pub const fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.log.len())
    }

    /// Undoes all actions after a checkpoint. If a later change undid actions before the
    /// checkpoint, only the log up to that change is equal to the log at the checkpoint.
    pub fn restore(&mut self, checkpoint: Checkpoint) {
        while self.log.len() > checkpoint.0 {
            self.undo();
        }
    }

    /// Replaces a rank's order from position `from` on and undoes all actions since then. Returns
    /// the number of undone actions. Call [`run`](Self::run) to run the new order.
    pub fn change(&mut self, rank: usize, from: usize, order: &[Action]) -> usize {
        debug_assert!(from <= self.orders[rank].len(), "a change begins within the order");
        let before = self.log.len();
        // Overlapped actions can only be undone together.
        let undone = if from > 0 && self.orders[rank][from - 1].with_next { from - 1 } else { from };
        if let Some(&position) = self.places[rank].get(undone) {
            self.restore(Checkpoint(position as usize));
        }
        self.orders[rank].truncate(from);
        self.orders[rank].extend_from_slice(order);
        before - self.log.len()
    }

    fn undo(&mut self) {
        let Some(ran) = self.log.pop() else { return };
        let rank = ran.rank as usize;
        self.places[rank].pop();
        self.next[rank] -= 1;
        let action = self.orders[rank][self.next[rank]];
        self.arrivals.forget(action);
        self.rank_free[rank] = ran.free_before;
        self.stream_free[rank] = ran.stream_before;
    }

    /// Runs one action on a rank, or two if they are overlapped.
    fn step(&mut self, rank: usize, input: Nanos) {
        let (free, stream) = (self.rank_free[rank], self.stream_free[rank]);
        let next = self.next[rank];
        let action = self.orders[rank][next];
        if action.with_next && next + 1 < self.orders[rank].len() {
            let second = self.orders[rank][next + 1];
            let [a, b] = self.arrivals.run_overlapped(action, second, input, free, stream);
            self.note(rank, a);
            self.note(rank, b);
        } else {
            let times = self.arrivals.run(action, input, free, stream);
            self.note(rank, times);
        }
    }

    fn note(&mut self, rank: usize, times: Times) {
        self.places[rank].push(self.log.len() as u32);
        self.log.push(Ran {
            rank: rank as u32,
            free_before: self.rank_free[rank],
            stream_before: self.stream_free[rank],
        });
        self.rank_free[rank] = times.end;
        self.stream_free[rank] = times.stream_free;
        self.next[rank] += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Grouping, gpipe, interleaved, one_f_one_b};
    use crate::simulate::execute;
    use planscope_core::random::Random;
    use planscope_cost::cost::UniformTimes;

    fn costs(ranks: usize, chunks: usize, microbatches: usize, seed: u32) -> PipelineCosts {
        let unit = Nanos::new(1000);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: Nanos::new(70) };
        let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times);
        let mut random = Random::new(seed, 0);
        for time in costs.forward.iter_mut().chain(&mut costs.input_grad).chain(&mut costs.weight_grad) {
            *time = Nanos::new(100 + random.below(5000));
        }
        costs
    }

    proptest! {
        /// Swaps two microbatches on all ranks from a position on. The end time is equal to a
        /// simulation from the start.
        #[test]
        fn resumed_simulation_equals_a_fresh_simulation(
            ranks in 1_usize..6, chunks in 1_usize..3, microbatches in 2_usize..12, seed in 0_u32..1000,
            a in 0_u32..12, b in 0_u32..12,
        ) {
            let (a, b) = (a % microbatches as u32, b % microbatches as u32);
            let costs = costs(ranks, chunks, microbatches, seed);
            let schedule = match (chunks, seed % 2) {
                (1, 0) => gpipe(ranks, microbatches),
                (1, _) => one_f_one_b(ranks, microbatches),
                _ => interleaved(ranks, chunks, microbatches, Grouping::Balanced),
            };
            let mut simulation = Simulation::new(&schedule, &costs);
            simulation.run().unwrap();
            prop_assert_eq!(simulation.makespan(), execute(&schedule, &costs).unwrap().makespan());
            let exchange = |action: &Action| {
                let microbatch = if action.microbatch == a { b } else if action.microbatch == b { a } else { action.microbatch };
                Action { microbatch, ..*action }
            };
            let mut changed = schedule.clone();
            for rank in 0..ranks {
                changed.orders[rank] = schedule.orders[rank].iter().map(exchange).collect();
                let first = schedule.orders[rank].iter().zip(&changed.orders[rank]).position(|(old, new)| old != new);
                let from = first.unwrap_or(schedule.orders[rank].len());
                simulation.change(rank, from, &changed.orders[rank][from..]);
            }
            simulation.run().unwrap();
            prop_assert_eq!(simulation.makespan(), execute(&changed, &costs).unwrap().makespan());
            prop_assert_eq!(simulation.actions(), schedule.len());
        }
    }

    #[test]
    fn a_checkpoint_is_come_back_to() {
        let costs = costs(4, 1, 8, 1);
        let schedule = one_f_one_b(4, 8);
        let mut simulation = Simulation::new(&schedule, &costs);
        let start = simulation.checkpoint();
        simulation.run().unwrap();
        let (end, done) = (simulation.makespan(), simulation.checkpoint());
        simulation.restore(start);
        assert_eq!((simulation.makespan(), simulation.actions()), (Nanos::ZERO, 0));
        simulation.run().unwrap();
        assert_eq!((simulation.makespan(), simulation.checkpoint()), (end, done));
    }

    #[test]
    fn a_change_near_the_end_undoes_little() {
        let costs = costs(8, 1, 64, 3);
        let schedule = one_f_one_b(8, 64);
        let mut simulation = Simulation::new(&schedule, &costs);
        simulation.run().unwrap();
        let last = schedule.orders[7].len() - 2;
        let tail: Vec<Action> = schedule.orders[7][last..].to_vec();
        let undone = simulation.change(7, last, &tail);
        assert!(undone < schedule.len() / 10, "{undone} of {}", schedule.len());
    }
}
