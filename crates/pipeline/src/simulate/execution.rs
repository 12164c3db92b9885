//! Simulated start and end times for all actions in a schedule.

use super::arrivals::{Arrivals, Times};
use super::rendezvous::Rendezvous;
use planscope_core::action::{Action, Schedule};
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;

/// Cause of an action's start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The action starts at time zero.
    Begin,
    /// The previous action on the rank.
    Rank,
    /// The input, produced on this or another rank.
    Input,
}

/// Times per action, indexed by rank and position in the rank's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Start time.
    pub start: Vec<Vec<Nanos>>,
    /// End time.
    pub end: Vec<Vec<Nanos>>,
    /// Cause of the start time.
    pub bound_by: Vec<Vec<Start>>,
    /// Send start. Without a send, the time when the result is available.
    pub send_start: Vec<Vec<Nanos>>,
}

impl Execution {
    /// Returns the end time of a rank.
    pub fn rank_end(&self, rank: usize) -> Nanos {
        self.end[rank].last().copied().unwrap_or(Nanos::ZERO)
    }

    /// Returns the maximum end time over all ranks.
    pub fn makespan(&self) -> Nanos {
        (0..self.end.len()).map(|rank| self.rank_end(rank)).max().unwrap_or(Nanos::ZERO)
    }
}

/// Cyclic wait between ranks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("deadlock: {}", describe(.waiting))]
pub struct Deadlock {
    /// Blocked ranks: rank, position in the order, action.
    pub waiting: Vec<(usize, usize, Action)>,
}

fn describe(waiting: &[(usize, usize, Action)]) -> String {
    let cells = waiting.iter().map(|(rank, index, action)| format!("rank {rank} waits at action {index}, {action}"));
    cells.collect::<Vec<_>>().join("; ")
}

/// Simulates a schedule.
///
/// # Errors
/// If no rank can continue. The error lists the blocked ranks and actions.
pub fn execute(schedule: &Schedule, costs: &PipelineCosts) -> Result<Execution, Deadlock> {
    Run::new(schedule, costs).finish()
}

struct Run<'a> {
    schedule: &'a Schedule,
    arrivals: Arrivals<'a>,
    next: Vec<usize>,
    rank_free: Vec<Nanos>,
    stream_free: Vec<Nanos>,
    rendezvous: Rendezvous,
    execution: Execution,
}

impl<'a> Run<'a> {
    fn new(schedule: &'a Schedule, costs: &'a PipelineCosts) -> Self {
        let ranks = schedule.ranks();
        let column = || schedule.orders.iter().map(|order| Vec::with_capacity(order.len())).collect::<Vec<_>>();
        let bound_by = schedule.orders.iter().map(|order| Vec::with_capacity(order.len())).collect();
        Self {
            schedule,
            arrivals: Arrivals::none(costs),
            next: vec![0; ranks],
            rank_free: vec![Nanos::ZERO; ranks],
            stream_free: vec![Nanos::ZERO; ranks],
            rendezvous: Rendezvous::new(&costs.flows),
            execution: Execution { start: column(), end: column(), bound_by, send_start: column() },
        }
    }

    fn finish(mut self) -> Result<Execution, Deadlock> {
        let mut ready: Vec<usize> = (0..self.schedule.ranks()).rev().collect();
        while let Some(rank) = ready.pop() {
            loop {
                let order = &self.schedule.orders[rank][self.next[rank]..];
                let Some(input) = self.arrivals.head_time(order) else { break };
                let there = input.max(self.rank_free[rank]);
                let Some(input) = self.rendezvous.meet(rank, order[0], input, there, &mut ready) else { break };
                let ran = self.run(rank, order, input);
                for &action in ran {
                    self.arrivals.fed_ranks(action, |fed| {
                        if fed != rank {
                            ready.push(fed);
                        }
                    });
                }
            }
        }
        let stuck = |rank: &usize| self.next[*rank] < self.schedule.orders[*rank].len();
        let waiting: Vec<_> = (0..self.schedule.ranks())
            .filter(stuck)
            .map(|rank| (rank, self.next[rank], self.schedule.orders[rank][self.next[rank]]))
            .collect();
        if waiting.is_empty() { Ok(self.execution) } else { Err(Deadlock { waiting }) }
    }

    /// Runs one action on a rank, or two if they are overlapped. Returns the actions.
    fn run(&mut self, rank: usize, order: &'a [Action], input: Nanos) -> &'a [Action] {
        let free = self.rank_free[rank];
        let bound_by = match (input > free, self.next[rank]) {
            (true, _) => Start::Input,
            (false, 0) => Start::Begin,
            (false, _) => Start::Rank,
        };
        let stream = self.stream_free[rank];
        match order {
            [first, second, ..] if first.with_next => {
                let [a, b] = self.arrivals.run_overlapped(*first, *second, input, free, stream);
                self.note(rank, a, bound_by);
                self.note(rank, b, Start::Rank);
                &order[..2]
            }
            _ => {
                let times = self.arrivals.run(order[0], input, free, stream);
                self.note(rank, times, bound_by);
                &order[..1]
            }
        }
    }

    fn note(&mut self, rank: usize, times: Times, bound_by: Start) {
        self.rank_free[rank] = times.end;
        self.stream_free[rank] = times.stream_free;
        self.next[rank] += 1;
        self.execution.start[rank].push(times.start);
        self.execution.end[rank].push(times.end);
        self.execution.bound_by[rank].push(bound_by);
        self.execution.send_start[rank].push(times.send_start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Grouping, gpipe, interleaved, one_f_one_b};
    use planscope_cost::cost::UniformTimes;

    fn uniform(ranks: usize, chunks: usize, microbatches: usize) -> PipelineCosts {
        let times = UniformTimes {
            forward: Nanos::new(100),
            input_grad: Nanos::new(100),
            weight_grad: Nanos::new(100),
            communication: Nanos::ZERO,
        };
        PipelineCosts::uniform(ranks, chunks, microbatches, times)
    }

    /// (m + p - 1)(F + B) for both schedules, with F = 100 and B = 200.
    #[test]
    fn uniform_gpipe_and_1f1b_take_the_closed_form() {
        for (ranks, microbatches) in [(1, 1), (1, 7), (4, 4), (4, 12), (8, 64), (8, 3)] {
            let expected = Nanos::new(300 * (microbatches + ranks - 1) as u64);
            let costs = uniform(ranks, 1, microbatches);
            assert_eq!(execute(&gpipe(ranks, microbatches), &costs).unwrap().makespan(), expected);
            assert_eq!(execute(&one_f_one_b(ranks, microbatches), &costs).unwrap().makespan(), expected);
        }
    }

    /// m v (F + B) work per rank, with F and B per chunk, and a bubble of (p - 1)(F + B).
    #[test]
    fn the_uniform_interleaved_bubble_shrinks_with_the_chunks() {
        for (ranks, chunks, microbatches) in [(4, 2, 8), (4, 3, 16), (2, 4, 6), (8, 2, 64)] {
            let schedule = interleaved(ranks, chunks, microbatches, Grouping::Balanced);
            let makespan = execute(&schedule, &uniform(ranks, chunks, microbatches)).unwrap().makespan();
            assert_eq!(makespan, Nanos::new(300 * (microbatches * chunks + ranks - 1) as u64));
        }
    }

    #[test]
    fn communication_delays_the_first_microbatch_once_per_hop() {
        let mut costs = uniform(3, 1, 1);
        costs.send_forward[..2].fill(Nanos::new(7));
        costs.send_backward[1..].fill(Nanos::new(9));
        assert_eq!(execute(&one_f_one_b(3, 1), &costs).unwrap().makespan(), Nanos::new(900 + 2 * 7 + 2 * 9));
    }

    #[test]
    fn a_deadlock_names_every_stuck_rank() {
        let mut schedule = one_f_one_b(2, 2);
        schedule.orders[1].reverse();
        let deadlock = execute(&schedule, &uniform(2, 1, 2)).unwrap_err();
        assert_eq!(deadlock.waiting[1], (1, 0, Action::backward(1, 1)));
        assert!(deadlock.to_string().contains("rank 1 waits at action 0, 1B1"), "{deadlock}");
    }
}
