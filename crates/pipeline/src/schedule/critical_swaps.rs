//! Tabu search with swaps on the critical path, which improves a given order by a few percent.
//!
//! Only changes on the critical path can reduce the makespan. The path consists of *blocks*:
//! actions that a rank runs consecutively without idle time. Only swaps of two actions at a block
//! boundary can help (Grabowski; Nowicki and Smutnicki, 1996). [`improve`] always applies the
//! boundary swap with the minimum makespan, even if the makespan increases. A swap must not be
//! reverted for some steps (tabu search). If no boundary swap is allowed, it uses swaps inside
//! blocks, which can reach any order (van Laarhoven et al., 1992).
//!
//! Unlike a ranking of groups, swaps can move the same microbatch to the front on one rank and to
//! the back on another. Uneven pipelines require this.

use std::collections::BTreeMap;

use super::{Action, ActionKind, Schedule};
use crate::lower_bound::lower_bound;
use crate::simulate::{Execution, Simulation, Start, StepEnd, execute};
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

/// Minimum number of steps for which a swap must not be reverted. Up to three further steps are
/// added in turn, to avoid cycles.
const TENURE: u32 = 6;
/// The search stops after 1 / `PATIENCE` of the allowed steps without an improvement.
const PATIENCE: u32 = 4;

/// Result of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Improved {
    /// Best order, or the given order.
    pub schedule: Schedule,
    /// Iteration time including gradient synchronization and optimizer.
    pub end: Nanos,
    /// Number of simulated orders.
    pub simulated: u32,
}

/// Search limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Maximum number of applied swaps.
    pub steps: u32,
    /// Maximum number of simulated orders. The step that reaches the limit is completed.
    pub orders: u32,
}

impl Effort {
    /// Limits only the number of swaps.
    pub const fn steps(steps: u32) -> Self {
        Self { steps, orders: u32::MAX }
    }
}

/// Improves an order within `limit` bytes per rank.
///
/// The search is deterministic. Returns `None` if the order deadlocks, or contains overlapped
/// actions, which are not supported.
pub fn improve(schedule: &Schedule, costs: &PipelineCosts, limit: Bytes, effort: Effort) -> Option<Improved> {
    if schedule.orders.iter().flatten().any(|action| action.with_next) {
        return None;
    }
    let mut simulation = Simulation::new(schedule, costs);
    simulation.run().ok()?;
    let end = end(&simulation, costs);
    let mut search = Search {
        costs,
        limit,
        simulation,
        best: Improved { schedule: schedule.clone(), end, simulated: 1 },
        forbidden: BTreeMap::new(),
    };
    let bound = lower_bound(costs);
    let mut last_improved = 0;
    for step in 0..effort.steps {
        let best = search.best.end;
        let is_late = (step - last_improved) * PATIENCE > effort.steps || search.best.simulated >= effort.orders;
        if best <= bound || is_late || !search.step(step) {
            break;
        }
        if search.best.end < best {
            last_improved = step;
        }
    }
    Some(search.best)
}

/// Swap of the actions at `index` and `index + 1` in a rank's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Swap {
    rank: usize,
    index: usize,
    /// True if the swap is not at a block boundary on the critical path.
    is_inside: bool,
}

struct Search<'a> {
    costs: &'a PipelineCosts,
    limit: Bytes,
    simulation: Simulation<'a>,
    best: Improved,
    /// Tabu list: maps (a, b) to the step up to which a must not move before b.
    forbidden: BTreeMap<(Action, Action), u32>,
}

impl Search<'_> {
    /// Applies the swap with the minimum makespan. Returns false if there is none.
    fn step(&mut self, step: u32) -> bool {
        let current = self.current();
        let Ok(execution) = execute(&current, self.costs) else { return false };
        let swaps = swaps(&current, &execution, self.costs);
        let mut selected: Option<((bool, Nanos), Swap)> = None;
        for is_inside in [false, true] {
            for &swap in swaps.iter().filter(|swap| swap.is_inside == is_inside) {
                let Some(end) = self.try_out(&current, swap) else { continue };
                let (first, then) = self.pair(swap);
                let undoes = self.forbidden.get(&(then, first)).is_some_and(|&until| step < until);
                let key = (undoes && end >= self.best.end, end);
                if selected.is_none_or(|(min_key, _)| key < min_key) {
                    selected = Some((key, swap));
                }
            }
            if selected.is_some_and(|((is_forbidden, _), _)| !is_forbidden) {
                break;
            }
        }
        // If all swaps are tabu, use the one with the minimum makespan.
        let Some(((_, end), swap)) = selected else { return false };
        let pair = self.pair(swap);
        self.forbidden.insert(pair, step + TENURE + step % 4);
        self.put(&swapped(&current, swap), swap);
        if end < self.best.end {
            (self.best.schedule, self.best.end) = (self.current(), end);
        }
        true
    }

    fn current(&self) -> Schedule {
        let Improved { schedule, .. } = &self.best;
        let orders = self.simulation.orders().to_vec();
        Schedule { stages: schedule.stages, microbatches: schedule.microbatches, orders }
    }

    fn pair(&self, swap: Swap) -> (Action, Action) {
        let order = &self.simulation.orders()[swap.rank];
        (order[swap.index], order[swap.index + 1])
    }

    /// Returns the makespan after a swap, or `None` if it deadlocks or exceeds the memory limit.
    /// Restores the current order.
    fn try_out(&mut self, current: &Schedule, swap: Swap) -> Option<Nanos> {
        let (first, then) = self.pair(swap);
        let changed = swapped(current, swap);
        if self.may_rise(first, then) && !fits(swap.rank, &changed, self.costs, self.limit) {
            return None;
        }
        self.best.simulated += 1;
        let runs = self.put(&changed, swap);
        let end = runs.then(|| end(&self.simulation, self.costs));
        self.put(&current.orders[swap.rank], swap);
        end
    }

    /// Returns whether swapping two actions can increase memory.
    ///
    /// Delaying a forward never does. A backward that moves ahead needs recomputation memory before
    /// the other backward releases activations. Split backwards release recomputation memory only
    /// after the weight gradient.
    fn may_rise(&self, first: Action, then: Action) -> bool {
        let again = |action: Action| {
            let cell = self.costs.cell(action.stage as usize, action.microbatch as usize);
            self.costs.transient[cell]
        };
        match (first.kind, then.kind) {
            (ActionKind::Forward, _) => false,
            (ActionKind::Backward, ActionKind::Backward) => again(then) > again(first),
            _ => true,
        }
    }

    /// Replaces a rank's order from the swap position. Returns whether all ranks complete.
    fn put(&mut self, order: &[Action], swap: Swap) -> bool {
        self.simulation.change(swap.rank, swap.index, &order[swap.index..]);
        self.simulation.run().is_ok()
    }
}

fn end(simulation: &Simulation<'_>, costs: &PipelineCosts) -> Nanos {
    let ends = (0..costs.ranks()).map(|rank| simulation.rank_end(rank) + costs.sync[rank] + costs.optimizer[rank]);
    ends.max().unwrap_or(Nanos::ZERO)
}

fn swapped(schedule: &Schedule, swap: Swap) -> Vec<Action> {
    let mut order = schedule.orders[swap.rank].clone();
    order.swap(swap.index, swap.index + 1);
    order
}

/// Returns whether an order fits the memory of a rank.
fn fits(rank: usize, order: &[Action], costs: &PipelineCosts, limit: Bytes) -> bool {
    let mut stored = costs.static_memory[rank];
    // Recomputed by input gradients, released by weight gradients.
    let mut again = Bytes::ZERO;
    for action in order {
        let cell = costs.cell(action.stage as usize, action.microbatch as usize);
        let (activation, transient) = (costs.activation[cell], costs.transient[cell]);
        let now = match action.kind {
            ActionKind::Forward => {
                stored += activation;
                stored + again
            }
            ActionKind::Backward => {
                let now = stored + transient + again;
                stored = stored.saturating_sub(activation);
                now
            }
            ActionKind::InputGrad => {
                again += transient;
                stored + again
            }
            ActionKind::WeightGrad => {
                let now = stored + again;
                stored = stored.saturating_sub(activation);
                again = again.saturating_sub(transient);
                now
            }
        };
        if now > limit {
            return false;
        }
    }
    true
}

/// Returns the swaps in the blocks on a critical path, in reverse time order.
fn swaps(schedule: &Schedule, execution: &Execution, costs: &PipelineCosts) -> Vec<Swap> {
    let makers = Makers::new(schedule, costs);
    let step_end = StepEnd::from_executions(costs.ranks(), std::iter::once(execution));
    let total = |rank: usize| step_end.sync_start[rank] + costs.sync[rank] + costs.optimizer[rank];
    let last = (0..costs.ranks()).filter(|&rank| !schedule.orders[rank].is_empty());
    let Some(mut rank) = last.max_by_key(|&rank| (total(rank), std::cmp::Reverse(rank))) else { return Vec::new() };
    let mut index = schedule.orders[rank].len() - 1;
    let mut found = Vec::new();
    let mut is_last_block = true;
    loop {
        // Go back to the start of the block.
        let block_end = index;
        while execution.bound_by[rank][index] == Start::Rank {
            index -= 1;
        }
        let is_first_block = execution.bound_by[rank][index] == Start::Begin;
        found.extend((index..block_end).map(|at| {
            // No other rank depends on the order at the start of the path or at its end.
            let (at_begin, at_end) = (at == index && !is_first_block, at + 1 == block_end && !is_last_block);
            Swap { rank, index: at, is_inside: !at_begin && !at_end }
        }));
        if is_first_block {
            return found;
        }
        let Some(maker) = makers.input(schedule.orders[rank][index], execution, costs) else { return found };
        // A send delayed by the previous send is as late as that send's producer.
        (rank, index) = maker;
        is_last_block = false;
    }
}

/// Position of the forward and the input gradient per cell, as (rank, index).
struct Makers {
    forward: Vec<Option<(usize, usize)>>,
    gradient: Vec<Option<(usize, usize)>>,
}

impl Makers {
    fn new(schedule: &Schedule, costs: &PipelineCosts) -> Self {
        let nowhere = vec![None; costs.flows.cells()];
        let mut makers = Self { forward: nowhere.clone(), gradient: nowhere };
        for (rank, order) in schedule.orders.iter().enumerate() {
            for (index, action) in order.iter().enumerate() {
                let cell = costs.cell(action.stage as usize, action.microbatch as usize);
                match action.kind {
                    ActionKind::Forward => makers.forward[cell] = Some((rank, index)),
                    ActionKind::Backward | ActionKind::InputGrad => makers.gradient[cell] = Some((rank, index)),
                    ActionKind::WeightGrad => {}
                }
            }
        }
        makers
    }

    /// Returns the producer of the input that arrives last.
    fn input(&self, action: Action, execution: &Execution, costs: &PipelineCosts) -> Option<(usize, usize)> {
        let (flows, microbatch) = (&costs.flows, action.microbatch as usize);
        let (cells, cell) = (flows.microbatch_cells(microbatch), flows.cell(action.stage as usize, microbatch));
        // Producers, with the send duration of each result.
        let mut inputs: Vec<(Option<(usize, usize)>, Nanos)> = Vec::new();
        let forward = |cell: usize| (self.forward[cell], costs.send_forward[cell]);
        let gradient = |cell: usize| (self.gradient[cell], costs.send_backward[cell]);
        let arrives = |(rank, index): (usize, usize), send: Nanos| execution.send_start[rank][index] + send;
        match action.kind {
            ActionKind::Forward if cell > cells.start => inputs.push(forward(cell - 1)),
            ActionKind::Forward => {
                inputs.extend(
                    flows.inputs(microbatch).iter().map(|&from| forward(flows.microbatch_cells(from as usize).end - 1)),
                );
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                let forward_end = self.forward[cell].map(|(rank, position)| execution.end[rank][position]);
                if cell + 1 < cells.end {
                    inputs.push(gradient(cell + 1));
                }
                inputs.extend(
                    flows.outputs(microbatch).iter().map(|&into| gradient(flows.microbatch_cells(into as usize).start)),
                );
                let latest = inputs.iter().filter_map(|&(maker, send)| maker.map(|maker| arrives(maker, send))).max();
                if forward_end >= latest {
                    return self.forward[cell];
                }
            }
            ActionKind::WeightGrad => inputs.push((self.gradient[cell], Nanos::ZERO)),
        }
        let arrivals = inputs.into_iter().filter_map(|(maker, send)| maker.map(|maker| (arrives(maker, send), maker)));
        arrivals.max_by_key(|&(time, _)| time).map(|(_, maker)| maker)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Grouping, gpipe, interleaved, one_f_one_b, zb_h1};
    use planscope_core::random::Random;
    use planscope_cost::cost::UniformTimes;

    fn uneven(ranks: usize, chunks: usize, microbatches: usize, seed: u32) -> PipelineCosts {
        let unit = Nanos::new(1);
        let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: Nanos::new(3) };
        let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times);
        let mut random = Random::new(seed, 0);
        for column in [&mut costs.forward, &mut costs.input_grad, &mut costs.weight_grad] {
            for time in column.iter_mut() {
                *time = Nanos::new(random.below(40));
            }
        }
        for column in [&mut costs.activation, &mut costs.transient] {
            for bytes in column.iter_mut() {
                *bytes = Bytes::new(random.below(40));
            }
        }
        costs
    }

    proptest! {
        #[test]
        fn improved_schedules_are_never_slower_and_fit(
            ranks in 1_usize..5, chunks in 1_usize..3, microbatches in 1_usize..9, seed in any::<u32>(), steps in 0_u32..60,
        ) {
            let costs = uneven(ranks, chunks, microbatches, seed);
            let schedule = match (chunks, seed % 3) {
                (1, 0) => gpipe(ranks, microbatches),
                (1, 1) => zb_h1(&costs, None).unwrap(),
                (1, _) => one_f_one_b(ranks, microbatches),
                _ => interleaved(ranks, chunks, microbatches, Grouping::Balanced),
            };
            let before = execute(&schedule, &costs).unwrap();
            let limit = (0..ranks).map(|rank| crate::simulate::peak_memory(rank, &schedule, &before, &costs)).max().unwrap();
            let improved = improve(&schedule, &costs, limit, Effort::steps(steps)).unwrap();
            let execution = execute(&improved.schedule, &costs).unwrap();
            prop_assert!(improved.end <= before.makespan());
            prop_assert_eq!(improved.end, execution.makespan());
            prop_assert!(steps > 0 || improved.schedule == schedule);
        }
    }

    /// Rank 1 has work 9 + 9 + 1 + 1, between a forward of 1 and a backward of 1 on rank 0, so the
    /// makespan is at least 22. If rank 1 starts with the long microbatch's backward, the short one
    /// ends at 21 + 8, because its backward takes 8 on rank 0.
    #[test]
    fn a_microbatch_that_holds_up_another_is_overtaken() {
        let mut costs = PipelineCosts::uniform(2, 1, 2, UniformTimes::default());
        let set = |costs: &mut PipelineCosts, stage: usize, microbatch: usize, forward: u64, backward: u64| {
            let cell = costs.cell(stage, microbatch);
            (costs.forward[cell], costs.input_grad[cell]) = (Nanos::new(forward), Nanos::new(backward));
        };
        for (stage, microbatch, forward, backward) in [(0, 0, 1, 1), (1, 0, 9, 9), (0, 1, 1, 8), (1, 1, 1, 1)] {
            set(&mut costs, stage, microbatch, forward, backward);
        }
        let schedule = gpipe(2, 2);
        let before = execute(&schedule, &costs).unwrap().makespan();
        let improved = improve(&schedule, &costs, Bytes::new(2), Effort::steps(20)).unwrap();
        assert_eq!((before.get(), improved.end.get()), (29, 22));
    }

    #[test]
    fn overlapped_actions_are_not_swapped() {
        let costs = PipelineCosts::uniform(2, 1, 2, UniformTimes::default());
        let mut schedule = one_f_one_b(2, 2);
        schedule.orders[0][1] = schedule.orders[0][1].overlapped();
        assert_eq!(improve(&schedule, &costs, Bytes::new(9), Effort::steps(5)), None);
    }
}
