//! Job-shop model for a pipeline: actions, ranks, durations and precedence.

use planscope_core::action::Action;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;
use planscope_cost::cost::pipeline::Cell;

/// Action set as a bit mask.
pub(super) type Set = u128;

/// Maximum action count in a [`Set`].
pub(super) const MAX_ACTIONS: usize = Set::BITS as usize;

/// Returns whether the action index refers to a forward.
pub(super) const fn is_forward(action: usize) -> bool {
    action.is_multiple_of(2)
}

/// Maximum total time that cannot overflow in sums.
const MAX: u64 = 1 << 60;

/// Pipeline actions. Cell `c` has forward index `2 c` and backward index `2 c + 1`.
#[derive(Debug)]
pub(super) struct Shop {
    pub actions: Vec<Action>,
    /// Rank per action.
    pub rank: Vec<usize>,
    /// Duration per action, in ns.
    pub time: Vec<u64>,
    /// Time after the rank's final action, in ns: gradient synchronization and optimizer.
    pub behind: Vec<u64>,
    /// Predecessors per action, including the transfer delay.
    pub needs: Vec<Vec<(usize, u64)>>,
    /// Successors per action, including the transfer delay.
    pub feeds: Vec<Vec<(usize, u64)>>,
    /// Actions per rank.
    pub on_rank: Vec<Set>,
    /// Activation bytes stored between the cell's forward and backward.
    pub stored: Vec<u64>,
    /// Additional bytes while the action runs.
    pub transient: Vec<u64>,
    /// Memory limit per rank, in bytes.
    pub capacity: Vec<u64>,
    /// Ranks that cannot store all activations simultaneously.
    pub tight: Vec<usize>,
    /// Pairs of identical microbatches, given by their first cells. Symmetry breaking orders the
    /// forwards by index.
    pub twins: Vec<(usize, usize)>,
}

impl Shop {
    /// Builds the model under a memory limit per rank. Returns `None` if the pipeline is too large
    /// for enumeration.
    pub(super) fn from_costs(costs: &PipelineCosts, limit: Bytes) -> Option<Self> {
        let (cells, ranks) = (costs.flows.cells(), costs.ranks());
        if 2 * cells > MAX_ACTIONS || sequential_time(costs) > MAX {
            return None;
        }
        let mut shop = Self {
            actions: Vec::with_capacity(2 * cells),
            rank: Vec::new(),
            time: Vec::new(),
            behind: Vec::new(),
            needs: vec![Vec::new(); 2 * cells],
            feeds: vec![Vec::new(); 2 * cells],
            on_rank: vec![0; ranks],
            stored: Vec::new(),
            transient: Vec::new(),
            capacity: (0..ranks).map(|rank| limit.saturating_sub(costs.static_memory[rank]).get()).collect(),
            tight: Vec::new(),
            twins: twins(costs),
        };
        for Cell { index, stage, microbatch } in costs.cells() {
            let rank = costs.rank_for_stage(stage);
            let both = [
                (Action::forward(stage, microbatch), costs.forward[index], 0),
                (Action::backward(stage, microbatch), costs.backward(index), costs.transient[index].get()),
            ];
            for (action, time, transient) in both {
                shop.on_rank[rank] |= 1 << shop.actions.len();
                shop.actions.push(action);
                shop.rank.push(rank);
                shop.time.push(time.get());
                shop.behind.push((costs.sync[rank] + costs.optimizer[rank]).get());
                shop.stored.push(costs.activation[index].get());
                shop.transient.push(transient);
            }
        }
        shop.connect(costs);
        shop.tight = (0..ranks).filter(|&rank| shop.everything(rank) > u128::from(shop.capacity[rank])).collect();
        Some(shop)
    }

    fn connect(&mut self, costs: &PipelineCosts) {
        let flows = &costs.flows;
        for microbatch in 0..flows.microbatches() {
            let cells = flows.microbatch_cells(microbatch);
            for cell in cells.clone() {
                self.feed(2 * cell, 2 * cell + 1, Nanos::ZERO);
                if cell + 1 < cells.end {
                    self.feed(2 * cell, 2 * cell + 2, costs.send_forward[cell]);
                    self.feed(2 * cell + 3, 2 * cell + 1, costs.send_backward[cell + 1]);
                }
            }
            for &input in flows.inputs(microbatch) {
                let last = flows.microbatch_cells(input as usize).end - 1;
                self.feed(2 * last, 2 * cells.start, costs.send_forward[last]);
                self.feed(2 * cells.start + 1, 2 * last + 1, costs.send_backward[cells.start]);
            }
        }
    }

    fn feed(&mut self, from: usize, into: usize, lag: Nanos) {
        self.feeds[from].push((into, lag.get()));
        self.needs[into].push((from, lag.get()));
    }

    /// Rank memory if no backward runs, plus the maximum transient memory.
    fn everything(&self, rank: usize) -> u128 {
        let rank_actions = || (0..self.len()).filter(|&action| self.rank[action] == rank);
        let stored_sum: u128 = rank_actions().step_by(2).map(|action| u128::from(self.stored[action])).sum();
        stored_sum + rank_actions().map(|action| u128::from(self.transient[action])).max().unwrap_or(0)
    }

    pub(super) const fn len(&self) -> usize {
        self.actions.len()
    }
}

/// Total time if all actions run sequentially.
fn sequential_time(costs: &PipelineCosts) -> u64 {
    let columns = [&costs.forward, &costs.input_grad, &costs.weight_grad, &costs.send_forward, &costs.send_backward];
    let ends = costs.sync.iter().chain(&costs.optimizer);
    columns.into_iter().flatten().chain(ends).copied().sum::<Nanos>().get()
}

/// Finds pairs of identical microbatches, each paired to the next identical microbatch.
fn twins(costs: &PipelineCosts) -> Vec<(usize, usize)> {
    let flows = &costs.flows;
    let is_isolated = |microbatch: usize| flows.inputs(microbatch).is_empty() && flows.outputs(microbatch).is_empty();
    let equal = |first: usize, other: usize| {
        let pairs = || flows.microbatch_cells(first).zip(flows.microbatch_cells(other));
        let times = [&costs.forward, &costs.input_grad, &costs.weight_grad, &costs.send_forward, &costs.send_backward];
        flows.microbatch_stages(first) == flows.microbatch_stages(other)
            && times.into_iter().all(|column| pairs().all(|(a, b)| column[a] == column[b]))
            && [&costs.activation, &costs.transient]
                .into_iter()
                .all(|column| pairs().all(|(a, b)| column[a] == column[b]))
    };
    let next =
        |current: usize| (current + 1..flows.microbatches()).find(|&other| is_isolated(other) && equal(current, other));
    let pairs = (0..flows.microbatches())
        .filter(|&candidate| is_isolated(candidate))
        .filter_map(|microbatch| Some((microbatch, next(microbatch)?)));
    pairs.map(|(twin, other)| (flows.microbatch_cells(twin).start, flows.microbatch_cells(other).start)).collect()
}
