//! A pipeline as a job shop: what runs where, for how long, after what.

use crate::cost::PipelineCosts;
use crate::cost::pipeline::Cell;
use crate::schedule::Action;
use crate::units::{Bytes, Nanos};

/// Actions of one shop, one bit each.
pub(super) type Set = u128;

/// Most actions that a [`Set`] holds.
pub(super) const MOST_ACTIONS: usize = Set::BITS as usize;

/// Whether an action is a forward, by its number.
pub(super) const fn is_forward(action: usize) -> bool {
    action.is_multiple_of(2)
}

/// Times above it could overflow when they are added up.
const LONGEST: u64 = 1 << 60;

/// The actions of one pipeline. Cell `c` has forward number `2 c` and backward number `2 c + 1`.
#[derive(Debug)]
pub(super) struct Shop {
    pub actions: Vec<Action>,
    /// The rank of each action.
    pub rank: Vec<usize>,
    /// How long each takes, in ns.
    pub time: Vec<u64>,
    /// What runs behind the last action of its rank: synchronisation and optimizer.
    pub behind: Vec<u64>,
    /// What must have ended before each, and how long its result is on the way.
    pub needs: Vec<Vec<(usize, u64)>>,
    /// The same the other way round.
    pub feeds: Vec<Vec<(usize, u64)>>,
    /// The actions of each rank.
    pub on_rank: Vec<Set>,
    /// What the forward of each action's cell keeps until its backward has ended, in bytes.
    pub kept: Vec<u64>,
    /// What each holds beside that while it runs.
    pub transient: Vec<u64>,
    /// What each rank may hold.
    pub room: Vec<u64>,
    /// Ranks that cannot hold everything at once.
    pub tight: Vec<usize>,
    /// Microbatches equal to the one before of the same kind: pairs of cells of their first stage. Their forwards may be
    /// taken in the order of their numbers.
    pub twins: Vec<(usize, usize)>,
}

impl Shop {
    /// The shop of a pipeline whose ranks may hold `limit` bytes each; `None` where it is too large to be enumerated.
    pub(super) fn of(costs: &PipelineCosts, limit: Bytes) -> Option<Self> {
        let (cells, ranks) = (costs.flows.cells(), costs.ranks());
        if 2 * cells > MOST_ACTIONS || longest(costs) > LONGEST {
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
            kept: Vec::new(),
            transient: Vec::new(),
            room: (0..ranks).map(|rank| limit.saturating_sub(costs.static_memory[rank]).get()).collect(),
            tight: Vec::new(),
            twins: twins(costs),
        };
        for Cell { index, stage, microbatch } in costs.cells() {
            let rank = costs.rank_of(stage);
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
                shop.kept.push(costs.activation[index].get());
                shop.transient.push(transient);
            }
        }
        shop.connect(costs);
        shop.tight = (0..ranks).filter(|&rank| shop.everything(rank) > u128::from(shop.room[rank])).collect();
        Some(shop)
    }

    fn connect(&mut self, costs: &PipelineCosts) {
        let flows = &costs.flows;
        for microbatch in 0..flows.microbatches() {
            let cells = flows.cells_of(microbatch);
            for cell in cells.clone() {
                self.feed(2 * cell, 2 * cell + 1, Nanos::ZERO);
                if cell + 1 < cells.end {
                    self.feed(2 * cell, 2 * cell + 2, costs.send_forward[cell]);
                    self.feed(2 * cell + 3, 2 * cell + 1, costs.send_backward[cell + 1]);
                }
            }
            for &input in flows.inputs(microbatch) {
                let last = flows.cells_of(input as usize).end - 1;
                self.feed(2 * last, 2 * cells.start, costs.send_forward[last]);
                self.feed(2 * cells.start + 1, 2 * last + 1, costs.send_backward[cells.start]);
            }
        }
    }

    fn feed(&mut self, from: usize, into: usize, lag: Nanos) {
        self.feeds[from].push((into, lag.get()));
        self.needs[into].push((from, lag.get()));
    }

    /// What a rank would hold if no backward ever ran, and its largest transient beside it.
    fn everything(&self, rank: usize) -> u128 {
        let own = || (0..self.len()).filter(|&action| self.rank[action] == rank);
        let kept: u128 = own().step_by(2).map(|action| u128::from(self.kept[action])).sum();
        kept + own().map(|action| u128::from(self.transient[action])).max().unwrap_or(0)
    }

    pub(super) const fn len(&self) -> usize {
        self.actions.len()
    }
}

/// Everything one after the other.
fn longest(costs: &PipelineCosts) -> u64 {
    let columns = [&costs.forward, &costs.input_grad, &costs.weight_grad, &costs.send_forward, &costs.send_backward];
    let ends = costs.sync.iter().chain(&costs.optimizer);
    columns.into_iter().flatten().chain(ends).copied().sum::<Nanos>().get()
}

/// Pairs of microbatches that nothing tells apart, each with the next of its kind: their first cells.
fn twins(costs: &PipelineCosts) -> Vec<(usize, usize)> {
    let flows = &costs.flows;
    let alone = |microbatch: usize| flows.inputs(microbatch).is_empty() && flows.outputs(microbatch).is_empty();
    let equal = |one: usize, other: usize| {
        let pairs = || flows.cells_of(one).zip(flows.cells_of(other));
        let times = [&costs.forward, &costs.input_grad, &costs.weight_grad, &costs.send_forward, &costs.send_backward];
        flows.stages_of(one) == flows.stages_of(other)
            && times.into_iter().all(|column| pairs().all(|(a, b)| column[a] == column[b]))
            && [&costs.activation, &costs.transient]
                .into_iter()
                .all(|column| pairs().all(|(a, b)| column[a] == column[b]))
    };
    let next = |one: usize| (one + 1..flows.microbatches()).find(|&other| alone(other) && equal(one, other));
    let pairs = (0..flows.microbatches()).filter(|&one| alone(one)).filter_map(|one| Some((one, next(one)?)));
    pairs.map(|(one, other)| (flows.cells_of(one).start, flows.cells_of(other).start)).collect()
}
