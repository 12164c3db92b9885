//! Synchronization within rank groups.

use planscope_core::action::{Action, ActionKind};
use planscope_core::stage_graph::Flows;
use planscope_core::units::Nanos;

/// Arrival state for joint actions.
#[derive(Debug, Clone, Default)]
pub(super) struct Rendezvous {
    /// Rank group per microbatch; empty if there are no groups.
    gang: Vec<usize>,
    /// Forward and backward per rank group.
    meetings: Vec<Meeting>,
    /// Awaited rendezvous per rank.
    waits: Vec<Option<usize>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Meeting {
    /// Number of required arrivals.
    expected: usize,
    /// Number of arrivals so far.
    come: usize,
    /// Latest arrival time.
    latest: Nanos,
}

impl Rendezvous {
    /// Creates the initial state.
    pub(super) fn new(flows: &Flows) -> Self {
        let gang: Vec<usize> =
            (0..flows.microbatches()).map_while(|microbatch| flows.microbatch_gang(microbatch)).collect();
        let mut meetings = vec![Meeting::default(); 2 * flows.gangs()];
        for (microbatch, &gang) in gang.iter().enumerate() {
            for meeting in &mut meetings[2 * gang..2 * gang + 2] {
                meeting.expected += flows.microbatch_cells(microbatch).len();
            }
        }
        Self { gang, meetings, waits: vec![None; flows.ranks()] }
    }

    /// Registers that a rank with inputs at `input` arrives at `action` at time `there`. Returns
    /// the start time: immediately if there is no rank group, otherwise after all ranks have
    /// arrived. The final arrival adds the blocked ranks to `ready`.
    pub(super) fn meet(
        &mut self,
        rank: usize,
        action: Action,
        input: Nanos,
        there: Nanos,
        ready: &mut Vec<usize>,
    ) -> Option<Nanos> {
        let Some(&gang) = self.gang.get(action.microbatch as usize) else { return Some(input) };
        let number = 2 * gang + usize::from(action.kind != ActionKind::Forward);
        let meeting = &mut self.meetings[number];
        if self.waits[rank] != Some(number) {
            self.waits[rank] = Some(number);
            meeting.come += 1;
            meeting.latest = meeting.latest.max(there);
            if meeting.come == meeting.expected {
                let waiting = self.waits.iter().enumerate().filter(|(_, waits)| **waits == Some(number));
                ready.extend(waiting.map(|(other, _)| other).filter(|&other| other != rank));
            }
        }
        (meeting.come >= meeting.expected).then_some(meeting.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::super::execute;
    use planscope_core::action::{Action, Schedule};
    use planscope_core::stage_graph::{Flows, Gathered};
    use planscope_core::units::Nanos;
    use planscope_cost::cost::{PipelineCosts, UniformTimes};

    /// Three ranks, F = 10 and B = 20 per cell. Item 0 on ranks 0 and 1, item 1 on rank 2, then
    /// item 2 on ranks 1 and 2.
    fn costs(gangs: [u32; 3]) -> PipelineCosts {
        let items =
            [vec![0, 1], vec![2], vec![1, 2]].into_iter().zip(gangs).map(|(ranks, gang)| Gathered { ranks, gang });
        let flows = Flows::together(3, &items.collect::<Vec<_>>()).unwrap();
        let ten = Nanos::new(10);
        let times = UniformTimes { forward: ten, input_grad: ten, weight_grad: ten, communication: Nanos::ZERO };
        let mut costs = PipelineCosts::uniform_over(flows, times);
        // Item 1, the third cell, takes three times as long.
        (costs.forward[2], costs.input_grad[2]) = (Nanos::new(30), Nanos::new(50));
        costs
    }

    fn schedule() -> Schedule {
        let both = |stage, item| [Action::forward(stage, item), Action::backward(stage, item)];
        let orders = vec![both(0, 0).to_vec(), [both(1, 0), both(3, 2)].concat(), [both(2, 1), both(4, 2)].concat()];
        Schedule { stages: 5, microbatches: 3, orders }
    }

    /// One group per item: item 0 ends at 30, item 1 at 30 + 60 = 90. Item 2 starts when both ranks
    /// are free, at 90.
    #[test]
    fn items_start_when_the_last_rank_is_free() {
        let execution = execute(&schedule(), &costs([0, 1, 2])).unwrap();
        let starts: Vec<Vec<u64>> =
            execution.start.iter().map(|rank_starts| rank_starts.iter().map(|at| at.get()).collect()).collect();
        assert_eq!(starts, [vec![0, 10], vec![0, 10, 90, 100], vec![0, 30, 90, 100]]);
        assert_eq!(execution.makespan().get(), 120);
    }

    /// Items 0 and 1 in one group: the backward of item 0 starts at 30, after the forward of item
    /// 1.
    #[test]
    fn gang_items_run_in_step() {
        let execution = execute(&schedule(), &costs([0, 0, 1])).unwrap();
        assert_eq!(execution.start[0].iter().map(|at| at.get()).collect::<Vec<_>>(), [0, 30]);
        assert_eq!(execution.makespan().get(), 120);
    }

    #[test]
    fn a_rank_that_never_comes_is_a_deadlock() {
        let mut schedule = schedule();
        schedule.orders[0].clear();
        let deadlock = execute(&schedule, &costs([0, 1, 2])).unwrap_err();
        let stuck: Vec<usize> = deadlock.waiting.iter().map(|&(rank, ..)| rank).collect();
        assert_eq!(stuck, [1, 2], "{deadlock}");
    }
}
