//! One stage: what its layers cost together, and what it sends.

use super::{LayerTable, Place};
use crate::cost::collective::{Group, Hop};
use crate::cost::layer::LayerCost;
use crate::cost::operator::Rates;
use crate::cost::partition::{LayerRange, Partition};
use crate::cost::strategy::StrategyMix;
use crate::flow::Flows;
use crate::model::Gradients;
use crate::training::Recompute;
use crate::units::{Nanos, Seconds};

impl LayerTable<'_> {
    pub(super) fn stage_cost(&self, ranges: &[LayerRange], microbatch: usize) -> LayerCost {
        let mut cost = LayerCost::default();
        // Layers of the stage, over all its modules, that are still to be recomputed.
        let mut left = match (self.training.recompute, self.training.recompute_layers) {
            (Recompute::Full, Some(layers)) => layers,
            _ => u32::MAX,
        };
        for range in ranges {
            let pieces = &self.pieces[range.module][microbatch];
            if range.begins() {
                cost = cost.then(pieces.input);
            }
            let again = left.min(range.len());
            left -= again;
            cost = cost.then(pieces.layer.times(again)).then(pieces.kept.times(range.len() - again));
            if range.ends(self.model) {
                cost = cost.then(pieces.output);
            }
        }
        cost
    }

    /// One stage whose layers have the strategies of a mix.
    pub(super) fn mixed_stage_cost(&self, ranges: &[LayerRange], microbatch: usize, mut mix: StrategyMix) -> LayerCost {
        let mut cost = LayerCost::default();
        for range in ranges {
            let pieces = &self.pieces[range.module][microbatch];
            if range.begins() {
                cost = cost.then(pieces.input);
            }
            let layers = &self.strategies[range.module][microbatch];
            for (layer, count) in layers.iter().zip(mix.take(range.len())) {
                cost = cost.then(layer.times(count));
            }
            if range.ends(self.model) {
                cost = cost.then(pieces.output);
            }
        }
        cost
    }

    /// What one cell costs when its layers have the strategies of a mix.
    pub fn mixed_cell(
        &self,
        partition: &Partition,
        place: Place,
        (stage, microbatch): (usize, usize),
        mix: StrategyMix,
    ) -> LayerCost {
        let ranges = &partition.stages[stage];
        let traffic = self.sharded_traffic(ranges, place);
        let cost = self.as_run(self.mixed_stage_cost(ranges, microbatch, mix), traffic, self.host_microbatch());
        LayerCost { transient: cost.transient + self.gathered_bytes(ranges), ..cost }
    }

    /// A stage with what ZeRO-3 adds to it, and as fast as the host starts it.
    pub(super) fn as_run(&self, cost: LayerCost, traffic: (Seconds, Seconds), host: Seconds) -> LayerCost {
        cost.with_sharding(traffic, self.training.data_overlap).as_started(host)
    }

    /// What the host does once for a microbatch.
    pub(super) fn host_microbatch(&self) -> Seconds {
        Rates::of(&self.cluster.device).host_microbatch()
    }

    /// One layer of a module under every strategy, for one microbatch.
    pub fn strategy_layers(&self, module: usize, microbatch: usize) -> &[LayerCost; 4] {
        &self.strategies[module][microbatch]
    }

    /// Whether anything before a stage is trained, so that its gradient is of use there.
    pub(super) fn hands_gradient_on(&self, ranges: &[LayerRange]) -> bool {
        ranges.first().is_some_and(|range| {
            if range.begins() {
                self.model.needs_gradient(range.module)
            } else {
                self.model.gradients_of(range.module) != Gradients::None
            }
        })
    }

    /// The way of what enters the stage `entered` between the ranks of two stages, `[from, to]`.
    pub(super) fn route(&self, partition: &Partition, entered: usize, place: Place, [from, to]: [usize; 2]) -> Route {
        let range = partition.stages[entered][0];
        let device = |stage: usize| {
            let rank = partition.placement.rank_of(stage, place.pipeline as usize) as u32;
            self.first_device
                + rank * self.devices_per_rank(place)
                + place.replica * self.tensor * self.training.context_parallel
        };
        Route {
            range,
            hidden: f64::from(self.model.modules[range.module].hidden),
            hop: Hop::between(self.cluster, device(from), device(to)),
            gathers: (!self.training.sequence_parallel).then(|| Group::placed(self.cluster, self.tensor, 1)),
        }
    }

    /// Sending on a route. Each device of a tensor-parallel group sends its share; without sequence parallelism the receiving group
    /// then gathers the whole.
    pub(super) fn send(&self, route: &Route, microbatch: usize) -> Nanos {
        let load = &self.loads[microbatch];
        let Route { range, hidden, hop, gathers } = route;
        let tokens =
            if range.begins() { load.entering(self.model, range.module) } else { load.modules[range.module].tokens };
        let context = f64::from(self.training.context_parallel);
        let whole = self.training.width() * tokens * hidden / context;
        let sent = hop.time(whole / f64::from(self.tensor));
        let gathers = gathers.as_ref().filter(|_| sent > Seconds::ZERO);
        (sent + gathers.map_or(Seconds::ZERO, |group| group.all_gather(whole))).to_nanos()
    }
}

/// How what enters a stage gets there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    /// First layers of the stage that it enters.
    range: LayerRange,
    /// Width of their module.
    hidden: f64,
    hop: Hop,
    /// The group that gathers the whole behind the send.
    gathers: Option<Group>,
}

/// Routes that were taken, of each stage the last one there and the last one back.
pub(super) struct Routes {
    last: Vec<[Option<(usize, Route)>; 2]>,
}

impl Routes {
    pub(super) fn of(stages: usize) -> Self {
        Self { last: vec![[None; 2]; stages] }
    }

    /// The route to a neighbour, forward or back, that `make` makes where the last one went to another.
    pub(super) fn to(&mut self, stage: usize, back: bool, to: usize, make: impl FnOnce() -> Route) -> &Route {
        let last = &mut self.last[stage][usize::from(back)];
        if last.is_none_or(|(known, _)| known != to) {
            *last = None;
        }
        &last.get_or_insert_with(|| (to, make())).1
    }
}

/// The stages before and behind which a microbatch sends something: where its forward goes on, and where its gradient
/// goes. Modules that are joined all end on one rank and begin on one, so one of each stands for all.
pub(super) fn neighbours(flows: &Flows, stage: usize, microbatch: usize) -> [Option<usize>; 2] {
    let stages = flows.stages_of(microbatch);
    let next = if stage + 1 < stages.end {
        Some(stage + 1)
    } else {
        flows.outputs(microbatch).first().map(|&output| flows.stages_of(output as usize).start)
    };
    let previous = if stage > stages.start {
        Some(stage - 1)
    } else {
        flows.inputs(microbatch).first().map(|&input| flows.stages_of(input as usize).end - 1)
    };
    [next, previous]
}
