//! 1F1B over pipelines of several modules. Each stage has a limit on waves in flight.
//!
//! A *wave* consists of a microbatch per backbone pipeline and the related sub-microbatches in all
//! modules. If the longest path from a stage to the end has r stages, including this stage, the
//! limit for the stage is r waves in flight. The warm-up therefore has r - 1 forwards (multi-module
//! 1F1B). Subject to this limit, a rank runs the action with the earliest possible start. Ties are
//! resolved in favor of backwards, then earlier waves.
//!
//! If modules share ranks, *phases* can order their work: a rank starts the actions of a phase
//! after it has completed all actions in earlier phases. For example, encoders run all forwards for
//! some waves, then the backbone runs its pipeline, then the encoders run their backwards.
//!
//! The order results from a simulated run, so it is free of deadlocks: some action in the earliest
//! unfinished wave can always start, because all limits are positive.

mod queue;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use queue::{Order, Queue, Race, Waiting};

use super::{Action, Schedule};
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;

/// Order constraints for an item (a microbatch or sub-microbatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Wave index.
    pub wave: u32,
    /// Phases of the forward and the backward.
    pub phases: [u32; 2],
}

/// Computes the orders of all ranks with a simulated run.
///
/// `turns[i]` contains the constraints for item `i`. `depths[s]` is the maximum number of waves in
/// flight on stage `s` (0 is treated as 1).
pub fn multi_module(costs: &PipelineCosts, turns: &[Turn], depths: &[u32]) -> Schedule {
    Run::new(costs, turns, depths).finish()
}

struct Run<'a> {
    costs: &'a PipelineCosts,
    turns: &'a [Turn],
    depths: &'a [u32],
    /// Queued actions per rank.
    queues: Vec<Queue>,
    /// Selects the rank with the earliest pending action.
    race: Race,
    /// Forwards per stage, with their wave, that exceed the limit of waves in flight.
    deep: Vec<BinaryHeap<Reverse<(u32, Waiting)>>>,
    stream: Vec<Nanos>,
    /// Remaining backwards by stage and wave.
    open: Vec<Vec<u32>>,
    /// Index per stage of the oldest wave with remaining backwards.
    oldest: Vec<usize>,
    /// Remaining actions by rank and phase. `phase` is the current phase per rank.
    left: Vec<Vec<u32>>,
    phase: Vec<usize>,
    /// Number of pending inputs (or outputs) per item, and the latest arrival so far.
    inputs: Vec<(usize, Nanos)>,
    outputs: Vec<(usize, Nanos)>,
    forward_end: Vec<Nanos>,
    orders: Vec<Vec<Action>>,
}

impl<'a> Run<'a> {
    fn new(costs: &'a PipelineCosts, turns: &'a [Turn], depths: &'a [u32]) -> Self {
        let (flows, ranks) = (&costs.flows, costs.ranks());
        let waves = turns.iter().map(|turn| turn.wave as usize + 1).max().unwrap_or(0);
        let phases = turns.iter().flat_map(|turn| turn.phases).map(|phase| phase as usize + 1).max().unwrap_or(0);
        let mut run = Self {
            costs,
            turns,
            depths,
            queues: std::iter::repeat_with(Queue::default).take(ranks).collect(),
            race: Race::new(ranks),
            deep: vec![BinaryHeap::new(); costs.stages()],
            stream: vec![Nanos::ZERO; ranks],
            open: vec![vec![0; waves]; costs.stages()],
            oldest: vec![0; costs.stages()],
            left: vec![vec![0; phases]; ranks],
            phase: vec![0; ranks],
            inputs: Vec::new(),
            outputs: Vec::new(),
            forward_end: vec![Nanos::ZERO; flows.cells()],
            orders: vec![Vec::new(); ranks],
        };
        for (item, turn) in turns.iter().enumerate() {
            run.inputs.push((flows.inputs(item).len(), Nanos::ZERO));
            run.outputs.push((flows.outputs(item).len(), Nanos::ZERO));
            for stage in flows.microbatch_stages(item) {
                run.open[stage][turn.wave as usize] += 1;
                for phase in turn.phases {
                    run.left[flows.rank_for_stage(stage)][phase as usize] += 1;
                }
            }
        }
        for stage in 0..costs.stages() {
            run.settle(stage);
        }
        for rank in 0..ranks {
            run.settle_phase(rank);
        }
        for item in 0..turns.len() {
            if flows.inputs(item).is_empty() {
                run.wait(item, flows.microbatch_stages(item).start, false, Nanos::ZERO);
            }
        }
        run
    }

    /// Advances the oldest wave of a stage and admits the forwards that are now within the limit.
    fn settle(&mut self, stage: usize) {
        let left = self.open[stage].iter().skip(self.oldest[stage]).position(|&left| left > 0);
        self.oldest[stage] += left.unwrap_or(self.open[stage].len() - self.oldest[stage]);
        while self.deep[stage].peek().is_some_and(|Reverse((_, waiting))| self.is_in_flight(waiting)) {
            if let Some(Reverse((_, admitted))) = self.deep[stage].pop() {
                self.queues[self.costs.rank_for_stage(stage)].admit(admitted);
            }
        }
    }

    /// Advances the phase of a rank and admits its actions.
    fn settle_phase(&mut self, rank: usize) {
        let left = self.left[rank].iter().skip(self.phase[rank]).position(|&left| left > 0);
        self.phase[rank] += left.unwrap_or(self.left[rank].len() - self.phase[rank]);
        while let Some(waiting) = self.queues[rank].take_up(self.phase[rank]) {
            self.admit(rank, waiting);
        }
    }

    /// Returns whether the action's wave is within the limit for its stage.
    fn is_in_flight(&self, waiting: &Waiting) -> bool {
        let stage = waiting.stage as usize;
        let deep = self.oldest[stage] + self.depths[stage].max(1) as usize;
        !waiting.order.is_forward || (waiting.order.wave as usize) < deep
    }

    /// Enqueues an action. Its inputs are available at `ready`.
    fn wait(&mut self, item: usize, stage: usize, backward: bool, ready: Nanos) {
        let (rank, turn) = (self.costs.rank_for_stage(stage), self.turns[item]);
        let order = Order { is_forward: !backward, wave: turn.wave, item: item as u32 };
        let waiting = Waiting { ready, order, stage: stage as u32 };
        let phase = turn.phases[usize::from(backward)];
        if phase as usize > self.phase[rank] {
            self.queues[rank].defer(phase, waiting);
        } else {
            self.admit(rank, waiting);
            self.race.set(rank, self.queues[rank].next());
        }
    }

    /// Admits an action in a started phase.
    fn admit(&mut self, rank: usize, waiting: Waiting) {
        if self.is_in_flight(&waiting) {
            self.queues[rank].admit(waiting);
        } else {
            self.deep[waiting.stage as usize].push(Reverse((waiting.order.wave, waiting)));
        }
    }

    fn finish(mut self) -> Schedule {
        while let Some(rank) = self.race.first() {
            let Some(waiting) = self.queues[rank].pop() else { break };
            self.run(rank, waiting);
        }
        Schedule { stages: self.costs.stages(), microbatches: self.turns.len(), orders: self.orders }
    }

    fn run(&mut self, rank: usize, waiting: Waiting) {
        let (item, stage, backward) = (waiting.order.item as usize, waiting.stage as usize, !waiting.order.is_forward);
        let flows = &self.costs.flows;
        let (cell, stages) = (self.costs.cell(stage, item), flows.microbatch_stages(item));
        let (time, send) = if backward {
            (self.costs.backward(cell), self.costs.send_backward[cell])
        } else {
            (self.costs.forward[cell], self.costs.send_forward[cell])
        };
        let end = self.queues[rank].free.max(waiting.ready) + time;
        self.queues[rank].occupy(end);
        let mut arrival = end;
        if send > Nanos::ZERO {
            arrival = end.max(self.stream[rank]) + send;
            self.stream[rank] = arrival;
        }
        self.orders[rank].push(if backward { Action::backward(stage, item) } else { Action::forward(stage, item) });
        let turn = self.turns[item];
        self.left[rank][turn.phases[usize::from(backward)] as usize] -= 1;
        self.settle_phase(rank);
        if backward {
            self.open[stage][turn.wave as usize] -= 1;
            self.settle(stage);
            if stage > stages.start {
                self.gradient(item, stage - 1, arrival);
            } else {
                for &input in flows.inputs(item) {
                    let input = input as usize;
                    let (missing, latest) = &mut self.outputs[input];
                    (*missing, *latest) = (*missing - 1, (*latest).max(arrival));
                    if *missing == 0 {
                        let latest = *latest;
                        self.gradient(input, flows.microbatch_stages(input).end - 1, latest);
                    }
                }
            }
        } else {
            self.forward_end[cell] = end;
            if stage + 1 < stages.end {
                self.wait(item, stage + 1, false, arrival);
            } else if flows.outputs(item).is_empty() {
                self.wait(item, stage, true, end);
            }
            if stage + 1 == stages.end {
                for &output in flows.outputs(item) {
                    let output = output as usize;
                    let (missing, latest) = &mut self.inputs[output];
                    (*missing, *latest) = (*missing - 1, (*latest).max(arrival));
                    if *missing == 0 {
                        let (latest, first) = (*latest, flows.microbatch_stages(output).start);
                        self.wait(output, first, false, latest);
                    }
                }
            }
        }
        self.race.set(rank, self.queues[rank].next());
    }

    /// Records the arrival of an item's gradient at a stage. The forward on this stage has already
    /// run.
    fn gradient(&mut self, item: usize, stage: usize, arrival: Nanos) {
        let earliest = self.forward_end[self.costs.cell(stage, item)];
        self.wait(item, stage, true, arrival.max(earliest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::one_f_one_b;
    use crate::simulate::{execute, peak_memory};
    use planscope_core::stage_graph::{Flows, Path};
    use planscope_cost::cost::UniformTimes;

    fn uniform(flows: Flows) -> PipelineCosts {
        let ten = Nanos::new(10);
        let times = UniformTimes { forward: ten, input_grad: ten, weight_grad: ten, communication: Nanos::ZERO };
        PipelineCosts::uniform_over(flows, times)
    }

    fn turn(wave: usize) -> Turn {
        Turn { wave: wave as u32, phases: [0, 0] }
    }

    /// A single module with equal times has the 1F1B order.
    #[test]
    fn single_module_gives_1f1b() {
        for (ranks, microbatches) in [(1, 3), (2, 5), (4, 9), (5, 3)] {
            let costs = uniform(Flows::cyclic(ranks, ranks, microbatches));
            let turns: Vec<Turn> = (0..microbatches).map(turn).collect();
            let depths: Vec<u32> = (0..ranks).map(|stage| (ranks - stage) as u32).collect();
            assert_eq!(multi_module(&costs, &turns, &depths), one_f_one_b(ranks, microbatches));
        }
    }

    /// An encoder rank and two backbone ranks form a pipeline with three ranks: warm-up 2, 1 and 0,
    /// and makespan (m + p - 1)(F + B).
    #[test]
    fn leading_encoder_warms_up_by_the_remaining_depth() {
        let path = |stages, inputs: &[usize]| Path { stages, inputs: inputs.to_vec() };
        let paths: Vec<Path> = (0..6).flat_map(|microbatch| [path(0..1, &[]), path(1..3, &[2 * microbatch])]).collect();
        let costs = uniform(Flows::new(3, vec![0, 1, 2], &paths).unwrap());
        let turns: Vec<Turn> = (0..12).map(|item| turn(item / 2)).collect();
        let schedule = multi_module(&costs, &turns, &[3, 2, 1]);
        let execution = execute(&schedule, &costs).unwrap();
        assert_eq!(execution.makespan(), Nanos::new(30 * (6 + 2)));
        let peaks: Vec<u64> = (0..3).map(|rank| peak_memory(rank, &schedule, &execution, &costs).get()).collect();
        assert_eq!(peaks, [3, 2, 1]);
    }

    /// On a shared rank: two encoder forwards, then backbone forward and backward per microbatch,
    /// then two encoder backwards.
    #[test]
    fn phases_follow_each_other_on_a_shared_rank() {
        let path = |stages, inputs: &[usize]| Path { stages, inputs: inputs.to_vec() };
        let paths = [path(0..1, &[]), path(1..2, &[0]), path(0..1, &[]), path(1..2, &[2])];
        let costs = uniform(Flows::new(1, vec![0, 0], &paths).unwrap());
        let phased = |wave, phases| Turn { wave, phases };
        let turns = [phased(0, [0, 2]), phased(0, [1, 1]), phased(1, [0, 2]), phased(1, [1, 1])];
        let schedule = multi_module(&costs, &turns, &[2, 1]);
        let order: Vec<String> = schedule.orders[0].iter().map(ToString::to_string).collect();
        assert_eq!(order, ["0F0", "0F2", "1F1", "1B1", "1F3", "1B3", "0B0", "0B2"]);
        assert!(execute(&schedule, &costs).is_ok());
    }
}
