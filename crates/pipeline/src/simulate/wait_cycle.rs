//! Cause of a deadlock: a dependency cycle between actions.

use super::Deadlock;
use planscope_core::action::{Action, ActionKind, Schedule};
use planscope_core::stage_graph::Flows;

/// An action with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Rank.
    pub rank: usize,
    /// Position in the rank's order, from 0.
    pub index: usize,
    /// Action.
    pub action: Action,
}

/// The blocked action on a rank, and the action that it requires, which is at or after the blocked
/// action of another or the same rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Action that cannot start.
    pub waiting: Placed,
    /// Action that must run first.
    pub needs: Placed,
}

/// Returns the dependency cycle of a deadlock. An entry requires an action on the rank of the
/// following entry; the last entry requires an action on the first rank. Empty if a required action
/// does not exist.
pub fn wait_cycle(schedule: &Schedule, flows: &Flows, deadlock: &Deadlock) -> Vec<Wait> {
    let mut next: Vec<usize> = schedule.orders.iter().map(Vec::len).collect();
    for &(rank, index, _) in &deadlock.waiting {
        next[rank] = index;
    }
    let places = Places::from_schedule(schedule, flows);
    let wait = |rank: usize| {
        let order = &schedule.orders[rank];
        let current = next[rank];
        let heads =
            if order[current].with_next { current..(current + 2).min(order.len()) } else { current..current + 1 };
        heads.into_iter().find_map(|position| {
            let waiting = Placed { rank, index: position, action: order[position] };
            let has_run = |needs: &Placed| needs.index < next[needs.rank];
            places
                .inputs(waiting.action, flows)
                .into_iter()
                .find(|needs| !has_run(needs))
                .map(|needs| Wait { waiting, needs })
        })
    };
    let Some(&(mut rank, _, _)) = deadlock.waiting.first() else { return Vec::new() };
    let mut chain: Vec<Wait> = Vec::new();
    loop {
        if let Some(start) = chain.iter().position(|wait| wait.waiting.rank == rank) {
            return chain.split_off(start);
        }
        let Some(wait) = wait(rank) else { return Vec::new() };
        chain.push(wait);
        rank = wait.needs.rank;
    }
}

/// Positions per cell: forward, and backward or input gradient.
struct Places {
    forward: Vec<Option<Placed>>,
    gradient: Vec<Option<Placed>>,
}

impl Places {
    fn from_schedule(schedule: &Schedule, flows: &Flows) -> Self {
        let mut places = Self { forward: vec![None; flows.cells()], gradient: vec![None; flows.cells()] };
        for (rank, order) in schedule.orders.iter().enumerate() {
            for (index, &action) in order.iter().enumerate() {
                let cell = flows.cell(action.stage as usize, action.microbatch as usize);
                match action.kind {
                    ActionKind::Forward => places.forward[cell] = Some(Placed { rank, index, action }),
                    ActionKind::Backward | ActionKind::InputGrad => {
                        places.gradient[cell] = Some(Placed { rank, index, action });
                    }
                    ActionKind::WeightGrad => {}
                }
            }
        }
        places
    }

    /// Returns the actions that an action depends on.
    fn inputs(&self, action: Action, flows: &Flows) -> Vec<Placed> {
        let microbatch = action.microbatch as usize;
        let cell = flows.cell(action.stage as usize, microbatch);
        let cells = flows.microbatch_cells(microbatch);
        let mut found = Vec::new();
        match action.kind {
            ActionKind::Forward if cell > cells.start => found.extend(self.forward[cell - 1]),
            ActionKind::Forward => {
                let lasts =
                    flows.inputs(microbatch).iter().map(|&input| flows.microbatch_cells(input as usize).end - 1);
                found.extend(lasts.filter_map(|last| self.forward[last]));
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                found.extend(self.forward[cell]);
                if cell + 1 < cells.end {
                    found.extend(self.gradient[cell + 1]);
                } else {
                    let firsts =
                        flows.outputs(microbatch).iter().map(|&output| flows.microbatch_cells(output as usize).start);
                    found.extend(firsts.filter_map(|first| self.gradient[first]));
                }
            }
            ActionKind::WeightGrad => found.extend(self.gradient[cell]),
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Grouping, interleaved, one_f_one_b};
    use crate::simulate::execute;
    use planscope_core::units::Nanos;
    use planscope_cost::cost::{PipelineCosts, UniformTimes};

    fn circle(schedule: &Schedule, chunks: usize) -> Vec<Wait> {
        let unit = Nanos::new(1);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: unit };
        let costs = PipelineCosts::uniform(schedule.ranks(), chunks, schedule.microbatches, times);
        let deadlock = execute(schedule, &costs).unwrap_err();
        wait_cycle(schedule, &costs.flows, &deadlock)
    }

    /// Rank 0 runs forward 1 after backward 0. Rank 1 runs no backward before both forwards.
    #[test]
    fn two_ranks_that_wait_for_each_other_are_the_circle() {
        let mut schedule = one_f_one_b(2, 2);
        schedule.orders[0].swap(1, 2);
        schedule.orders[1].swap(1, 2);
        let waits = circle(&schedule, 1);
        let links: Vec<String> =
            waits.iter().map(|wait| format!("{}>{}", wait.waiting.action, wait.needs.action)).collect();
        assert_eq!(links, ["0B0>1B0", "1F1>0F1"]);
        assert_eq!((waits[0].needs.rank, waits[0].needs.index), (1, 2));
    }

    #[test]
    fn action_before_its_input_waits_for_its_rank() {
        let mut schedule = one_f_one_b(2, 1);
        schedule.orders[1].reverse();
        let waits = circle(&schedule, 1);
        assert_eq!(waits.len(), 1);
        assert_eq!((waits[0].waiting.action, waits[0].needs.action), (Action::backward(1, 0), Action::forward(1, 0)));
    }

    #[test]
    fn every_circle_closes() {
        let schedule = interleaved(4, 2, 8, Grouping::Fixed(1));
        let waits = circle(&schedule, 2);
        for (index, wait) in waits.iter().enumerate() {
            let next = waits[(index + 1) % waits.len()];
            assert!(wait.needs.rank == next.waiting.rank && wait.needs.index > next.waiting.index, "{waits:?}");
        }
        assert!(waits.len() > 1);
    }
}
