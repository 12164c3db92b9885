//! Costs and sends of a stage.

use super::{LayerTable, ReplicaLayout};
use crate::cost::collective::{Group, Hop};
use crate::cost::layer::{LayerCost, ShardedTraffic};
use crate::cost::operator::Rates;
use crate::cost::partition::{LayerRange, Partition};
use crate::cost::pricing::ComponentCosts;
use crate::cost::strategy::StrategyMix;
use planscope_core::model::Gradients;
use planscope_core::stage_graph::Flows;
use planscope_core::training::Recompute;
use planscope_core::units::{Nanos, Seconds};

impl LayerTable<'_> {
    pub(super) fn stage_cost(&self, ranges: &[LayerRange], microbatch: usize) -> LayerCost {
        self.sum_components(ranges, |module| self.pieces[module].of(microbatch))
    }

    /// Returns the forward plus backward time of a stage for all microbatches, in seconds. This is
    /// a lower bound, because it excludes ZeRO 2 and 3 communication and blocking sends, and compares host time only for
    /// the total.
    pub fn stage_work(&self, ranges: &[LayerRange]) -> f64 {
        let host = self.host_microbatch() * self.loads.len() as f64;
        let cost = self.sum_components(ranges, |module| self.pieces[module].total()).with_host_time(host);
        (cost.forward + cost.input_grad + cost.weight_grad).secs()
    }

    /// Returns lower bounds on the forward and backward times of a microbatch through the stages before each of the
    /// given stages, in seconds. A component takes its minimum over the microbatches.
    pub fn min_ramps(&self, stages: &[Vec<LayerRange>]) -> Vec<(f64, f64)> {
        let host = self.host_microbatch();
        let mut before = (0.0, 0.0);
        let mut through = |ranges: &Vec<LayerRange>| {
            let ramp = before;
            let cost = self.sum_components(ranges, |module| self.pieces[module].least()).with_host_time(host);
            before = (before.0 + cost.forward.secs(), before.1 + (cost.input_grad + cost.weight_grad).secs());
            ramp
        };
        stages.iter().map(&mut through).collect()
    }

    /// Sums the components of a stage, with the costs of a module from `components`.
    fn sum_components<'b>(&self, ranges: &[LayerRange], components: impl Fn(usize) -> &'b ComponentCosts) -> LayerCost {
        let mut cost = LayerCost::default();
        // Layers in this stage still to be recomputed, for all modules together.
        let mut left = match (self.training.recompute, self.training.recompute_layers) {
            (Recompute::Full, Some(layers)) => layers,
            _ => u32::MAX,
        };
        for range in ranges {
            let pieces = components(range.module);
            if range.begins() {
                cost = cost.then(pieces.input);
            }
            let again = left.min(range.len());
            left -= again;
            let (module, middle) = (&self.model.modules[range.module], range.first + again);
            cost = cost.then(pieces.layers(module, range.first..middle, |costs| costs.layer)).then(pieces.layers(
                module,
                middle..range.end,
                |costs| costs.without_recompute,
            ));
            if range.end == self.model.modules[range.module].layers {
                cost = cost.then(pieces.output_part(range.output));
            }
        }
        cost
    }

    /// Returns the stage cost for mixed layer strategies. Layers of several kinds count with their
    /// mean over the module.
    pub(super) fn mixed_stage_cost(&self, ranges: &[LayerRange], microbatch: usize, mut mix: StrategyMix) -> LayerCost {
        let mut cost = LayerCost::default();
        for range in ranges {
            let pieces = self.pieces[range.module].of(microbatch);
            if range.begins() {
                cost = cost.then(pieces.input);
            }
            let layers = self.strategies[range.module].of(microbatch);
            for (layer, count) in layers.iter().zip(mix.take(range.len())) {
                cost = cost.then(layer.times(count));
            }
            if range.end == self.model.modules[range.module].layers {
                cost = cost.then(pieces.output_part(range.output));
            }
        }
        cost
    }

    /// Returns the cell cost for mixed layer strategies.
    pub fn mixed_cell(
        &self,
        partition: &Partition,
        replica_layout: ReplicaLayout,
        (stage, microbatch): (usize, usize),
        mix: StrategyMix,
    ) -> LayerCost {
        let ranges = &partition.stages[stage];
        let traffic = self.sharded_traffic(ranges, replica_layout);
        let cost = self.as_run(self.mixed_stage_cost(ranges, microbatch, mix), traffic, self.host_microbatch());
        LayerCost { transient: cost.transient + self.gathered_bytes(ranges, replica_layout), ..cost }
    }

    /// Adds the communication of ZeRO 2 and 3, and host time.
    pub(super) fn as_run(&self, cost: LayerCost, traffic: ShardedTraffic, host: Seconds) -> LayerCost {
        cost.with_sharding(traffic, self.training.data_overlap).with_host_time(host)
    }

    /// Host time per microbatch.
    pub(super) fn host_microbatch(&self) -> Seconds {
        Rates::new(&self.cluster.device).host_microbatch()
    }

    /// Returns the layer cost per strategy for a module and a microbatch.
    pub fn strategy_layers(&self, module: usize, microbatch: usize) -> &[LayerCost; 4] {
        self.strategies[module].of(microbatch)
    }

    /// Returns a lower bound on the forward plus backward time of layers for all microbatches, in s: each layer runs
    /// with its fastest strategy.
    pub fn min_strategy_work(&self, ranges: &[LayerRange]) -> f64 {
        let fastest = |costs: &[LayerCost; 4]| {
            let times = costs.iter().map(|cost| (cost.forward + cost.input_grad + cost.weight_grad).secs());
            times.fold(f64::INFINITY, f64::min)
        };
        let range_work = |range: &LayerRange| {
            let counted = self.strategies[range.module].counted();
            f64::from(range.len()) * counted.map(|(costs, count)| f64::from(count) * fastest(costs)).sum::<f64>()
        };
        ranges.iter().map(range_work).sum()
    }

    /// Returns whether the stage must send its input gradient, because preceding layers are
    /// trained.
    pub(super) fn sends_input_gradient(&self, ranges: &[LayerRange]) -> bool {
        ranges.first().is_some_and(|range| {
            if range.begins() {
                self.model.needs_gradient(range.module)
            } else {
                self.model.module_gradients(range.module) != Gradients::None
            }
        })
    }

    /// Creates the route from stage `from` to stage `to` for the input (or its gradient) of stage
    /// `entered`.
    pub(super) fn route(
        &self,
        partition: &Partition,
        entered: usize,
        replica_layout: ReplicaLayout,
        [from, to]: [usize; 2],
    ) -> Route {
        let range = partition.stages[entered][0];
        let device = |stage: usize| {
            let rank = partition.placement.rank_for_stage(stage, replica_layout.pipeline as usize) as u32;
            self.first_device
                + rank * self.devices_per_rank(replica_layout)
                + replica_layout.replica * self.tensor * self.training.context_parallel
        };
        Route {
            range,
            hidden: f64::from(self.model.modules[range.module].hidden),
            hop: Hop::between(self.cluster, device(from), device(to)),
            gathers: (!self.training.sequence_parallel).then(|| Group::placed(self.cluster, self.tensor, 1)),
        }
    }

    /// Returns the send time on a route. Each tensor-parallel device sends a shard. Without
    /// sequence parallelism, the receiving group then gathers the full tensor.
    pub(super) fn send(&self, route: &Route, microbatch: usize) -> Nanos {
        let load = &self.loads[microbatch];
        let Route { range, hidden, hop, gathers } = route;
        let tokens =
            if range.begins() { load.entering(self.model, range.module) } else { load.modules[range.module].tokens };
        let context = f64::from(self.training.context_parallel);
        let total_bytes = self.training.width() * tokens * hidden / context;
        let sent = hop.time(total_bytes / f64::from(self.tensor));
        let gathers = gathers.as_ref().filter(|_| sent > Seconds::ZERO);
        (sent + gathers.map_or(Seconds::ZERO, |group| group.all_gather(total_bytes))).to_nanos()
    }
}

/// Route to the input of a stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    /// First layer range of the receiving stage.
    range: LayerRange,
    /// Hidden size of its module.
    hidden: f64,
    hop: Hop,
    /// Group for the all-gather after the send.
    gathers: Option<Group>,
}

/// Cache with the last forward and backward route per stage.
pub(super) struct Routes {
    last: Vec<[Option<(usize, Route)>; 2]>,
}

impl Routes {
    pub(super) fn new(stages: usize) -> Self {
        Self { last: vec![[None; 2]; stages] }
    }

    /// Returns the route to `to`. Calls `make` if the cached route has a different target.
    pub(super) fn to(&mut self, stage: usize, back: bool, to: usize, make: impl FnOnce() -> Route) -> &Route {
        let last = &mut self.last[stage][usize::from(back)];
        if last.is_none_or(|(known, _)| known != to) {
            *last = None;
        }
        &last.get_or_insert_with(|| (to, make())).1
    }
}

/// Returns the next stage (forward) and the previous stage (gradient) for a microbatch. Joined
/// modules end on the same rank and start on the same rank, so the function uses the first.
pub(super) fn neighbours(flows: &Flows, stage: usize, microbatch: usize) -> [Option<usize>; 2] {
    let stages = flows.microbatch_stages(microbatch);
    let next = if stage + 1 < stages.end {
        Some(stage + 1)
    } else {
        flows.outputs(microbatch).first().map(|&output| flows.microbatch_stages(output as usize).start)
    };
    let previous = if stage > stages.start {
        Some(stage - 1)
    } else {
        flows.inputs(microbatch).first().map(|&input| flows.microbatch_stages(input as usize).end - 1)
    };
    [next, previous]
}
